"""Decoding scores that differ by orders of magnitude, such as masks of −1e9 that no derivation can avoid.

A float32 sum with such a number has no digits left for the small scores that decide between derivations. But the size
of the large numbers does not matter, as long as they decide first. The scores are therefore split into levels, the
largest numbers first. The best total is found level by level, and each level is then scaled down as far as possible:
derivations must stay optimal on it while smaller numbers decide between them.

This is exact if sums of large numbers are equal or differ by more than all smaller numbers add up to, as sums of masks
do. Scores of all sizes have no such levels, but a chart on all of them is off by its rounding error only. Three results
are therefore compared: the chart on all numbers, levels that end at a size, and levels that end at a gap between sizes.
The one with the best score in float64 wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .derivation import Derivation
from .shared import LARGE

STEP = 8.0  # factor by which the weight of a level grows
APART = 32.0  # times the number of words: numbers smaller by this factor do not add up to the larger one
ROUNDING = 1e-12  # of float64 sums, relative to the largest number, since numbers may cancel out
CERTAIN = 800.0  # exp(−800) is 0
MOST_NUMBERS = 5  # bound on the parts and arc bonuses that a derivation sums for each word and for the root

Run = Callable[[np.ndarray], np.ndarray]


def levels_of(values: np.ndarray, n: int, between_gaps: bool = False) -> list[np.ndarray]:
    """Split values, float64, into levels that sum to them: numbers of about one size and zeros, the largest first.

    A level ends below a size that depends on its largest number or, with ``between_gaps``, before the first number that
    is much smaller than the previous one. A number close to a multiple of the smallest number of its level is rounded
    to that multiple; the remainder and all smaller numbers go to later levels. The last level has −inf where the values
    have it.
    """
    levels, finite, apart = [], values > -np.inf, APART * n
    rest = np.where(finite, values, 0.0)
    while (largest := float(np.abs(rest).max())) > LARGE:
        lowest = _before_gap(rest, apart) if between_gaps else largest / apart
        on_level = np.abs(rest) >= max(lowest, LARGE)
        unit = float(np.abs(rest[on_level]).min())
        times = np.rint(rest / unit)
        level = np.where(np.abs(rest / unit - times) < 1 / apart, times * unit, rest)
        levels.append(np.where(on_level, level, 0.0))
        rest = rest - levels[-1]
    return [*levels, np.where(finite, rest, -np.inf)]


def brought_together(values: np.ndarray, n: int) -> np.ndarray:
    """Shrink large numbers as far as probabilities of n words allow; returns float64 (V,), like ``values``.

    If a derivation is not the best on a level, its exp(score) is 0 relative to that of the best, whether it falls short
    by 1e30 or by 800 more than all smaller numbers add up to. Next to 1e30, smaller numbers would lose their digits.
    """
    *levels, found = levels_of(values, n, between_gaps=True)
    for level in reversed(levels):
        unit = float(np.abs(level[level != 0]).min())
        enough = CERTAIN + 2 * MOST_NUMBERS * (n + 1) * float(np.abs(found[found > -np.inf]).max())
        if (level / unit != np.rint(level / unit)).any():  # sums may differ by less than a unit
            enough *= APART * n
        found = found + level * min(1.0, enough / unit)
    return found


def _before_gap(rest: np.ndarray, apart: float) -> float:
    """The last size before the first gap, where the next smaller size is less than 1/``apart`` of it."""
    sizes = np.sort(np.abs(rest[rest != 0]))[::-1]
    gaps = np.flatnonzero(sizes[:-1] > apart * sizes[1:])
    return float(sizes[gaps[0] if len(gaps) else -1])


def best_by_levels(run: Run, values: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the indices of the numbers that the best derivation sums.

    Parameters
    ----------
    run
        Decodes numbers laid out like ``values`` and returns the indices of those that the best derivation sums.
    values : float64 (V,)
        −inf forbids.
    levels
        See `levels_of`.
    """
    units = [float(np.abs(level[level != 0]).min()) for level in levels[:-1]]
    rounding = [ROUNDING * float(np.abs(level).max()) for level in levels[:-1]]
    best: list[float] = []
    found = np.empty(0, np.int64)
    for k, last in enumerate(levels):
        allowed = np.where(values > -np.inf, 0.0, -np.inf) + (last if k == len(units) else last / units[k])
        weights = [STEP ** (k - level) for level in range(k)]
        limits = [unit / (1.0 if k == len(units) else units[k]) for unit in units[:k]]
        while True:
            found = run(allowed + sum(w / unit * level for w, unit, level in zip(weights, units, levels, strict=False)))
            sums = [float(level[found].sum()) for level in levels[:k]]
            short = [
                one
                for one, (total, wanted) in enumerate(zip(sums, best, strict=True))
                if total < wanted - max(rounding[one], ROUNDING * abs(wanted)) and weights[one] < limits[one]
            ]
            if not short:
                break
            for one in range(short[0] + 1):
                weights[one] = min(weights[one] * STEP, limits[one])
        best.append(float(last[found].sum()))
    return found


def joined(scores: np.ndarray, arc_bonus: np.ndarray) -> np.ndarray:
    """Flatten scores (C, N, N) and arc bonus (N, N) into one array."""
    return np.concatenate([scores.reshape(-1), arc_bonus.reshape(-1)])


def parted(values: np.ndarray, scores: np.ndarray, arc_bonus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Undo `joined`: split ``values`` into arrays of the shapes of scores and arc bonus."""
    return values[: scores.size].reshape(scores.shape), values[scores.size :].reshape(arc_bonus.shape)


def best_of_large(
    best: Callable[[np.ndarray, np.ndarray], Derivation],
    weigh: Callable[[Derivation], float],
    scores: np.ndarray,
    arc_bonus: np.ndarray,
    found: Derivation,
) -> Derivation:
    """The best derivation of scores (C, N, N) and arc bonus (N, N), float64, whose large numbers cannot be avoided.

    ``best`` decodes such arrays with a chart, ``weigh`` returns the score of a derivation in float64, and ``found`` is
    the result of ``best`` on all numbers at once.
    """
    size, words = len(arc_bonus), np.arange(1, len(arc_bonus) - 1)
    values = joined(scores, arc_bonus)
    candidates = [found]

    def run(values: np.ndarray) -> np.ndarray:
        candidates[-1] = one = best(*parted(values, scores, arc_bonus))
        of_parts = np.ravel_multi_index(tuple(one.parts.T), scores.shape)
        return np.concatenate([of_parts, scores.size + one.heads[1:] * size + words])

    for between_gaps in (True, False):
        candidates.append(found)
        best_by_levels(run, values, levels_of(values, len(words), between_gaps))
    return max(reversed(candidates), key=weigh)
