"""Max-marginals of MH4: the score of the best tree with each arc, from one outside pass over the filled chart.

O2 and O3 are the outside values of items of two and three heads, O2[0, n + 1] = 0; each rule of `mh4` passes the
outside value of the item it makes down to the items it is made from. With E[i, j] = C2[i, j] + shift(i, j) and the
slots of ``links`` in `mh4_chart`, which a pair (j, l) has for each k, for l = n + 1 … 2 and j = 0 … l − 2:

- from [j, l]: O3[j, k, l] ⊔ O2[j, l] + max(ra, la), for each k between
- from [i, j, k, l], whose value is v = max(C3[i, j, k] + OPEN, E[i, j] + CLOSED) and whose outside value is
  o = max(O3[i, j, l] + max(arc(i → k) + TO_S0, KEEP_S0), O3[i, k, l] + max(arc(i → j) + TO_S1, KEEP_S1)):
  O3[i, j, k] ⊔ o + OPEN, O2[k, l] ⊔ o + C3[i, j, k] + shift(j, k), O3[j, k, l] ⊔ o + E[i, j],
  O2[i, j] ⊔ o + CLOSED + shift(i, j)
- from [j, k, l]: O2[k, l] ⊔ O3[j, k, l] + E[j, k], O2[j, k] ⊔ O3[j, k, l] + C2[k, l] + shift(j, k)

where x ⊔ y raises x to y if y is larger. A link is worth its score, the outside value of the item it makes and the
value of the item it is made from, and an arc as much as its best link. When (j, l) is reached, O2[j, l], O3[i, j, l]
and O3[i, k, l] are final for i < j < k.

Vectors run over k: maxima over i stay in registers. They reach beyond j < k < l: for k ≤ j all items are −inf, for
k ≥ l OPEN and CLOSED.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .lanes import REGISTER, add, broadcast, cut, fold, gather, lane_max, load, splat, store, vmax
from .mh4_chart import (
    NEG,
    SHIFT,
    SLOTS,
    W,
    chart_shapes,
    cut_charts,
    panels_before,
    row_of_root_move,
)
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, place_of_pair

V = REGISTER  # lanes of the outside pass, which keeps too many vectors to give each of them two registers
HALF = V // 2
# Slots of ``known`` for each i and W neighbouring k, and their number.
AROUND, ARC, BY_HEAD, KNOWN = range(4)


class _Outside(NamedTuple):
    """Outside values of items, and values of arcs; matrices in one block of memory.

    Attributes
    ----------
    known
        A row for each W neighbouring k: for each i three vectors over them, the outside value of [i, k, l], the arc
        bonus [i, k] and the value of the arc i → k. In one array, they are one stream of memory for the loops over i.
    O2
        ``O2[i, k]`` is the part of the outside value of [i, k] that comes from items of three, less shift(i, k).
    O2l
        In its only row, the outside value of each [k, l].
    C3l
        ``C3l[k, j]`` is the item [j, k, l].
    E_to, arc_to
        ``E_to[j, i]`` is C2[i, j] + shift(i, j), and ``arc_to[j, i]`` the arc bonus of i → j.
    by_dependent
        Further values of arcs, [d, h].
    limit
        Zeros, and −inf from the middle on; read at an offset of k − l from the middle, it masks the lanes with k ≥ l.
    pairs
        For each i < j two halves of a vector, whose lanes are still to be compared: the part of the outside value of
        [i, j] that comes from items of four, less shift(i, j); and the value of the arc i → j made by a reduce of s1.
    """

    known: np.ndarray
    O2: np.ndarray
    O2l: np.ndarray
    C3l: np.ndarray
    E_to: np.ndarray
    arc_to: np.ndarray
    by_dependent: np.ndarray
    limit: np.ndarray
    pairs: np.ndarray


@register_jitable
def _row_length(n, j):
    """Length of a row for [i, j, k], k = j + 1 … n + 1, in whole vectors from `_first` on."""
    return ((n + 1) // W - (j + 1) // W + 1) * W


@register_jitable
def _first(j):
    """Where the first vector of k > j begins."""
    return (j + 1) // W * W


@register_jitable
def _elements_before(n, j):
    """Number of elements in the rows of all smaller j; each i < j has two, for C3[i, j, k] and its outside value."""
    at = 0
    for smaller in range(1, j):
        at += 2 * smaller * _row_length(n, smaller)
    return at


@register_jitable
def _outside_shapes(n):
    """Rows and columns of `_Outside`; rows have room for unaligned vectors that reach beyond N."""
    N = n + 2
    pitch = (N + 2 * W) // W * W + W
    square = (N, pitch)
    known = ((N + W - 1) // W, (N | 1) * KNOWN * W)
    whole_groups = ((N + W - 1) // W * W, pitch)
    return known, square, (1, pitch), whole_groups, square, square, square, (1, 2 * pitch), (N * (N - 1) // 2, V)


def outside_floats(n: int) -> int:
    """Number of floats in all charts of `max_marginals`."""
    shapes = (*chart_shapes(n), *_outside_shapes(n))
    return sum(rows * columns for rows, columns in shapes) + _elements_before(n, n + 1) + 2 * W


@njit(nogil=True, forceinline=True)
def _cut_outside(memory, at, n):
    shapes = _outside_shapes(n)
    known, at = cut(memory, at, shapes[0])
    O2, at = cut(memory, at, shapes[1])
    O2l, at = cut(memory, at, shapes[2])
    C3l, at = cut(memory, at, shapes[3])
    E_to, at = cut(memory, at, shapes[4])
    arc_to, at = cut(memory, at, shapes[5])
    by_dependent, at = cut(memory, at, shapes[6])
    limit, at = cut(memory, at, shapes[7])
    pairs, _ = cut(memory, at, shapes[8])
    return _Outside(known, O2, O2l, C3l, E_to, arc_to, by_dependent, limit, pairs)


@njit(nogil=True, forceinline=True)
def _at(what, i, k):
    """Index into ``known`` of the slot ``what`` for i and k."""
    return k // W, (i * KNOWN + what) * W + k % W


@njit(nogil=True, forceinline=True)
def _block(start, j, k):
    """Offset of the vectors over k, k + 1, … of all i < j; ``start`` is the offset of all vectors of j."""
    return start + (k - _first(j)) * 2 * j


@njit(nogil=True, forceinline=True)
def _copy_items(items, panel, n, starts, blocks):
    """Copy the panels (k, lanes i) of each j to vectors over k, each followed by a vector of −inf.

    ``items`` is C3, flattened. Lanes with k > n + 1 are copied, too.
    """
    for j in range(1, n + 1):
        at = starts[j]
        for k in range(_first(j), n + 2, W):
            for i in range(j):
                store(blocks, at, gather(items, (panels_before(j) + i // W) * panel + k * W + i % W, W, W))
                store(blocks, at + W, splat(NEG, W))
                at += 2 * W


@njit(nogil=True, forceinline=True)
def _begin(l, n, shift, C3, o):
    """Fetch the outside values of [i, l] and the items [j, k, l] for one l."""
    O2, O2l, C3l, pairs = o.O2, o.O2l, o.C3l, o.pairs
    O2l[:] = NEG
    if l == n + 1:
        O2l[0, 0] = 0
    else:
        for i in range(l):
            around = lane_max(load(pairs, (place_of_pair(i, l), 0), HALF))
            O2l[0, i] = max(O2[i, l], around) + shift[i, l]
    for k in range(1, l):
        first = panels_before(k)
        for j in range(0, k, W):
            store(C3l, (k, j), load(C3, (first + j // W, l * W), W))


class _Links(NamedTuple):
    """Vectors over k of the links of a pair (j, l), as in `mh4_chart`, and the scores of the moves that make arcs."""

    opened: Any
    closed: Any
    to_s0: Any
    keep_s0: Any
    to_s1: Any
    keep_s1: Any
    ra: Any
    la: Any
    la1: Any
    la2: Any


@njit(nogil=True, forceinline=True)
def _links_of(j, l, k, row_of_ra, charts, C3l, below_l):
    """The links of a pair (j, l) for V neighbouring k from ``k`` on."""
    A, B, arc, C2 = charts.A, charts.B, charts.arc, charts.C2
    at = k // W * (SLOTS * W) + k % W
    ra = load(A, (row_of_ra, at + RA * W), V) + load(B, (l, at + RA * W), V)
    la = load(A, (j, at + LA * W), V) + load(B, (l, at + LA * W), V)
    la1 = load(A, (j, at + LA1 * W), V) + load(B, (l, at + LA1 * W), V)
    la2 = load(A, (j, at + LA2 * W), V) + load(B, (l, at + LA2 * W), V) + splat(arc[l, j], V)
    opened = load(A, (j, at + SHIFT * W), V) + load(C2, (l, k), V) + below_l
    closed = gather(C3l, (k, j), C3l.shape[1], V) + below_l
    to_s0 = load(A, (j, at + RA2 * W), V) + load(B, (l, at + RA2 * W), V)
    to_s1 = load(A, (j, at + RA1 * W), V) + load(B, (l, at + RA1 * W), V)
    return _Links(opened, closed, to_s0, vmax(ra, la), to_s1, vmax(la1, la2), ra, la, la1, la2)


@njit(nogil=True, forceinline=True)
def _pull(j, k, at, links, outside, blocks, one):
    """Pass outside values down from all [i, j, k, l], i < j, for a vector of k.

    ``at`` is where their C3[i, j, k] begin. Returns maxima over i: o + C3, o + E, v + O3[i, j, l] and v + O3[i, k, l].
    """
    opened, closed, to_s0, to_s1 = links.opened, links.closed, links.to_s0, links.to_s1
    known, pairs = outside.known, outside.pairs
    to_right = to_item = s0_gone = s1_gone = splat(NEG, V)
    pair = place_of_pair(0, j)
    row, of_k = k // W, k % W
    row_j, of_j = j // W, j % W
    for i in range(j):
        e = broadcast(outside.E_to, (j, i), V)
        item = load(blocks, at, V)
        v = vmax(add(item, opened, one), add(e, closed, one))
        around_j, around_k = broadcast(known, (row_j, of_j), V), load(known, (row, of_k), V)
        arc_k = add(load(known, (row, of_k + ARC * W), V), to_s0, one)
        arc_j = add(broadcast(outside.arc_to, (j, i), V), to_s1, one)
        o = vmax(add(around_j, vmax(arc_k, links.keep_s0), one), add(around_k, vmax(arc_j, links.keep_s1), one))
        store(blocks, at + W, vmax(load(blocks, at + W, V), add(o, opened, one)))
        to_right = vmax(to_right, add(o, item, one))
        to_item = vmax(to_item, add(o, e, one))
        x, y = add(v, around_j, one), add(v, around_k, one)
        s0_gone = vmax(s0_gone, x)
        s1_gone = vmax(s1_gone, y)
        arrived = load(known, (row, of_k + BY_HEAD * W), V)
        store(known, (row, of_k + BY_HEAD * W), vmax(arrived, add(x, arc_k, one)))
        of_pair = fold(add(o, closed, one), add(y, arc_j, one))
        store(pairs, (pair, 0), vmax(load(pairs, (pair, 0), V), of_pair))
        at += 2 * W
        of_k += KNOWN * W
        of_j += KNOWN * W
        pair += 1
    return to_right, to_item, s0_gone, s1_gone


@njit(nogil=True, forceinline=True)
def _raise(matrix, at, v):
    store(matrix, at, vmax(load(matrix, at, V), v))


@njit(nogil=True, forceinline=True)
def _go_back(n, shift, charts, starts, blocks, o, unit):
    """Pass outside values down from all items, the longest first."""
    known, O2l, limit = o.known, o.O2l, o.limit
    one = splat(unit, V)
    pitch = limit.shape[1] // 2
    limit[0, :pitch] = 0
    for l in range(n + 1, 1, -1):
        _begin(l, n, shift, charts.C3, o)
        for j in range(l - 1):
            row_of_ra = row_of_root_move(charts.A, j, l)
            around = splat(O2l[0, j], V)
            by_l = splat(NEG, V)
            for k in range((j + 1) // V * V, l, V):
                below_l = load(limit, (0, pitch + k - l), V)
                links = _links_of(j, l, k, row_of_ra, charts, o.C3l, below_l)
                from_link = load(known, _at(AROUND, j, k), V)
                at = _block(starts[j], j, k // W * W) + k % W
                to_right, to_item, s0_gone, s1_gone = _pull(j, k, at, links, o, blocks, one)
                s0_gone = vmax(s0_gone, around + links.closed)
                outside = vmax(vmax(from_link, to_item), around + links.keep_s0)
                store(known, _at(AROUND, j, k), outside)
                to_right = vmax(to_right + load(shift, (j, k), V), outside + load(charts.E_of, (j, k), V))
                _raise(O2l, (0, k), to_right)
                _raise(o.O2, (j, k), outside + load(charts.C2, (l, k), V))
                _raise(known, _at(BY_HEAD, j, k), s0_gone + links.ra)
                _raise(known, _at(BY_HEAD, l, k), s0_gone + links.la)
                _raise(o.by_dependent, (j, k), s1_gone + links.la1)
                by_l = vmax(by_l, s1_gone + links.la2)
            own = _at(BY_HEAD, l, j)
            known[own] = max(known[own], lane_max(by_l))
            # The outside value of [i, j, l − 1] is final, and takes the place of that of [i, j, l], which is used up.
            at = _block(starts[j], j, (l - 1) // W * W) + W + (l - 1) % W
            for i in range(j):
                known[_at(AROUND, i, j)] = blocks[at + 2 * i * W]


@njit(nogil=True, forceinline=True)
def _mark_unfilled(C2, C3):
    """Write −inf where vectors read what `fill` left unset: [i, j, k] with k ≤ j or k > n + 1, [k, l] with k ≥ l."""
    N = C2.shape[0]
    for j in range(1, N):
        for panel in range(panels_before(j), panels_before(j + 1)):
            C3[panel, : (j + 1) * W] = NEG
            C3[panel, N * W :] = NEG
    for l in range(N):
        C2[l, l:] = NEG


@njit(cache=True, nogil=True)
def max_marginals(shift, memory, unit, marginals):
    """Fill ``marginals``, float32 (N, N). ``memory``, of `outside_floats` elements, begins with the filled charts."""
    marginals[:] = NEG
    n = shift.shape[0] - 2
    charts = cut_charts(memory, n)
    if charts.C2[-1, 0] == NEG:
        return
    at = 0
    for rows_and_columns in chart_shapes(n):
        at += rows_and_columns[0] * rows_and_columns[1]
    _mark_unfilled(charts.C2, charts.C3)
    starts = np.zeros(n + 1, np.int64)
    for j in range(1, n + 1):
        starts[j] = _elements_before(n, j)
    size = _elements_before(n, n + 1) + W
    blocks = memory[at : at + size]
    _copy_items(charts.C3.reshape(-1), charts.C3.shape[1], n, starts, blocks)
    memory[at + size :] = NEG
    o = _cut_outside(memory, at + size, n)
    for h in range(n + 1):
        for d in range(1, n + 1):
            o.known[_at(ARC, h, d)] = o.arc_to[d, h] = charts.arc[h, d]
            if h < d:
                o.E_to[d, h] = charts.E_of[h, d]
    _go_back(n, shift, charts, starts, blocks, o, unit)
    for h in range(n + 1):
        for d in range(1, n + 1):
            best = max(o.known[_at(BY_HEAD, h, d)], o.by_dependent[d, h])
            if h < d:
                best = max(best, lane_max(load(o.pairs, (place_of_pair(h, d), HALF), HALF)))
            marginals[h, d] = best
