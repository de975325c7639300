"""Checks of the numbers that charts add up, and the score of a derivation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .shared import LARGE, LOWEST

# Bound on the sum of one number per position. Charts add up to four per word, and float32 must hold 16 times that.
LARGEST_SUM = 2.0**121


@njit(nogil=True, forceinline=True)
def add_logs(x, y):
    """log(exp(x) + exp(y))."""
    top = max(x, y)
    return top if top == -np.inf else top + np.log1p(np.exp(min(x, y) - top))


@njit(cache=True, nogil=True)
def parts_score(scores, parts, count):
    """Sum of the scores (C, N, N) of the first ``count`` parts, in float64; −inf if ``count`` is negative."""
    if count < 0:
        return -np.inf
    total = 0.0
    for p in range(count):
        total += scores[parts[p, 0], parts[p, 1], parts[p, 2]]
    return total


@njit(cache=True, nogil=True)
def derivation_score(scores, arc_bonus, heads, parts, count, is_high):
    """Sum of the first ``count`` parts and of the bonuses of the arcs, in float64; −inf if ``count`` is negative.

    NaN if one of these numbers exceeds `LARGE` in size or if ``is_high``, which `check_numbers` returns, is true: the
    chart may have missed the best derivation, as large numbers may cancel out. scores (C, N, N), arc_bonus (N, N).
    """
    if count < 0:
        return -np.inf
    total, largest = 0.0, np.float32(0)
    for p in range(count):
        score = scores[parts[p, 0], parts[p, 1], parts[p, 2]]
        total += score
        largest = max(largest, abs(score))
    for d in range(1, heads.shape[0]):
        bonus = arc_bonus[heads[d], d]
        total += bonus
        largest = max(largest, abs(bonus))
    return np.nan if is_high or largest > LARGE else total


@njit(nogil=True)
def _fit(values, bound):
    """Whether every number counts as −inf or is smaller than the bound in size; false for NaN.

    The loop has no branch and compares numbers of one type, so that it vectorises.
    """
    lowest, flat, fine = np.float32(LOWEST), values.reshape(-1), True
    for at in range(flat.size):
        fine &= (abs(flat[at]) < bound) | (flat[at] <= lowest)
    return fine


@njit(cache=True, nogil=True)
def check_numbers(scores, arc_bonus):
    """ValueError unless every number counts as −inf or is small enough that no sum in a chart overflows float32.

    Returns whether any number is above `LARGE`. A derivation with a finite number that counts as −inf ranks below all
    others, and `derivation_score` returns NaN for it.
    """
    large, bound = np.float32(LARGE), np.float32(LARGEST_SUM / scores.shape[1])
    if _fit(scores, large) and _fit(arc_bonus, large):
        return False
    if not (_fit(scores, bound) and _fit(arc_bonus, bound)):
        raise ValueError("scores or arc_bonus hold NaN, +inf or numbers too large to be summed; forbid parts with −inf")
    return scores.max() > large or arc_bonus.max() > large


def plain_array(values: Any) -> np.ndarray:
    """An array of numpy; tensors of PyTorch may lie on any device, require gradients, and be in bfloat16.

    ValueError: a masked array, whose mask would be lost.
    """
    if hasattr(values, "detach"):  # PyTorch, which this package does not import
        values = values.detach().cpu().resolve_conj().resolve_neg()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    if hasattr(values, "filled"):
        raise ValueError("scores and arc_bonus must not be masked arrays; write array.filled(-np.inf)")
    return np.asarray(values)


def own_array(values: Any, dtype: type[np.floating[Any]] = np.float32) -> np.ndarray:
    """The array as the kernels are compiled for it: of that type, C order, writable (though they only read).

    ValueError: Numbers are complex; a masked array.
    """
    if type(values) is not np.ndarray or values.dtype != dtype:
        values = plain_array(values)
        if values.dtype.kind == "c":
            raise ValueError(f"scores and arc_bonus must be real numbers; got {values.dtype}")
        with np.errstate(over="ignore"):  # −inf forbids a part, and `check_numbers` rejects +inf
            values = np.asarray(values, dtype)
    array = np.ascontiguousarray(values)
    return array if array.flags.writeable else array.copy()
