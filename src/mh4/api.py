"""All that a user needs: load or train a parser, parse, read, write, evaluate and draw."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.document import Document
from mh4.data.drawing import Drawing
from mh4.data.errors import ErrorPolicy, Errors
from mh4.data.guesses import PARSER, Guided
from mh4.data.sentence import Sentence
from mh4.data.stream import Stream
from mh4.models.devices import check_device
from mh4.parsers.base import CalledWithWords, Count, TreebankParser
from mh4.parsers.checking import check_flag, check_number
from mh4.parsers.config import ChartConfig, Config, GreedyConfig, PerceptronConfig, make_config
from mh4.parsers.ensemble import EnsembleParser, check_combination
from mh4.parsers.registry import load_parser
from mh4.parsers.request import CallOptions, ParseOptions
from mh4.parsers.sources import as_sentences, words_alone
from mh4.training.perceptron import train as train_perceptron
from mh4.training.presets import DEFAULT_PRESET, PRESETS
from mh4.training.segmenter import segmenter_options
from mh4.training.trainer import train as train_network
from mh4.trees.evaluation import Evaluation, evaluate
from mh4.trees.significance import compare

__all__ = ["Parser", "compare", "configure", "draw", "evaluate", "load", "read_conllu", "train", "write_conllu"]

SCORERS = ("bilstm", "perceptron")


class Parser(Guided, CalledWithWords):
    """A trained parser: exact, greedy, perceptron or an ensemble; any number of threads may share it.

    Parameters
    ----------
    *models : str, Path or mh4.parsers.base.TreebankParser
        A model folder. Several folders make an ensemble, the best model first.
    device : {"auto", "cpu", "cuda"}
        Where networks run; ``auto`` uses CUDA if available.
    search : {"exact", "beam:K", "greedy"}
        How a model with a decoder finds the tree.
    threads : int, optional
        CPU threads for decoding; by default one per core.
    combine : {"votes", "scores"}
        How an ensemble decides; see `mh4.parsers.ensemble.EnsembleParser`.

    Attributes
    ----------
    model : mh4.parsers.base.TreebankParser
        The parser itself, of its own class, or the ensemble.

    Raises
    ------
    DataError
        Something in a folder is missing or damaged.
    ValueError
        No model, or an option that the models do not have.
    TypeError
        Something is no model.

    Examples
    --------
    >>> parser = Parser.load("models/hu")                       # doctest: +SKIP
    >>> parser(["A", "kutya", "ugat", "."]).heads               # doctest: +SKIP
    >>> for sentence in parser.parse("input.conllu"): ...       # doctest: +SKIP
    """

    def __init__(
        self,
        *models: str | Path | TreebankParser,
        device: str = "auto",
        search: str = "exact",
        threads: int | None = None,
        combine: str = "votes",
    ) -> None:
        if not models:
            raise ValueError('no model: write mh4.Parser("FOLDER")')
        for model in models:
            if not isinstance(model, str | Path | TreebankParser):
                raise TypeError(
                    f"a model is a folder; write mh4.load('A', 'B') for an ensemble of several, not {model!r}"
                )
        check_combination(combine)
        members = [
            model if isinstance(model, TreebankParser) else load_parser(model, device, search, threads)
            for model in models
        ]
        self.model = members[0] if len(members) == 1 else EnsembleParser(members, combine=combine)

    @classmethod
    def load(
        cls,
        *models: str | Path,
        device: str = "auto",
        search: str = "exact",
        threads: int | None = None,
        combine: str = "votes",
    ) -> Parser:
        """The same as ``Parser(…)``."""
        return cls(*models, device=device, search=search, threads=threads, combine=combine)

    _guesses = PARSER

    def __repr__(self) -> str:
        return f"Parser({self.model!r})"

    def _advice(self, name: str) -> str | None:
        of_model = name != "model" and hasattr(self.model, name)
        return super()._advice(name) or (f"parser.model.{name}" if of_model else None)

    def _call(self, words: Any, **options: Unpack[CallOptions]) -> Sentence | Document:
        return self.model(words, **options)

    def parse(
        self,
        source: str | Path | Iterable[Sentence | Sequence[str]],
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        **options: Unpack[ParseOptions],
    ) -> Stream[Sentence]:
        """Parse a file of CoNLL-U or text, or sentences; see `mh4.parsers.base.TreebankParser.parse`."""
        return self.model.parse(source, errors=errors, format=format, **options)

    def pipe(
        self, items: Iterable[str | Sentence | Sequence[str]], **options: Unpack[CallOptions]
    ) -> Stream[Sentence | Document]:
        """Parse many texts or lists of words together; see `mh4.parsers.base.TreebankParser.pipe`."""
        return self.model.pipe(items, **options)

    def k_best(self, words: Sentence | Sequence[str], k: int, *, keep_heads: bool = False) -> list[Sentence]:
        """The k best trees of a sentence, best first, each with its score."""
        return self.model.k_best(words, k, keep_heads=keep_heads)

    def parse_file(
        self,
        source: str | Path,
        target: str | Path,
        *,
        errors: ErrorPolicy = "raise",
        format: str = "conllu",
        min_confidence: float | None = None,
        batch_words: int | None = None,
        on_progress: Callable[[Count], None] | None = None,
        **options: Unpack[ParseOptions],
    ) -> Count:
        """Parse a file into a CoNLL-U file, which appears when it is whole; returns the sentences and words.

        See `mh4.parsers.base.TreebankParser.parse_file`.
        """
        return self.model.parse_file(
            source,
            target,
            errors=errors,
            format=format,
            min_confidence=min_confidence,
            batch_words=batch_words,
            on_progress=on_progress,
            **options,
        )

    def evaluate(
        self, gold: str | Path | Iterable[Sentence], *, given: str | Iterable[str] | None = None
    ) -> Evaluation:
        """Parse the words of gold trees, a file or sentences, alone, and score the result; see `mh4.evaluate`.

        ``given`` are gold columns that the parser gets all the same, of "upos", "xpos", "feats" and "lemmas".
        """
        sentences = list(read_conllu(gold) if isinstance(gold, str | Path) else as_sentences(gold))
        return evaluate(sentences, self.parse(words_alone(sentences, given)))

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the model to another folder; see `mh4.parsers.base.TreebankParser.save`."""
        self.model.save(folder, overwrite=overwrite)

    @property
    def can_keep_heads(self) -> bool:
        """Whether given heads can be kept and the others decoded around them."""
        return self.model.can_keep_heads

    @property
    def annotates(self) -> frozenset[str]:
        """Which of the columns "upos", "xpos", "feats" and "lemmas" are predicted beside trees."""
        return self.model.annotates

    @property
    def meta(self) -> Mapping[str, Any]:
        """What meta.json says of the model: treebank, scores on dev, version, …; empty for an ensemble."""
        return self.model.meta

    @staticmethod
    def train(*arguments: Any, **options: Any) -> Parser:
        """See `mh4.train`."""
        return train(*arguments, **options)


def load(
    *models: str | Path,
    device: str = "auto",
    search: str = "exact",
    threads: int | None = None,
    combine: str = "votes",
) -> Parser:
    """A parser of a model folder, or an ensemble of several; see `Parser`."""
    return Parser(*models, device=device, search=search, threads=threads, combine=combine)


def configure(
    *,
    decoder: str | None = None,
    system: str | None = None,
    oracle: str | None = None,
    scorer: str = "bilstm",
    preset: str | None = None,
    seed: int = 1,
    epochs: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration of a parser to be trained; parameters as for `train`.

    Raises
    ------
    ValueError
        Something is unknown, out of range, or does not go with the rest; the message says what would.
    """
    if scorer not in SCORERS:
        raise ValueError(f"unknown scorer {scorer!r}; known: {', '.join(SCORERS)}")
    if system is None and (oracle is not None or scorer == "perceptron"):
        raise ValueError('an oracle and the perceptron need a transition system; choose one, as in system="arc-eager"')
    if system is not None and decoder is not None:
        raise ValueError("choose a decoder (for an exact parser) or a system (for a greedy one), not both")
    if scorer == "perceptron" and preset is not None:
        raise ValueError("presets are for networks; the perceptron has none")
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}")
    if epochs is not None:
        epochs = check_number("epochs", epochs)
    perceptron = scorer == "perceptron"
    chosen = {
        "decoder": decoder,
        "system": system,
        "oracle": oracle,
        "seed": seed,
        "iterations" if perceptron else "max_epochs": epochs,
    }
    values = {} if perceptron else dict(PRESETS[preset or DEFAULT_PRESET])
    values |= {name: value for name, value in chosen.items() if value is not None} | dict(settings or {})
    if system is None:
        return make_config(ChartConfig, values)
    return make_config(PerceptronConfig if perceptron else GreedyConfig, values)


def draw(sentence: Sentence) -> Drawing:
    """A sentence's tree: text when it is printed, a picture in a notebook."""
    if not isinstance(sentence, Sentence):
        raise TypeError(f"a Sentence is drawn, not {sentence!r}; sentences have trees when they were parsed or read")
    return sentence.draw()


def train(
    train: str | Path,
    dev: str | Path,
    output: str | Path,
    *,
    decoder: str | None = None,
    system: str | None = None,
    oracle: str | None = None,
    scorer: str = "bilstm",
    preset: str | None = None,
    seed: int = 1,
    epochs: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    errors: ErrorPolicy = "raise",
    segmenter: bool | str = True,
    on_step: Callable[..., None] | None = None,
    on_evaluation: Callable[[dict[str, Any]], None] | None = None,
    **settings: Any,
) -> Parser:
    """Train a parser on a treebank and return the one that was best on ``dev``; it stays in the folder ``output``.

    Parameters
    ----------
    train, dev
        CoNLL-U files with gold trees.
    output
        The model folder.
    decoder : str, optional
        An exact parser with this decoder (`mh4.decoders.decoder_names`); the default is ``mh4-hybrid``.
    system, oracle : str, optional
        A greedy parser with this transition system instead, and the oracle that trains it.
    scorer : {"bilstm", "perceptron"}
        What scores the transitions of a greedy parser.
    preset : {"balanced", "paper", "fast", "best", "large"}, optional
        Hyperparameters of networks: ``paper`` as published, or a richer model trained briefly (``fast``), longer
        (``balanced``, the default), longest (``best``), or in large batches, for a GPU (``large``).
    seed : int
        Equal seeds give equal models on one device.
    epochs : int, optional
        Stop after this many passes over the treebank at the latest.
    device
        As for `Parser`.
    threads : int, optional
        CPU threads for the network and the decoder, as for ``mh4 train --threads``; by default one per core.
    resume, overwrite : bool
        Continue an interrupted training, or start again in a folder that holds a model.
    errors : {"raise", "skip"} or callable
        What becomes of sentences that are not valid.
    segmenter : bool or str
        Also learn to cut text, beside a network (extra ``mh4[text]``). A string such as ``"epochs=50;dimension=64"``
        are settings of UDPipe's tokenizer. A perceptron never does: it needs tags, which text has not.
    on_step, on_evaluation : callable, optional
        See `mh4.training.trainer.train`.
    **settings
        Any setting of config.json by its name, such as ``learning_rate=0.001``.

    Raises
    ------
    DataError
        Bad treebanks, or a folder that does not fit ``resume`` and ``overwrite``.
    ValueError
        As for `configure`.
    TypeError
        A treebank is no file.
    """
    for treebank in (train, dev):
        if not isinstance(treebank, str | Path):
            raise TypeError(
                f"a treebank is a file, not a {type(treebank).__name__}; mh4.write_conllu(sentences, path) makes one"
            )
    if not isinstance(output, str | Path):
        raise TypeError(f"output is the folder for the model; got {reprlib.repr(output)}")
    # Now, not when everything is trained.
    check_flag("resume", resume)
    check_flag("overwrite", overwrite)
    check_device(device)
    if threads is not None:
        threads = check_number("threads", threads)
    Errors(errors)
    config = configure(
        decoder=decoder,
        system=system,
        oracle=oracle,
        scorer=scorer,
        preset=preset,
        seed=seed,
        epochs=epochs,
        settings=settings,
    )
    options = segmenter_options(segmenter, isinstance(config, PerceptronConfig))
    if isinstance(config, PerceptronConfig):
        if resume:
            raise ValueError("the perceptron trains in minutes and cannot resume; start again with overwrite=True")
        train_perceptron(
            train,
            dev,
            output,
            config,
            overwrite=overwrite,
            errors=errors,
            segmenter=options,
            on_evaluation=on_evaluation,
        )
    else:
        train_network(
            train,
            dev,
            output,
            config,
            device=device,
            threads=threads,
            resume=resume,
            overwrite=overwrite,
            errors=errors,
            segmenter=options,
            on_step=on_step,
            on_evaluation=on_evaluation,
        )
    return Parser(output, device=device, threads=threads)
