"""The analyses that agree with the UPOS, XPOS and FEATS that a sentence comes with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mh4.data.sentence import Sentence

from .column_counts import UNKNOWN, Analysis, canonical
from .request import TAGS


class Constraints(NamedTuple):
    """Analyses that words with given values cannot have.

    Attributes
    ----------
    words : int64 (W,)
        Only words whose values exclude an analysis, among the M words of some sentences.
    excluded : bool (W, K)
    """

    words: np.ndarray
    excluded: np.ndarray


class GivenAnalyses:
    """Knows which of K analyses agree with given values."""

    def __init__(self, analyses: Sequence[Analysis]) -> None:
        self._count = len(analyses)
        having: list[dict[str, list[int]]] = [defaultdict(list) for _ in TAGS]
        for k, analysis in enumerate(analyses):
            for column, value in zip(having, analysis, strict=True):
                column[value].append(k)
        upos, xpos, feats = ({value: frozenset(own) for value, own in column.items()} for column in having)
        tagged = frozenset(range(self._count)) - upos.get(UNKNOWN, frozenset())
        # An unknown UPOS or XPOS excludes nothing, except that UPOS becomes one of the known ones.
        self._having = (upos | {UNKNOWN: tagged}, {tag: own for tag, own in xpos.items() if tag != UNKNOWN}, feats)
        self._excluded = lru_cache(1 << 12)(self._find_excluded)

    def constraints(self, sentences: Sequence[Sentence], overwritten: Collection[str]) -> Constraints | None:
        """What the given XPOS and FEATS exclude, except in columns that are ``overwritten``; None if it is nothing."""
        words, rows, first = [], [], 0
        for sentence in sentences:
            unknown = (UNKNOWN,) * len(sentence)
            upos, xpos, feats = (unknown if name in overwritten else getattr(sentence, name) for name in TAGS)
            features_given = feats != unknown
            all_given = features_given and UNKNOWN not in upos and UNKNOWN not in xpos
            if not all_given and (features_given or xpos != unknown):
                for word, given in enumerate(zip(upos, xpos, feats, strict=True), first):
                    excluded = self._excluded(*given[:2], canonical(given[2]) if features_given else None)
                    if excluded is not None:
                        words.append(word)
                        rows.append(excluded)
            first += len(sentence)
        return Constraints(np.array(words), np.array(rows)) if words else None

    def _find_excluded(self, upos: str, xpos: str, feats: str | None) -> np.ndarray | None:
        """bool (K,): the analyses that do not agree; None if all do.

        If no analysis has all the values, UPOS counts more than XPOS, and XPOS more than FEATS.
        """
        agreeing = frozenset(range(self._count))
        for having, value in zip(self._having, (upos, xpos, feats), strict=True):
            if value is not None and value in having:
                agreeing = agreeing & having[value] or agreeing
        if len(agreeing) == self._count:
            return None
        excluded = np.ones(self._count, bool)
        excluded[list(agreeing)] = False
        return excluded
