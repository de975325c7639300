"""Constants that all derivations share: they change no tree, but would cost the charts their precision.

A chart adds in float32, where a constant like 1e9 absorbs the differences that decide. Every tree has exactly one arc
into each word, and every derivation exactly one part per word from each group that its decoder names. The largest
number among the alternatives can therefore be subtracted from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numba import njit

LARGE = 1024.0  # scores of parts above it are large; sums of smaller ones leave float32 enough digits
LOWEST = float(np.float32(-3.3e38))  # this and lower numbers count as −inf: the lowest of float32 and bfloat16 do

Axis = Literal["row", "column", "all"]
Group = Sequence[tuple[str, Axis]]
"""Channels that together hold one part per word, and where each holds it: in the word's row or column, or anywhere."""


@njit(cache=True, nogil=True)
def holds_large(values, bound=LARGE):
    """Whether any number but −inf exceeds the bound in size; C-contiguous array, float32 or float64."""
    bound, forbidden = np.float32(bound), np.float32(-np.inf)
    small = True
    flat = values.reshape(-1)
    for at in range(flat.size):  # no branch: vectorised
        small &= (abs(flat[at]) <= bound) | (flat[at] == forbidden)
    return not small


@njit(cache=True, nogil=True)
def _holds_low(values):
    """Whether any finite number of a C-contiguous array is so low that it counts as −inf."""
    lowest, forbidden = np.float32(LOWEST), np.float32(-np.inf)
    low = False
    flat = values.reshape(-1)
    for at in range(flat.size):  # no branch: vectorised
        low |= (flat[at] <= lowest) & (flat[at] != forbidden)
    return low


def without_low(values: np.ndarray) -> np.ndarray:
    """Replace numbers that count as −inf in a C-contiguous array, float32 or float64; the array itself if none do."""
    return np.where(values <= LOWEST, values.dtype.type(-np.inf), values) if _holds_low(values) else values


def exact(values: np.ndarray) -> np.ndarray:
    """A copy in float64, with −inf for all numbers that count as −inf."""
    array = np.array(values, np.float64)
    array[array <= LOWEST] = -np.inf
    return array


def without_shared(
    scores: np.ndarray,
    arc_bonus: np.ndarray,
    channels: Sequence[str],
    roles: Sequence[tuple[str, str]],
    groups: Sequence[Group],
    single_root: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (C, N, N) and arc bonus (N, N), both float64 and finite or −inf, less the constants that trees share."""
    size = arc_bonus.shape[0]
    arcs = _arcs(size)
    bonus = np.where(arcs, arc_bonus, -np.inf)
    inner = bonus[1:] if single_root else bonus  # the root's row has a constant of its own
    bonus -= np.where(np.isfinite(inner.max(0)), _finite(inner.max(0)), _finite(bonus.max(0)))
    if single_root:
        bonus[0] -= _finite(bonus[0].max())

    own = scores.copy()
    after = np.triu(np.ones((size, size), np.bool_), 1)
    for group in groups:
        members = [(channels.index(name), axis) for name, axis in group]
        for c, _ in members:
            own[c][~(arcs if roles[c][0] == "head" else after)] = -np.inf  # not a part
        largest = _finite(np.max([_largest(own[c], axis) for c, axis in members], axis=0))
        for c, axis in members:
            own[c] -= largest[:, None] if axis == "row" else largest
    return own, bonus


def _arcs(size: int) -> np.ndarray:
    """Mask of the possible arcs [head, dependent], bool (size, size)."""
    arcs = ~np.eye(size, dtype=np.bool_)
    arcs[-1] = arcs[:, 0] = arcs[:, -1] = False
    return arcs


def _largest(matrix: np.ndarray, axis: Axis) -> np.ndarray:
    return matrix.max(axis=None if axis == "all" else 1 if axis == "row" else 0)


def _finite(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, 0.0)
