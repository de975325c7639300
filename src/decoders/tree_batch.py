"""The trees of a batch and their derivations, in a few flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .derivation import Derivation, InfeasibleError
from .numbers import plain_array


class TreeBatch(NamedTuple):
    """Concatenated trees and their best derivations, or room for them.

    Attributes
    ----------
    heads : int32 (H,)
        The heads of all trees, with position 0 of each.
    ends : int64 (B,)
        Where each tree ends in ``heads``.
    parts : int32 (3 · H, 3)
        If the heads of a tree begin at h, its parts begin in row 3 · h.
    counts : int64 (B,)
        Number of parts of each tree; −1 where there is no derivation.
    totals : float64 (B,)
        Score of each derivation; −inf where there is none.
    """

    heads: np.ndarray
    ends: np.ndarray
    parts: np.ndarray
    counts: np.ndarray
    totals: np.ndarray

    @classmethod
    def of(cls, trees: Iterable[ArrayLike]) -> Self:
        """A batch of these trees, with room for their derivations; InfeasibleError for heads that int32 cannot hold."""
        given = [tree if type(tree) is np.ndarray else plain_array(tree) for tree in trees]
        batch = cls.empty([len(tree) - 1 for tree in given])
        if given:
            heads = np.concatenate(given)
            np.copyto(batch.heads, heads, casting="same_kind")
            if heads.dtype != np.int32 and not np.array_equal(batch.heads, heads):
                raise InfeasibleError(
                    f"heads beyond the words of a sentence are no tree: {heads.min()} to {heads.max()}"
                )
        return batch

    @classmethod
    def empty(cls, lengths: Sequence[int]) -> Self:
        """Room for trees with these numbers of words."""
        ends = list(accumulate(n + 1 for n in lengths))
        total, size = ends[-1] if ends else 0, len(ends)
        return cls(
            np.empty(total, np.int32),
            np.array(ends, np.int64),
            np.empty((3 * total, 3), np.int32),
            np.empty(size, np.int64),
            np.empty(size),
        )

    @property
    def lengths(self) -> list[int]:
        """Number of words of each tree."""
        ends = self.ends.tolist()
        return [end - start - 1 for start, end in zip([0, *ends], ends, strict=False)]

    def put(self, b: int, heads: np.ndarray, parts: np.ndarray, derivation: Derivation) -> None:
        """Store the derivation of sentence b, whose views ``heads`` and ``parts`` come from `each`."""
        count = len(derivation.parts)
        heads[:], parts[:count] = derivation.heads, derivation.parts
        self.counts[b], self.totals[b] = count, derivation.score

    def each(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield views of the heads of each tree, (n + 1,), and of the room for its parts, (3 · (n + 1), 3)."""
        start = 0
        for end in self.ends.tolist():
            yield self.heads[start:end], self.parts[3 * start : 3 * end]
            start = end
