"""Numbers that are worlds apart, such as masks of −1e9 that no derivation avoids, in charts that add in float32.

Which of the others is best is decided by what such a sum leaves no digits for. But it does not depend on how large the
large numbers are, as long as they decide first: each level of numbers, the largest first, is added up best, and then
weighs as little as it takes for derivations to stay the best on that level while the smaller numbers decide among them.

That is right where sums of large numbers are equal or differ by more than the smaller ones add up to, as sums of masks
do. Numbers of all sizes have no such levels: there, the chart on all of them is off by its rounding alone. So both are
tried, and levels that end where no numbers are for a while, too; the one that weighs most in float64 is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .derivation import Derivation
from .shared import LARGE

STEP = 8.0  # by which weights grow
APART = 32.0  # times the number of words: what is that much smaller does not add up to it
ROUNDING = 1e-12  # of float64 sums, whose numbers may cancel out: of the largest one
CERTAIN = 800.0  # exp(−800) is 0
MOST_NUMBERS = 5  # of a derivation for each word, and for the root: parts and an arc bonus

Run = Callable[[np.ndarray], np.ndarray]


def levels_of(values: np.ndarray, n: int, between_gaps: bool = False) -> list[np.ndarray]:
    """Arrays that add up to the values, float64, each holding numbers of about one size and zeros, the largest first.

    A level ends below a size that depends on its largest number or, ``between_gaps``, where the next number is much
    smaller. What is nearly a multiple of the smallest number of a level counts as that multiple; what is left of it,
    and all smaller numbers, are for later levels. The last one has −inf where the values have it.
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
    """Shrink large numbers as far as probabilities allow; returns float64 (V,), like ``values``, for n words.

    exp(score) of a derivation that is not the best on a level is 0 next to that of the best, whether it is short of it
    by 1e30 or by as much as all smaller numbers add up to and 800 more. Next to 1e30, they would have no digits left.
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
    """The smallest number, in size, from which the largest one is reached without a step of that many times."""
    sizes = np.sort(np.abs(rest[rest != 0]))[::-1]
    gaps = np.flatnonzero(sizes[:-1] > apart * sizes[1:])
    return float(sizes[gaps[0] if len(gaps) else -1])


def best_by_levels(run: Run, values: np.ndarray, levels: Sequence[np.ndarray]) -> np.ndarray:
    """Which numbers the best derivation collects.

    Parameters
    ----------
    run
        From numbers laid out like ``values`` to the indices of those that the best derivation collects.
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
    """Scores (C, N, N) and arc bonus (N, N) in one row."""
    return np.concatenate([scores.reshape(-1), arc_bonus.reshape(-1)])


def parted(values: np.ndarray, scores: np.ndarray, arc_bonus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers in one row laid out like scores and arc bonus."""
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
    what ``best`` returns for all numbers at once.
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
