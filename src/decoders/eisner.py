"""First-order projective parsing (Eisner 1996, 2000) in O(n³) time and O(n²) space."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from .arc_factored import ArcFactored, arc_parts, fill_parts, sentence_of_batch
from .derivation import PartMarginals, Solved
from .lanes import lane_max, load, padded, splat, vmax
from .mh3_chart import item_values
from .mh3_outside import max_marginals, outside_floats
from .mh3_sums import ProjectiveSums, projective_sums_bytes
from .numbers import check_numbers, derivation_score

W = 8  # lanes


@njit(nogil=True, inline="always")
def _best_sum(x, i, y, j, shift, start, stop):
    """Largest x[i, k] + y[j, k + shift] for start <= k < stop; up to W - 1 sums beyond must be -inf or allowed too."""
    best = splat(-np.inf, W)
    for k in range(start, stop, W):
        best = vmax(best, load(x, (i, k), W) + load(y, (j, k + shift), W))
    return lane_max(best)


@njit(cache=True, nogil=True)
def _best_split(x, y):
    """The first k where x[k] + y[k] is largest."""
    split = 0
    for k in range(1, x.shape[0]):
        if x[k] + y[k] > x[split] + y[split]:
            split = k
    return split


@njit(nogil=True)
def _eisner(scores, arc_bonus, single_root, heads, parts):
    """Fill heads and parts with the best projective tree, return the number of parts; −1 if every tree is forbidden.

    Spans are indexed by their head: full[h, e] is a span from h to e, on either side, in which h has all its
    dependents (Eisner's triangles); half[h, d] is the arc h → d over all words between them (his trapezoids). So the
    three maxima of the algorithm each run along two matrix rows; full_t is full transposed. One root child: the charts
    leave the root out, it is put on top at the end.
    """
    n = heads.shape[0] - 1
    first = 1 if single_root else 0
    charts = np.empty((3, n + 1, padded(n + 1 + W)), np.float32)
    full, full_t, half = charts[0], charts[1], charts[2]
    # Spans ending beyond j stay −inf while those ending at j are made, so vectors may reach beyond j.
    charts[:] = -np.inf
    for i in range(first, n + 1):
        full[i, i] = full_t[i, i] = 0.0
    for j in range(first + 1, n + 1):
        for i in range(j - 1, first - 1, -1):
            between = _best_sum(full, i, full, j, 1, i, j)
            half[i, j] = between + (scores[0, i, j] + arc_bonus[i, j])
            if i > 0:
                half[j, i] = between + (scores[0, j, i] + arc_bonus[j, i])
            full[i, j] = full_t[j, i] = _best_sum(half, i, full_t, j, 0, i + 1, j + 1)
            full[j, i] = full_t[i, j] = _best_sum(half, j, full_t, i, 0, i, j)

    # Spans still to be taken apart, as (head, other end).
    stack = np.empty((2 * n + 2, 2), np.int32)
    if single_root:
        best = -np.inf
        child = 0
        for d in range(1, n + 1):
            total = full[d, 1] + full[d, n] + (scores[0, 0, d] + arc_bonus[0, d])
            if total > best:
                best = total
                child = d
        if child == 0:
            return -1
        heads[child] = 0
        stack[0, 0], stack[0, 1] = child, 1
        stack[1, 0], stack[1, 1] = child, n
        size = 2
    else:
        if full[0, n] == -np.inf:
            return -1
        stack[0, 0], stack[0, 1] = 0, n
        size = 1
    while size > 0:
        size -= 1
        h, e = stack[size]
        if h == e:
            continue
        if h < e:
            d = h + 1 + _best_split(half[h, h + 1 : e + 1], full_t[e, h + 1 : e + 1])
            left = h + _best_split(full[h, h:d], full[d, h + 1 : d + 1])
            inner_h, inner_d = left, left + 1
        else:
            d = e + _best_split(half[h, e:h], full_t[e, e:h])
            left = d + _best_split(full[d, d:h], full[h, d + 1 : h + 1])
            inner_h, inner_d = left + 1, left
        heads[d] = h
        stack[size, 0], stack[size, 1] = d, e
        stack[size + 1, 0], stack[size + 1, 1] = h, inner_h
        stack[size + 2, 0], stack[size + 2, 1] = d, inner_d
        size += 3
    return fill_parts(heads, parts)


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, heads, parts):
    check_numbers(scores, arc_bonus)
    count = _eisner(scores, arc_bonus, single_root, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count)


class _ProjectiveTrees(ProjectiveSums):
    """As sums over the derivations of MH3 with scores of 0 and the arc scores as bonus."""

    def marginals(self) -> PartMarginals:
        arcs = super().marginals().arcs
        return PartMarginals(self.log_partition, arcs[None], arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for heads, _ in super().samples(count, rng):
            yield heads, arc_parts(heads)


@njit(cache=True, nogil=True)
def _decode_batch(scores, arc_bonus, single_root, heads, ends, parts, counts, totals):
    for b in range(ends.shape[0]):
        own, bonus, own_heads, own_parts = sentence_of_batch(scores, arc_bonus, heads, ends, parts, b)
        counts[b], totals[b] = _decode(own, bonus, single_root, own_heads, own_parts)


class Eisner(ArcFactored):
    """Best projective tree for arc scores; O(n³) time, O(n²) space. Sums are taken in float32.

    See `shared` for large numbers.

    References
    ----------
    Eisner (1996), "Three new probabilistic models for dependency parsing"; Eisner (2000), "Bilexical grammars and their
    cubic-time parsing algorithms".
    """

    name = "eisner"
    tree_class = "projective"
    has_outside_pass = has_marginals = True
    projective = True
    kernel = staticmethod(_decode)
    kernel_of_batch = staticmethod(_decode_batch)

    def chart_bytes(self, n: int) -> int:
        return 12 * (n + 1) * padded(n + 1 + W)

    def outside_bytes(self, n: int) -> int:
        return 4 * outside_floats(n)

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        return max_marginals(*self._as_mh3(solved), self.single_root)

    def _spans(self, solved: Solved) -> np.ndarray:
        return item_values(*self._as_mh3(solved), self.single_root)

    @staticmethod
    def _as_mh3(solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        """The trees of MH3 are the projective ones: scores of 0, and those of arcs as its bonus."""
        return np.zeros((3, *solved.arc_bonus.shape), np.float32), solved.scores[0] + solved.arc_bonus

    def sums_bytes(self, n: int) -> int:
        return projective_sums_bytes(n)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> _ProjectiveTrees:
        return _ProjectiveTrees(np.zeros((3, *arc_bonus.shape)), scores[0] + arc_bonus, self.single_root, True)
