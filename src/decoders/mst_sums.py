"""Sums over trees of any shape: the matrix-tree theorem without a subtraction.

The determinant of a Laplacian and its inverse lose every digit where a cycle outweighs the tree. Elimination of one
word after the other, with row sums as pivots, only adds, multiplies and divides numbers that are not negative: each
result is right to nearly all its digits (Grassmann, Taksar and Heyman 1985). Gradients come from running it in reverse.

One root child: the sum is linear in the scores of the root's arcs, so that they count in no pivot and the last word
left must take its head from the root.

Weights are exp(score) relative to the arc of the best tree into the same word, which leaves no tree heavier than 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numba import njit

from .arc_factored import arc_parts
from .derivation import PartMarginals

LARGEST_EXCESS = 600.0  # of which the exponential is a number, and that of minus it times all other weights, too
LARGEST_SUM = 1e9  # beyond it float64 loses what is between trees; scaled down, the best one is as good as certain


@njit(nogil=True)
def _swap(v, at, m, r):
    """Exchange words m and r, rows and columns."""
    for h in range(v.shape[0]):
        v[m, h], v[r, h] = v[r, h], v[m, h]
    for d in range(v.shape[0]):
        v[d, m], v[d, r] = v[d, r], v[d, m]
    at[m], at[r] = at[r], at[m]


@njit(cache=True, nogil=True)
def eliminate(v, single_root, at, pivots):
    """Logarithm of the sum over trees for weights v[d, h] ≥ 0, float64 (n + 1, n + 1) with zeros on the diagonal.

    Words are eliminated from the last row on, the one with the largest weights first. Behind row and column r, v then
    holds what it held when r was eliminated. ``at``, int64, says which word stands in which row; ``pivots``, float64,
    gets the pivot of each row.
    """
    n = v.shape[0] - 1
    first = 1 if single_root else 0
    log_sum = 0.0
    for r in range(n, first, -1):
        best, m = 0.0, 0
        for d in range(1, r + 1):
            total = 0.0
            for h in range(first, r + 1):
                total += v[d, h]
            if total > best:
                best, m = total, d
        if m == 0:
            return -np.inf
        if m != r:
            _swap(v, at, m, r)
        pivots[r] = best
        log_sum += np.log(best)
        for d in range(1, r):
            share = v[d, r] / best
            if share > 0:
                own = v[d, d]
                for h in range(r):
                    v[d, h] += v[r, h] * share
                v[d, d] = own
    if single_root:
        pivots[1] = v[1, 0]
        return log_sum + np.log(v[1, 0]) if v[1, 0] > 0 else -np.inf
    return log_sum


@njit(cache=True, nogil=True)
def differentiate(v, single_root, pivots, slopes):
    """Derivatives of the logarithm of the sum by the weights, from what `eliminate` left; by rows, like v."""
    n = v.shape[0] - 1
    slopes[:] = 0
    first = 1 if single_root else 0
    if single_root:
        slopes[1, 0] = 1 / pivots[1]
    for r in range(first + 1, n + 1):
        pivot = pivots[r]
        slope = 1.0
        for d in range(1, r):
            share = v[d, r] / pivot
            of_share = 0.0
            for h in range(r):
                if h != d:
                    of_share += slopes[d, h] * v[r, h]
                    slopes[r, h] += slopes[d, h] * share
            slopes[d, r] = of_share / pivot
            slope -= of_share * share
        slope /= pivot
        for h in range(first, r):
            slopes[r, h] += slope


@njit(nogil=True, forceinline=True)
def _add_logs(x, y):
    top = max(x, y)
    return top if top == -np.inf else top + np.log1p(np.exp(min(x, y) - top))


@njit(cache=True, nogil=True)
def eliminate_logs(v, single_root, at, pivots):
    """`eliminate` on logarithms, for weights that are no floating-point numbers."""
    n = v.shape[0] - 1
    first = 1 if single_root else 0
    log_sum = 0.0
    for r in range(n, first, -1):
        best, m = -np.inf, 0
        for d in range(1, r + 1):
            total = -np.inf
            for h in range(first, r + 1):
                total = _add_logs(total, v[d, h])
            if total > best:
                best, m = total, d
        if m == 0:
            return -np.inf
        if m != r:
            _swap(v, at, m, r)
        pivots[r] = best
        log_sum += best
        for d in range(1, r):
            share = v[d, r] - best
            if share > -np.inf:
                for h in range(r):
                    if h != d:
                        v[d, h] = _add_logs(v[d, h], v[r, h] + share)
    if single_root:
        pivots[1] = v[1, 0]
        return log_sum + v[1, 0]
    return log_sum


@njit(nogil=True, forceinline=True)
def _subtract_logs(x, y):
    """Logarithm of exp(x) − exp(y); −inf where rounding has left nothing."""
    return x + np.log1p(-np.exp(y - x)) if x > y else -np.inf


@njit(cache=True, nogil=True)
def differentiate_logs(v, single_root, pivots, slopes):
    """`differentiate` on logarithms."""
    n = v.shape[0] - 1
    slopes[:] = -np.inf
    first = 1 if single_root else 0
    if single_root:
        slopes[1, 0] = -pivots[1]
    for r in range(first + 1, n + 1):
        pivot = pivots[r]
        rest = 1.0
        for d in range(1, r):
            share = v[d, r] - pivot
            of_share = -np.inf
            for h in range(r):
                if h != d:
                    of_share = _add_logs(of_share, slopes[d, h] + v[r, h])
                    slopes[r, h] = _add_logs(slopes[r, h], slopes[d, h] + share)
            slopes[d, r] = of_share - pivot
            rest -= np.exp(of_share + share)
        for h in range(first, r):
            if rest > 0:
                slopes[r, h] = _add_logs(slopes[r, h], np.log(rest) - pivot)
            elif rest < 0:
                slopes[r, h] = _subtract_logs(slopes[r, h], np.log(-rest) - pivot)


class TreeSums:
    """The eliminated weights of one sentence.

    Parameters
    ----------
    arcs : float64 (N, N)
        Score of each arc [h, d].
    decode
        From arc scores, laid out alike, to the heads of the best tree, at least nearly.
    single_root
        Exactly one word is attached to the root.
    """

    def __init__(self, arcs: np.ndarray, decode: Callable[[np.ndarray], np.ndarray], single_root: bool) -> None:
        size = len(arcs) - 1
        self._size, self._decode, self._single_root = size, decode, single_root
        best = decode(arcs)
        self._arcs = arcs[:size, :size].copy()
        np.fill_diagonal(self._arcs, -np.inf)
        self._arcs[:, 0] = -np.inf
        kept = self._arcs[best[1:], np.arange(1, size)]
        self._excess = np.full((size, size), -np.inf)  # [d, h]
        self._excess[1:] = (self._arcs[:, 1:] - kept).T
        self._at, self._pivots = np.arange(size), np.empty(size)
        excess = np.maximum(self._excess[1:].max(axis=1), 0).sum()
        self._in_logs = excess > LARGEST_EXCESS
        if excess > LARGEST_SUM:
            self._excess *= LARGEST_SUM / excess
        if self._in_logs:
            self._left = self._excess.copy()
            log_sum = eliminate_logs(self._left, single_root, self._at, self._pivots)
        else:
            self._left = np.exp(self._excess)
            log_sum = eliminate(self._left, single_root, self._at, self._pivots)
        self.log_partition = float(log_sum + kept.sum())

    def marginals(self) -> PartMarginals:
        """Of arcs."""
        slopes, probabilities = np.empty_like(self._left), np.empty_like(self._left)
        if self._in_logs:
            differentiate_logs(self._left, self._single_root, self._pivots, slopes)
        else:
            differentiate(self._left, self._single_root, self._pivots, slopes)
        probabilities[np.ix_(self._at, self._at)] = slopes.T
        if self._in_logs:
            probabilities = np.exp(np.minimum(probabilities + self._excess.T, 0.0))
        else:
            probabilities *= np.exp(self._excess.T)
        arcs = np.zeros((self._size + 1, self._size + 1))
        arcs[:-1, :-1] = np.clip(probabilities, 0.0, 1.0)
        return PartMarginals(self.log_partition, arcs[None], arcs)

    def samples(self, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Word by word, each given the heads of those before: O(n⁴) a tree."""
        of_first_word = self.marginals().arcs[:, 1]
        for _ in range(count):
            arcs = np.full((self._size + 1, self._size + 1), -np.inf)
            arcs[:-1, :-1] = self._arcs
            heads = np.full(self._size, -1, np.int32)
            likely = of_first_word
            for d in range(1, self._size):
                if d > 1:
                    likely = TreeSums(arcs, self._decode, self._single_root).marginals().arcs[:, d]
                heads[d] = rng.choice(len(likely), p=likely / likely.sum())
                own = arcs[heads[d], d]
                arcs[:, d] = -np.inf
                arcs[heads[d], d] = own
            yield heads, arc_parts(heads)
