"""A batch of sentences on its way through a parser: encoded and scored, trees found, arcs labelled, columns chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import Derivation, Margins
from mh4.models.network import Encoded

from .column_reader import ColumnChoices
from .relations import ChosenRelations
from .request import Request


class Found(NamedTuple):
    """The trees of a sentence of n words.

    Attributes
    ----------
    trees : list of Derivation
        The best ones, best first; at least one if trees are needed and there is no error. A missing score is NaN.
    margins : Margins, optional
        Of the first tree, if requested and available.
    losses : float32 (n + 1, n + 1), optional
        See `Confidence`; only if requested.
    warning : str, optional
        How the trees deviate from the request.
    error : DataError, optional
        Why there is no tree.
    """

    trees: list[Derivation]
    margins: Margins | None = None
    losses: np.ndarray | None = None
    warning: str | None = None
    error: DataError | None = None


class TreeArcs(NamedTuple):
    """The arcs of the trees of a batch, one tree after the other.

    Attributes
    ----------
    sentences, heads, dependents : int64 (A,)
    places : list of lists of slice
        For each sentence, the slice of arcs of each of its trees; empty without a tree.
    """

    sentences: np.ndarray
    heads: np.ndarray
    dependents: np.ndarray
    places: list[list[slice]]

    @classmethod
    def of(cls, found: Sequence[Found]) -> TreeArcs:
        """The arcs of the trees found for each sentence of a batch."""
        none = np.empty(0, np.int64)
        sentences, heads, dependents = [none], [none], [none]
        places: list[list[slice]] = [[] for _ in found]
        start = 0
        for b, one in enumerate(found):
            for tree in one.trees:
                n = len(tree.heads) - 1
                sentences.append(np.full(n, b))
                heads.append(tree.heads[1:])
                dependents.append(np.arange(1, n + 1))
                places[b].append(slice(start, start + n))
                start += n
        return cls(np.concatenate(sentences), np.concatenate(heads), np.concatenate(dependents), places)

    def of_words(self, lengths: Sequence[int]) -> np.ndarray:
        """int64 (M,): index of the arc to each word of the batch in its best tree; −1 without a tree."""
        return np.concatenate(
            [
                np.arange(places[0].start, places[0].stop) if places else np.full(n, -1)
                for n, places in zip(lengths, self.places, strict=True)
            ]
        )

    def best_trees(self, relations: np.ndarray) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Heads (n + 1,) and relations (n,) of each best tree, None without one; ``relations`` (A,) are of all arcs."""
        return [
            (np.concatenate([[-1], self.heads[places[0]]]), relations[places[0]]) if places else None
            for places in self.places
        ]


class PredictionBatch(NamedTuple):
    """Sentences that are parsed together, their indices among all sentences, and the request."""

    indices: list[int]
    sentences: list[Sentence]
    request: Request


class ScoredBatch(NamedTuple):
    """A batch with context vectors, and a function that finds its trees, or waits for a thread that does."""

    batch: PredictionBatch
    encoded: Encoded
    find_heads: Callable[[], Sequence[Found]]


class FoundBatch(NamedTuple):
    """A batch with the trees of each sentence."""

    batch: PredictionBatch
    encoded: Encoded
    found: Sequence[Found]
    arcs: TreeArcs


class LabelledBatch(NamedTuple):
    """A batch with relations and, if requested, columns; they may still be on their way to the host."""

    batch: PredictionBatch
    found: Sequence[Found]
    arcs: TreeArcs
    relations: ChosenRelations
    columns: ColumnChoices | None
