"""Sums over the transition sequences of MH4, in logarithms: correct for any finite scores, O(n⁴) exponentials.

The chart of `mh4` derives some sequences in several ways. Distinguishing items of three by how they were made counts
each sequence once. Below, C2 are the sums of items of two; R are those of items of three made by a link, K those of
items of three made by combining, and T = K + R.

- K[i, j, l] = C2[i, j] · shift(i, j) · C2[j, l]
- vL[i, j, k, l] = R[i, j, k] · shift(j, k) · C2[k, l] and vR[i, j, k, l] = C2[i, j] · shift(i, j) · T[j, k, l]
- C2[i, l] = sum over j of T[i, j, l] · (ra + la), which remove j
- R[i, j, l] = sum over k of (vL + vR) · ra2 + vL · (ra + la), which remove k,
  plus the sum over y of (vL + vR)[i, y, j, l] · (ra' + la' + la2), which remove y

Instead of outside sums, probabilities flow down from the goal: an item distributes its own over the ways to make it,
in proportion to their weights. So no number leaves [0, 1]."""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from .derivation import InfeasibleError, PartMarginals
from .forest import Sums
from .mh3_sums import open_arcs
from .mh4_derivation import follow
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, place_of_pair
from .numbers import add_logs

NEGLIGIBLE = -46.0  # logarithm of a probability or share that is too small to change a sum
ABOVE, BELOW = 4, 6  # number of terms for each k above j, and for each y below j


class PartNumbers(NamedTuple):
    """A number for each part and arc: its score or its expected count.

    Attributes
    ----------
    S : float64 (N, N)
        Shifts [s0, b0].
    A, B : float64 (6, N, N)
        Reduces by (s1, s0) and by (s0, b0).
    arc : float64 (N, N)
        Arcs [h, d]: the arc bonus, −inf for impossible arcs, or the expected count.
    """

    S: np.ndarray
    A: np.ndarray
    B: np.ndarray
    arc: np.ndarray


class ItemNumbers(NamedTuple):
    """A number for each item: the logarithm of its sum, or its probability.

    Attributes
    ----------
    C2 : float64 (N, N)
    R, T : float64 (N (N − 1) / 2, N)
        At [place_of_pair(i, j), l].
    """

    C2: np.ndarray
    R: np.ndarray
    T: np.ndarray


@njit(nogil=True)
def _terms_of_two(i, l, scores, last, T, terms):
    """Fill ``terms``: logarithms of the summands of [i, l], ra and la for each j; return their number and maximum."""
    _, A, B, arc = scores
    end = arc.shape[0] - 1
    at, top = 0, -np.inf
    for j in range(i + 1, l):
        item = T[place_of_pair(i, j), l]
        root_or_head = last[j] if i == 0 and l == end else arc[i, j]
        terms[at] = item + A[RA, i, j] + B[RA, j, l] + root_or_head
        terms[at + 1] = item + A[LA, i, j] + B[LA, j, l] + arc[l, j]
        top = max(top, max(terms[at], terms[at + 1]))
        at += 2
    return at, top


@njit(nogil=True)
def _terms_of_three(i, j, l, scores, charts, terms):
    """Fill ``terms`` with the logarithms of the summands of R[i, j, l]; return their number and maximum.

    First `ABOVE` for each k: vL and vR by ra2, vL by ra and by la; then `BELOW` for each y: vL by ra', la' and la2 and
    vR by the same.
    """
    (S, A, B, arc), (C2, R, T) = scores, charts
    own = place_of_pair(i, j)
    e = C2[i, j] + S[i, j]
    at, top = 0, -np.inf
    for k in range(j + 1, l):
        v_left = R[own, k] + (S[j, k] + C2[k, l])
        v_right = e + T[place_of_pair(j, k), l]
        ra2 = A[RA2, j, k] + B[RA2, k, l] + arc[i, k]
        terms[at] = v_left + ra2
        terms[at + 1] = v_right + ra2
        terms[at + 2] = v_left + (A[RA, j, k] + B[RA, k, l] + arc[j, k])
        terms[at + 3] = v_left + (A[LA, j, k] + B[LA, k, l] + arc[l, k])
        top = max(top, max(max(terms[at], terms[at + 1]), max(terms[at + 2], terms[at + 3])))
        at += ABOVE
    right = C2[j, l]
    for y in range(i + 1, j):
        v_left = R[place_of_pair(i, y), j] + (S[y, j] + right)
        v_right = C2[i, y] + S[i, y] + T[place_of_pair(y, j), l]
        ra1 = A[RA1, y, j] + B[RA1, j, l] + arc[i, y]
        la1 = A[LA1, y, j] + B[LA1, j, l] + arc[j, y]
        la2 = A[LA2, y, j] + B[LA2, j, l] + arc[l, y]
        terms[at] = v_left + ra1
        terms[at + 1] = v_left + la1
        terms[at + 2] = v_left + la2
        terms[at + 3] = v_right + ra1
        terms[at + 4] = v_right + la1
        terms[at + 5] = v_right + la2
        top = max(top, max(v_left, v_right) + max(ra1, max(la1, la2)))
        at += BELOW
    return at, top


@njit(nogil=True)
def _log_sum(terms, count, top):
    if top == -np.inf:
        return top
    total = 0.0
    for t in range(count):
        if terms[t] - top > NEGLIGIBLE:
            total += np.exp(terms[t] - top)
    return top + np.log(total)


@njit(cache=True, nogil=True)
def fill(scores, last, charts, terms):
    """Fill the charts with the logarithms of the sums.

    Parameters
    ----------
    scores : PartNumbers
    last : float64 (N,)
        The arc bonus of the root at the last move.
    charts : ItemNumbers
    terms : float64 (10 N,)
        Room for the summands of an item.
    """
    S, (C2, R, T) = scores.S, charts
    N = S.shape[0]
    for width in range(1, N):
        for i in range(N - width):
            l = i + width
            for j in range(i + 1, l):
                count, top = _terms_of_three(i, j, l, scores, charts, terms)
                x = _log_sum(terms, count, top)
                R[place_of_pair(i, j), l] = x
                T[place_of_pair(i, j), l] = add_logs(x, C2[i, j] + S[i, j] + C2[j, l])
            if width == 1:
                C2[i, l] = 0
            else:
                count, top = _terms_of_two(i, l, scores, last, T, terms)
                C2[i, l] = _log_sum(terms, count, top)


@njit(nogil=True)
def _flow_from_two(i, l, flow, scores, last, charts, terms, to_T, expected):
    C2, _, T = charts
    count, _ = _terms_of_two(i, l, scores, last, T, terms)
    whole = C2[i, l] - np.log(flow)
    for t in range(count):
        if terms[t] - whole > NEGLIGIBLE:
            p = np.exp(terms[t] - whole)
            j = i + 1 + t // 2
            move, head = (RA, i) if t % 2 == 0 else (LA, l)
            expected.A[move, i, j] += p
            expected.B[move, j, l] += p
            expected.arc[head, j] += p
            to_T[place_of_pair(i, j), l] += p


@njit(nogil=True)
def _way_of_three(i, j, l, t):
    """For summand t of R[i, j, l]: s2, s1 and s0, the move, whether it is from vL, and the head and dependent."""
    above = (l - j - 1) * ABOVE
    if t < above:
        k = j + 1 + t // ABOVE
        way = t % ABOVE
        move = RA2 if way < 2 else RA if way == 2 else LA
        return i, j, k, move, way != 1, i if way < 2 else j if way == 2 else l, k
    y = i + 1 + (t - above) // BELOW
    way = (t - above) % BELOW
    turn = way % 3
    move = RA1 if turn == 0 else LA1 if turn == 1 else LA2
    return i, y, j, move, way < 3, i if turn == 0 else j if turn == 1 else l, y


@njit(cache=True, nogil=True)
def flow_down(scores, last, charts, terms, flows, expected):
    """Fill ``flows``, `ItemNumbers`, with probabilities and ``expected``, `PartNumbers`, with counts, from zeros."""
    S, (C2, R, T), (to_two, to_R, to_T) = scores.S, charts, flows
    in_S, in_A, in_B, in_arc = expected
    N = S.shape[0]
    to_two[0, N - 1] = 1.0
    for width in range(N - 1, 1, -1):
        for i in range(N - width):
            l = i + width
            if to_two[i, l] > 0:
                _flow_from_two(i, l, to_two[i, l], scores, last, charts, terms, to_T, expected)
            for j in range(i + 1, l):
                own = place_of_pair(i, j)
                flow = to_R[own, l]
                if to_T[own, l] > 0:
                    combined = to_T[own, l] * np.exp(C2[i, j] + S[i, j] + C2[j, l] - T[own, l])
                    flow += to_T[own, l] * np.exp(R[own, l] - T[own, l])
                    to_two[i, j] += combined
                    to_two[j, l] += combined
                    in_S[i, j] += combined
                if flow == 0:
                    continue
                count, _ = _terms_of_three(i, j, l, scores, charts, terms)
                whole = R[own, l] - np.log(flow)
                for t in range(count):
                    if terms[t] - whole > NEGLIGIBLE:
                        p = np.exp(terms[t] - whole)
                        s2, s1, s0, move, left, head, gone = _way_of_three(i, j, l, t)
                        in_A[move, s1, s0] += p
                        in_B[move, s0, l] += p
                        in_arc[head, gone] += p
                        if left:
                            to_R[place_of_pair(s2, s1), s0] += p
                            to_two[s0, l] += p
                            in_S[s1, s0] += p
                        else:
                            to_two[s2, s1] += p
                            to_T[place_of_pair(s1, s0), l] += p
                            in_S[s2, s1] += p


@njit(nogil=True)
def _draw(terms, count, whole, uniform):
    """Draw the index of a summand, with its share of the sum as probability."""
    left = uniform
    chosen = -1
    for t in range(count):
        if terms[t] > -np.inf:
            chosen = t
            left -= np.exp(terms[t] - whole)
            if left < 0:
                break
    return chosen


@njit(cache=True, nogil=True)
def draw(scores, last, charts, terms, hybrid, uniforms, heads, parts):
    """Draw a derivation: fills heads (n + 1,) and the first parts, whose number is returned.

    ``uniforms``, float64 (6 N,), are numbers from [0, 1); for the rest see `fill`.
    """
    C2, R, T = charts
    N = C2.shape[0]
    stack = np.empty((2 * N, 4), np.int64)  # items (i, j, l, is it an R?), j = 0 for an item of two
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, N - 1, 0
    size, used, count = 1, 0, 0
    while size > 0:
        size -= 1
        i, j, l, linked = stack[size, 0], stack[size, 1], stack[size, 2], stack[size, 3]
        if j == 0:
            if l == i + 1:
                continue
            number, _ = _terms_of_two(i, l, scores, last, T, terms)
            t = _draw(terms, number, C2[i, l], uniforms[used])
            move, gone, left = (RA if t % 2 == 0 else LA), i + 1 + t // 2, False
        else:
            own = place_of_pair(i, j)
            if linked == 0:
                used += 1
                if uniforms[used - 1] >= np.exp(R[own, l] - T[own, l]):
                    size, count = follow(i, j, l, -1, 0, False, hybrid, stack, size, heads, parts, count)
                    continue
            number, _ = _terms_of_three(i, j, l, scores, charts, terms)
            t = _draw(terms, number, R[own, l], uniforms[used])
            _, _, _, move, left, _, gone = _way_of_three(i, j, l, t)
        used += 1
        first = size
        size, count = follow(i, j, l, move, gone, left, hybrid, stack, size, heads, parts, count)
        stack[first:size, 3] = 0
        stack[first, 3] = left
    return count


def log_sums_bytes(n: int) -> int:
    """Bytes of the charts of `LogSums`."""
    return 8 * 4 * (n + 2) * ((n + 2) * (n + 1) // 2 + n + 2)


def _items(size: int, number: float) -> ItemNumbers:
    """Charts that hold one number everywhere."""
    of_pairs = (size * (size - 1) // 2, size)
    return ItemNumbers(*(np.full(shape, number) for shape in ((size, size), of_pairs, of_pairs)))


class LogSums(Sums):
    """The charts of one sentence, for scores of mh4-two or mh4-hybrid."""

    def __init__(self, scores: np.ndarray, arc_bonus: np.ndarray, single_root: bool) -> None:
        size = len(arc_bonus)
        self._hybrid = len(scores) > 7
        by_s1_s0 = scores[1:7] if self._hybrid else np.zeros((6, size, size))
        arc, last = open_arcs(arc_bonus, single_root)
        scores_of = PartNumbers(scores[0], by_s1_s0, scores[-6:], arc)
        self._known = scores_of, last, _items(size, -np.inf), np.empty((ABOVE + BELOW) * size)
        fill(*self._known)
        self.log_partition = float(self._known[2].C2[0, -1])
        if self.log_partition == -np.inf:
            raise InfeasibleError(f"no MH4 derivation of these {size - 2} words is allowed")

    def marginals(self) -> PartMarginals:
        size = len(self._known[1])
        parts, arcs = np.zeros((13, size, size)), np.zeros((size, size))
        flow_down(*self._known, _items(size, 0.0), PartNumbers(parts[0], parts[1:7], parts[7:], arcs))
        return PartMarginals(self.log_partition, parts if self._hybrid else parts[[0, *range(7, 13)]], arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        n = len(self._known[1]) - 2
        for _ in range(count):
            heads, parts = np.full(n + 1, -1, np.int32), np.empty((3 * n, 3), np.int32)
            number = draw(*self._known, self._hybrid, rng.random(6 * (n + 2)), heads, parts)
            yield heads, parts[:number]
