"""Base class of parsers with a network: encoding, labels, tags and lemmas; subclasses find the heads."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.models.devices import SHAPES_ONLY, choose_device, send
from mh4.models.encoder import FileError
from mh4.models.encoders import ENCODERS
from mh4.models.host_settings import settings_put_aside
from mh4.models.network import Encoded, ParserNetwork, S
from mh4.models.randomness import Initial, Randomness

from .ahead import WORKERS
from .answers import Answers
from .base import Parser
from .calibration import Calibration
from .column_reader import ColumnChoices, ColumnReader
from .config import NetworkParserConfig
from .definition import Definition
from .folder import ModelFolder
from .model_files import CONFIG, WEIGHTS, misfit, write_tensors
from .prediction import Found, FoundBatch, LabelledBatch, PredictionBatch, ScoredBatch, TreeArcs
from .profiling import booked_here, stage
from .relations import ChosenRelations, RelationReader, TreeRelations
from .request import Request
from .runtime import Runtime

BATCH_COST = 3_000  # limit of a prediction batch in words, or in what `Encoder.cost` counts
BATCH_CELLS = 400_000  # limit of the cells of one channel's matrices in a prediction batch
PADDED_CELLS = 20_000  # limit of padding among these cells on a CPU, where more padding costs more than another batch

C = TypeVar("C", bound=NetworkParserConfig)


class MisfitError(ValueError):
    """The weights do not fit the network."""


class NetworkParser(Parser, Generic[C, S]):
    """A parser with a network and a vocabulary; subclasses implement `start_scores` and `find_heads`.

    Weights are random unless those of a trained network are given; `MisfitError` if these do not fit the network.

    Attributes
    ----------
    threads : int or None
        Threads for finding heads; None means one per core.
    ahead : int
        How many scored batches, and how many labelled ones, may wait for the next stage. Above 0, a separate thread
        finds trees, so that a GPU scores one batch while the CPU decodes another and prepares a third.
    randomness : Randomness
        Source of the initial weights and of all randomness in training, seeded by the configuration.
    calibration : Calibration or None
        Turns margins into probabilities.
    calibration_problem : str or None
        Why the calibration of a loaded model could not be read.
    folder : Path or None
        The folder that the parser was loaded from.
    label_bonus : float
        Weight of relations in the scores of trees.
    """

    config_type: type[C]
    label_bonus = 0.0

    def __init__(
        self,
        definition: Definition[C],
        device: str,
        make_scorer: Callable[[int], S],
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.config = config = definition.config
        self.vocabulary = vocabulary = definition.vocabulary
        self.spaced_words = vocabulary.spaced
        self.device = choose_device(device)
        self.threads: int | None = None
        self.calibration: Calibration | None = None
        self.calibration_problem: str | None = None
        self.folder: Path | None = None
        self.ahead = 1 if self.device.type == "cuda" else 0
        self.randomness = Randomness(config.training.seed, self.device)
        # With given weights, the network has shapes only, so that a misfit is found before any memory is allocated.
        with settings_put_aside(), Initial(self.randomness) if weights is None else torch.device(SHAPES_ONLY):
            network = ParserNetwork(
                ENCODERS[config.encoder.kind](config.encoder, definition.encoder_files),
                config.scorers,
                config.weights,
                make_scorer,
                len(vocabulary.relations),
                len(vocabulary.tags),
                len(vocabulary.tag_pairs),
                None if vocabulary.columns is None else vocabulary.columns.classes,
            )
        if weights is not None:
            if problem := misfit(weights, network.state_dict()):
                raise MisfitError(problem)
            network.load_state_dict({name: weight.clone() for name, weight in weights.items()}, assign=True)
            network.eval()
        network.draw_from(self.randomness)
        self.network = network.to(self.device)
        self.places, self.treebanks = vocabulary.places, network.encoder.treebanks
        self.relations = RelationReader(vocabulary.relations, vocabulary.places)
        self.reader: ColumnReader | None = None
        if vocabulary.columns is not None and self.network.annotator is not None:
            self.reader = ColumnReader(
                vocabulary.columns, self.network.annotator, self.device, vocabulary.relations, config.columns
            )
            self.annotates = self.reader.annotates

    @property
    def longest(self) -> int:
        return min(super().longest, self.network.encoder.longest)

    @property
    def definition(self) -> Definition[C]:
        """Everything that defines the parser apart from its weights."""
        return Definition(self.config, self.vocabulary, self.network.encoder.files())

    def batches(self, sentences: Sequence[Sentence]) -> Iterator[list[int]]:
        """Yield the indices of the sentences in each batch."""
        lengths, costs = [len(sentence) for sentence in sentences], list(map(self.network.encoder.cost, sentences))
        return prediction_batches(lengths, costs, PADDED_CELLS if self.device.type == "cpu" else BATCH_CELLS)

    def encode(self, sentences: Sequence[Sentence], treebank: str | None = None) -> Encoded:
        """Run the encoder on some sentences, which are treated as belonging to ``treebank``, one of `treebanks`."""
        with stage("collate"):
            encoder = self.network.encoder
            batch = encoder.collate([encoder.prepare(sentence, treebank) for sentence in sentences])
        with stage("encode"):
            return self.network.encode(batch.to(self.device))

    @abstractmethod
    def start_scores(self, encoded: Encoded) -> Any:
        """The scores of a batch for `find_heads`; they may still be on their way to the host."""

    @abstractmethod
    def find_heads(self, scores: Any, sentences: Sequence[Sentence], request: Request) -> Sequence[Found]:
        """Find the trees of each sentence of a batch, from the result of `start_scores`."""

    @classmethod
    def read_folder(cls, folder: ModelFolder, runtime: Runtime) -> Self:
        definition = folder.definition(cls.config_type)
        # Earlier versions saved weights of features, an auxiliary task, and of taggers without a loss weight.
        left_out = ("features.",) if definition.config.weights.tagger_weight else ("features.", "taggers.")
        weights = {name: weight for name, weight in folder.weights().items() if not name.startswith(left_out)}
        try:
            parser = cls(definition, choose_device(runtime.device).type, runtime.search, weights)  # type: ignore[arg-type]
        except FileError as error:
            raise DataError(f"{folder.encoder_files.path(error.name)}: {error.problem}") from None
        except MisfitError as error:
            raise DataError(f"{folder / WEIGHTS}: does not fit {folder / CONFIG}: {error}") from None
        parser.threads = runtime.threads
        parser.meta = folder.meta
        try:
            parser.calibration = folder.calibration
        except DataError as error:  # raised only when confidence is requested
            parser.calibration_problem = str(error)
        parser.folder = folder.path
        return parser

    def write(self, folder: ModelFolder) -> None:
        write_tensors(folder / WEIGHTS, self.network.kept_weights())
        if self.calibration is not None:
            self.calibration.save(folder.path)
        folder.write_definition(*self.definition)

    @property
    def workers(self) -> int:
        return min(super().workers, self.threads or WORKERS) if self.device.type == "cpu" else 1

    def _reason(self, columns: frozenset[str]) -> str:
        known = self.vocabulary.columns is not None
        return "the treebank that it was trained on has none" if known else super()._reason(columns)

    def _answer(self, sentences: Sequence[Sentence], request: Request) -> Answers:
        return self._answer_and_note(sentences, request, None)

    def _answer_and_note(
        self, sentences: Sequence[Sentence], request: Request, note: Callable[[list[int], Any], None] | None
    ) -> Answers:
        """Answer a request; ``note``, if given, is called with the indices and the scores of each batch."""
        answers = Answers([Annotation()] * len(sentences))
        warnings: dict[int, str] = {}
        if self.network.training:
            self.network.eval()
        scored: deque[ScoredBatch] = deque()
        labelled: deque[LabelledBatch] = deque()

        def settle(count: int) -> None:
            while len(scored) > count:
                labelled.append(self._label(self._find_trees(scored.popleft())))
            while len(labelled) > count:
                batch = labelled.popleft()
                with stage("label"):
                    for i, found, annotation in zip(batch.batch.indices, batch.found, self._read(batch), strict=True):
                        if found.warning:
                            warnings[i] = found.warning
                        if found.error and request.heads:
                            answers.errors[i] = found.error
                        else:
                            answers.annotations[i] = annotation

        with settings_put_aside(), ThreadPoolExecutor(1, thread_name_prefix="mh4-trees") as background:
            for indices in self.batches(sentences):
                batch = PredictionBatch(indices, [sentences[i] for i in indices], request)
                scored.append(self._score(batch, note, background))
                settle(self.ahead)
            settle(0)
        answers.warnings += [warnings[i] for i in sorted(warnings)]
        return answers

    @torch.inference_mode()
    def _score(
        self, batch: PredictionBatch, note: Callable[[list[int], Any], None] | None, background: Executor
    ) -> ScoredBatch:
        indices, sentences, request = batch
        encoded = self.encode(sentences, request.treebank)
        if not request.heads and not self._annotates_by_trees(request):
            return ScoredBatch(batch, encoded, lambda: [Found([])] * len(sentences))
        with stage("score"):
            scores = self.start_scores(encoded)

        def find_heads() -> Sequence[Found]:
            with stage("decode"):
                if note is not None:
                    note(indices, scores)
                return self.find_heads(scores, sentences, request)

        find = background.submit(booked_here(find_heads)).result if self.ahead else find_heads
        return ScoredBatch(batch, encoded, find)

    def _find_trees(self, scored: ScoredBatch) -> FoundBatch:
        found = scored.find_heads()
        return FoundBatch(scored.batch, scored.encoded, found, TreeArcs.of(found))

    @torch.inference_mode()
    def _label(self, found: FoundBatch) -> LabelledBatch:
        batch, encoded, _, arcs = found
        with stage("label"):
            sentences, heads, dependents = (send(torch.from_numpy(array), self.device) for array in arcs[:3])
            label_scores = self.network.label_scores(encoded.states, sentences, heads, dependents)
            relations = self.relations.choose(label_scores, heads, batch.request)
            if batch.request.unique or batch.request.keep_heads:
                relations = self.relations.settled(relations, arcs.heads, arcs.places, batch.sentences, batch.request)
            if batch.request.among > 1:
                found = self._ranked(found, relations)
        return LabelledBatch(batch, found.found, found.arcs, relations, self._choose_columns(found, relations))

    def _ranked(self, batch: FoundBatch, relations: ChosenRelations) -> FoundBatch:
        """The best trees of each sentence by their scores and those of their relations, as many as requested."""
        (_, sentences, request), _, trees, arcs = batch
        found, places = [], []
        for sentence, one, own in zip(sentences, trees, arcs.places, strict=True):
            totals = []
            for tree, place in zip(one.trees, own, strict=True):
                of_tree = self.relations.read(relations, place, sentence, request)
                gain = float(of_tree.logs.sum() - self.label_bonus * of_tree.best_logs.sum())
                totals.append((0.0 if math.isnan(tree.score) else tree.score) + gain)
            order = sorted(range(len(totals)), key=lambda i: -totals[i])[: request.k_best]
            found.append(one._replace(trees=[one.trees[i] for i in order]))
            places.append([own[i] for i in order])
        return batch._replace(found=found, arcs=arcs._replace(places=places))

    def _annotates_by_trees(self, request: Request) -> bool:
        """Whether requested columns depend on trees, which must then be found even if the request has no trees."""
        return self.reader is not None and self.reader.knows_relations and bool(request.columns & self.annotates)

    def _choose_columns(self, found: FoundBatch, relations: ChosenRelations) -> ColumnChoices | None:
        (_, sentences, request), encoded, _, arcs = found
        if self.reader is None or self.network.annotator is None or not request.columns & self.annotates:
            return None
        with stage("annotate"):
            lengths = [len(sentence) for sentence in sentences]
            places = (
                np.repeat(np.arange(len(sentences)), lengths),
                np.concatenate([np.arange(1, n + 1) for n in lengths]),
            )
            rows = [send(torch.from_numpy(place), self.device) for place in places]
            scores = self.network.annotator(self.network.annotation_vectors(encoded, *rows))
            of_words = None
            if self._annotates_by_trees(request):
                none = relations.classes.new_full((1,), len(self.vocabulary.relations))
                rows_of_arcs = send(torch.from_numpy(arcs.of_words(lengths)), self.device)
                of_words = torch.cat([relations.classes, none])[rows_of_arcs]
            return self.reader.choose(scores, sentences, request.overwritten, of_words)

    def _read(self, labelled: LabelledBatch) -> list[Annotation]:
        batch, _, arcs, relations, choices = labelled
        found = self._read_trees(labelled)
        if choices is None or self.reader is None:
            return found
        trees = arcs.best_trees(relations.best) if self._annotates_by_trees(batch.request) else None
        columns = self.reader.read(choices, batch.sentences, batch.request, trees)
        return [replace(one, **own) for one, own in zip(found, columns, strict=True)]  # type: ignore[arg-type]

    def _read_trees(self, labelled: LabelledBatch) -> list[Annotation]:
        (_, sentences, request), trees, arcs, relations, _ = labelled
        if not request.heads:
            return [Annotation()] * len(sentences)
        predictions = []
        for sentence, found, places in zip(sentences, trees, arcs.places, strict=True):
            if found.error:
                predictions.append(Annotation())
                continue
            annotations = []
            for tree, own in zip(found.trees, places, strict=True):
                of_tree = self.relations.read(relations, own, sentence, request)
                score = None if math.isnan(tree.score) else tree.score
                confidence = self._confidence(found, of_tree) if request.confidence else None
                annotations.append(Annotation(tree.heads[1:], of_tree.names, score=score, confidence=confidence))
            first, *others = annotations
            predictions.append(replace(first, next_best=tuple(others)) if others else first)
        return predictions

    def _confidence(self, found: Found, relations: TreeRelations) -> Confidence:
        shares = np.where(relations.given, np.inf, np.exp(relations.logs))
        if found.margins is None:
            unknown = np.full(len(shares), np.nan), np.full(len(shares), -1, np.int32)
            return Confidence(*unknown, shares)
        _, margins, runners_up = found.margins
        losses = None if found.losses is None else found.losses[:, 1:]
        confidence = Confidence(margins[1:], runners_up[1:], shares, losses=losses)
        return confidence if self.calibration is None else self.calibration.applied(confidence)

    def _check_relations(self, unique: tuple[str, ...]) -> list[str]:
        unknown = self.relations.check_limits(unique)
        return [f"the model has no relation {', '.join(unknown)} to keep unique"] if unknown else []


def prediction_batches(lengths: Sequence[int], costs: Sequence[int], most_padded: int) -> Iterator[list[int]]:
    """Yield the indices of the sentences in each batch: of similar cost, within the limits on costs and matrix cells.

    ``lengths`` are in words; for ``costs`` see `Encoder.cost`; ``most_padded`` limits the cells used for padding.
    """
    batch: list[int] = []
    longest = needed = 0
    for i in sorted(range(len(lengths)), key=costs.__getitem__):
        own = (lengths[i] + 2) ** 2
        count, longest, needed = len(batch) + 1, max(longest, lengths[i]), needed + own
        cells = count * (longest + 2) ** 2
        if batch and (count * costs[i] > BATCH_COST or cells > BATCH_CELLS or cells - needed > most_padded):
            yield batch
            batch, longest, needed = [], lengths[i], own
        batch.append(i)
    if batch:
        yield batch
