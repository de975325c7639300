"""Sums over the transition sequences of MH3, or over projective trees, in logarithms: O(n³) exponentials.

The chart of `mh3` derives each transition sequence once, but several sequences may build the same tree: a word may take
its left dependents before or after a right one. One extra bit per item makes the derivation of every tree unique, as
the arc scores of `eisner` require: ra removes j from [i, j, l] only if [j, l] is an axiom or was itself made by ra. C
are the sums of all items, D those of axioms and of items made by ra; ra takes its right item from D to sum over trees,
from C to sum over sequences.

Outside sums are not needed: the probability of each item flows down from the goal, see `mh4_log_sums`.
"""

# ruff: noqa: E741 (i, j, l are the heads of an item)

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from .derivation import InfeasibleError, PartMarginals
from .forest import Sums


@njit(nogil=True)
def _terms(i, l, scores, arc, last, C, right, terms):
    """Fill ``terms``: logarithms of the summands of [i, l], ra at 2 (j − i − 1), then la. Return both maxima."""
    end = arc.shape[0] - 1
    by_ra = by_la = -np.inf
    at = 0
    for j in range(i + 1, l):
        left = C[i, j] + scores[0, i, j]
        root_or_head = last[j] if i == 0 and l == end else arc[i, j]
        terms[at] = left + right[j, l] + (scores[2, j, l] + root_or_head)
        terms[at + 1] = left + C[j, l] + (scores[1, j, l] + arc[l, j])
        by_ra = max(by_ra, terms[at])
        by_la = max(by_la, terms[at + 1])
        at += 2
    return by_ra, by_la


@njit(cache=True, nogil=True)
def fill(scores, arc, last, C, D, each_tree_once, terms):
    """Fill the charts C and D, float64 (N, N), [i, l].

    Parameters
    ----------
    scores : float64 (3, N, N)
        shift, la and ra by (s0, b0).
    arc, last : float64 (N, N) and (N,)
        The arc bonus, −inf for impossible arcs; the arc bonus of the root at the last move.
    terms : float64 (2 N,)
        Room for the summands of an item.
    """
    N = arc.shape[0]
    right = D if each_tree_once else C
    for width in range(1, N):
        for i in range(N - width):
            l = i + width
            if width == 1:
                C[i, l] = D[i, l] = 0
                continue
            by_ra, by_la = _terms(i, l, scores, arc, last, C, right, terms)
            top = max(by_ra, by_la)
            some = every = 0.0
            for t in range(0, 2 * (width - 1), 2):
                if by_ra > -np.inf:
                    some += np.exp(terms[t] - by_ra)
                if top > -np.inf:
                    every += np.exp(terms[t] - top) + np.exp(terms[t + 1] - top)
            D[i, l] = by_ra + np.log(some) if some > 0 else -np.inf
            C[i, l] = top + np.log(every) if every > 0 else -np.inf


@njit(cache=True, nogil=True)
def flow_down(scores, arc, last, C, D, each_tree_once, terms, to_C, to_D, in_parts, in_arc):
    """Fill ``to_C``, ``to_D``, ``in_parts``, ``in_arc``, zeros at first, with probabilities of items, parts, arcs."""
    N = arc.shape[0]
    right, to_right = (D, to_D) if each_tree_once else (C, to_C)
    to_C[0, N - 1] = 1.0
    for width in range(N - 1, 1, -1):
        for i in range(N - width):
            l = i + width
            any_move, only_ra = to_C[i, l], to_D[i, l]
            if any_move == 0 and only_ra == 0:
                continue
            _terms(i, l, scores, arc, last, C, right, terms)
            for j in range(i + 1, l):
                t = 2 * (j - i - 1)
                by_ra = by_la = 0.0
                if any_move > 0:
                    by_ra = any_move * np.exp(terms[t] - C[i, l])
                    by_la = any_move * np.exp(terms[t + 1] - C[i, l])
                if only_ra > 0:
                    by_ra += only_ra * np.exp(terms[t] - D[i, l])
                in_arc[i, j] += by_ra
                in_arc[l, j] += by_la
                in_parts[2, j, l] += by_ra
                in_parts[1, j, l] += by_la
                in_parts[0, i, j] += by_ra + by_la
                to_C[i, j] += by_ra + by_la
                to_right[j, l] += by_ra
                to_C[j, l] += by_la


@njit(cache=True, nogil=True)
def draw(scores, arc, last, C, D, each_tree_once, terms, uniforms, heads, parts):
    """Draw a derivation: fill heads (n + 1,) and parts (2 n, 3).

    ``uniforms``, float64 (n,), are numbers from [0, 1).
    """
    N = arc.shape[0]
    right = D if each_tree_once else C
    stack = np.empty((N, 3), np.int64)  # items (i, l, must ra have made it?)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, N - 1, 0
    size, used, count = 1, 0, 0
    while size > 0:
        size -= 1
        i, l, only_ra = stack[size, 0], stack[size, 1], stack[size, 2]
        if l == i + 1:
            continue
        _terms(i, l, scores, arc, last, C, right, terms)
        step = 2 if only_ra > 0 else 1
        whole = D[i, l] if only_ra > 0 else C[i, l]
        left = uniforms[used]
        used += 1
        chosen = -1
        for t in range(0, 2 * (l - i - 1), step):
            if terms[t] > -np.inf:
                chosen = t
                left -= np.exp(terms[t] - whole)
                if left < 0:
                    break
        j = i + 1 + chosen // 2
        by_ra = chosen % 2 == 0
        heads[j] = i if by_ra else l
        parts[count, 0], parts[count, 1], parts[count, 2] = 0, i, j
        parts[count + 1, 0], parts[count + 1, 1], parts[count + 1, 2] = 2 if by_ra else 1, j, l
        count += 2
        stack[size, 0], stack[size, 1], stack[size, 2] = i, j, 0
        stack[size + 1, 0], stack[size + 1, 1], stack[size + 1, 2] = j, l, by_ra and each_tree_once
        size += 2


def open_arcs(arc_bonus: np.ndarray, single_root: bool) -> tuple[np.ndarray, np.ndarray]:
    """The arc bonus with −inf for impossible arcs, (N, N), and the arc bonus of the root at the last move, (N,).

    With one root child the root has no arc before the last move.
    """
    arc = arc_bonus.copy()
    arc[:, 0] = arc[:, -1] = arc[-1] = -np.inf
    np.fill_diagonal(arc, -np.inf)
    last = arc[0].copy()
    if single_root:
        arc[0] = -np.inf
    return arc, last


def projective_sums_bytes(n: int) -> int:
    """Bytes that `ProjectiveSums` takes."""
    return 8 * 10 * (n + 2) ** 2


class ProjectiveSums(Sums):
    """Sums of one sentence for scores of MH3, over transition sequences or, with ``each_tree_once``, over trees."""

    def __init__(
        self, scores: np.ndarray, arc_bonus: np.ndarray, single_root: bool, each_tree_once: bool = False
    ) -> None:
        size = len(arc_bonus)
        charts = np.full((2, size, size), -np.inf)
        self._known = (scores, *open_arcs(arc_bonus, single_root), charts[0], charts[1], each_tree_once)
        self._terms = np.empty(2 * size)
        fill(*self._known, self._terms)
        self.log_partition = float(charts[0, 0, -1])
        if self.log_partition == -np.inf:
            raise InfeasibleError(f"no projective tree of these {size - 2} words is allowed")

    def marginals(self) -> PartMarginals:
        size = len(self._terms) // 2
        flows, parts, arcs = np.zeros((2, size, size)), np.zeros((3, size, size)), np.zeros((size, size))
        flow_down(*self._known, self._terms, flows[0], flows[1], parts, arcs)
        return PartMarginals(self.log_partition, parts, arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        n = len(self._terms) // 2 - 2
        for _ in range(count):
            heads, parts = np.full(n + 1, -1, np.int32), np.empty((2 * n, 3), np.int32)
            draw(*self._known, self._terms, rng.random(n), heads, parts)
            yield heads, parts
