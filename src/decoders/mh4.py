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

Each reduce scores A[s1, s0] + B[s0, b0] and its arc. Only n³ values are stored: an item of four heads lives in a
register, between the two smaller items it is combined from and the two smaller items it is linked to.

Filling goes by l, and for each l reads all of C3, which for long sentences is more than a cache holds. From
`PAIRED_FROM` on, l and l + 1 are therefore filled together: what was read for l is in the cache when l + 1 needs it.

One root child. The end position heads nothing, so the last move is always ra on [0, j, n + 1]: the root has exactly one
child if and only if no earlier move took an arc from the root. That needs no further items.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .decoder import Decoder, GivenTrees, check_numbers, derivation_score
from .lanes import add, broadcast, gather, lane_max, load, scratch, splat, store, vmax
from .mh4_derivation import derive_trees, follow
from .mh4_log_sums import LogSums, log_sums_bytes
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, REDUCE_NAMES, hybrid_groups

SHIFT = 6  # behind the six reduces in A
SLOTS = 8  # vectors in a group of A, B and links

# What a pair (j, l) needs to know about each k: the slots of `links`.
OPEN, CLOSED, TO_S0, KEEP_S0, TO_S1, KEEP_S1 = range(6)
S0_GONE = 6  # in the third row of `links`: what `_settle` is about to write

PAIRED_FROM = 192  # the first l that is filled together with the next one; below, that costs more than it saves

W = 16  # lanes
NEG = np.float32(-np.inf)

# Layouts. A chart over (k, i) lies in panels of W neighbouring i: element (k, i) at [i // W, W k + i % W]. C3 has such
# panels for each j, those of j = 1 first. Scores of moves lie in groups of W neighbouring s0: A[s1, _slot(move, s0)],
# B[b0, _slot(move, s0)].


@register_jitable
def _panels_before(j):
    """Panels of C3 that belong to smaller j: ⌈1/W⌉ + … + ⌈(j − 1)/W⌉."""
    full = (j - 1) // W
    return (full + 1) * (full * W // 2 + (j - 1) % W)


class _Charts(NamedTuple):
    """Scores of moves and arcs, laid out, and the items; all of them matrices in one piece of memory.

    Attributes
    ----------
    A, B
        Scores of the moves, by groups.
    arc, arc_to
        The arc bonus, [h, d] and panels (d, h); −inf for no arc.
    C2
        ``C2[l, i]`` is the item [i, l].
    E, E_of
        C2 + shift(i, l), panels (l, i) and [i, l].
    C3l, C3m
        Panels (j, i): the items [i, j, l] of this l and of m, the one after.
    links
        Rows for l, for m and for what `_settle` needs.
    C3
        Panels (k, i) for each j: the final [i, j, k].
    """

    A: np.ndarray
    B: np.ndarray
    arc: np.ndarray
    arc_to: np.ndarray
    C2: np.ndarray
    E: np.ndarray
    E_of: np.ndarray
    C3l: np.ndarray
    C3m: np.ndarray
    links: np.ndarray
    C3: np.ndarray


@register_jitable
def _shapes(n):
    """Rows and columns of `_Charts`."""
    N = n + 2
    groups = (N + W - 1) // W
    panel = (N | 1) * W  # an odd number of vectors: no two panels compete for the same cache sets
    return (
        (N, groups * SLOTS * W),
        (N, groups * SLOTS * W),
        (groups * W, groups * W),
        (groups, panel),
        (N, groups * W),
        (groups, panel),
        (N, groups * W),
        (groups, groups * W * W),
        (groups, groups * W * W),
        (3, groups * SLOTS * W),
        (_panels_before(N), panel),
    )


@njit(nogil=True, forceinline=True)
def _cut(memory, at, shape):
    stop = at + shape[0] * shape[1]
    return memory[at:stop].reshape(shape), stop


@njit(nogil=True, forceinline=True)
def _cut_charts(memory, n):
    """All charts out of one piece of memory."""
    shapes = _shapes(n)
    A, at = _cut(memory, 0, shapes[0])
    B, at = _cut(memory, at, shapes[1])
    arc, at = _cut(memory, at, shapes[2])
    arc_to, at = _cut(memory, at, shapes[3])
    C2, at = _cut(memory, at, shapes[4])
    E, at = _cut(memory, at, shapes[5])
    E_of, at = _cut(memory, at, shapes[6])
    C3l, at = _cut(memory, at, shapes[7])
    C3m, at = _cut(memory, at, shapes[8])
    links, at = _cut(memory, at, shapes[9])
    C3, _ = _cut(memory, at, shapes[10])
    return _Charts(A, B, arc, arc_to, C2, E, E_of, C3l, C3m, links, C3)


@njit(nogil=True, forceinline=True)
def _slot(move, s0):
    return (s0 // W * SLOTS + move) * W + s0 % W


@njit(nogil=True, forceinline=True)
def _at(panels, k, i):
    return panels[i // W, k * W + i % W]


@njit(nogil=True, forceinline=True)
def _item3(C3, i, j, k):
    return C3[_panels_before(j) + i // W, k * W + i % W]


@njit(nogil=True, forceinline=True)
def _reduce(A, B, move, s1, s0, b0):
    return A[s1, _slot(move, s0)] + B[b0, _slot(move, s0)]


@njit(nogil=True, forceinline=True)
def _row_of_root_move(A, i, l):
    """Row of ra in A for the item [i, l]. The end is never on the stack: its row serves the root at the last move."""
    end = A.shape[0] - 1
    return end if i == 0 and l == end else i


@njit(nogil=True, forceinline=True)
def _prepare(scores, arc_bonus, single_root, hybrid, charts):
    """Lay the scores out and fold the arc bonuses in.

    Whole groups are copied: lanes beyond the end hold the next row's scores, or zeros, and are never used. Of A and B
    only what has s1 < s0 < b0 is written.
    """
    N = scores.shape[1]
    end = N - 1
    A, B, arc, arc_to = charts.A, charts.B, charts.arc, charts.arc_to
    arc[:] = NEG
    arc_to[:] = NEG
    for h in range(1 if single_root else 0, end):
        for d in range(1, end):
            arc[h, d] = arc_bonus[h, d]
    for d in range(1, end):
        for h in range(0, end, W):
            store(arc_to, (h // W, d * W), gather(arc, (h, d), arc.shape[1], W))
    for s1 in range(end):
        for k in range((s1 + 1) // W * W, end, W):
            at = k * SLOTS
            store(A, (s1, at + SHIFT * W), load(scores, (0, s1, k), W))
            for t in range(6):
                x = load(scores, (1 + t, s1, k), W) if hybrid else splat(np.float32(0), W)
                if t == RA:
                    if s1 == 0:
                        store(A, (end, at + RA * W), x)
                    x = x + load(arc, (s1, k), W)
                elif t == LA1:
                    x = x + load(arc_to, (k // W, s1 * W), W)
                store(A, (s1, at + t * W), x)
    for d in range(1, end):
        A[end, _slot(RA, d)] += arc_bonus[0, d]
    for b0 in range(1, N):
        for k in range(0, b0, W):
            at = k * SLOTS
            for t in range(6):
                channel = (7 if hybrid else 1) + t
                if k + W <= N:
                    x = gather(scores, (channel, k, b0), N, W)
                else:
                    for lane in range(W):
                        B[b0, at + t * W + lane] = scores[channel, k + lane, b0] if k + lane < N else 0
                    x = load(B, (b0, at + t * W), W)
                if t == LA:
                    x = x + load(arc, (b0, k), W)
                store(B, (b0, at + t * W), x)


@njit(nogil=True, forceinline=True)
def _prepare_links(j, l, A, B, arc, C2, C3l, links):
    """Everything about a pair (j, l) that depends on k alone; returns C2[j, l].

    Whole groups of k are computed. What lands outside j < k < l is never read, and cannot win here: C3l is −inf there.
    """
    ra_row = _row_of_root_move(A, j, l)
    la2_arc = splat(arc[l, j], W)
    best = splat(NEG, W)
    for k in range((j + 1) // W * W, l, W):
        at = k * SLOTS
        item = gather(C3l, (j // W, k * W + j % W), W, W)
        ra = load(A, (ra_row, at + RA * W), W) + load(B, (l, at + RA * W), W)
        la = load(A, (j, at + LA * W), W) + load(B, (l, at + LA * W), W)
        la1 = load(A, (j, at + LA1 * W), W) + load(B, (l, at + LA1 * W), W)
        la2 = load(A, (j, at + LA2 * W), W) + load(B, (l, at + LA2 * W), W)
        best = vmax(best, item + vmax(ra, la))
        store(links, at + OPEN * W, load(A, (j, at + SHIFT * W), W) + load(C2, (l, k), W))
        store(links, at + CLOSED * W, item)
        store(links, at + TO_S0 * W, load(A, (j, at + RA2 * W), W) + load(B, (l, at + RA2 * W), W))
        store(links, at + KEEP_S0 * W, vmax(ra, la))
        store(links, at + TO_S1 * W, load(A, (j, at + RA1 * W), W) + load(B, (l, at + RA1 * W), W))
        store(links, at + KEEP_S1 * W, vmax(la1, la2 + la2_arc))
    return np.float32(0) if l == j + 1 else lane_max(best)


@njit(nogil=True, forceinline=True)
def _push(p, j, l, stop, arc_to, C2, E, C3, C3l, links, one):
    """Combine to every [i, j, k, l], k < stop, and link it at once, for panel p of i."""
    first = _panels_before(j) + p
    left = load(E, (p, j * W), W)
    arc_j = load(arc_to, (p, j * W), W)
    best = left + broadcast(C2, (l, j), W)
    for k in range(j + 1, stop):
        at = k // W * (SLOTS * W) + k % W
        opened = add(load(C3, (first, k * W), W), broadcast(links, at + OPEN * W, W), one)
        closed = add(left, broadcast(links, at + CLOSED * W, W), one)
        v = vmax(opened, closed)
        arc_k = add(load(arc_to, (p, k * W), W), broadcast(links, at + TO_S0 * W, W), one)
        s0_gone = add(v, vmax(arc_k, broadcast(links, at + KEEP_S0 * W, W)), one)
        best = vmax(best, s0_gone)
        arc_j_y = add(arc_j, broadcast(links, at + TO_S1 * W, W), one)
        s1_gone = add(v, vmax(arc_j_y, broadcast(links, at + KEEP_S1 * W, W)), one)
        store(C3l, (p, k * W), vmax(load(C3l, (p, k * W), W), s1_gone))
    store(C3l, (p, j * W), best)


@njit(nogil=True, forceinline=True)
def _settle(j, l, arc, E_of, C3m, links, late):
    """The links from [j, y, l, l + 1], y < l, to [j, y, l + 1] and [j, l, l + 1], and the axiom under the latter.

    They wait for [j, y, l], hence for (j, l): ``links`` holds these items. ``late`` holds what `_prepare_links` found
    for k = l at each (y, l + 1), and −inf beyond; so do ``links`` and ``E_of`` outside j < y < l.
    """
    p, i = j // W, j % W
    arc_l = splat(arc[j, l], W)
    best = splat(NEG, W)
    for y in range((j + 1) // W * W, l, W):
        at = y * SLOTS
        opened = load(links, at + CLOSED * W, W) + load(late, at + OPEN * W, W)
        closed = load(E_of, (j, y), W) + load(late, at + CLOSED * W, W)
        v = vmax(opened, closed)
        arc_y = load(arc, (j, y), W) + load(late, at + TO_S1 * W, W)
        best = vmax(best, v + vmax(arc_y, load(late, at + KEEP_S1 * W, W)))
        arc_k = arc_l + load(late, at + TO_S0 * W, W)
        store(late, at + S0_GONE * W, v + vmax(arc_k, load(late, at + KEEP_S0 * W, W)))
        for lane in range(max(j + 1 - y, 0), min(l - y, W)):
            item = (y + lane) * W + i
            C3m[p, item] = max(C3m[p, item], late[at + S0_GONE * W + lane])
    C3m[p, l * W + i] = max(E_of[j, l], lane_max(best))


@njit(nogil=True, forceinline=True)
def _keep_items_of_three(l, C3l, C3):
    """Every [i, j, l] is final."""
    for j in range(1, l):
        first = _panels_before(j)
        for p in range((j + W - 1) // W):
            store(C3, (first + p, l * W), load(C3l, (p, j * W), W))


@njit(nogil=True, forceinline=True)
def _keep_item_of_two(i, l, shift, C2, E, E_of):
    """[i, l] is final."""
    e = C2[l, i] + shift[i, l]
    E[i // W, l * W + i % W] = e
    E_of[i, l] = e


@njit(nogil=True, forceinline=True)
def _fill(shift, charts, paired_from, unit):
    """Fill the charts, l ascending and j descending: at (j, l) every [j, k, l] is final, hence [j, l] is.

    Lanes with i ≥ j stay −inf in E, hence in C3l, C3m and C3. When l and m are filled together, the items [i, j, l, m]
    are left to `_settle`.
    """
    A, B, arc, arc_to, C2, E, E_of, C3l, C3m, links, C3 = charts
    one = splat(unit, W)
    end = A.shape[0] - 1
    late = links[2]
    E[:] = NEG
    E_of[:] = NEG
    C3l[:] = NEG
    C3m[:] = NEG
    late[:] = NEG
    l = 1
    while l <= end:
        m = l + 1
        paired = l >= paired_from and m <= end
        if paired:
            C2[m, l] = 0
            _keep_item_of_two(l, m, shift, C2, E, E_of)
        for j in range(l - 1, -1, -1):
            C2[l, j] = _prepare_links(j, l, A, B, arc, C2, C3l, links[0])
            _keep_item_of_two(j, l, shift, C2, E, E_of)
            if paired:
                _settle(j, l, arc, E_of, C3m, links[0], late)
                C2[m, j] = _prepare_links(j, m, A, B, arc, C2, C3m, links[1])
                _keep_item_of_two(j, m, shift, C2, E, E_of)
                for slot in range(6):
                    late[_slot(slot, j)] = links[1, _slot(slot, l)]
            for p in range((j + W - 1) // W):
                _push(p, j, l, l, arc_to, C2, E, C3, C3l, links[0], one)
                if paired:
                    _push(p, j, m, l, arc_to, C2, E, C3, C3m, links[1], one)
        _keep_items_of_three(l, C3l, C3)
        if paired:
            _keep_items_of_three(m, C3m, C3)
            l = m
        l += 1


@njit(nogil=True)
def _last_link_of_two(i, l, A, B, C3):
    """The move that made [i, l] out of some [i, j, l], and j; move −1 if there is none."""
    ra_row = _row_of_root_move(A, i, l)
    best, move, gone = NEG, -1, 0
    for j in range(i + 1, l):
        item = _item3(C3, i, j, l)
        ra = item + _reduce(A, B, RA, ra_row, j, l)
        la = item + _reduce(A, B, LA, i, j, l)
        if ra > best:
            best, move, gone = ra, RA, j
        if la > best:
            best, move, gone = la, LA, j
    return move, gone


@njit(nogil=True)
def _last_link_of_three(i, j, l, shift, A, B, arc, C2, E, C3):
    """The move that made [i, j, l] out of four heads, the head it removed, and whether these were [i, s1, s0] + [s0, l]
    (else [i, s1] + [s1, s0, l]); move −1 if [i, j, l] is [i, j] + [j, l]."""
    e = _at(E, j, i)
    best, move, gone, left = e + C2[l, j], -1, 0, False
    for k in range(j + 1, l):
        v_left = _item3(C3, i, j, k) + (shift[j, k] + C2[l, k])
        v_right = e + _item3(C3, j, k, l)
        v = max(v_left, v_right)
        ra2 = v + (arc[i, k] + _reduce(A, B, RA2, j, k, l))
        ra = v + _reduce(A, B, RA, j, k, l)
        la = v + _reduce(A, B, LA, j, k, l)
        if ra2 > best:
            best, move, gone, left = ra2, RA2, k, v_left >= v_right
        if ra > best:
            best, move, gone, left = ra, RA, k, v_left >= v_right
        if la > best:
            best, move, gone, left = la, LA, k, v_left >= v_right
    for y in range(i + 1, j):
        v_left = _item3(C3, i, y, j) + (shift[y, j] + C2[l, j])
        v_right = _at(E, y, i) + _item3(C3, y, j, l)
        v = max(v_left, v_right)
        ra1 = v + (arc[i, y] + _reduce(A, B, RA1, y, j, l))
        la1 = v + _reduce(A, B, LA1, y, j, l)
        la2 = v + (_reduce(A, B, LA2, y, j, l) + arc[l, y])
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
    charts = _cut_charts(memory, scores.shape[1] - 2)
    _prepare(scores, arc_bonus, single_root, hybrid, charts)
    _fill(scores[0], charts, paired_from, unit)
    if charts.C2[-1, 0] == NEG:
        return -1, -np.inf
    count = _walk_back(scores[0], charts, hybrid, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count)


@lru_cache(maxsize=1024)  # asked several times per sentence
def _chart_bytes(n: int) -> int:
    return 4 * sum(rows * columns for rows, columns in _shapes(n))


class MH4(Decoder):
    """What the two MH4 decoders share."""

    has_marginals = True
    hybrid: ClassVar[bool]

    def chart_bytes(self, n: int) -> int:
        return _chart_bytes(n)

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        memory = scratch(self.chart_bytes(scores.shape[1] - 2) // 4)
        one = np.float32(1)
        return _decode(scores, arc_bonus, self.single_root, self.hybrid, memory, PAIRED_FROM, one, heads, parts)

    def _derive(self, scores: np.ndarray, given: GivenTrees) -> None:
        derive_trees(scores, self.hybrid, given, self.single_root)

    def sums_bytes(self, n: int) -> int:
        return log_sums_bytes(n)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> LogSums:
        return LogSums(scores, arc_bonus, self.single_root)


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
