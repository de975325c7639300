"""Reliability of confidences: of words with a stated probability of 0.9, are nine in ten right?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from mh4.data.confidence_columns import HEAD, MARGIN, WORD, read_confidence
from mh4.data.errors import DataError

from .alignment import read_analysis, require_same_text
from .evaluation import Comparison

BINS = 10
LOOKED_AT = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


class Bin(NamedTuple):
    """Words of similar confidence: their number, their mean confidence, and the share of them that is correct."""

    words: int
    confidence: float
    right: float


@dataclass(frozen=True)
class Reliability:
    """How well confidences match the share of words that are right.

    Attributes
    ----------
    words : int
    right : float
        Share of words that are right.
    ece : float
        Expected calibration error: the distance between confidence and share of right words in each of ten equally
        wide bins, averaged over words (Naeini, Cooper and Hauskrecht 2015).
    bins : list of Bin
        From low to high confidence, those with words.
    """

    words: int
    right: float
    ece: float
    bins: list[Bin]

    @classmethod
    def of(cls, confidence: np.ndarray, right: np.ndarray) -> Self:
        """Measure on P words: their confidences, in 0…1, and whether each is right; words with NaN do not count."""
        known = ~np.isnan(confidence)
        confidence, right = confidence[known], right[known]
        if not len(right):
            return cls(0, 0.0, 0.0, [])
        places = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        bins = [
            Bin(int(own.sum()), float(confidence[own].mean()), float(right[own].mean()))
            for own in (places == b for b in range(BINS))
            if own.any()
        ]
        ece = sum(one.words * abs(one.confidence - one.right) for one in bins) / len(right)
        return cls(len(right), float(right.mean()), float(ece), bins)


def errors_found(order: np.ndarray, wrong: np.ndarray, shares: tuple[float, ...] = LOOKED_AT) -> dict[float, float]:
    """By share of words inspected, in ``order`` (P,): the share of all errors among these words."""
    found = np.concatenate([[0], np.cumsum(wrong[order])])
    total = max(int(found[-1]), 1)
    return {share: float(found[round(share * len(order))] / total) for share in shares}


@dataclass(frozen=True)
class CalibrationReport:
    """The result of `measure_calibration`.

    Attributes
    ----------
    heads_before, heads, both : Reliability
        Of heads by 1 / (1 + exp(−margin)); of heads by their stated confidence; of head and relation together by their
        stated confidence.
    wrong_heads, wrong_words : dict
        By share of words inspected, the least certain first: the share of all wrong heads, and of all words with a
        wrong head or relation, that are found.
    """

    heads_before: Reliability
    heads: Reliability
    both: Reliability
    wrong_heads: dict[float, float]
    wrong_words: dict[float, float]

    def as_dict(self) -> dict[str, Any]:
        """The attributes as nested dictionaries, ready for JSON."""
        return asdict(self)


def report_calibration(
    margins: np.ndarray, heads: np.ndarray, words: np.ndarray, head_right: np.ndarray, word_right: np.ndarray
) -> CalibrationReport:
    """The report on P words; a margin or confidence of NaN is unknown."""
    with np.errstate(over="ignore"):
        raw = 1 / (1 + np.exp(-margins))
    return CalibrationReport(
        Reliability.of(raw, head_right),
        Reliability.of(heads, head_right),
        Reliability.of(words, word_right),
        errors_found(np.lexsort((margins, heads)), ~head_right),
        errors_found(np.lexsort((margins, words)), ~word_right),
    )


def measure_calibration(gold: str | Path, system: str | Path) -> CalibrationReport:
    """Compare the confidences in the MISC of a parsed file with a gold treebank.

    A word without a gold word is wrong. Relations count with their subtypes.

    Raises
    ------
    DataError
        As `mh4.trees.evaluation.evaluate`; or the file has no confidences, or one is not a probability.
    """
    gold_side, system_side = read_analysis(gold, "required"), read_analysis(system, "required")
    require_same_text(gold_side, system_side)
    stated = np.empty((len(system_side), 3))
    for word, misc in enumerate(system_side.misc):
        try:
            stated[word] = read_confidence(misc)
        except ValueError as error:
            place = system_side.place_of_word(word)
            raise DataError(f"{place}: {WORD}, {HEAD} or {MARGIN} in MISC: {error}") from None
    words, heads, margins = stated.T
    if np.isnan(words).all():
        raise DataError(f"{system}: MISC has no {WORD} (parse with mh4 parse --confidence)")
    pairs = Comparison(gold_side, system_side)

    def right(of_pairs: np.ndarray) -> np.ndarray:
        of_words = np.zeros(len(system_side), bool)
        of_words[pairs.system_words] = of_pairs
        return of_words

    same_relation = pairs.same(lambda side: side.relations)
    return report_calibration(margins, heads, words, right(pairs.head_right), right(pairs.head_right & same_relation))
