"""Compares several systems on one treebank, with confidence intervals of scores and p-values of differences.

Both draw whole sentences, since the words of a sentence depend on each other. An interval holds the middle 95 % of the
F1 of resampled treebanks (the percentile bootstrap of Efron 1979); those without any unit to score, such as a crossing
arc, do not count. A p-value is that of the two-sided paired randomisation test (Yeh 2000): the share of random
exchanges of the two systems' sentences that make a difference at least as large as the observed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from mh4.data.sentence import Sentence

from .alignment import read_analysis
from .evaluation import Comparison, Evaluation, count_units, evaluate_pairs
from .scores import Counts

__all__ = ["LEVEL", "SAMPLES", "Compared", "compare"]

LEVEL = 0.95
SAMPLES = 5000
_AT_ONCE = 1 << 22  # random numbers drawn at a time, which take 32 MiB
_TIE = 1e-12  # tolerance for rounding errors when differences are compared


@dataclass(frozen=True)
class Compared:
    """Scores of one of several systems.

    Attributes
    ----------
    evaluation : Evaluation
    intervals : dict
        95 % confidence interval of F1, in 0…1, for each of `Evaluation.rows` with units on either side.
    p_values : dict
        Probability that chance alone makes a difference from the first system's F1 at least as large, for each row of
        both systems; empty for the first system.
    """

    evaluation: Evaluation
    intervals: dict[str, tuple[float, float]]
    p_values: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """`Evaluation.as_dict`, and the other attributes, ready for JSON."""
        intervals = {name: list(interval) for name, interval in self.intervals.items()}
        return {**self.evaluation.as_dict(), "intervals": intervals, "p_values": self.p_values}


def compare(
    gold: str | Path | Iterable[Sentence],
    systems: Mapping[str, str | Path | Iterable[Sentence]],
    *,
    samples: int = SAMPLES,
    seed: int = 1,
) -> dict[str, Compared]:
    """Score several analyses of one text, with confidence intervals, and test them against the first one.

    Parameters
    ----------
    gold
        A CoNLL-U file, or sentences.
    systems
        The file or sentences of each system, by name.
    samples
        How many treebanks to draw for each interval, and how many exchanges for each p-value.
    seed
        Equal seeds give equal results, independently of the other systems.

    Raises
    ------
    DataError
        See `mh4.trees.evaluation.evaluate`.
    ValueError
        No system is given, or fewer than one sample.
    """
    if not isinstance(systems, Mapping):
        raise TypeError('systems have names: write mh4.compare(gold, {"a": "a.conllu", "b": "b.conllu"})')
    if not systems:
        raise ValueError("there is no system to compare with the gold trees")
    if samples < 1:
        raise ValueError(f"at least one sample is needed; got {samples}")
    gold_side = read_analysis(gold)
    first: Mapping[str, np.ndarray] = {}
    results = {}
    for name, system in systems.items():
        pairs = Comparison.of(gold_side, read_analysis(system))
        counts = count_units(pairs)
        tables = {row: _table(part) for row, part in counts.items()}
        shared = [row for row in tables if row in first]
        results[name] = Compared(
            evaluate_pairs(pairs, counts),
            _intervals(tables, samples, seed),
            _p_values({row: first[row] for row in shared}, {row: tables[row] for row in shared}, samples, seed),
        )
        first = first or tables
    return results


def _table(counts: Counts) -> np.ndarray:
    """float64 (S, 4): correct and all gold units, correct and all units of the system."""
    correct_in_system = counts.correct if counts.correct_in_system is None else counts.correct_in_system
    columns = (counts.correct, counts.gold_total, correct_in_system, counts.system_total)
    return np.stack(columns, axis=1).astype(np.float64)


def _f1(totals: np.ndarray) -> np.ndarray:
    """F1 (…) of sums (…, 4) of rows of `_table`; 0 where no unit is correct."""
    correct, gold, correct_in_system, system = np.moveaxis(totals, -1, 0)
    recall = np.divide(correct, gold, out=np.zeros_like(correct), where=gold > 0)
    precision = np.divide(correct_in_system, system, out=np.zeros_like(correct), where=system > 0)
    both = precision + recall
    return np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)


def _portions(samples: int, sentences: int) -> Iterator[int]:
    """Sizes of the portions in which ``samples`` samples are drawn, within the limit of `_AT_ONCE`."""
    most = max(1, _AT_ONCE // sentences)
    for start in range(0, samples, most):
        yield min(most, samples - start)


def _intervals(tables: Mapping[str, np.ndarray], samples: int, seed: int) -> dict[str, tuple[float, float]]:
    together = np.stack(list(tables.values()))  # (rows, S, 4)
    rows, sentences, _ = together.shape
    by_sentence = together.transpose(1, 0, 2).reshape(sentences, -1)
    random = np.random.default_rng(seed)
    drawn = []
    for portion in _portions(samples, sentences):
        places = random.integers(sentences, size=(portion, sentences)) + sentences * np.arange(portion)[:, None]
        weights = np.bincount(places.ravel(), minlength=portion * sentences).reshape(portion, sentences)
        totals = (weights.astype(np.float64) @ by_sentence).reshape(portion, rows, 4)
        occurs = totals[..., 1] + totals[..., 3] > 0
        drawn.append(np.where(occurs, _f1(totals), np.nan))
    rest = (1 - LEVEL) / 2
    f1 = np.concatenate(drawn)
    known = ~np.isnan(f1).all(axis=0)
    low, high = np.nanquantile(f1[:, known], (rest, 1 - rest), axis=0)
    return dict(zip(compress(tables, known), zip(low.tolist(), high.tolist(), strict=True), strict=True))


def _p_values(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], samples: int, seed: int
) -> dict[str, float]:
    if not first:
        return {}
    one, other = np.stack(list(first.values())), np.stack(list(second.values()))
    rows, sentences, _ = one.shape
    more = (other - one).transpose(1, 0, 2).reshape(sentences, -1)  # what the first system gains by an exchange
    one, other = one.sum(axis=1), other.sum(axis=1)
    observed = np.abs(_f1(other) - _f1(one))
    random = np.random.default_rng(seed)
    as_large = np.ones(rows)  # the observed difference counts as one exchange
    for portion in _portions(samples, sentences):
        exchanged = random.integers(0, 2, (portion, sentences)).astype(np.float64)
        gained = (exchanged @ more).reshape(portion, rows, 4)
        as_large += (np.abs(_f1(other - gained) - _f1(one + gained)) >= observed - _TIE).sum(axis=0)
    return dict(zip(first, (as_large / (samples + 1)).tolist(), strict=True))
