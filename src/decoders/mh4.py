"""Exact decoding for the MH4 transition system: mildly non-projective trees in O(n⁴) time and O(n³) space.

Source: Gómez-Rodríguez, Shi and Lee (2018), "Global Transition-based Non-projective Dependency Parsing", sections 3
and 4, after the MH_k parsers of Gómez-Rodríguez, Carroll and Weir (2011).

An item [h1 … hm] is a stretch of the stack h1 … h(m−1) whose next buffer word is hm; the words between are attached
already. Below i < j < k < l; C2, C3 and v are the best values of the items of two, three and four heads.

- axiom: C2[i, i+1] = 0
- combine: C3[i, j, l] = C2[i, j] + shift(i, j) + C2[j, l]
- combine: v[i, j, k, l] = max(C3[i, j, k] + shift(j, k) + C2[k, l], C2[i, j] + shift(i, j) + C3[j, k, l])
- link: C2[i, l] = max over j of C3[i, j, l] + the best of ra and la, which remove j
- link: C3[i, j, l] = max over k of v[i, j, k, l] + the best of ra2, ra and la, which remove k
- link: C3[i, k, l] = max over j of v[i, j, k, l] + the best of ra', la' and la2, which remove j
- goal: C2[0, n + 1]

`mh4_chart` fills the items, `mh4_outside` says what each is worth to the whole.

One root child. The end position heads nothing, so the last move is always ra on [0, j, n + 1]: the root has exactly one
child if and only if no earlier move took an arc from the root. That needs no further items.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np
from numba import njit

from .decoder import Decoder, TreeBatch, check_numbers, derivation_score
from .lanes import scratch
from .mh4_chart import (
    NEG,
    PAIRED_FROM,
    chart_shapes,
    cut_charts,
    fill,
    item3,
    panel_item,
    prepare,
    reduce,
    row_of_root_move,
)
from .mh4_derivation import derive_trees, follow
from .mh4_outside import max_marginals, outside_floats
from .mh4_sums import MH4Sums, sums_bytes
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, REDUCE_NAMES, hybrid_groups


@njit(nogil=True)
def _last_link_of_two(i, l, A, B, C3):
    """The move that made [i, l] out of some [i, j, l], and j; move −1 if there is none."""
    ra_row = row_of_root_move(A, i, l)
    best, move, gone = NEG, -1, 0
    for j in range(i + 1, l):
        item = item3(C3, i, j, l)
        ra = item + reduce(A, B, RA, ra_row, j, l)
        la = item + reduce(A, B, LA, i, j, l)
        if ra > best:
            best, move, gone = ra, RA, j
        if la > best:
            best, move, gone = la, LA, j
    return move, gone


@njit(nogil=True)
def _last_link_of_three(i, j, l, shift, A, B, arc, C2, E, C3):
    """The move that made [i, j, l] out of four heads, the head it removed, and whether these were [i, s1, s0] + [s0, l]
    (else [i, s1] + [s1, s0, l]); move −1 if [i, j, l] is [i, j] + [j, l]."""
    e = panel_item(E, j, i)
    best, move, gone, left = e + C2[l, j], -1, 0, False
    for k in range(j + 1, l):
        v_left = item3(C3, i, j, k) + (shift[j, k] + C2[l, k])
        v_right = e + item3(C3, j, k, l)
        v = max(v_left, v_right)
        ra2 = v + (arc[i, k] + reduce(A, B, RA2, j, k, l))
        ra = v + reduce(A, B, RA, j, k, l)
        la = v + reduce(A, B, LA, j, k, l)
        if ra2 > best:
            best, move, gone, left = ra2, RA2, k, v_left >= v_right
        if ra > best:
            best, move, gone, left = ra, RA, k, v_left >= v_right
        if la > best:
            best, move, gone, left = la, LA, k, v_left >= v_right
    for y in range(i + 1, j):
        v_left = item3(C3, i, y, j) + (shift[y, j] + C2[l, j])
        v_right = panel_item(E, y, i) + item3(C3, y, j, l)
        v = max(v_left, v_right)
        ra1 = v + (arc[i, y] + reduce(A, B, RA1, y, j, l))
        la1 = v + reduce(A, B, LA1, y, j, l)
        la2 = v + (reduce(A, B, LA2, y, j, l) + arc[l, y])
        if ra1 > best:
            best, move, gone, left = ra1, RA1, y, v_left >= v_right
        if la1 > best:
            best, move, gone, left = la1, LA1, y, v_left >= v_right
        if la2 > best:
            best, move, gone, left = la2, LA2, y, v_left >= v_right
    return move, gone, left


@njit(nogil=True, forceinline=True)
def _walk_back(shift, charts, hybrid, heads, parts):
    """Follow the best derivation from the goal. No rule was recorded: the argmax of each item is computed again.

    Fills heads and parts; returns the number of parts.
    """
    A, B, arc, C2, E, C3 = charts.A, charts.B, charts.arc, charts.C2, charts.E, charts.C3
    end = A.shape[0] - 1
    stack = np.empty((end + 2, 3), np.int64)  # items (i, j, l), or (i, 0, l) for [i, l]
    stack[0] = (0, 0, end)
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i, j, l = stack[size, 0], stack[size, 1], stack[size, 2]
        if j == 0 and l == i + 1:
            continue
        left = False
        if j == 0:
            move, gone = _last_link_of_two(i, l, A, B, C3)
            if move < 0:
                return -1
        else:
            move, gone, left = _last_link_of_three(i, j, l, shift, A, B, arc, C2, E, C3)
        size, count = follow(i, j, l, move, gone, left, hybrid, stack, size, heads, parts, count)
    return count


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, hybrid, memory, paired_from, unit, heads, parts):
    """Number of parts, or −1, and the score. ``memory`` holds the charts, ``unit`` is 1 (`lanes.add`)."""
    check_numbers(scores, arc_bonus)
    charts = cut_charts(memory, scores.shape[1] - 2)
    prepare(scores, arc_bonus, single_root, hybrid, charts)
    fill(scores[0], charts, paired_from, unit)
    if charts.C2[-1, 0] == NEG:
        return -1, -np.inf
    count = _walk_back(scores[0], charts, hybrid, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count)


@lru_cache(maxsize=1024)  # asked several times per sentence
def _chart_bytes(n: int) -> int:
    return 4 * sum(rows * columns for rows, columns in chart_shapes(n))


@lru_cache(maxsize=1024)
def _outside_bytes(n: int) -> int:
    return 4 * outside_floats(n)


class MH4(Decoder):
    """What the two MH4 decoders share."""

    has_outside_pass = has_marginals = True
    hybrid: ClassVar[bool]

    def chart_bytes(self, n: int) -> int:
        return _chart_bytes(n)

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        memory = scratch(self.chart_bytes(scores.shape[1] - 2) // 4)
        one = np.float32(1)
        return _decode(scores, arc_bonus, self.single_root, self.hybrid, memory, PAIRED_FROM, one, heads, parts)

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        derive_trees(scores, self.hybrid, given, self.single_root)

    def outside_bytes(self, n: int) -> int:
        return _outside_bytes(n)

    def _max_marginals(self, scores: np.ndarray, arc_bonus: np.ndarray) -> np.ndarray:
        memory = scratch(self.outside_bytes(scores.shape[1] - 2) // 4)
        found = np.empty_like(arc_bonus)
        one = np.float32(1)
        max_marginals(scores, arc_bonus, self.single_root, self.hybrid, memory, PAIRED_FROM, one, found)
        return found

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
