"""Base class of the decoders that score single arcs: the parts of a tree are its arcs, so `_derive` needs no chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import ClassVar

import numpy as np
from numba import njit

from .decoder import Decoder
from .numbers import own_array, parts_score
from .tree_batch import TreeBatch
from .trees import all_reach_the_root, crossings


@njit(nogil=True)
def fill_parts(heads, parts):
    """Write the arcs of a tree to ``parts``; return their number."""
    for d in range(1, heads.shape[0]):
        parts[d - 1, 0] = 0
        parts[d - 1, 1] = heads[d]
        parts[d - 1, 2] = d
    return heads.shape[0] - 1


def arc_parts(heads: np.ndarray) -> np.ndarray:
    """The arcs of a tree as parts, int32 (n, 3)."""
    parts = np.empty((len(heads) - 1, 3), np.int32)
    fill_parts(heads, parts)
    return parts


@njit(cache=True, nogil=True)
def derive_arcs(scores, given, single_root, projective):
    """See `Decoder._derive`."""
    start = 0
    for b in range(given.ends.shape[0]):
        heads, parts = given.heads[start : given.ends[b]], given.parts[3 * start :]
        fine = all_reach_the_root(heads) and not (single_root and np.sum(heads == 0) > 1)
        fine = fine and not (projective and crossings(heads).any())
        given.counts[b] = fill_parts(heads, parts) if fine else -1
        given.totals[b] = parts_score(scores[b], parts, given.counts[b])
        start = given.ends[b]


@njit(nogil=True)
def sentence_of_batch(scores, arc_bonus, heads, ends, parts, b):
    """C-contiguous copies of the scores and bonus of sentence b, and views of its heads and parts; see `TreeBatch`."""
    start = ends[b - 1] if b else 0
    size = ends[b] - start + 1
    own = heads[start : ends[b]]
    own[0] = -1
    return scores[b, :, :size, :size].copy(), arc_bonus[b, :size, :size].copy(), own, parts[3 * start : 3 * ends[b]]


class ArcFactored(Decoder):
    """Decoder for arc scores alone. Channel: arc[h, d]; the end position, column 0 and the diagonal have no effect."""

    channels = ("arc",)
    roles = (("head", "dependent"),)
    shared = ((("arc", "column"),),)
    projective: ClassVar[bool]
    kernel: ClassVar[Callable[..., tuple[int, float]]]
    kernel_of_batch: ClassVar[Callable[..., None]]

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        return self.kernel(scores, arc_bonus, self.single_root, heads, parts)

    def decode_together(
        self, scores: np.ndarray, lengths: Sequence[int], arc_bonus: np.ndarray, threads: int | None = None
    ) -> TreeBatch:
        """See `Decoder.decode_together`; short sentences share one kernel call, which costs more than decoding one."""
        scores = self._checked_batch(scores, lengths, arc_bonus)
        if self._threads_that_pay(lengths, threads) > 1 or not all(map(self.fits, lengths)):
            return super().decode_together(scores, lengths, arc_bonus, threads)
        batch = TreeBatch.empty(lengths)
        self.kernel_of_batch(own_array(scores), own_array(arc_bonus), self.single_root, *batch)
        totals = batch.totals.tolist()
        if not all(map(isfinite, totals)):
            for b, (heads, parts) in enumerate(batch.each()):
                size = len(heads) + 1
                if not isfinite(totals[b]):
                    batch.put(b, heads, parts, self.decode(scores[b, :, :size, :size], arc_bonus[b, :size, :size]))
        return batch

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        derive_arcs(scores, given, self.single_root, self.projective)
