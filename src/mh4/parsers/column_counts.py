"""Counts of the values of UPOS, XPOS, FEATS and LEMMA in training sentences, for `Columns`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np

from mh4.data.lemma_rules import LemmaRule, lemma_rule
from mh4.data.sentence import Sentence

UNKNOWN = "_"
LIKELY = 0.05  # if the probability that all words of a sentence lack FEATS is lower, their FEATS are taken as unknown

Analysis = tuple[str, str, str]
Given = tuple[str | None, str | None, str | None]  # analysis of a training word; None for an unknown value
Arcs = Mapping[tuple[str, Analysis, Analysis | None], int]


def attribute_of(feature: str) -> str:
    """``Case`` of ``Case=Nom``."""
    return feature.partition("=")[0]


def attribute_order(attribute: str) -> tuple[str, str]:
    """Sort key for UD's order of attributes, which ignores case."""
    return attribute.lower(), attribute


def by_attribute(feats: str) -> dict[str, str]:
    """The features of FEATS, such as ``Case=Nom``, by their attributes."""
    return {} if feats in ("", UNKNOWN) else {attribute_of(feature): feature for feature in feats.split("|")}


@lru_cache(maxsize=1 << 14)
def canonical(feats: str) -> str:
    """FEATS in UD's order."""
    return "|".join(sorted(feats.split("|"), key=lambda feature: attribute_order(attribute_of(feature))))


class TrainingAnalyses:
    """The analyses of the words of training sentences.

    Attributes
    ----------
    given
        For each sentence, the analyses of its words with None for unknown values.
    counts
        Number of words by analysis: complete ones, and those that no fuller analysis matches, with "_" for unknown
        values.
    only
        For each given analysis, the key of ``counts`` that matches its known values; None if several do.
    """

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.given: list[Sequence[Given]] = [
            list(zip(sentence.upos, sentence.xpos, map(canonical, sentence.feats), strict=True))
            for sentence in sentences
        ]
        without = [_is_without_features(sentence) for sentence in sentences]
        if not all(without):
            counts = Counter(a for own, none in zip(self.given, without, strict=True) if not none for a in own)
            shares = shares_without_features(counts)  # type: ignore[arg-type]
            for i in np.flatnonzero(without).tolist():
                if lacks_features(sentences[i], shares):
                    self.given[i] = [(upos, xpos, None) for upos, xpos, _ in self.given[i]]
        for column in (0, 1):
            self._forget_empty(column)
        known = Counter(analysis for own in self.given for analysis in own)
        self.counts: Counter[Analysis] = Counter()
        self._having: dict[Given, list[Analysis]] = defaultdict(list)
        for analysis in sorted(known, key=lambda analysis: analysis.count(None)):
            if None not in analysis or analysis not in self._having:
                self._add(analysis, known[analysis])
        self.only = {
            analysis: self._having[analysis][0] if len(self._having[analysis]) == 1 else None for analysis in known
        }

    def unique(self) -> list[list[Analysis | None]]:
        """For each sentence, the only analysis in ``counts`` that each word can have; None if there are several."""
        return [[self.only[analysis] for analysis in own] for own in self.given]

    def _forget_empty(self, column: int) -> None:
        """Make "_" in a column unknown, unless the column is "_" throughout."""
        empty = [any(analysis[column] == UNKNOWN for analysis in own) for own in self.given]
        if any(analysis[column] != UNKNOWN for own in self.given for analysis in own):
            for i in np.flatnonzero(empty).tolist():
                self.given[i] = [
                    (*a[:column], None if a[column] == UNKNOWN else a[column], *a[column + 1 :])  # type: ignore[misc]
                    for a in self.given[i]
                ]

    def _add(self, given: Given, count: int) -> None:
        upos, xpos, feats = (UNKNOWN if value is None else value for value in given)
        self.counts[upos, xpos, feats] += count
        for part in product((upos, None), (xpos, None), (feats, None)):
            self._having[part].append((upos, xpos, feats))


def _is_without_features(sentence: Sentence) -> bool:
    return set(sentence.feats) <= {"", UNKNOWN}


def shares_without_features(counts: Mapping[Analysis, float]) -> dict[str, float]:
    """The share of words without features, by UPOS; the key "" has the share of all words."""
    totals: dict[str, float] = defaultdict(float)
    without: dict[str, float] = defaultdict(float)
    for (upos, _, feats), count in counts.items():
        for name in (upos, ""):
            totals[name] += count
            without[name] += count * (feats in ("", UNKNOWN))
    return {name: without[name] / total for name, total in totals.items() if total}


def lacks_features(sentence: Sentence, shares: Mapping[str, float]) -> bool:
    """Whether FEATS are unknown: the sentence has none, which is improbable by `shares_without_features`."""
    return (
        _is_without_features(sentence) and prod(shares.get(upos, shares.get("", 1)) for upos in sentence.upos) < LIKELY
    )


def count_forms(
    sentences: Sequence[Sentence], tags: Iterable[Sequence[Analysis | None]]
) -> Counter[tuple[str, Analysis]]:
    """How often each form has each analysis; words without a known one do not count."""
    return Counter(
        (form, tag)
        for sentence, own in zip(sentences, tags, strict=True)
        for form, tag in zip(sentence.forms, own, strict=True)
        if tag is not None
    )


def count_arcs(
    sentences: Sequence[Sentence], tags: Iterable[Sequence[Analysis | None]]
) -> Counter[tuple[str, Analysis, Analysis | None]]:
    """Count arcs by relation, analysis of the dependent, and that of the head, None for the root and if unknown.

    Arcs without a relation, and to words without a known analysis, do not count.
    """
    arcs: Counter[tuple[str, Analysis, Analysis | None]] = Counter()
    for sentence, own in zip(sentences, tags, strict=True):
        of_heads = [None, *own]
        arcs.update(
            (relation, tag, of_heads[head])
            for head, relation, tag in zip(sentence.heads.tolist(), sentence.relations, own, strict=True)
            if head >= 0 and relation != UNKNOWN and tag is not None
        )
    return arcs


def count_relations(arcs: Arcs) -> Counter[tuple[str, Analysis]]:
    """How often a dependent with each relation has each analysis."""
    found: Counter[tuple[str, Analysis]] = Counter()
    for (relation, analysis, _), count in arcs.items():
        found[relation, analysis] += count
    return found


def count_agreement(arcs: Arcs) -> dict[str, tuple[int, int]]:
    """How often dependent and head have equal, and different, values of an attribute; see `Columns.agreement`."""
    agreement: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (relation, analysis, of_head), count in arcs.items():
        if of_head is not None:
            features_of_head = by_attribute(of_head[2])
            for attribute, feature in by_attribute(analysis[2]).items():
                if attribute in features_of_head:
                    key = f"{relation}\t{analysis[0]}\t{of_head[0]}\t{attribute}"
                    agreement[key][feature != features_of_head[attribute]] += count
    return {key: (same, other) for key, (same, other) in agreement.items()}


def count_lemmas(
    sentences: Sequence[Sentence], given: Iterable[Sequence[Given]]
) -> tuple[Counter[LemmaRule], dict[str, str]]:
    """How many words have each lemma rule, and the lexicon of unique lemmas; see `Columns.lexicon`."""
    words: Counter[tuple[str, str, str, str | None]] = Counter()
    for sentence, own in zip(sentences, given, strict=True):
        words.update(zip(sentence.forms, sentence.lemmas, sentence.upos, (a[2] for a in own), strict=True))
    pairs: Counter[tuple[str, str]] = Counter()
    lemmas: dict[str, set[str]] = defaultdict(set)
    for (form, lemma, upos, feats), count in words.items():
        if lemma != UNKNOWN:
            pairs[form, lemma] += count
            lemmas[f"{form}\t{upos}"].add(lemma)
            if feats is not None:
                lemmas[f"{form}\t{upos}\t{feats}"].add(lemma)
    rules: Counter[LemmaRule] = Counter()
    for (form, lemma), count in pairs.items():
        rules[lemma_rule(form, lemma)] += count
    lexicon = {}
    for key, found in lemmas.items():
        if len(found) == 1 and (key.count("\t") == 1 or len(lemmas[key.rpartition("\t")[0]]) > 1):
            (lexicon[key],) = found
    return rules, lexicon
