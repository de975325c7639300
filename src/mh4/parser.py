"""The parser a user holds: network, vocabulary and decoder together."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mh4.decoders import Decoder, InfeasibleError, get_decoder
from mh4.models.network import ParserNetwork

from .config import Config
from .files import DataError, atomic_output
from .model_folder import WEIGHTS, read_definition, read_tensors
from .treebank import Sentence, read_treebank
from .vocabulary import Vocabulary

log = logging.getLogger("mh4")

ROOT_RELATION = "root"
FALLBACK_SEARCH = "beam:16"  # for sentences whose exact chart would not fit into memory
WINDOW_WORDS = 20_000  # words read ahead so that sentences of similar length share a batch
BATCH_WORDS = 1_500  # words a prediction batch
BATCH_CELLS = 400_000  # cells of one channel's matrices in a prediction batch


def choose_device(device: str) -> torch.device:
    """``auto`` is CUDA when there is one, else the CPU.

    Raises
    ------
    ValueError
        An unknown name, or CUDA where there is none.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ValueError(f"unknown device {device!r}; known: auto, cpu, cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA device here; use --device cpu or auto")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


@dataclass(frozen=True, eq=False)
class Prediction:
    """The tree of one sentence: heads int32 (n + 1,) with ``heads[0] == -1``, and n relations."""

    heads: np.ndarray
    relations: tuple[str, ...]


@dataclass
class StageTimes:
    """Seconds spent in each stage of training or parsing."""

    seconds: dict[str, float] = field(default_factory=dict)
    _last: float = field(default_factory=time.perf_counter)

    def start(self) -> None:
        """Begin a stage now."""
        self._last = time.perf_counter()

    def stop(self, stage: str) -> None:
        """Book the time since the last call on ``stage``."""
        now = time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def share(self, stage: str) -> float:
        """Share of ``stage`` in all booked time, 0 to 1."""
        total = sum(self.seconds.values())
        return self.seconds.get(stage, 0.0) / total if total else 0.0


class TreebankParser(ABC):
    """What every parser does with files, given `predict`."""

    @abstractmethod
    def predict(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> list[Prediction]:
        """Trees of some sentences, in their order."""

    def parse(
        self,
        source: str | Path | Iterable[Sentence],
        output: str | Path | None = None,
        keep_heads: bool = False,
        skip_bad: bool = False,
        on_skip: Callable[[DataError], None] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[tuple[Sentence, Prediction]] | None:
        """Parse CoNLL-U.

        Parameters
        ----------
        source
            A file, ``"-"`` for standard input, or sentences.
        output
            Where to write CoNLL-U; the file appears when it is whole. Without it, pairs of sentence and prediction
            are yielded, in order.
        keep_heads : bool
            Keep the heads that the input has and predict the others, exactly, around them.
        skip_bad : bool
            Leave out sentences that are not valid, after a call of ``on_skip``.
        on_progress
            Called with the sentences and words of each chunk that was written.
        """
        if isinstance(source, (str, Path)):
            source = read_treebank(source, gold=False, skip_bad=skip_bad, on_skip=on_skip)
        pairs = self._parse_stream(source, keep_heads)
        if output is None:
            return pairs
        with atomic_output(output) as stream:
            for sentence, prediction in pairs:
                stream.write(sentence.render(heads=prediction.heads, relations=prediction.relations))
                if on_progress is not None:
                    on_progress(1, len(sentence))
        return None

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[Prediction]:
        """Parse sentences given as lists of words."""
        return self.predict([Sentence.from_tokens(tokens, number=i) for i, tokens in enumerate(sentences, start=1)])

    def _parse_stream(self, sentences: Iterable[Sentence], keep_heads: bool) -> Iterator[tuple[Sentence, Prediction]]:
        window: list[Sentence] = []
        words = 0
        for sentence in sentences:
            window.append(sentence)
            words += len(sentence)
            if words >= WINDOW_WORDS:
                yield from zip(window, self.predict(window, keep_heads), strict=True)
                window, words = [], 0
        yield from zip(window, self.predict(window, keep_heads), strict=True)


class Parser(TreebankParser):
    """A dependency parser: scores from a BiLSTM, trees from an exact decoder.

    Examples
    --------
    >>> parser = Parser.load("models/hu")                            # doctest: +SKIP
    >>> parser.parse_tokens([["A", "kutya", "ugat", "."]])[0].heads  # doctest: +SKIP
    """

    def __init__(self, config: Config, vocabulary: Vocabulary, device: str = "auto", search: str = "exact") -> None:
        self.config = config
        self.vocabulary = vocabulary
        self.device = choose_device(device)
        self.decoder: Decoder = get_decoder(config.decoder, single_root=config.single_root, search=search)
        self.threads: int | None = None
        self.times = StageTimes()
        self.network = ParserNetwork(
            config.network,
            self.decoder.roles,
            vocabulary.word_unknown(config.training.word_unknown),
            vocabulary.character_unknown(config.training.character_unknown),
            len(vocabulary.relations),
            len(vocabulary.tags),
            len(vocabulary.tag_pairs),
        ).to(self.device)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", search: str = "exact") -> Parser:
        """Read a trained model.

        Parameters
        ----------
        folder
            A model folder: config.json, vocab.json, weights.safetensors.
        device : {"auto", "cpu", "cuda"}
        search : {"exact", "beam:K", "greedy"}

        Raises
        ------
        DataError
            Something in the folder is missing or damaged.
        """
        folder = Path(folder)
        parser = cls(*read_definition(folder), device=device, search=search)
        weights = read_tensors(folder / WEIGHTS)
        try:
            parser.network.load_state_dict(weights)
        except RuntimeError as error:
            raise DataError(f"{folder / WEIGHTS}: does not fit {folder / 'config.json'}: {error}") from None
        parser.network.eval()
        return parser

    @classmethod
    def train(cls, train: str | Path, dev: str | Path, output: str | Path, **options: Any) -> Parser:
        """Train on a treebank and return the model that was best on ``dev``.

        Options are those of `mh4.training.train`: ``config``, ``device``, ``resume``, ``skip_bad``, …
        """
        from .training import train as run  # the trainer builds on this class

        run(train, dev, output, **options)
        return cls.load(output, device=options.get("device", "auto"))

    def predict(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> list[Prediction]:
        """Trees of some sentences, in their order."""
        predictions: list[Prediction | None] = [None] * len(sentences)
        self.network.eval()
        for indices in prediction_batches([len(sentence) for sentence in sentences]):
            batch = [sentences[i] for i in indices]
            for i, prediction in zip(indices, self._predict_batch(batch, keep_heads), strict=True):
                predictions[i] = prediction
        return [prediction for prediction in predictions if prediction is not None]

    @torch.inference_mode()
    def _predict_batch(self, sentences: Sequence[Sentence], keep_heads: bool) -> list[Prediction]:
        self.times.start()
        batch = self.vocabulary.batch(sentences).to(self.device)
        self.times.stop("read")
        encoded = self.network.encode(batch)
        self.times.stop("encode")
        scores = self.network.scorer(encoded.roles).cpu().numpy()
        self.times.stop("score")
        trees = self._decode(scores, sentences, keep_heads)
        self.times.stop("decode")
        arcs = (
            np.repeat(np.arange(len(trees)), [len(heads) - 1 for heads in trees]),
            np.concatenate([heads[1:] for heads in trees]),
            np.concatenate([np.arange(1, len(heads)) for heads in trees]),
        )
        indices = [torch.from_numpy(array.astype(np.int64)).to(self.device) for array in arcs]
        label_scores = self.network.label_scores(encoded.states, *indices)
        best = self._best_relations(label_scores, indices[1]).cpu().numpy()
        names = np.array(self.vocabulary.relations, dtype=object)[best]
        cuts = np.cumsum([len(heads) - 1 for heads in trees])[:-1]
        predictions = [
            Prediction(tree, tuple(relations)) for tree, relations in zip(trees, np.split(names, cuts), strict=True)
        ]
        if keep_heads:
            predictions = [keep_relations(s, p) for s, p in zip(sentences, predictions, strict=True)]
        self.times.stop("label")
        return predictions

    def _best_relations(self, scores: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
        """Best relation of each arc; in UD, ``root`` goes to children of the root and to nobody else."""
        root = self.vocabulary.relation_index.get(ROOT_RELATION)
        if root is not None and len(self.vocabulary.relations) > 1:
            is_root_relation = torch.arange(scores.shape[1], device=scores.device) == root
            scores = scores.masked_fill((heads == 0)[:, None] != is_root_relation, float("-inf"))
        return scores.argmax(1)

    def _decode(self, scores: np.ndarray, sentences: Sequence[Sentence], keep_heads: bool) -> list[np.ndarray]:
        lengths = [len(sentence) for sentence in sentences]
        bonus = known_heads_bonus(sentences, scores.shape[-1]) if keep_heads else None
        if all(map(self.decoder.fits, lengths)):
            try:
                return [d.heads for d in self.decoder.decode_batch(scores, lengths, bonus, self.threads)]
            except InfeasibleError:
                if bonus is None:
                    raise
        # One by one, for the sentence that is too long for the chart or has no tree with the given heads.
        trees = []
        for b, sentence in enumerate(sentences):
            size = len(sentence) + 2
            known = None if bonus is None else bonus[b, :size, :size]
            trees.append(self._decode_one(scores[b, :, :size, :size], sentence, known))
        return trees

    def _decode_one(self, scores: np.ndarray, sentence: Sentence, bonus: np.ndarray | None) -> np.ndarray:
        decoder = self.decoder
        if not decoder.fits(len(sentence)):
            if "arc" in decoder.channels:  # no transition system: any tree, by its arc scores alone
                instead, search = "mst", "exact"
                scores = scores[decoder.channels.index("arc") :][:1]
            else:
                instead, search = decoder.name, FALLBACK_SEARCH
            log.warning(
                "%s: %s: the exact %s chart of %d words would not fit into memory; parsed with %s",
                *(sentence.source, sentence.name, decoder.name, len(sentence)),
                search if instead == decoder.name else instead,
            )
            decoder = get_decoder(instead, single_root=decoder.single_root, search=search)
        try:
            return decoder.decode(scores, bonus).heads
        except InfeasibleError as error:
            raise sentence.error(
                f"the given heads cannot all be kept: {error} (drop some, or take a decoder with more trees)"
            ) from None


def keep_relations(sentence: Sentence, prediction: Prediction) -> Prediction:
    """Where a head was given together with its relation, that relation stays."""
    kept = tuple(
        given if head >= 0 and given != "_" else predicted
        for head, given, predicted in zip(sentence.heads[1:], sentence.relations, prediction.relations, strict=True)
    )
    return Prediction(prediction.heads, kept)


def known_heads_bonus(sentences: Sequence[Sentence], size: int) -> np.ndarray:
    """float32 (B, size, size): −inf on every arc that contradicts a head given in the input, else 0."""
    bonus = np.zeros((len(sentences), size, size), np.float32)
    for matrix, sentence in zip(bonus, sentences, strict=True):
        known = np.flatnonzero(sentence.heads[1:] >= 0) + 1
        matrix[:, known] = -np.inf
        matrix[sentence.heads[known], known] = 0.0
    return bonus


def prediction_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices of sentences of similar length, batch by batch, within the limits on words and on matrix cells."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        count = len(batch) + 1
        if batch and (count * lengths[i] > BATCH_WORDS or count * (lengths[i] + 2) ** 2 > BATCH_CELLS):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
