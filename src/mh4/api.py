"""The public functions: load or train a parser, read, write, evaluate and draw."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.drawing import Drawing
from mh4.data.errors import ErrorPolicy
from mh4.data.sentence import Sentence
from mh4.models.encoders import DEFAULT, PRETRAINED
from mh4.parsers.base import Parser
from mh4.parsers.checking import check_number
from mh4.parsers.config import ChartConfig, Config, GreedyConfig, PerceptronConfig, make_config
from mh4.parsers.packages.download import download
from mh4.parsers.registry import load
from mh4.parsers.request import Request
from mh4.training.job import TrainingJob
from mh4.training.presets import DEFAULT_PRESET, PRESETS, PRETRAINED_PRESET
from mh4.training.running import run_training
from mh4.training.treebanks import Files
from mh4.trees.evaluation import evaluate
from mh4.trees.significance import compare

__all__ = [
    "Parser",
    "Request",
    "compare",
    "configure",
    "download",
    "draw",
    "evaluate",
    "load",
    "read_conllu",
    "train",
    "write_conllu",
]

SCORERS = ("bilstm", "perceptron")


def configure(
    *,
    decoder: str | None = None,
    system: str | None = None,
    oracle: str | None = None,
    scorer: str = "bilstm",
    preset: str | None = None,
    encoder: str | Path | None = None,
    vectors: str | Path | None = None,
    seed: int = 1,
    epochs: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Config:
    """Return the configuration of a parser to train; parameters as for `train`.

    Raises
    ------
    ValueError
        An argument is unknown, out of range, or excludes another; the message lists the alternatives.
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
    if scorer == "perceptron":
        for what, given in (("a pretrained encoder is", encoder), ("word vectors are", vectors)):
            if given is not None:
                raise ValueError(f"{what} for networks; the perceptron has none")
    if preset == PRETRAINED_PRESET and encoder is None:
        raise ValueError(f'preset {preset} is for a pretrained encoder; name its folder, as in encoder="FOLDER"')
    if epochs is not None:
        epochs = check_number("epochs", epochs)
    settings = settings or {}
    perceptron = scorer == "perceptron"
    if encoder is None and "encoder" not in settings and not perceptron:
        for name in settings:
            if hasattr(PRETRAINED, name) and not hasattr(DEFAULT, name):
                raise ValueError(f'{name} is a setting of pretrained encoders; name one, as in encoder="FOLDER"')
    chosen = {
        "decoder": decoder,
        "system": system,
        "oracle": oracle,
        "seed": seed,
        "iterations" if perceptron else "max_epochs": epochs,
    }
    if vectors is not None:
        if not str(vectors):
            raise ValueError("word vectors are a file; its path is empty")
        chosen["vectors"] = str(vectors)
    if encoder is not None:
        chosen |= {"encoder": PRETRAINED.kind, "pretrained": str(encoder)}
    default = DEFAULT_PRESET if encoder is None else PRETRAINED_PRESET
    values = {} if perceptron else dict(PRESETS[preset or default])
    values |= {name: value for name, value in chosen.items() if value is not None} | dict(settings)
    if system is None:
        return make_config(ChartConfig, values)
    return make_config(PerceptronConfig if perceptron else GreedyConfig, values)


def draw(sentence: Sentence, width: int | None = None) -> Drawing:
    """Draw a sentence's tree: text when it is printed, a picture in a notebook; see `Sentence.draw`."""
    if not isinstance(sentence, Sentence):
        raise TypeError(
            f"mh4.draw takes a Sentence, not {reprlib.repr(sentence)}; write mh4.draw(document[0]) for one of a "
            "document, mh4.draw(parser(words)) for words"
        )
    return sentence.draw(width)


def train(
    train: Files,
    dev: Files,
    output: str | Path,
    *,
    decoder: str | None = None,
    system: str | None = None,
    oracle: str | None = None,
    scorer: str = "bilstm",
    preset: str | None = None,
    encoder: str | Path | None = None,
    vectors: str | Path | None = None,
    seed: int = 1,
    epochs: int | None = None,
    device: str = "auto",
    threads: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    errors: ErrorPolicy = "raise",
    segmenter: bool = True,
    on_step: Callable[..., None] | None = None,
    on_evaluation: Callable[[dict[str, Any]], None] | None = None,
    **settings: Any,
) -> Parser:
    """Train a parser on a treebank and return the model that was best on ``dev``, saved in the folder ``output``.

    Parameters
    ----------
    train, dev
        CoNLL-U files with gold trees. Several treebanks train one model, which can parse as any of them: give mappings
        from their names to files, such as ``{"got": "got-train.conllu", "cu": "cu-train.conllu"}``. The best model has
        the highest mean of the scores on their ``dev`` files.
    output
        The model folder.
    decoder : str, optional
        An exact parser with this decoder (`mh4.decoders.decoder_names`); the default is ``mh4-hybrid``.
    system, oracle : str, optional
        A greedy parser with this transition system instead, and the oracle that trains it.
    scorer : {"bilstm", "perceptron"}
        Scorer of the transitions of a greedy parser.
    preset : {"balanced", "paper", "fast", "best", "large", "pretrained"}, optional
        Hyperparameters of networks: ``paper`` as published, or a richer model trained briefly (``fast``), longer
        (``balanced``, the default), longest (``best``), in large batches, for a GPU (``large``), or with an
        ``encoder`` (``pretrained``, then the default).
    encoder : path, optional
        A pretrained transformer whose states join the learnt word vectors (extra ``mh4[transformers]``): a folder with
        config.json, model.safetensors and tokenizer.json or, if there is no such folder, a name on the hub.
    vectors : path, optional
        A file of word vectors, which are not trained and join the learnt ones: text, plain or compressed; word2vec's
        binary format (.bin); a fastText model (.bin; extra ``mh4[vectors]``). The model keeps the first
        ``vectors_keep`` of them, and those of words in the treebanks.
    seed, epochs : int
        Random seed: equal seeds give equal models on one device; maximum number of passes over the treebank.
    device, threads, errors
        As for `load`, but threads also limit the network; what to do with invalid sentences (see `Errors`).
    resume, overwrite : bool
        Continue from the last evaluation, with the result of uninterrupted training; or replace the folder's model.
    segmenter : bool
        Also train a segmenter for raw text, before the network. Perceptrons have none, since they need tags.
    on_step, on_evaluation : callable, optional
        ``on_step`` is called after every minibatch of a network, with the `Progress` so far and the sums since the last
        evaluation (updated in place later); ``on_evaluation`` after every evaluation, or epoch of a perceptron, with
        the entry of log.jsonl.
    **settings
        Any setting of config.json by its name, such as ``learning_rate=0.001``.

    Raises
    ------
    DataError
        Bad treebanks, or a folder that does not fit ``resume`` and ``overwrite``.
    ValueError, TypeError
        As for `configure`; a treebank is not a path.
    """
    what: dict[str, Any] = {"decoder": decoder, "system": system, "oracle": oracle, "scorer": scorer}
    built_on: dict[str, Any] = {"preset": preset, "encoder": encoder, "vectors": vectors}
    config = configure(**what, **built_on, seed=seed, epochs=epochs, settings=settings)
    where: dict[str, Any] = {"device": device, "threads": threads, "resume": resume, "overwrite": overwrite}
    told: dict[str, Any] = {"errors": errors, "on_step": on_step, "on_evaluation": on_evaluation}
    run_training(TrainingJob(train, dev, output, config, segmenter=segmenter, **where, **told))
    return load(output, device=device, threads=threads)
