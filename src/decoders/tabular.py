"""Tabular parsing with split grammars: the cubic algorithm of Nederhof (2019), Table 2, over two semirings.

`best_score` and `count_best` take a `SplitGrammar`, a string of m codes and a matrix of integer weights; `inside_score`
and `inside_count` are the same for kernels, without Python objects, checks or exceptions, and take the ``arrays`` of
the grammar.

Layout of Table 2. A position can only be in the states that its own symbol can reach, one to three of the dozen of a
large grammar. The rows of a table are therefore indexed not by (state, position) but by *slots*, one for each possible
state of each position, in the order of positions. With q a slot of i for a right state, p a slot of j for a left state,
and i < k < j:

=========================  ===========================================================================================
``right[q, j]``            Wr(B, i, j), q = (B, i); ``right_by_end[j, q]`` is the same number
``left[p, i]``             Wl(C, i, j), p = (C, j); ``left_by_start[i, p]`` is the same number
``half_right[q, q']``      the largest Wr(B, C, i, k) after which i is in the state of q and its child k, which ends in
                           the right state of q', is complete; ``half_left[p, p']`` likewise
=========================  ===========================================================================================

Every sum over k (and over the states of the child) in Table 2 thereby becomes the sum of products of two stretches of
table rows, which the max-plus semiring computes a vector at a time. Elements that are not filled yet hold −∞, so
vectors may reach beyond a stretch. The semiring is chosen when a kernel is compiled: with count tables a value is the
pair of the best score and the number of derivations that have it, without them (``None``) it is the score alone.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from .lanes import lane_max, load, padded, splat, vmax
from .split_grammar import SplitGrammar

W = 8  # lanes
FORBIDDEN = -(1 << 30)  # weight of a forbidden edge; score where there is no tree
LARGEST_TOTAL = 1 << 24  # scores are float32, which holds all integers up to it
LARGEST_MODULUS = 1 << 31  # products of residues stay below 2^62


class Tables(NamedTuple):
    """The tables of a string of m symbols with P left and Q right slots; see the module."""

    right: np.ndarray  # (Q, m)
    right_by_end: np.ndarray  # (m, Q)
    left: np.ndarray  # (P, m)
    left_by_start: np.ndarray  # (m, P)
    half_right: np.ndarray  # (Q, Q)
    half_left: np.ndarray  # (P, P)


NO_COUNTS = Tables(None, None, None, None, None, None)  # type: ignore[arg-type]


@njit(nogil=True)
def _tables(value, m, p, q):
    """Tables filled with ``value``; rows are padded so that a vector can begin in any column."""
    m_pitch, p_pitch, q_pitch = padded(m + W), padded(p + W), padded(q + W)
    return Tables(
        np.full((q, m_pitch), value),
        np.full((m, q_pitch), value),
        np.full((p, m_pitch), value),
        np.full((m, p_pitch), value),
        np.full((q, q_pitch), value),
        np.full((p, p_pitch), value),
    )


@njit(nogil=True)
def _slots(states, string):
    """The first slot of every position, and the number of slots at the end."""
    first = np.zeros(string.shape[0] + 1, np.int64)
    for i in range(string.shape[0]):
        first[i + 1] = first[i] + states[string[i]]
    return first


@njit(nogil=True)
def _weight(weights, i, j):
    w = weights[i, j]
    return np.float32(-np.inf) if w == FORBIDDEN else np.float32(w)


@njit(nogil=True)
def _sum_of_products(x, x_counts, i, y, y_counts, j, shift, start, stop, modulus):
    """⊕ of x[i, k] ⊗ y[j, k + shift] over start ≤ k < stop."""
    largest = splat(-np.inf, W)
    for k in range(start, stop, W):
        largest = vmax(largest, load(x, (i, k), W) + load(y, (j, k + shift), W))
    best = lane_max(largest)
    count = 0
    if x_counts is not None and best > -np.inf:
        for k in range(start, stop):
            if x[i, k] + y[j, k + shift] == best:
                count = (count + x_counts[i, k] * y_counts[j, k + shift]) % modulus
    return best, count


@njit(nogil=True)
def _add(table, counts, row, column, score, count, modulus):
    """⊕= on one element of a table."""
    if score > table[row, column]:
        table[row, column] = score
        if counts is not None:
            counts[row, column] = count
    elif counts is not None and score == table[row, column]:
        counts[row, column] = (counts[row, column] + count) % modulus


@njit(nogil=True)
def _put(table, transposed, counts, counts_transposed, row, column, score, count):
    """Set one element of a table and of its transpose."""
    table[row, column] = transposed[column, row] = score
    if counts is not None:
        counts[row, column] = counts_transposed[column, row] = count


@njit(nogil=True)
def _count(counts, row, column):
    return 0 if counts is None else counts[row, column]


@njit(nogil=True)
def _inside(grammar, string, weights, left_slots, right_slots, scores, counts, modulus):
    """Fill the tables, with scores of −∞ and counts of 0 at first; return W of Table 2, a score and a count."""
    right, right_by_end, left, left_by_start, half_right, half_left = scores
    right_n, right_by_end_n, left_n, left_by_start_n, half_right_n, half_left_n = counts
    m = string.shape[0]
    terminals = grammar.left_states.shape[0]
    meet = np.empty((grammar.right_states.max(), grammar.left_states.max()), np.float32)
    meet_n = np.zeros(meet.shape, np.int64)
    for i in range(m):
        _put(right, right_by_end, right_n, right_by_end_n, right_slots[i], i, np.float32(0), 1)
        _put(left, left_by_start, left_n, left_by_start_n, left_slots[i], i, np.float32(0), 1)
    for j in range(1, m):
        p, p_stop = left_slots[j], left_slots[j + 1]
        for i in range(j - 1, -1, -1):
            q, q_stop = right_slots[i], right_slots[i + 1]
            # The right children of i and the left children of j meet somewhere between k and k + 1.
            for b in range(q_stop - q):
                for c in range(p_stop - p):
                    meet[b, c], meet_n[b, c] = _sum_of_products(
                        right, right_n, q + b, left, left_n, p + c, 1, i, j, modulus
                    )
            pair = string[i] * terminals + string[j]
            weight = _weight(weights, i, j)
            for row in range(grammar.right_first[pair], grammar.right_first[pair + 1]):
                b, c, new, d = grammar.right_rules[row]
                child = right_slots[j] + d
                _add(half_right, half_right_n, q + new, child, meet[b, c] + weight, meet_n[b, c], modulus)
            for new in range(q, q_stop):
                score, count = _sum_of_products(
                    half_right,
                    half_right_n,
                    new,
                    right_by_end,
                    right_by_end_n,
                    j,
                    0,
                    q_stop,
                    right_slots[j + 1],
                    modulus,
                )
                _put(right, right_by_end, right_n, right_by_end_n, new, j, score, count)
            if i == 0:  # the root is not a child
                continue
            weight = _weight(weights, j, i)
            for row in range(grammar.left_first[pair], grammar.left_first[pair + 1]):
                b, c, new, d = grammar.left_rules[row]
                child = left_slots[i] + d
                _add(half_left, half_left_n, p + new, child, meet[b, c] + weight, meet_n[b, c], modulus)
            for new in range(p, p_stop):
                score, count = _sum_of_products(
                    half_left, half_left_n, new, left_by_start, left_by_start_n, i, 0, left_slots[i], p, modulus
                )
                _put(left, left_by_start, left_n, left_by_start_n, new, i, score, count)
    best = np.full((1, 1), -np.inf, np.float32)
    total = np.zeros((1, 1), np.int64)
    for row in range(grammar.start_first[string[0]], grammar.start_first[string[0] + 1]):
        q = grammar.start_states[row]
        _add(best, total, 0, 0, right[q, m - 1], _count(right_n, q, m - 1), modulus)
    return best[0, 0], total[0, 0]


@njit(nogil=True)
def _whole(score):
    return FORBIDDEN if score == -np.inf else int(score)


@njit(nogil=True)
def _sizes(grammar, string):
    """Left and right slots, and the sizes of the tables."""
    left_slots, right_slots = _slots(grammar.left_states, string), _slots(grammar.right_states, string)
    return left_slots, right_slots, string.shape[0], left_slots[-1], right_slots[-1]


@njit(cache=True, nogil=True)
def inside_score(grammar, string, weights):
    """Largest total weight of a tree, `FORBIDDEN` if there is none; arguments as in `best_score`, but unchecked."""
    left_slots, right_slots, m, p, q = _sizes(grammar, string)
    scores = _tables(np.float32(-np.inf), m, p, q)
    return _whole(_inside(grammar, string, weights, left_slots, right_slots, scores, NO_COUNTS, 1)[0])


@njit(cache=True, nogil=True)
def inside_count(grammar, string, weights, modulus):
    """`inside_score`, and how many derivations have it, modulo ``modulus`` (≤ `LARGEST_MODULUS`)."""
    left_slots, right_slots, m, p, q = _sizes(grammar, string)
    scores, counts = _tables(np.float32(-np.inf), m, p, q), _tables(np.int64(0), m, p, q)
    score, count = _inside(grammar, string, weights, left_slots, right_slots, scores, counts, modulus)
    return _whole(score), count


def _checked(grammar: SplitGrammar, string: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    string, weights = np.asarray(string), np.asarray(weights)
    m = string.size
    if string.shape != (m,) or m == 0 or string.dtype.kind not in "iu":
        raise ValueError(
            f"the string must be integers (m,), the root at least; got {string.dtype} of shape {string.shape}"
        )
    if string.min() < 0 or string.max() >= len(grammar.terminals):
        raise ValueError(
            f"codes of symbols are 0 to {len(grammar.terminals) - 1}; got {string.min()} to {string.max()}"
        )
    if weights.shape != (m, m) or weights.dtype.kind not in "iu":
        raise ValueError(f"weights must be integers of shape ({m}, {m}); got {weights.dtype} of shape {weights.shape}")
    # A tree has one edge into each position but the root.
    sizes = np.where(weights == FORBIDDEN, 0.0, np.abs(weights.astype(np.float64)))
    np.fill_diagonal(sizes, 0.0)
    total = int(sizes[:, 1:].max(axis=0).sum())
    if total >= LARGEST_TOTAL:
        raise ValueError(f"the weight of a tree may reach {total}; the limit is {LARGEST_TOTAL - 1}")
    return np.require(string, np.int8, ["C", "W"]), np.require(weights, np.int32, ["C", "W"])


def best_score(grammar: SplitGrammar, string: np.ndarray, weights: np.ndarray) -> int | None:
    """The largest total weight of a tree that the grammar allows, None if there is none; O(m³) time, O(m²) space.

    Parameters
    ----------
    grammar : SplitGrammar
    string : int8 (m,)
        Codes of the symbols of positions 0, the root, to m − 1.
    weights : int (m, m)
        ``weights[i, j]`` of the edge from parent i to child j; `FORBIDDEN` rules it out. Column 0 and the diagonal are
        not read.

    Raises
    ------
    ValueError
        Wrong shapes, unknown codes, or weights that are not integers or too large.
    """
    score = inside_score(grammar.arrays, *_checked(grammar, string, weights))
    return None if score == FORBIDDEN else score


def count_best(
    grammar: SplitGrammar, string: np.ndarray, weights: np.ndarray, bound: int | None = None
) -> tuple[int | None, int]:
    """The largest total weight, and the exact number of derivations that have it; (None, 0) if there is no tree.

    If the grammar has one derivation for each tree, like the one in `projectivization`, this is the number of trees.
    The count, an integer of any size, is reconstructed from its remainders modulo primes, as many as its upper bound
    requires. ``bound`` is such an upper bound, by default one that holds for all weights; a smaller one saves time. For
    the other arguments and errors see `best_score`.
    """
    string, weights = _checked(grammar, string, weights)
    if bound is None:
        bound = _derivation_bound(grammar, len(string))
    score, count, product = FORBIDDEN, 0, 1
    for prime in _primes():
        score, remainder = inside_count(grammar.arrays, string, weights, prime)
        # Chinese remainder theorem: the number below product · prime with both remainders.
        count += product * ((int(remainder) - count) * pow(product, -1, prime) % prime)
        product *= prime
        if product > bound:
            break
    return (None, 0) if score == FORBIDDEN else (score, count)


def _derivation_bound(grammar: SplitGrammar, m: int) -> int:
    """Upper bound on the number of derivations of any string of m symbols.

    There are C(3n, n) / (2n + 1) projective trees of n words, and a derivation of a tree is determined by the row of
    the grammar that builds each edge and by the rule for the root.
    """
    arrays, n = grammar.arrays, m - 1
    rows = max(int(np.diff(first).max()) for first in (arrays.left_first, arrays.right_first))
    return math.comb(3 * n, n) // (2 * n + 1) * max(rows, 1) ** n * int(np.diff(arrays.start_first).max())


@lru_cache(maxsize=4096)
def _is_prime(number: int) -> bool:
    divisors = np.arange(3, math.isqrt(number) + 1, 2)
    return number % 2 == 1 and bool((number % divisors).all())


def _primes() -> Iterator[int]:
    """Primes below `LARGEST_MODULUS`, the largest first."""
    return filter(_is_prime, range(LARGEST_MODULUS - 1, 1, -1))
