"""Sums over the transition sequences of MH4, as in `mh4_log_sums`, but in plain numbers and many times as fast.

Weights are exp(score). To keep products in range, the score of the best derivation is subtracted: its shift score of
each word from all shifts of that word, and an equal share of the rest, for reduces and arcs, from every reduce. Since
an item of n words is made in up to 15ⁿ ways, every reduce also loses `GROWTH`, half the logarithm of that per word.

Numbers that still leave the range become infinite or underflow below 5e-324. Underflow matters only if the outside
value is enormous, so the sum of all outside values is returned as well. Factors, and the products of three that make a
link, stay in range, since their logarithms are within `LARGEST_FACTOR`. In all other cases `MH4Sums` falls back to
`mh4_log_sums`, which also defines R, T, vL and vR.

Items [i, j, k] lie in rows over k, two for each i < j: R, and the part of its outside value that comes from vL. Vectors
run over k, begin at k = j + 1, and may reach beyond l, where OPEN and CLOSED are 0.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .derivation import Derivation, PartMarginals
from .forest import Sums
from .lanes import broadcast, cut, lane_sum, load, multiply_add, scratch, splat_double, store
from .mh3_sums import open_arcs
from .mh4_log_sums import LogSums, log_sums_bytes
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, place_of_pair
from .shared import holds_large

W = 8  # lanes
GROWTH = 1.35
LARGEST_AROUND = 1e280  # sum of outside values up to which underflow is negligible
LARGEST_SCORE = 1e6  # its exponential always overflows
LARGEST_FACTOR = 230.0  # exp(±3 · 230) is within the range of float64

OPEN, CLOSED, TO_S0, KEEP_S0, TO_S1, KEEP_S1, BY_RA, BY_LA, BY_LA1, BY_LA2 = range(10)


class _Weights(NamedTuple):
    """Exponentials of the scores, 0 where no part is possible; rows are padded with zeros to length P.

    Attributes
    ----------
    S : (N, P)
        Shifts [s0, b0].
    A, B : (6, N, P)
        Reduces [s1, s0] and [b0, s0].
    arc, arc_to : (N, P)
        Arcs [h, d] and [d, h].
    last : (1, P)
        Arcs of the root at the last move.
    """

    S: np.ndarray
    A: np.ndarray
    B: np.ndarray
    arc: np.ndarray
    arc_to: np.ndarray
    last: np.ndarray


class _Charts(NamedTuple):
    """Items, their outside values, and probabilities of arcs; matrices in one block of memory.

    Attributes
    ----------
    C2
        ``C2[l, i]`` is [i, l].
    E, around_e
        ``E[i, l]`` is [i, l] times the shift of l; the part of its outside value that comes from combining two items
        of two.
    R_l, around_l
        R[i, k, l] of the current l, ``R_l[i, k]``, and its outside value.
    around_two
        In its only row, the outside value of each [k, l].
    by_head, by_dependent
        Probabilities of arcs [h, d] and [d, h].
    links
        Factors of the current pair (j, l) for each k, a row for each slot from `OPEN` to `BY_LA2`.
    sums
        A vector for each i.
    pairs
        For each i < j two vectors whose lanes are still to be summed: the other part of the outside value of E[i, j],
        and the probability that a reduce of s1 makes the arc i → j.
    """

    C2: np.ndarray
    E: np.ndarray
    around_e: np.ndarray
    R_l: np.ndarray
    around_l: np.ndarray
    around_two: np.ndarray
    by_head: np.ndarray
    by_dependent: np.ndarray
    links: np.ndarray
    sums: np.ndarray
    pairs: np.ndarray


@register_jitable
def _pitch(n):
    """Length of a row of n + 2 elements, with room for unaligned vectors that reach beyond them."""
    return (n + 2 + 2 * W) // W * W + W


@register_jitable
def _row_length(n, j):
    """Room for [i, j, k], k = j + 1 … n + 1, in whole vectors."""
    return (n - j + W) // W * W


@register_jitable
def _rows_before(n, j):
    """Number of elements in the rows of all smaller j."""
    at = 0
    for smaller in range(1, j):
        at += 2 * smaller * _row_length(n, smaller)
    return at


@register_jitable
def _chart_shapes(n):
    N, pitch = n + 2, _pitch(n)
    square = (N, pitch)
    pairs = (N * (N - 1) // 2, 2 * W)
    return square, square, square, square, square, (1, pitch), square, square, (10, pitch), (N, W), pairs


@njit(nogil=True, forceinline=True)
def _cut_charts(memory, at, n):
    shapes = _chart_shapes(n)
    C2, at = cut(memory, at, shapes[0])
    E, at = cut(memory, at, shapes[1])
    around_e, at = cut(memory, at, shapes[2])
    R_l, at = cut(memory, at, shapes[3])
    around_l, at = cut(memory, at, shapes[4])
    around_two, at = cut(memory, at, shapes[5])
    by_head, at = cut(memory, at, shapes[6])
    by_dependent, at = cut(memory, at, shapes[7])
    links, at = cut(memory, at, shapes[8])
    sums, at = cut(memory, at, shapes[9])
    pairs, at = cut(memory, at, shapes[10])
    return _Charts(C2, E, around_e, R_l, around_l, around_two, by_head, by_dependent, links, sums, pairs)


@njit(nogil=True, forceinline=True)
def _plus(matrix, i, k, v):
    store(matrix, (i, k), load(matrix, (i, k), W) + v)


@njit(nogil=True, forceinline=True)
def _plus_move(tensor, move, i, k, v):
    store(tensor, (move, i, k), load(tensor, (move, i, k), W) + v)


@njit(nogil=True, forceinline=True)
def _prepare_links(j, l, weights, C2, E, R_l, links):
    """Fill ``links``, the factors that do not depend on i; returns the sum of the links to [j, l]."""
    S, A, B, arc, arc_to, last = weights
    end = S.shape[0] - 1
    arc_l_j = splat_double(arc[l, j], W)
    total = splat_double(0.0, W)
    for k in range(j + 1, l, W):
        right = load(C2, (l, k), W)
        closed = multiply_add(load(E, (j, k), W), right, load(R_l, (j, k), W))
        head = load(last, (0, k), W) if j == 0 and l == end else load(arc, (j, k), W)
        ra = load(A, (RA, j, k), W) * load(B, (RA, l, k), W) * head
        la = load(A, (LA, j, k), W) * load(B, (LA, l, k), W) * load(arc, (l, k), W)
        la1 = load(A, (LA1, j, k), W) * load(B, (LA1, l, k), W) * load(arc_to, (j, k), W)
        la2 = load(A, (LA2, j, k), W) * load(B, (LA2, l, k), W) * arc_l_j
        total = multiply_add(closed, ra + la, total)
        store(links, (OPEN, k), load(S, (j, k), W) * right)
        store(links, (CLOSED, k), closed)
        store(links, (TO_S0, k), load(A, (RA2, j, k), W) * load(B, (RA2, l, k), W))
        store(links, (KEEP_S0, k), ra + la)
        store(links, (TO_S1, k), load(A, (RA1, j, k), W) * load(B, (RA1, l, k), W))
        store(links, (KEEP_S1, k), la1 + la2)
        store(links, (BY_RA, k), ra)
        store(links, (BY_LA, k), la)
        store(links, (BY_LA1, k), la1)
        store(links, (BY_LA2, k), la2)
    return lane_sum(total)


@njit(nogil=True, forceinline=True)
def _push(j, k, at, step, E, arc, rows, R_l, links, sums):
    """Combine items into all [i, j, k, l], i < j, for a vector of k, and link these."""
    opened, closed = load(links, (OPEN, k), W), load(links, (CLOSED, k), W)
    to_s0, keep_s0 = load(links, (TO_S0, k), W), load(links, (KEEP_S0, k), W)
    to_s1, keep_s1 = load(links, (TO_S1, k), W), load(links, (KEEP_S1, k), W)
    for i in range(j):
        v_left = load(rows, at, W) * opened
        v = multiply_add(broadcast(E, (i, j), W), closed, v_left)
        s0_gone = multiply_add(v_left, keep_s0, load(sums, (i, 0), W))
        store(sums, (i, 0), multiply_add(v, load(arc, (i, k), W) * to_s0, s0_gone))
        by_s1 = multiply_add(broadcast(arc, (i, j), W), to_s1, keep_s1)
        store(R_l, (i, k), multiply_add(v, by_s1, load(R_l, (i, k), W)))
        at += 2 * step


@njit(nogil=True, forceinline=True)
def _fill(n, weights, charts, starts, rows):
    """Fill the items; l ascending and j descending, as in `mh4_chart`."""
    C2, E, R_l, links, sums = charts.C2, charts.E, charts.R_l, charts.links, charts.sums
    S, arc = weights.S, weights.arc
    nothing = splat_double(0.0, W)
    for l in range(1, n + 2):
        R_l[:l, : l + W] = 0
        for j in range(l - 1, -1, -1):
            total = _prepare_links(j, l, weights, C2, E, R_l, links)
            C2[l, j] = 1.0 if l == j + 1 else total
            E[j, l] = C2[l, j] * S[j, l]
            if j == 0 or l == j + 1:
                continue
            for i in range(j):
                store(sums, (i, 0), nothing)
            step = _row_length(n, j)
            for k in range(j + 1, l, W):
                _push(j, k, starts[j] + k - j - 1, step, E, arc, rows, R_l, links, sums)
            for i in range(j):
                R_l[i, j] += lane_sum(load(sums, (i, 0), W))
        for k in range(1, l):
            at, step = starts[k] + l - k - 1, 2 * _row_length(n, k)
            for i in range(k):
                rows[at + i * step] = R_l[i, k]


@njit(nogil=True, forceinline=True)
def _pull(j, k, at, step, E, arc, rows, around_l, by_head, pairs, links):
    """Pass outside values down from all [i, j, k, l], i < j, for a vector of k.

    Returns sums over i: the outside value of T[j, k, l] through vR; R[i, j, k] times the outside value of vL; the
    probabilities of ra2 and of ra'; and the factors that turn (ra, la) and (la', la2) into probabilities.
    """
    opened, closed = load(links, (OPEN, k), W), load(links, (CLOSED, k), W)
    to_s0, keep_s0 = load(links, (TO_S0, k), W), load(links, (KEEP_S0, k), W)
    to_s1, keep_s1 = load(links, (TO_S1, k), W), load(links, (KEEP_S1, k), W)
    around_T = to_right = by_ra2 = by_ra1 = s0_gone = s1_gone = splat_double(0.0, W)
    pair = place_of_pair(0, j)
    for i in range(j):
        e, item = broadcast(E, (i, j), W), load(rows, at, W)
        v_left = item * opened
        v = multiply_add(e, closed, v_left)
        around_j, around_k = broadcast(around_l, (i, j), W), load(around_l, (i, k), W)
        ra2 = load(arc, (i, k), W) * to_s0
        ra1 = broadcast(arc, (i, j), W) * to_s1
        both = multiply_add(around_j, ra2, around_k * (ra1 + keep_s1))
        around_left = multiply_add(around_j, keep_s0, both)
        store(rows, at + step, multiply_add(around_left, opened, load(rows, at + step, W)))
        to_right = multiply_add(around_left, item, to_right)
        around_T = multiply_add(both, e, around_T)
        store(pairs, (pair, 0), multiply_add(both, closed, load(pairs, (pair, 0), W)))
        x, y = v * around_j * ra2, v * around_k
        z = y * ra1
        by_ra2 = by_ra2 + x
        by_ra1 = by_ra1 + z
        s0_gone = multiply_add(v_left, around_j, s0_gone)
        s1_gone = s1_gone + y
        _plus(by_head, i, k, x)
        _plus(pairs, pair, W, z)
        at += 2 * step
        pair += 1
    return around_T, to_right, by_ra2, by_ra1, s0_gone, s1_gone


@njit(nogil=True, forceinline=True)
def _begin(l, n, whole, weights, charts, starts, rows, in_S):
    """Fetch R[i, k, l] and its outside value, and that of [i, l], for one l; returns the sum of the outside values."""
    R_l, around_l, around_two, pairs = charts.R_l, charts.around_l, charts.around_two, charts.pairs
    R_l[:l, : l + W] = 0
    around_l[:l, : l + W] = 0
    around_two[:] = 0
    total = 0.0
    for k in range(1, l):
        size = _row_length(n, k)
        at = starts[k] + l - k - 1
        for i in range(k):
            R_l[i, k] = rows[at]
            around_l[i, k] = rows[at + size]
            total += around_l[i, k]
            at += 2 * size
    if l == n + 1:
        around_two[0, 0] = 1 / whole
        return around_two[0, 0]
    for i in range(l):
        around = charts.around_e[i, l] + lane_sum(load(pairs, (place_of_pair(i, l), 0), W))
        around_two[0, i] = around * weights.S[i, l]
        in_S[i, l] += around * charts.E[i, l]
        total += around
    return total


@njit(nogil=True, forceinline=True)
def _links_of_four(k, largest_arc, links):
    """Upper bound, for every i, on the sum of the links of [i, j, k, l]."""
    arcs = (load(links, (TO_S0, k), W) + load(links, (TO_S1, k), W)) * largest_arc
    return load(links, (KEEP_S0, k), W) + load(links, (KEEP_S1, k), W) + arcs


@njit(nogil=True, forceinline=True)
def _go_back(n, whole, weights, charts, starts, rows, in_S, in_A, in_B):
    """Pass outside values down from all items, the longest first.

    Returns the sum of all outside values, with an upper bound for items of four: each is linked to an item of three.
    """
    C2, E, around_e, R_l, around_l, around_two, by_head, by_dependent, links, _, pairs = charts
    S, arc = weights.S, weights.arc
    total, every = 0.0, splat_double(0.0, W)
    largest_arc = splat_double(arc.max(), W)
    for l in range(n + 1, 0, -1):
        of_four = splat_double(0.0, W)
        total += _begin(l, n, whole, weights, charts, starts, rows, in_S)
        for j in range(l - 1):
            _prepare_links(j, l, weights, C2, E, R_l, links)
            around = splat_double(around_two[0, j], W)
            total += around_two[0, j]
            step = _row_length(n, j)
            by_l = splat_double(0.0, W)
            for k in range(j + 1, l, W):
                around_T, to_right, by_ra2, by_ra1, s0_gone, s1_gone = _pull(
                    j, k, starts[j] + k - j - 1, step, E, arc, rows, around_l, by_head, pairs, links
                )
                around_T = multiply_add(around, load(links, (KEEP_S0, k), W), around_T)
                every = every + around_T + to_right
                of_four = of_four + _links_of_four(k, largest_arc, links)
                _plus(around_l, j, k, around_T)
                right, to_right = load(C2, (l, k), W), to_right * load(S, (j, k), W)
                _plus(around_two, 0, k, multiply_add(around_T, load(E, (j, k), W), to_right))
                _plus(around_e, j, k, around_T * right)
                _plus(in_S, j, k, to_right * right)
                s0_gone = multiply_add(around, load(links, (CLOSED, k), W), s0_gone)
                ra, la = s0_gone * load(links, (BY_RA, k), W), s0_gone * load(links, (BY_LA, k), W)
                la1, la2 = s1_gone * load(links, (BY_LA1, k), W), s1_gone * load(links, (BY_LA2, k), W)
                _plus(by_head, j, k, ra)
                _plus(by_head, l, k, la)
                _plus(by_dependent, j, k, la1)
                by_l = by_l + la2
                _plus_move(in_A, RA2, j, k, by_ra2)
                _plus_move(in_B, RA2, l, k, by_ra2)
                _plus_move(in_A, RA, j, k, ra)
                _plus_move(in_B, RA, l, k, ra)
                _plus_move(in_A, LA, j, k, la)
                _plus_move(in_B, LA, l, k, la)
                _plus_move(in_A, RA1, j, k, by_ra1)
                _plus_move(in_B, RA1, l, k, by_ra1)
                _plus_move(in_A, LA1, j, k, la1)
                _plus_move(in_B, LA1, l, k, la1)
                _plus_move(in_A, LA2, j, k, la2)
                _plus_move(in_B, LA2, l, k, la2)
            by_head[l, j] += lane_sum(by_l)
        total += lane_sum(of_four) * around_l[:l, :l].sum()
    return total + lane_sum(every)


@njit(cache=True, nogil=True)
def _sum(S, A, B, arc, arc_to, last, memory, in_S, in_A, in_B, in_arc):
    """Return the sum over all derivations, and the sum of the outside values of all items, divided by it.

    ``in_S``, ``in_A``, ``in_B`` and ``in_arc``, zeros laid out like the weights, receive the probabilities.
    """
    n = S.shape[0] - 2
    memory[:] = 0
    starts = np.zeros(n + 1, np.int64)
    for j in range(1, n + 1):
        starts[j] = _rows_before(n, j)
    size = _rows_before(n, n + 1) + W
    rows = memory[:size]
    weights = _Weights(S, A, B, arc, arc_to, last)
    charts = _cut_charts(memory, size, n)
    _fill(n, weights, charts, starts, rows)
    whole = charts.C2[n + 1, 0]
    if not 0 < whole < np.inf:
        return whole, np.inf
    total = _go_back(n, whole, weights, charts, starts, rows, in_S, in_A, in_B)
    for h in range(n + 1):
        for d in range(1, n + 1):
            in_arc[h, d] = charts.by_head[h, d] + charts.by_dependent[d, h]
            if h < d:
                in_arc[h, d] += lane_sum(load(charts.pairs, (place_of_pair(h, d), W), W))
    return whole, total


def _sums_floats(n: int) -> int:
    return _rows_before(n, n + 1) + W + sum(rows * columns for rows, columns in _chart_shapes(n))


def sums_bytes(n: int) -> int:
    """Upper bound on the bytes that `MH4Sums` takes."""
    return max(log_sums_bytes(n), 8 * (_sums_floats(n) + 30 * (n + 2) * _pitch(n)))


def _exponentials(scores: np.ndarray, pitch: int) -> np.ndarray:
    padded = np.zeros((*scores.shape[:-1], pitch))
    np.exp(scores, out=padded[..., : scores.shape[-1]])
    return padded


class MH4Sums(Sums):
    """Sums for scores of mh4-two or mh4-hybrid; ``decode`` maps scores and arc bonus to a nearly best derivation."""

    def __init__(
        self,
        scores: np.ndarray,
        arc_bonus: np.ndarray,
        single_root: bool,
        decode: Callable[[np.ndarray, np.ndarray], Derivation],
    ) -> None:
        self._known = scores, arc_bonus, single_root
        self._marginals = self._on_numbers(decode) or LogSums(*self._known).marginals()
        self.log_partition = self._marginals.log_partition

    def marginals(self) -> PartMarginals:
        return self._marginals

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        return LogSums(*self._known).samples(count, rng)

    def _on_numbers(self, decode: Callable[[np.ndarray, np.ndarray], Derivation]) -> PartMarginals | None:
        """Marginals computed in plain numbers; None if they leave the range."""
        scores, arc_bonus, single_root = self._known
        if holds_large(scores, LARGEST_SCORE) or holds_large(arc_bonus, LARGEST_SCORE):
            return None
        best = decode(scores, arc_bonus)
        size, n = len(arc_bonus), len(arc_bonus) - 2
        pitch, hybrid = _pitch(n), len(scores) > 7
        shifts = best.parts[best.parts[:, 0] == 0]
        of_shift = np.zeros(size)
        of_shift[shifts[:, 2]] = scores[0, shifts[:, 1], shifts[:, 2]]
        score = scores[tuple(best.parts.T)].sum() + arc_bonus[best.heads[1:], np.arange(1, n + 1)].sum()
        of_reduce = (score - of_shift.sum()) / n + GROWTH
        after = np.triu(np.ones((size, size), np.bool_), 1)
        arc, last = open_arcs(arc_bonus, single_root)
        shift = np.where(after, scores[0] - of_shift, -np.inf)
        by_s1 = np.where(after, scores[1:7] if hybrid else 0.0, -np.inf)
        by_b0 = np.where(after, scores[-6:] - of_reduce, -np.inf)
        if any(holds_large(x, LARGEST_FACTOR) for x in (shift, by_s1, by_b0, arc, last)):
            return None
        S, B = _exponentials(shift, pitch), _exponentials(by_b0.transpose(0, 2, 1), pitch)
        A = _exponentials(by_s1, pitch) if hybrid else np.ones((6, size, pitch))
        arcs, arcs_to, lasts = (_exponentials(x, pitch) for x in (arc, arc.T, last[None]))
        in_S, in_A, in_B, in_arc = (np.zeros_like(x) for x in (S, A, B, S))
        memory = scratch(2 * _sums_floats(n)).view(np.float64)
        whole, around = _sum(S, A, B, arcs, arcs_to, lasts, memory, in_S, in_A, in_B, in_arc)
        if not around < LARGEST_AROUND:  # NaN, too; infinite if the sum over derivations is 0 or infinite
            return None
        parts = np.concatenate((in_S[None], in_A[: 6 * hybrid], np.zeros((6, size, pitch))))[..., :size]
        parts[-6:] = in_B[..., :size].transpose(0, 2, 1)
        if not isfinite(parts.sum()):
            return None
        log_partition = float(np.log(whole)) + score + n * GROWTH
        return PartMarginals(log_partition, np.ascontiguousarray(parts), np.ascontiguousarray(in_arc[:, :size]))
