"""A model's knowledge of the columns UPOS, XPOS, FEATS and LEMMA: their values, and which values occur together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, product
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from mh4.data.lemma_rules import LemmaRule, lemma_rule
from mh4.data.sentence import Sentence
from mh4.models.annotator import IGNORED, Analyses, Classes
from mh4.models.checked import STRICT
from mh4.models.word_vocabulary import by_frequency

from .column_counts import (
    UNKNOWN,
    Analysis,
    TrainingAnalyses,
    attribute_order,
    by_attribute,
    canonical,
    count_agreement,
    count_arcs,
    count_forms,
    count_lemmas,
    count_relations,
    lacks_features,
    shares_without_features,
)

MOST_XPOS = 400  # with more tags, XPOS is scored by the character at each position
MOST_XPOS_CLASSES = 4000  # with more such classes, XPOS is not scored: the most frequent with UPOS and FEATS is taken
MOST_CELLS = 10**7  # limit for the tables of classes by analyses and of attributes by pairs of UPOS

Value = Annotated[str, Field(pattern=r"^[^\t\r\n]*$")]
Tag = Annotated[str, Field(pattern=r"^[^\t\r\n]+$")]
Cut = Annotated[int, Field(ge=0, lt=2**31)]
Rule = tuple[Literal["lowered", "as is", "titled", "absolute", "lower", "title"], Cut, Value, Cut, Value]


@dataclass(frozen=True, config=STRICT)
class Columns:
    """The values of the columns UPOS, XPOS, FEATS and LEMMA in training sentences.

    A column that is "_" throughout is unknown to the model. Otherwise, "_" is an unknown UPOS, XPOS or LEMMA. In FEATS
    it means no features, unless the whole sentence has none although such words usually have some: then it is unknown.

    Attributes
    ----------
    analyses
        Distinct combinations of UPOS, XPOS and FEATS, most frequent first. One with unknown values, written "_", is
        listed only if no fuller analysis matches its known values.
    lemma_rules
        See `LemmaRule`.
    lexicon
        Unique lemmas, by form, tab and UPOS or, where these have several, by form, tab, UPOS, tab and FEATS.
    seen
        For each form, its analyses as a flat sequence of index, count, index, count, … A partly unknown analysis that
        several ones match is not counted.
    by_relation
        The same for the dependents of each relation.
    agreement
        By relation, tab, UPOS of the dependent, tab, UPOS of the head, tab and an attribute of FEATS that both have:
        how often its values were equal, and how often different.
    """

    analyses: tuple[tuple[Tag, Tag, Value], ...] = ()
    lemma_rules: tuple[Rule, ...] = ()
    lexicon: dict[str, Value] = Field(default_factory=dict)
    seen: dict[str, tuple[Cut, ...]] = Field(default_factory=dict)
    by_relation: dict[str, tuple[Cut, ...]] = Field(default_factory=dict)  # empty in models of format 2
    agreement: dict[str, tuple[Cut, Cut]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        features = sum(len(features) + 1 for features in self.attributes.values())
        cells = (len(self.upos) + self._xpos_classes[0] + features) * len(self.analyses)
        if max(cells, (len(self.upos) + 1) ** 2 * len(self.attributes)) > MOST_CELLS:
            most = max(self.attributes, key=lambda name: len(self.attributes[name]), default=None)
            culprit = f", attribute {most} alone {len(self.attributes[most])}" if most else ""
            raise ValueError(
                f"analyses: too many to learn: {len(self.upos)} UPOS, {len(self.xpos)} XPOS, {features} values of "
                f"FEATS{culprit} (remove from the treebank what does not describe words)"
            )
        for key in self.agreement:
            if key.count("\t") != 3 or key.rpartition("\t")[2] not in self.attributes:
                raise ValueError(f"agreement: {key!r} is not of a relation, two UPOS and an attribute")
        for field in ("seen", "by_relation"):
            for name, pairs in getattr(self, field).items():
                if len(pairs) % 2 or max(pairs[::2], default=0) >= len(self.analyses) or 0 in pairs[1::2]:
                    raise ValueError(f"{field}: {name!r} has no such analyses")
        return self

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence]) -> Columns:
        """Collect the values in training sentences."""
        counted = TrainingAnalyses(sentences)
        tags = counted.unique()
        index = {analysis: k for k, analysis in enumerate(by_frequency(counted.counts))}
        arcs = count_arcs(sentences, tags)
        rules, lexicon = count_lemmas(sentences, counted.given)
        return cls(
            tuple(index),
            tuple(by_frequency(rules)),  # type: ignore[arg-type]
            lexicon,
            _by_name(count_forms(sentences, tags), index),
            _by_name(count_relations(arcs), index),
            count_agreement(arcs),
        )

    @cached_property
    def upos(self) -> tuple[str, ...]:
        """The UPOS tags, without "_", in the order of their most frequent analyses."""
        return _distinct(upos for upos, _, _ in self.analyses if upos != UNKNOWN)

    @cached_property
    def xpos(self) -> tuple[str, ...]:
        """The XPOS tags, without "_", in the order of their most frequent analyses."""
        return _distinct(xpos for _, xpos, _ in self.analyses if xpos != UNKNOWN)

    @cached_property
    def _xpos_classes(self) -> tuple[int, list[list[int]]]:
        """The number of classes that XPOS tags are scored by, and the classes of each tag.

        Up to `MOST_XPOS` tags are one class each. If there are more, a tag has a class for the character at each
        position and for its end; with more than `MOST_XPOS_CLASSES` of these, there are no classes at all.
        """
        if len(self.xpos) <= MOST_XPOS:
            return len(self.xpos), [[k] for k in range(len(self.xpos))]
        index: dict[tuple[int, str], int] = {}
        of_tags = [[index.setdefault(part, len(index)) for part in enumerate((*tag, ""))] for tag in self.xpos]
        return (len(index), of_tags) if len(index) <= MOST_XPOS_CLASSES else (0, [[] for _ in of_tags])

    @cached_property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The attributes in FEATS in UD's order, each with its features, such as ``Case=Nom``."""
        values: dict[str, dict[str, None]] = defaultdict(dict)
        for _, _, feats in self.analyses:
            for attribute, feature in by_attribute(feats).items():
                values[attribute][feature] = None
        return {attribute: tuple(values[attribute]) for attribute in sorted(values, key=attribute_order)}

    @cached_property
    def rules(self) -> tuple[LemmaRule, ...]:
        """`lemma_rules` as objects."""
        return tuple(LemmaRule(*rule) for rule in self.lemma_rules)

    @cached_property
    def known(self) -> frozenset[str]:
        """Which of the columns "upos", "xpos", "feats" and "lemmas" the model knows."""
        sizes = {"upos": self.upos, "xpos": self.xpos, "feats": self.attributes, "lemmas": self.lemma_rules}
        return frozenset(name for name, values in sizes.items() if values)

    @cached_property
    def classes(self) -> Classes:
        """The classes that the network scores; class 0 of an attribute is its absence."""
        xpos_count, of_xpos = self._xpos_classes
        firsts = np.cumsum([len(self.upos), xpos_count, *(len(features) + 1 for features in self.attributes.values())])
        indices = np.array([self._indices(*analysis) for analysis in self.analyses], np.int64).reshape(-1, 3)
        parts = np.zeros((firsts[-1], len(self.analyses)), np.float32)
        for k, ((upos, xpos, _), values) in enumerate(zip(indices, firsts[1:-1] + self.values(), strict=True)):
            if upos != IGNORED:
                parts[upos, k] = 1
            if xpos != IGNORED:
                parts[firsts[0] + np.array(of_xpos[xpos], np.int64), k] = 1
            parts[values, k] = 1
        analyses = Analyses(indices[:, 0], indices[:, 1], indices[:, 2], parts)
        return Classes(len(self.upos), xpos_count, firsts[-1] - firsts[1], len(self.lemma_rules), analyses)

    @cached_property
    def upos_index(self) -> dict[str, int]:
        """Index of each UPOS tag."""
        return {name: index for index, name in enumerate(self.upos)}

    @cached_property
    def _xpos_index(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.xpos)}

    @cached_property
    def _feature_index(self) -> dict[str, tuple[int, int]]:
        return {
            feature: (row, index)
            for row, features in enumerate(self.attributes.values())
            for index, feature in enumerate(features, start=1)
        }

    @cached_property
    def _feats_index(self) -> dict[str, int]:
        return {feats: index for index, feats in enumerate(_distinct(feats for _, _, feats in self.analyses))}

    def _indices(self, upos: str, xpos: str, feats: str) -> tuple[int, int, int]:
        """Indices of UPOS, XPOS and FEATS of a known analysis; `IGNORED` for a UPOS or XPOS of "_"."""
        xpos_index = self._xpos_index.get(xpos, IGNORED)
        return self.upos_index.get(upos, IGNORED), xpos_index, self._feats_index[canonical(feats)]

    @cached_property
    def _rule_index(self) -> dict[LemmaRule, int]:
        return {rule: index for index, rule in enumerate(self.rules)}

    @cached_property
    def occurrences(self) -> Occurrences:
        """How often each form had each analysis in training."""
        pairs = np.fromiter(chain.from_iterable(self.seen.values()), np.int64).reshape(-1, 2)
        starts = np.cumsum([0, *(len(own) // 2 for own in self.seen.values())])
        numbers = {form: number for number, form in enumerate(self.seen)}
        return Occurrences(numbers, starts, pairs[:, 0], pairs[:, 1].astype(np.float32))

    @cached_property
    def totals(self) -> np.ndarray:
        """How often each analysis is counted in `seen`, float32 (K,)."""
        _, _, analyses, counts = self.occurrences
        return np.bincount(analyses, counts, len(self.analyses)).astype(np.float32)

    def relation_probabilities(self, relations: Sequence[str], smoothing: float) -> np.ndarray:
        """The probability of each relation given a word's analysis, float32 (R, K); all 1 if no relation was counted.

        Counts of analyses are smoothed by the distribution of their UPOS, and counts of UPOS by the distribution of all
        words, with ``smoothing`` pseudo-occurrences each.
        """
        counts = np.zeros((len(relations), len(self.analyses)))
        for r, relation in enumerate(relations):
            indices, numbers = _indices_and_counts(self.by_relation.get(relation, ()))
            counts[r, indices] = numbers
        if not counts.any():
            return np.ones(counts.shape, np.float32)
        of_upos = self.classes.analyses.upos
        of_upos = np.where(of_upos == IGNORED, len(self.upos), of_upos)
        by_upos = np.zeros((len(relations), len(self.upos) + 1))
        np.add.at(by_upos.T, of_upos, counts.T)
        share = counts.sum(1, keepdims=True) / counts.sum()
        for_upos = (by_upos + smoothing * share) / (by_upos.sum(0) + smoothing)
        return ((counts + smoothing * for_upos[:, of_upos]) / (counts.sum(0) + smoothing)).astype(np.float32)

    def values(self) -> np.ndarray:
        """The value of each attribute in each analysis, int32 (K, A); 0 if it lacks the attribute."""
        values = np.zeros((len(self.analyses), len(self.attributes)), np.int32)
        for k, (_, _, feats) in enumerate(self.analyses):
            for attribute, value in map(self._feature_index.__getitem__, by_attribute(feats).values()):
                values[k, attribute] = value
        return values

    def agreement_gains(self, relations: Sequence[str], smoothing: float) -> np.ndarray:
        """Log-ratios of observed to chance frequency for equal, and for different, values of dependent and head.

        Returns
        -------
        float32 (R + 1, tags + 1, tags + 1, A, 2)
            At [relation, UPOS of the dependent, UPOS of the head, attribute]: the log-ratios of equal and of different
            values, smoothed towards chance by ``smoothing`` pseudo-occurrences. 0 where nothing is known, as for the
            last relation and the last UPOS, which stand for unknown ones.
        """
        gains = np.zeros((len(relations) + 1, *[len(self.upos) + 1] * 2, len(self.attributes), 2), np.float32)
        of_relation = {relation: r for r, relation in enumerate(relations)}
        of_attribute = {attribute: j for j, attribute in enumerate(self.attributes)}
        chances = []
        for values in self.values().T:
            shares = np.bincount(values, self.totals)[1:]
            chances.append(float((shares**2).sum() / max(shares.sum(), 1) ** 2))
        for key, (same, other) in self.agreement.items():
            relation, upos, of_head, attribute = key.split("\t")
            places = of_relation.get(relation), self.upos_index.get(upos), self.upos_index.get(of_head)
            j = of_attribute[attribute]
            if None not in places and chances[j] < 1:
                chance = np.array([chances[j], 1 - chances[j]])
                share = (np.array([same, other]) + smoothing * chance) / (same + other + smoothing)
                gains[(*places, j)] = np.log(share / chance)
        return gains

    @cached_property
    def _featureless(self) -> dict[str, float]:
        return shares_without_features(dict(zip(self.analyses, self.totals.tolist(), strict=True)))

    def targets(self, sentence: Sentence) -> np.ndarray:
        """Classes of the n words of a training sentence, int64 (n, 4): UPOS, XPOS, FEATS, lemma rule.

        Unknown values are `IGNORED`. So are FEATS that no analysis has together with these tags: `from_sentences`
        counts words differently, and may have taken FEATS as unknown that are known here.
        """
        rules = [
            IGNORED if lemma == UNKNOWN else self._rule_index.get(lemma_rule(form, lemma), IGNORED)
            for form, lemma in zip(sentence.forms, sentence.lemmas, strict=True)
        ]
        known = not self.attributes or not lacks_features(sentence, self._featureless)
        words = zip(sentence.upos, sentence.xpos, map(canonical, sentence.feats), rules, strict=True)
        return np.array(
            [(*self._target(upos, xpos, feats, known), rule) for upos, xpos, feats, rule in words], np.int64
        )

    def _target(self, upos: str, xpos: str, feats: str, known: bool) -> tuple[int, int, int]:
        """Indices of UPOS, XPOS and FEATS of a training word; `IGNORED` for unknown values."""
        tags = self.upos_index.get(upos, IGNORED), self._xpos_index.get(xpos, IGNORED)
        whole = (*tags, self._feats_index.get(feats, IGNORED))
        return whole if known and whole in self._partial_analyses else (*tags, IGNORED)

    @cached_property
    def _partial_analyses(self) -> frozenset[tuple[int, ...]]:
        """The indices of all analyses, also with `IGNORED` in place of UPOS, of XPOS, or of both."""
        indices = (self._indices(*analysis) for analysis in self.analyses)
        return frozenset(part for u, x, f in indices for part in product((u, IGNORED), (x, IGNORED), (f,)))


class Occurrences(NamedTuple):
    """The P pairs of form and analysis in training, grouped by form; there are F forms.

    Attributes
    ----------
    numbers
        The number of each form.
    starts : int64 (F + 1,)
        The first pair of each form, followed by P.
    analyses : int64 (P,)
        Index of the analysis of each pair.
    counts : float32 (P,)
        How often the form had the analysis.
    """

    numbers: dict[str, int]
    starts: np.ndarray
    analyses: np.ndarray
    counts: np.ndarray

    def places(self, forms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the pairs of some forms, int64 (Q,), and for each pair the position of its form in ``forms``, too.

        ``forms``, int64, holds numbers of forms.
        """
        starts, sizes = self.starts[forms], self.starts[forms + 1] - self.starts[forms]
        before = np.cumsum(sizes) - sizes
        return np.repeat(starts - before, sizes) + np.arange(sizes.sum()), np.repeat(np.arange(len(forms)), sizes)


def _by_name(counts: Mapping[tuple[str, Analysis], int], index: Mapping[Analysis, int]) -> dict[str, tuple[int, ...]]:
    """The analyses of each name as index, count, index, count, …, the most frequent first."""
    grouped: dict[str, Counter[Analysis]] = defaultdict(Counter)
    for (name, analysis), count in counts.items():
        grouped[name][analysis] = count
    return {
        name: tuple(n for analysis in by_frequency(found) for n in (index[analysis], found[analysis]))
        for name, found in grouped.items()
    }


def _indices_and_counts(pairs: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(pairs[::2], np.int64), np.array(pairs[1::2], np.float32)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
