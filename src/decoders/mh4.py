"""Exact decoding for the MH4 transition system: mildly non-projective trees in O(n⁴) time and O(n³) space.

Source: Gómez-Rodríguez, Shi and Lee (2018), "Global Transition-based Non-projective Dependency Parsing", sections 3
and 4, after the MH_k parsers of Gómez-Rodríguez, Carroll and Weir (2011).

An item [h1 … hm] is a stretch of the stack, h1 … h(m−1), with hm first in the buffer; the words in between have their
heads. Below i < j < k < l; C2, C3 and v are the best values of the items of two, three and four heads.

- axiom: C2[i, i+1] = 0
- combine: C3[i, j, l] = C2[i, j] + shift(i, j) + C2[j, l]
- combine: v[i, j, k, l] = max(C3[i, j, k] + shift(j, k) + C2[k, l], C2[i, j] + shift(i, j) + C3[j, k, l])
- link: C2[i, l] = max over j of C3[i, j, l] + the best of ra and la, which remove j
- link: C3[i, j, l] = max over k of v[i, j, k, l] + the best of ra2, ra and la, which remove k
- link: C3[i, k, l] = max over j of v[i, j, k, l] + the best of ra', la' and la2, which remove j
- goal: C2[0, n + 1]

`mh4_chart` fills the items, `mh4_outside` computes their outside values.

One root child. The end position heads nothing, so the last move is always ra on [0, j, n + 1]: the root has exactly one
child if and only if no earlier move took an arc from the root. That needs no further items.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np
from numba import njit

from .decoder import Decoder
from .derivation import Solved
from .lanes import scratch
from .mh4_back import walk_back
from .mh4_chart import (
    NEG,
    PAIRED_FROM,
    chart_shapes,
    cut_charts,
    fill,
    prepare,
)
from .mh4_derivation import derive_trees
from .mh4_nearly_best import MH4NearlyBest
from .mh4_outside import max_marginals, outside_floats
from .mh4_sums import MH4Sums, sums_bytes
from .mh4_transitions import REDUCE_NAMES, hybrid_groups
from .numbers import check_numbers, derivation_score
from .tree_batch import TreeBatch


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, hybrid, memory, paired_from, unit, walk, heads, parts):
    """Return the number of parts, −1 if there is no derivation, and the score; without ``walk`` only fill the charts.

    ``memory`` holds the charts, ``unit`` is 1 (`lanes.add`).
    """
    is_high = check_numbers(scores, arc_bonus)
    charts = cut_charts(memory, scores.shape[1] - 2)
    prepare(scores, arc_bonus, single_root, hybrid, charts)
    fill(scores[0], charts, paired_from, unit)
    if not walk or charts.C2[-1, 0] == NEG:
        return -1, -np.inf
    count = walk_back(scores[0], charts, hybrid, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)


@lru_cache(maxsize=1024)  # called several times per sentence
def _chart_bytes(n: int) -> int:
    return 4 * sum(rows * columns for rows, columns in chart_shapes(n))


@lru_cache(maxsize=1024)
def _outside_bytes(n: int) -> int:
    return 4 * outside_floats(n)


@njit(cache=True, nogil=True)
def _spans_of(memory, n, spans):
    charts = cut_charts(memory, n)
    for i in range(n + 1):
        for l in range(i + 1, n + 2):
            spans[i, l] = charts.C2[l, i]


@lru_cache(maxsize=1024)
def _floats(n: int) -> tuple[int, int]:
    """Number of floats in the charts, and in those of the outside pass, which follow them in memory."""
    return _chart_bytes(n) // 4, (_outside_bytes(n) - _chart_bytes(n)) // 4


UNIT = np.float32(1)


class MH4(Decoder):
    """Base class of the two MH4 decoders."""

    tree_class = "mh4"
    has_outside_pass = has_fast_margins = has_marginals = True
    hybrid: ClassVar[bool]

    def chart_bytes(self, n: int) -> int:
        return _chart_bytes(n)

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        memory = scratch(*_floats(scores.shape[1] - 2))
        return _decode(scores, arc_bonus, self.single_root, self.hybrid, memory, PAIRED_FROM, UNIT, True, heads, parts)

    def _chart(self, solved: Solved, size: int) -> np.ndarray:
        """Memory of at least ``size`` bytes that begins with the filled charts."""
        if solved.chart is not None and 4 * solved.chart.size >= size:
            return solved.chart
        memory, (scores, arc_bonus, (heads, parts, _), _) = scratch(size // 4), solved
        _decode(scores, arc_bonus, self.single_root, self.hybrid, memory, PAIRED_FROM, UNIT, False, heads, parts)
        return memory

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        derive_trees(scores, self.hybrid, given, self.single_root)

    def outside_bytes(self, n: int) -> int:
        return _outside_bytes(n)

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        memory = self._chart(solved, _outside_bytes(len(solved.arc_bonus) - 2))
        found = np.empty_like(solved.arc_bonus)
        max_marginals(solved.scores[0], memory, UNIT, found)
        return found

    def _nearly_best(self, solved: Solved, rank: int) -> MH4NearlyBest | None:
        memory = self._chart(solved, _chart_bytes(len(solved.arc_bonus) - 2))
        return MH4NearlyBest.find(solved, memory, self.hybrid, rank)

    def _spans(self, solved: Solved) -> np.ndarray:
        n = len(solved.arc_bonus) - 2
        spans = np.full_like(solved.arc_bonus, NEG)
        _spans_of(self._chart(solved, _chart_bytes(n)), n, spans)
        return spans

    def sums_bytes(self, n: int) -> int:
        return sums_bytes(n)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> MH4Sums:
        return MH4Sums(scores, arc_bonus, self.single_root, self.decode)


class MH4Two(MH4):
    """MH4 with every move scored by (s0, b0): the paper's two-feature model."""

    name = "mh4-two"
    hybrid = False
    channels = ("shift", *REDUCE_NAMES)
    roles = (("s0", "b0"),) * 7
    shared = ((("shift", "column"),), tuple((t, "all") for t in REDUCE_NAMES))


class MH4Hybrid(MH4):
    """MH4 with shifts scored by (s0, b0) and each reduce by the sum of an (s1, s0) and an (s0, b0) score."""

    name = "mh4-hybrid"
    hybrid = True
    channels = (
        "shift",
        *(f"{t}[s1,s0]" for t in REDUCE_NAMES),
        *(f"{t}[s0,b0]" for t in REDUCE_NAMES),
    )
    roles = (("s0", "b0"), *(("s1", "s0"),) * 6, *(("s0", "b0"),) * 6)
    shared = ((("shift", "column"),), *hybrid_groups())
