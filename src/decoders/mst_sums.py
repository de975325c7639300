"""Sums over trees of any shape: the matrix-tree theorem without a subtraction.

The determinant and the inverse of a Laplacian lose every digit where a cycle outweighs the tree. Eliminating one word
after the other, with row sums as pivots, only adds, multiplies and divides numbers that are not negative, so results
are right to nearly all their digits (Grassmann, Taksar and Heyman 1985). Gradients come from running it in reverse.

One root child: the sum is linear in the weights of the root's arcs, so they enter no pivot, and the word eliminated
last takes its head from the root. This word is the root's child in the best tree.

Weights are exp(score), scaled so that all arcs of the best tree weigh 1 and no tree weighs more: all arcs into a word
are divided by one number and, with one root child, all arcs from the root by another.

Trees are drawn by loop-erased random walks that take arcs in proportion to their weights (Wilson 1996). Where words
attract each other so strongly that walks would stay in loops, `walk_without_loops` draws the steps left after erasure.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite

import numpy as np
from numba import njit

from .arc_factored import arc_parts
from .derivation import PartMarginals
from .forest import Sums
from .numbers import add_logs

LARGEST_EXCESS = 600.0  # exp(600) is finite, and still negligible when multiplied by the smallest float64
LARGEST_SUM = 1e12  # beyond it float64 loses the differences between trees; scaled to it, the best is nearly certain
PATIENCE = 64  # steps of a walk per word, after which it gives up
RARELY = 1e-280  # underflow is negligible for probabilities above it


@njit(nogil=True)
def _swap(v, at, m, r):
    """Exchange the rows and the columns of words m and r."""
    for h in range(v.shape[0]):
        v[m, h], v[r, h] = v[r, h], v[m, h]
    for d in range(v.shape[0]):
        v[d, m], v[d, r] = v[d, r], v[d, m]
    at[m], at[r] = at[r], at[m]


# Every kernel is compiled for plain numbers and, ``in_logs``, for logarithms of numbers beyond the range of float64.


@njit(nogil=True, forceinline=True)
def _plus(x, y, in_logs):
    return add_logs(x, y) if in_logs else x + y


@njit(nogil=True, forceinline=True)
def _times(x, y, in_logs):
    return x + y if in_logs else x * y


@njit(nogil=True, forceinline=True)
def _over(x, y, in_logs):
    return x - y if in_logs else x / y


@njit(nogil=True, forceinline=True)
def _plus_number(x, y, in_logs):
    """x plus a plain number, which may be negative; in logarithms, a sum that rounding leaves negative counts as 0."""
    if not in_logs:
        return x + y
    if y >= 0:
        return add_logs(x, np.log(y)) if y > 0 else x
    less = np.log(-y)
    return x + np.log1p(-np.exp(less - x)) if x > less else -np.inf


@njit(cache=True, nogil=True)
def normalise(arcs, best, single_root, logs):
    """Fill ``logs`` with the logarithms of the scaled weights of arcs, [d, h]; −inf where no arc is possible.

    Parameters
    ----------
    arcs : float64 (N, N)
        Scores of arcs [h, d].
    best : int (n + 1,)
        Heads of the best tree.

    Returns
    -------
    last : int
        The word to be eliminated last: a child of the root in the best tree.
    score : float
        The number by which scaling lowers the logarithm of the weight of every tree.
    excess, from_root : float
        Logarithm of the heaviest product of arcs, at most one into each word; with one root child, the share of the
        root's arc in it.
    """
    size = best.shape[0]
    first = 1 if single_root else 0
    last, score, of_root, from_root = 1, 0.0, 0.0, 0.0
    excess = 0.0
    logs[:] = -np.inf
    for d in range(1, size):
        for h in range(size):
            if h != d:
                logs[d, h] = arcs[h, d]
        if best[d] == 0:
            last = d
    if single_root:
        top = logs[last, 1:].max()
        of_root = logs[last, 0] - top if top > -np.inf else 0.0
    for d in range(1, size):
        own = logs[d, best[d]] - (of_root if single_root and d == last else 0.0)
        score += own
        logs[d, 0] -= of_root
        top = 0.0
        for h in range(size):
            logs[d, h] -= own
            if h >= first:
                top = max(top, logs[d, h])
        excess += top
        from_root = max(from_root, logs[d, 0]) if single_root else 0.0
    return last, score + of_root, excess + from_root, from_root


@njit(nogil=True, forceinline=True)
def _eliminate(v, single_root, last, at, pivots, in_logs):
    n = v.shape[0] - 1
    first = 1 if single_root else 0
    zero = -np.inf if in_logs else 0.0
    if single_root:
        _swap(v, at, 1, last)
    for r in range(n, first, -1):
        best, m = zero, 0
        for d in range(first + 1, r + 1):
            total = zero
            for h in range(first, r + 1):
                total = _plus(total, v[d, h], in_logs)
            if total > best:
                best, m = total, d
        if m == 0:
            return False
        if m != r:
            _swap(v, at, m, r)
        pivots[r] = best
        for h in range(r):
            v[r, h] = _over(v[r, h], best, in_logs)
        for d in range(1, r):
            weight = v[d, r]
            if weight > zero:
                own = v[d, d]
                for h in range(r):
                    v[d, h] = _plus(v[d, h], _times(v[r, h], weight, in_logs), in_logs)
                v[d, d] = own
    if single_root:
        pivots[1] = v[1, 0]
    return pivots[1] > zero


@njit(cache=True, nogil=True)
def eliminate(v, single_root, last, at, pivots, in_logs):
    """Eliminate the words of the weights v[d, h] ≥ 0, float64 (n + 1, n + 1), with no weight on the diagonal.

    The sum over trees is the product of the pivots. Rows are eliminated from the last to the first, each time the word
    with the largest sum of weights; with one root child, ``last`` is kept to the end. Afterwards column r of v has the
    values it had when r was eliminated, and row r those divided by the pivot. ``at``, int64, is permuted to say which
    word is in which row; ``pivots``, float64, receives the pivot of each row. Returns whether any tree is possible.
    """
    if in_logs:
        return _eliminate(v, single_root, last, at, pivots, True)
    return _eliminate(v, single_root, last, at, pivots, False)


@njit(nogil=True, forceinline=True)
def _differentiate(v, single_root, pivots, slopes, in_logs):
    n = v.shape[0] - 1
    first = 1 if single_root else 0
    zero, one = (-np.inf, 0.0) if in_logs else (0.0, 1.0)
    slopes[:] = zero
    if single_root:
        slopes[1, 0] = _over(one, pivots[1], in_logs)
    for r in range(first + 1, n + 1):
        rest = 1.0
        for d in range(1, r):
            weight, slope = v[d, r], zero
            for h in range(r):
                if h != d:
                    slope = _plus(slope, _times(slopes[d, h], v[r, h], in_logs), in_logs)
                    slopes[r, h] = _plus(slopes[r, h], _times(slopes[d, h], weight, in_logs), in_logs)
            slopes[d, r] = slope
            share = _times(slope, weight, in_logs)
            rest -= np.exp(share) if in_logs else share
        for h in range(r):
            slope = _plus_number(slopes[r, h], rest if h >= first else 0.0, in_logs)
            slopes[r, h] = _over(slope, pivots[r], in_logs)


@njit(cache=True, nogil=True)
def differentiate(v, single_root, pivots, slopes, in_logs):
    """Fill ``slopes``, laid out like v, with the derivatives of the log-sum by the weights, after `eliminate`."""
    if in_logs:
        _differentiate(v, single_root, pivots, slopes, True)
    else:
        _differentiate(v, single_root, pivots, slopes, False)


@njit(cache=True, nogil=True)
def walk(cumulative, in_tree, uniforms, heads):
    """Draw heads for all words outside the tree by loop-erased random walks; return whether the numbers sufficed.

    Rejecting long walks does not bias the tree, which is independent of the erased loops.

    Parameters
    ----------
    cumulative : float64 (n + 1, n + 1)
        For each word, the cumulative probabilities of its heads.
    in_tree : bool (n + 1,)
        The words in the tree, in the end all.
    uniforms : float64 (U,)
        Numbers from [0, 1), one for each step.
    heads : int32 (n + 1,)
    """
    used = 0
    for start in range(1, heads.shape[0]):
        d = start
        while not in_tree[d]:
            if used == uniforms.shape[0]:
                return False
            heads[d] = np.searchsorted(cumulative[d], uniforms[used], side="right")
            used += 1
            d = heads[d]
        d = start
        while not in_tree[d]:
            in_tree[d] = True
            d = heads[d]
    return True


@njit(nogil=True, forceinline=True)
def _chances(weights, in_tree, on_path, left, chances, in_logs):
    """Fill ``chances`` with the probability that a walk from each word reaches the tree before the path.

    Computes in plain numbers or, ``in_logs``, in logarithms. Returns the smallest pivot.

    Parameters
    ----------
    weights : float64 (n + 1, n + 1)
        Weights of arcs, [d, h].
    left : float64 (n + 1, n + 3)
        Room for the weights to the tree, to the path, and between the words that are in neither.
    chances : float64 (n + 1,)
    """
    zero, one = (-np.inf, 0.0) if in_logs else (0.0, 1.0)
    size = weights.shape[0]
    words = np.empty(size, np.int64)
    count = 0
    for d in range(size):
        chances[d] = one if in_tree[d] else zero
        if not in_tree[d] and not on_path[d]:
            words[count] = d
            count += 1
    for a in range(count):
        d = words[a]
        left[a, 0] = left[a, 1] = zero
        for h in range(size):
            if in_tree[h]:
                left[a, 0] = _plus(left[a, 0], weights[d, h], in_logs)
            elif on_path[h]:
                left[a, 1] = _plus(left[a, 1], weights[d, h], in_logs)
        for b in range(count):
            left[a, b + 2] = weights[d, words[b]]
    smallest = one
    for r in range(count - 1, -1, -1):
        pivot = zero
        for b in range(r + 2):
            pivot = _plus(pivot, left[r, b], in_logs)
        if pivot == zero:
            continue
        smallest = min(smallest, pivot)
        for b in range(r + 2):
            left[r, b] = _over(left[r, b], pivot, in_logs)
        for a in range(r):
            weight, own = left[a, r + 2], left[a, a + 2]
            if weight > zero:
                for b in range(r + 2):
                    left[a, b] = _plus(left[a, b], _times(weight, left[r, b], in_logs), in_logs)
                left[a, a + 2] = own
    for r in range(count):
        chance = left[r, 0]
        for b in range(r):
            chance = _plus(chance, _times(left[r, b + 2], chances[words[b]], in_logs), in_logs)
        chances[words[r]] = chance
    return smallest


@njit(cache=True, nogil=True)
def walk_without_loops(weights, logs, in_tree, uniforms, heads):
    """Like `walk`, but draw only the steps left after loop erasure, with one uniform number per word; O(n⁴).

    The probability of a step is proportional to the weight of the arc times the chance that a walk from its head
    reaches the tree before it returns to the path. Takes weights and their logarithms, both (n + 1, n + 1), and uses
    the logarithms where chances underflow.
    """
    size = heads.shape[0]
    left, chances = np.empty((size, size + 2)), np.empty(size)
    for start in range(1, size):
        d = start
        on_path = np.zeros(size, np.bool_)
        while not in_tree[d]:
            on_path[d] = True
            smallest = _chances(weights, in_tree, on_path, left, chances, False)
            total = 0.0
            for h in range(size):
                chances[h] *= weights[d, h]
                total += chances[h]
            if min(smallest, total) < RARELY:
                _chances(logs, in_tree, on_path, left, chances, True)
                chances += logs[d]
                top = chances.max()
                total = 0.0
                for h in range(size):
                    chances[h] = np.exp(chances[h] - top)
                    total += chances[h]
            remaining = uniforms[d] * total
            for h in range(size):
                if chances[h] > 0:
                    heads[d] = h
                    remaining -= chances[h]
                    if remaining < 0:
                        break
            d = heads[d]
        in_tree |= on_path


class TreeSums(Sums):
    """Sums over the trees of one sentence.

    Parameters
    ----------
    arcs : float64 (N, N)
        Score of each arc [h, d].
    best : int (n + 1,)
        Heads of the best tree, or of one that is nearly as good.
    single_root
        Exactly one word is attached to the root.
    """

    def __init__(self, arcs: np.ndarray, best: np.ndarray, single_root: bool) -> None:
        size = len(best)
        self._single_root = single_root
        self._logs = np.empty((size, size))
        last, score, excess, from_root = normalise(arcs, best, single_root, self._logs)
        self._at, self._pivots = np.arange(size), np.empty(size)
        self._in_logs = excess > LARGEST_EXCESS
        if not self._in_logs:
            self._left = np.exp(self._logs)
            found = eliminate(self._left, single_root, last, self._at, self._pivots, False)
            log_sum = np.log(self._pivots[1:]).sum() if found else -inf
            # Underflow must be negligible: bound the weight of all choices of arcs, relative to the sum, first roughly.
            choices = size * np.log(size)
            if not (isfinite(log_sum) and excess + choices - log_sum <= LARGEST_EXCESS):
                totals = np.exp(self._logs[1:, int(single_root) :]).sum(axis=1)
                choices = np.log(np.maximum(totals, 1)).sum() + from_root - excess
                self._in_logs = not (isfinite(log_sum) and excess + choices - log_sum <= LARGEST_EXCESS)
        if self._in_logs:
            if excess > LARGEST_SUM:
                self._logs *= LARGEST_SUM / excess
            self._left, self._at = self._logs.copy(), np.arange(size)
            found = eliminate(self._left, single_root, last, self._at, self._pivots, True)
            log_sum = self._pivots[1:].sum() if found else -inf
        self.log_partition = float(log_sum + score)

    def marginals(self) -> PartMarginals:
        size = len(self._left)
        slopes, probabilities = np.empty_like(self._left), np.empty_like(self._left)
        differentiate(self._left, self._single_root, self._pivots, slopes, self._in_logs)
        probabilities[np.ix_(self._at, self._at)] = slopes.T
        if self._in_logs:
            probabilities = np.exp(np.minimum(probabilities + self._logs.T, 0.0))
        else:
            probabilities *= np.exp(self._logs.T)
        arcs = np.zeros((size + 1, size + 1))
        arcs[:-1, :-1] = np.clip(probabilities, 0.0, 1.0)
        return PartMarginals(self.log_partition, arcs[None], arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """See `Sums.samples`. With one root child, that word is drawn first and plays the part of the root."""
        size, logs = len(self._logs), self._logs.copy()
        root_child = np.zeros(size)
        if self._single_root:
            logs[:, 0] = -np.inf
            root_child = _cumulative(self.marginals().arcs[0, :-1])
        top = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - np.where(top > -np.inf, top, 0))
        cumulative = _cumulative(weights)
        for _ in range(count):
            heads, in_tree = np.full(size, -1, np.int32), np.zeros(size, np.bool_)
            root = int(np.searchsorted(root_child, rng.random(), side="right")) if self._single_root else 0
            heads[root], in_tree[root], heads[0] = 0, True, -1
            if not walk(cumulative, in_tree.copy(), rng.random(PATIENCE * size), heads):
                walk_without_loops(weights, logs, in_tree, rng.random(size), heads)
            yield heads, arc_parts(heads)


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Cumulative sums along the last axis, scaled to end in 1 unless all weights are 0."""
    sums = weights.cumsum(axis=-1)
    return sums / np.where(sums[..., -1:] > 0, sums[..., -1:], 1)
