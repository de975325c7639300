"""The output of a parser or tagger for a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .confidence import Confidence


@dataclass(frozen=True, eq=False)
class Annotation:
    """Predictions for the n words of a sentence; None for columns that are not predicted.

    Attributes
    ----------
    heads
        int32 (n,): 0 is the root.
    relations, upos, xpos, feats, lemmas
        n values each.
    score
        Score of the tree, if it has one.
    confidence
        The parser's confidence in the tree, if requested.
    next_best
        Annotations with the next best trees, if requested.
    """

    heads: np.ndarray | None = None
    relations: tuple[str, ...] | None = None
    upos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    feats: tuple[str, ...] | None = None
    lemmas: tuple[str, ...] | None = None
    score: float | None = None
    confidence: Confidence | None = None
    next_best: tuple[Annotation, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotation):
            return False
        mine, theirs = dict(vars(self)), dict(vars(other))
        return np.array_equal(mine.pop("heads"), theirs.pop("heads")) and mine == theirs

    @property
    def padded_heads(self) -> np.ndarray:
        """int32 (n+1,): `heads` preceded by -1 for the root; a ValueError without heads or relations."""
        return np.concatenate((np.array([-1], np.int32), self.tree[0]))

    @property
    def tree(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Heads and relations; a ValueError if either is missing."""
        if self.heads is None or self.relations is None:
            raise ValueError("the annotation holds no tree")
        return self.heads, self.relations
