"""Parsers whose scores come from the network: encoding, labels, tags and lemmas, with any way to find the heads."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from mh4.data.confidence import Confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Annotation, Sentence
from mh4.decoders import Derivation, Margins
from mh4.models.devices import SHAPES_ONLY, HostCopy, choose_device, send
from mh4.models.encoder import FileError
from mh4.models.encoders import ENCODERS
from mh4.models.host_settings import settings_put_aside
from mh4.models.network import Encoded, ParserNetwork, S
from mh4.models.randomness import Initial, Randomness

from .base import TreebankParser
from .calibration import Calibration
from .column_reader import ColumnReader
from .config import NetworkParserConfig
from .definition import Definition
from .folder import (
    CONFIG,
    WEIGHTS,
    encoder_file,
    misfit,
    named_folder,
    read_definition,
    read_meta,
    read_tensors,
    write_definition,
    write_tensors,
)
from .profiling import booked_here, stage
from .relations import ChosenRelations, RelationReader, TreeRelations
from .request import Request
from .vocabulary import Vocabulary

BATCH_COST = 1_500  # of a prediction batch: words, or what the encoder counts
BATCH_CELLS = 400_000  # cells of one channel's matrices in a prediction batch

C = TypeVar("C", bound=NetworkParserConfig)


class Found(NamedTuple):
    """What was found for a sentence of n words.

    Attributes
    ----------
    trees : list of Derivation
        The best ones, at least one; where trees have no score, it is NaN.
    margins : Margins, optional
        Of the first tree, if they were asked for and the decoder can tell.
    losses : float32 (n + 1, n + 1), optional
        See `Confidence`; if they were asked for.
    problem : str, optional
        Why nothing more than the best tree was found.
    """

    trees: list[Derivation]
    margins: Margins | None = None
    losses: np.ndarray | None = None
    problem: str | None = None


class ScoredBatch(NamedTuple):
    """Sentences between scores and trees: their indices, and what yields their trees, perhaps found by then."""

    indices: list[int]
    sentences: list[Sentence]
    encoded: Encoded
    find_heads: Callable[[], Sequence[Found | DataError]] | None


class TreeArcs(NamedTuple):
    """The arcs of the trees of a batch, one tree after the other.

    Attributes
    ----------
    sentences, heads, dependents : int64 (A,)
    places : list of lists of slice
        Of each sentence, where the arcs of each of its trees are; empty where there is no tree.
    """

    sentences: np.ndarray
    heads: np.ndarray
    dependents: np.ndarray
    places: list[list[slice]]

    @classmethod
    def of(cls, found: Sequence[Found | DataError]) -> TreeArcs:
        """Those of what was found for each sentence."""
        none = np.empty(0, np.int64)
        sentences, heads, dependents = [none], [none], [none]
        places: list[list[slice]] = [[] for _ in found]
        start = 0
        for b, one in enumerate(found):
            for tree in () if isinstance(one, DataError) else one.trees:
                n = len(tree.heads) - 1
                sentences.append(np.full(n, b))
                heads.append(tree.heads[1:])
                dependents.append(np.arange(1, n + 1))
                places[b].append(slice(start, start + n))
                start += n
        return cls(np.concatenate(sentences), np.concatenate(heads), np.concatenate(dependents), places)

    def best(self) -> list[slice | None]:
        """Where the arcs of the best tree of each sentence are."""
        return [places[0] if places else None for places in self.places]


class LabelledBatch(NamedTuple):
    """Sentences with their trees, or errors; the relations of all words of the trees may still be on their way.

    Without trees where none are needed. ``columns`` are the choices of `ColumnReader`, if any are asked for, on their
    way, too.
    """

    indices: list[int]
    sentences: list[Sentence]
    columns: HostCopy | None
    trees: Sequence[Found | DataError] | None = None
    arcs: TreeArcs | None = None
    relations: ChosenRelations | None = None


class NetworkParser(TreebankParser, Generic[C, S]):
    """Network and vocabulary together; `find_heads` is left to the class of the configuration.

    Attributes
    ----------
    threads : int or None
        Threads for finding heads; None is one per core.
    ahead : int
        Batches that are scored before the trees of the first are needed, and labelled before its labels are. Above 0 a
        thread of its own finds trees, so that a GPU scores a batch while the CPU decodes another and prepares a third.
    randomness : Randomness
        What its first weights and all of its training are drawn from, by the seed of the configuration.
    calibration : Calibration or None
        What its margins mean.
    calibration_problem : str or None
        Why the calibration of a loaded model could not be read.
    folder : Path or None
        Where it was loaded from.
    """

    config_type: type[C]

    def __init__(self, definition: Definition[C], device: str, make_scorer: Callable[[int], S]) -> None:
        self.config = config = definition.config
        self.vocabulary = vocabulary = definition.vocabulary
        self.spaced_words = vocabulary.spaced
        self.device = torch.device(device) if device == SHAPES_ONLY else choose_device(device)
        self.threads: int | None = None
        self.calibration: Calibration | None = None
        self.calibration_problem: str | None = None
        self.folder: Path | None = None
        self.ahead = 1 if self.device.type == "cuda" else 0
        self.randomness = Randomness(config.training.seed, self.device)
        with settings_put_aside(), self.device if self.device.type == SHAPES_ONLY else Initial(self.randomness):
            network = ParserNetwork(
                ENCODERS[config.encoder.kind](config.encoder, definition.encoder_files),
                config.scorers,
                config.weights,
                make_scorer,
                len(vocabulary.relations),
                len(vocabulary.tags),
                len(vocabulary.tag_pairs),
                len(vocabulary.features),
                None if vocabulary.columns is None else vocabulary.columns.classes,
            )
        network.draw_from(self.randomness)
        self.network = network.to(self.device)
        self.places = vocabulary.places
        self.relations = RelationReader(vocabulary.relations, vocabulary.places)
        self.reader: ColumnReader | None = None
        if vocabulary.columns is not None and self.network.annotator is not None:
            self.reader = ColumnReader(vocabulary.columns, self.network.annotator, self.device, vocabulary.relations)
            self.annotates = self.reader.annotates

    @property
    def longest(self) -> int:
        return min(super().longest, self.network.encoder.longest)

    def batches(self, sentences: Sequence[Sentence]) -> Iterator[list[int]]:
        """Indices of sentences that are encoded together, batch by batch."""
        lengths, costs = [len(sentence) for sentence in sentences], list(map(self.network.encoder.cost, sentences))
        return prediction_batches(lengths, costs)

    def encode(self, sentences: Sequence[Sentence]) -> Encoded:
        """What the network makes of some sentences."""
        with stage("collate"):
            encoder = self.network.encoder
            batch = encoder.collate([encoder.prepare(sentence) for sentence in sentences])
        with stage("encode"):
            return self.network.encode(batch.to(self.device))

    @abstractmethod
    def start_scores(self, encoded: Encoded) -> Any:
        """The scores of a batch, for `find_heads`; they need not have arrived."""

    @abstractmethod
    def find_heads(self, scores: Any, sentences: Sequence[Sentence], request: Request) -> Sequence[Found | DataError]:
        """The trees of each sentence of a batch, or its error."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", search: str = "exact", threads: int | None = None) -> Self:
        """Read a trained model.

        Parameters
        ----------
        folder
            A model folder: config.json, vocab.json, weights.safetensors.
        device : {"auto", "cpu", "cuda"}
        search : {"exact", "beam:K", "greedy"}
            See the class.
        threads : int, optional
            For finding trees; by default one per core.

        Raises
        ------
        DataError
            Something in the folder is missing or damaged, or it holds a model of another kind.
        ValueError
            A search that the parser does not have.
        """
        folder, chosen = named_folder(folder), choose_device(device).type
        definition = Definition(*read_definition(folder, cls.config_type, Vocabulary))
        config = definition.config
        weights = read_tensors(folder / WEIGHTS)
        if not config.weights.tagger_weight:  # taggers without a weight, which earlier versions made and saved
            weights = {name: weight for name, weight in weights.items() if not name.startswith("taggers.")}
        try:
            wanted = cls(definition, SHAPES_ONLY, search).network.state_dict()  # type: ignore[arg-type]
        except FileError as error:
            raise DataError(f"{encoder_file(folder, error.name)}: {error.problem}") from None
        if problem := misfit(weights, wanted):
            raise DataError(f"{folder / WEIGHTS}: does not fit {folder / CONFIG}: {problem}")
        parser = cls(definition, chosen, search)  # type: ignore[arg-type]
        parser.threads = threads
        parser.meta = read_meta(folder)
        try:
            parser.calibration = Calibration.load(folder)
        except DataError as error:  # of account to those who ask for confidence
            parser.calibration_problem = str(error)
        parser.folder = folder
        parser.network.load_state_dict(weights)
        parser.network.eval()
        return parser

    def write(self, folder: Path) -> None:
        write_tensors(folder / WEIGHTS, self.network.state_dict())
        if self.calibration is not None:
            self.calibration.save(folder)
        write_definition(folder, self.config, self.vocabulary, self.network.encoder.files())

    def _reason(self, columns: frozenset[str]) -> str:
        known = self.vocabulary.columns is not None
        return "the treebank that it was trained on has none" if known else super()._reason(columns)

    def _answer(self, sentences: Sequence[Sentence], request: Request) -> list[Annotation | DataError]:
        return self._answer_and_note(sentences, request, None)

    def _answer_and_note(
        self, sentences: Sequence[Sentence], request: Request, note: Callable[[list[int], Any], None] | None
    ) -> list[Annotation | DataError]:
        """What is asked of sentences; ``note`` is told the scores of each batch, and which of them it holds."""
        predictions: list[Annotation | DataError | None] = [None] * len(sentences)
        self.network.eval()
        scored: deque[ScoredBatch] = deque()
        labelled: deque[LabelledBatch] = deque()

        def settle(count: int) -> None:
            while len(scored) > count:
                labelled.append(self._find_trees(scored.popleft(), request))
            while len(labelled) > count:
                batch = labelled.popleft()
                with stage("label"):
                    for i, prediction in zip(batch.indices, self._read(batch, request), strict=True):
                        predictions[i] = prediction

        with settings_put_aside(), ThreadPoolExecutor(1, thread_name_prefix="mh4-trees") as background:
            for indices in self.batches(sentences):
                batch = [sentences[i] for i in indices]
                scored.append(self._score_batch(indices, batch, request, note, background))
                settle(self.ahead)
            settle(0)
        return [prediction for prediction in predictions if prediction is not None]

    @torch.inference_mode()
    def _score_batch(
        self,
        indices: list[int],
        sentences: list[Sentence],
        request: Request,
        note: Callable[[list[int], Any], None] | None,
        background: Executor,
    ) -> ScoredBatch:
        encoded = self.encode(sentences)
        if not request.heads and not self._annotates_by_trees(request):
            return ScoredBatch(indices, sentences, encoded, None)
        with stage("score"):
            scores = self.start_scores(encoded)

        def find_heads() -> Sequence[Found | DataError]:
            with stage("decode"):
                if note is not None:
                    note(indices, scores)
                return self.find_heads(scores, sentences, request)

        find = background.submit(booked_here(find_heads)).result if self.ahead else find_heads
        return ScoredBatch(indices, sentences, encoded, find)

    def _annotates_by_trees(self, request: Request) -> bool:
        """Whether columns are asked for that depend on trees: they are the same whether trees are asked for or not."""
        return self.reader is not None and self.reader.knows_relations and bool(request.columns & self.annotates)

    def _choose_columns(self, batch: ScoredBatch, request: Request, relations: Tensor | None) -> HostCopy | None:
        """``relations`` are those of all words, if there are trees; see `ColumnReader.choose`."""
        if self.reader is None or self.network.annotator is None or not request.columns & self.annotates:
            return None
        sentences, encoded = batch.sentences, batch.encoded
        with stage("annotate"):
            lengths = [len(sentence) for sentence in sentences]
            places = (
                np.repeat(np.arange(len(sentences)), lengths),
                np.concatenate([np.arange(1, n + 1) for n in lengths]),
            )
            rows = [send(torch.from_numpy(place), self.device) for place in places]
            scores = self.network.annotator(self.network.annotation_vectors(encoded, *rows))
            overwrite = request.overwrite and "upos" in request.columns
            return HostCopy(*self.reader.choose(scores, sentences, overwrite, relations))

    @torch.inference_mode()
    def _find_trees(self, batch: ScoredBatch, request: Request) -> LabelledBatch:
        if batch.find_heads is None:
            return LabelledBatch(batch.indices, batch.sentences, self._choose_columns(batch, request, None))
        found = batch.find_heads()
        with stage("label"):
            arcs = TreeArcs.of(found)
            sentences, heads, dependents = (send(torch.from_numpy(array), self.device) for array in arcs[:3])
            label_scores = self.network.label_scores(batch.encoded.states, sentences, heads, dependents)
            relations = self.relations.choose(label_scores, heads, request)
        of_words = self._relations_of_words(batch, arcs, relations) if self._annotates_by_trees(request) else None
        columns = self._choose_columns(batch, request, of_words)
        return LabelledBatch(batch.indices, batch.sentences, columns, found, arcs, relations)

    def _relations_of_words(self, batch: ScoredBatch, arcs: TreeArcs, relations: ChosenRelations) -> Tensor:
        """int (M,): the relation that each word of the batch has in its best tree; one past the last without a tree."""
        rows = [
            np.full(len(sentence), -1) if place is None else np.arange(place.start, place.stop)
            for sentence, place in zip(batch.sentences, arcs.best(), strict=True)
        ]
        none = relations.classes.new_full((1,), len(self.vocabulary.relations))
        return torch.cat([relations.classes, none])[send(torch.from_numpy(np.concatenate(rows)), self.device)]

    def _read(self, batch: LabelledBatch, request: Request) -> list[Annotation | DataError]:
        found = self._read_trees(batch, request)
        if batch.columns is None or self.reader is None:
            return found
        trees = self._trees_with_relations(batch) if self._annotates_by_trees(request) else None
        columns = self.reader.read(batch.columns.tensors(), batch.sentences, request, trees)
        return [
            one if isinstance(one, DataError) else replace(one, **values)  # type: ignore[arg-type]
            for one, values in zip(found, columns, strict=True)
        ]

    def _trees_with_relations(self, batch: LabelledBatch) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Heads and relations of the best tree of each sentence, None where there is none."""
        assert batch.arcs is not None
        assert batch.relations is not None
        heads, best = batch.arcs.heads, batch.relations.best.numpy()
        return [
            None if place is None else (np.concatenate([[-1], heads[place]]), best[place])
            for place in batch.arcs.best()
        ]

    def _read_trees(self, batch: LabelledBatch, request: Request) -> list[Annotation | DataError]:
        if not request.heads or batch.trees is None or batch.arcs is None or batch.relations is None:
            return [Annotation()] * len(batch.sentences)
        predictions: list[Annotation | DataError] = []
        for sentence, found, places in zip(batch.sentences, batch.trees, batch.arcs.places, strict=True):
            if isinstance(found, DataError):
                predictions.append(found)
                continue
            candidates = []
            for tree, arcs in zip(found.trees, places, strict=True):
                relations = self.relations.read(batch.relations, arcs, tree.heads, sentence, request)
                score = None if math.isnan(tree.score) else tree.score
                confidence = self._confidence(found, relations) if request.confidence else None
                candidates.append(
                    (relations, Annotation(tree.heads, relations.names, score=score, confidence=confidence))
                )
            if request.among > 1:  # with the relations, another tree may be the best
                candidates.sort(key=lambda pair: -(pair[1].score or 0.0) - pair[0].log)
            first, *others = (annotation for _, annotation in candidates[: request.k_best])
            predictions.append(replace(first, next_best=tuple(others)) if others else first)
        return predictions

    def _confidence(self, found: Found, relations: TreeRelations) -> Confidence:
        n = len(relations.names)
        shares = np.full(n + 1, np.nan)
        if relations.logs is not None:
            shares[1:] = np.where(relations.given, np.inf, np.exp(relations.logs))
        if found.margins is None:
            return Confidence(np.full(n + 1, np.nan), np.full(n + 1, -1, np.int32), shares)
        confidence = Confidence(found.margins.values, found.margins.heads, shares, losses=found.losses)
        return confidence if self.calibration is None else self.calibration.applied(confidence)

    def _check_relations(self, unique: tuple[str, ...]) -> None:
        if unknown := self.relations.check_limits(unique):
            self._warn_once(f"the model has no relation {', '.join(unknown)} to keep unique")


def prediction_batches(lengths: Sequence[int], costs: Sequence[int]) -> Iterator[list[int]]:
    """Indices of sentences of similar cost, batch by batch, within the limits on costs and on matrix cells.

    ``lengths`` are in words; for ``costs`` see `Encoder.cost`.
    """
    batch: list[int] = []
    longest = 0
    for i in sorted(range(len(lengths)), key=costs.__getitem__):
        count, longest = len(batch) + 1, max(longest, lengths[i])
        if batch and (count * costs[i] > BATCH_COST or count * (longest + 2) ** 2 > BATCH_CELLS):
            yield batch
            batch, longest = [], lengths[i]
        batch.append(i)
    if batch:
        yield batch
