"""What the decoders share that score single arcs: a tree's parts are its arcs, so its derivation takes no chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numba import njit

from .decoder import Decoder, GivenTrees, parts_score
from .trees import all_reach_the_root, crossings


@njit(nogil=True)
def fill_parts(heads, parts):
    """Write the arcs of a tree into ``parts``; returns their number."""
    for d in range(1, heads.shape[0]):
        parts[d - 1, 0] = 0
        parts[d - 1, 1] = heads[d]
        parts[d - 1, 2] = d
    return heads.shape[0] - 1


def arc_parts(heads: np.ndarray) -> np.ndarray:
    """The arcs of a tree as int32 (n, 3)."""
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


class ArcFactored(Decoder):
    """Arc scores alone. Channels: arc[h, d]; those of the end position, column 0 and the diagonal have no effect."""

    channels = ("arc",)
    roles = (("head", "dependent"),)
    shared = ((("arc", "column"),),)
    projective: ClassVar[bool]
    kernel: ClassVar[Callable[..., tuple[int, float]]]

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        return self.kernel(scores, arc_bonus, self.single_root, heads, parts)

    def _derive(self, scores: np.ndarray, given: GivenTrees) -> None:
        derive_arcs(scores, given, self.single_root, self.projective)
