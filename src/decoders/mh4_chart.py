"""The chart of `mh4`, filled from short items to long ones: O(n⁴) time and O(n³) space.

Each reduce scores A[s1, s0] + B[s0, b0] and its arc. Only n³ values are stored: an item of four heads lives in a
register, between the two smaller items it is combined from and the two smaller items it is linked to.

For each l, filling reads all of C3, which for long sentences exceeds the cache. From `PAIRED_FROM` on, l and l + 1 are
therefore filled together: what was read for l is in the cache when l + 1 needs it.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .lanes import add, broadcast, cut, gather, lane_max, load, splat, store, vmax
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2

SHIFT = 6  # behind the six reduces in A
SLOTS = 8  # vectors in a group of A, B and links

# Slots of `links`: the terms of a pair (j, l) for each k, which do not depend on i.
OPEN, CLOSED, TO_S0, KEEP_S0, TO_S1, KEEP_S1 = range(6)
S0_GONE = 6  # in the third row of `links`: what `_settle` is about to write

PAIRED_FROM = 192  # the first l that is filled together with the next one; for smaller l, that costs more than it saves

W = 16  # lanes
NEG = np.float32(-np.inf)

# Layouts. A chart over (k, i) lies in panels of W neighbouring i: element (k, i) at [i // W, W k + i % W]. C3 has such
# panels for each j, those of j = 1 first. Scores of moves lie in groups of W neighbouring s0: A[s1, slot_of(move, s0)],
# B[b0, slot_of(move, s0)].


@register_jitable
def panels_before(j):
    """Number of panels of C3 for all smaller j: ⌈1/W⌉ + … + ⌈(j − 1)/W⌉."""
    full = (j - 1) // W
    return (full + 1) * (full * W // 2 + (j - 1) % W)


class Charts(NamedTuple):
    """Scores of moves and arcs as the kernels read them, and the items; matrices in one block of memory.

    Attributes
    ----------
    A, B
        Scores of the moves, in groups.
    arc, arc_to
        The arc bonus, at [h, d] and in panels (d, h); −inf for impossible arcs.
    C2
        ``C2[l, i]`` is the item [i, l].
    E, E_of
        C2 + shift(i, l), in panels (l, i) and at [i, l].
    C3l, C3m
        Panels (j, i): the items [i, j, l] of the current l and those of m = l + 1.
    links
        Three rows: the slots for l, those for m, and those that `_settle` uses.
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
def chart_shapes(n):
    """Rows and columns of `Charts`."""
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
        (panels_before(N), panel),
    )


@njit(nogil=True, forceinline=True)
def cut_charts(memory, n):
    """Cut all charts out of one block of memory."""
    shapes = chart_shapes(n)
    A, at = cut(memory, 0, shapes[0])
    B, at = cut(memory, at, shapes[1])
    arc, at = cut(memory, at, shapes[2])
    arc_to, at = cut(memory, at, shapes[3])
    C2, at = cut(memory, at, shapes[4])
    E, at = cut(memory, at, shapes[5])
    E_of, at = cut(memory, at, shapes[6])
    C3l, at = cut(memory, at, shapes[7])
    C3m, at = cut(memory, at, shapes[8])
    links, at = cut(memory, at, shapes[9])
    C3, _ = cut(memory, at, shapes[10])
    return Charts(A, B, arc, arc_to, C2, E, E_of, C3l, C3m, links, C3)


@njit(nogil=True, forceinline=True)
def slot_of(move, s0):
    """Column of a move in A and B."""
    return (s0 // W * SLOTS + move) * W + s0 % W


@njit(nogil=True, forceinline=True)
def panel_item(panels, k, i):
    """Element (k, i) of a chart in panels."""
    return panels[i // W, k * W + i % W]


@njit(nogil=True, forceinline=True)
def item3(C3, i, j, k):
    """The item [i, j, k]."""
    return C3[panels_before(j) + i // W, k * W + i % W]


@njit(nogil=True, forceinline=True)
def reduce(A, B, move, s1, s0, b0):
    """Score of a reduce, with the arc bonus where `prepare` adds it to A or B."""
    return A[s1, slot_of(move, s0)] + B[b0, slot_of(move, s0)]


@njit(nogil=True, forceinline=True)
def row_of_root_move(A, i, l):
    """Row of ra in A for [i, l]. The end is never on the stack, so its row serves the root at the last move."""
    end = A.shape[0] - 1
    return end if i == 0 and l == end else i


@njit(nogil=True, forceinline=True)
def prepare(scores, arc_bonus, single_root, hybrid, charts):
    """Copy the scores into `Charts`, and add the arc bonuses that A or B can hold.

    Whole groups are copied: lanes beyond the end hold the next row's scores, or zeros, and are never used. A and B are
    only written where s1 < s0 < b0.
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
        A[end, slot_of(RA, d)] += arc_bonus[0, d]
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
    """Fill ``links`` for a pair (j, l); returns C2[j, l].

    Whole groups of k are computed. Lanes outside j < k < l are never read, and do not affect the maximum, since C3l is
    −inf there.
    """
    ra_row = row_of_root_move(A, j, l)
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
    """Combine items into every [i, j, k, l], k < stop, for panel p of i, and link each at once."""
    first = panels_before(j) + p
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
    """Link [j, y, l, l + 1], y < l, to [j, y, l + 1] and [j, l, l + 1], and combine [j, l] with the axiom [l, l + 1].

    These links need [j, y, l], which (j, l) puts into ``links``. ``late`` holds what `_prepare_links` found for k = l
    at each (y, l + 1), and −inf beyond; so do ``links`` and ``E_of`` outside j < y < l.
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
    """Copy every [i, j, l], now final, to C3."""
    for j in range(1, l):
        first = panels_before(j)
        for p in range((j + W - 1) // W):
            store(C3, (first + p, l * W), load(C3l, (p, j * W), W))


@njit(nogil=True, forceinline=True)
def _keep_item_of_two(i, l, shift, C2, E, E_of):
    """Write E for the item [i, l], now final."""
    e = C2[l, i] + shift[i, l]
    E[i // W, l * W + i % W] = e
    E_of[i, l] = e


@njit(nogil=True, forceinline=True)
def fill(shift, charts, paired_from, unit):
    """Fill the charts, l ascending and j descending: at (j, l) every [j, k, l] is final, and so is [j, l].

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
                    late[slot_of(slot, j)] = links[1, slot_of(slot, l)]
            for p in range((j + W - 1) // W):
                _push(p, j, l, l, arc_to, C2, E, C3, C3l, links[0], one)
                if paired:
                    _push(p, j, m, l, arc_to, C2, E, C3, C3m, links[1], one)
        _keep_items_of_three(l, C3l, C3)
        if paired:
            _keep_items_of_three(m, C3m, C3)
            l = m
        l += 1
