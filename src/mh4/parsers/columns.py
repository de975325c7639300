"""What a model knows of the columns UPOS, XPOS, FEATS and LEMMA: their values, and which go together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from mh4.data.lemma_rules import LemmaRule, lemma_rule
from mh4.data.sentence import Sentence
from mh4.models.annotator import IGNORED, Analyses, Classes
from mh4.models.network_config import STRICT

UNKNOWN = "_"
MOST_XPOS = 400  # with more tags, XPOS is the commonest one of UPOS and FEATS
MOST_CELLS = 10**7  # of tables with a column for each analysis

Value = Annotated[str, Field(pattern=r"^[^\t\r\n]*$")]
Tag = Annotated[str, Field(pattern=r"^[^\t\r\n]+$")]
Cut = Annotated[int, Field(ge=0, lt=2**31)]
Analysis = tuple[str, str, str]
Rule = tuple[Literal["lower", "as is", "title", "absolute"], Cut, Value, Cut, Value]


def attribute_of(feature: str) -> str:
    """``Case`` of ``Case=Nom``."""
    return feature.partition("=")[0]


def _order(attribute: str) -> tuple[str, str]:
    """UD's order of attributes: whatever the case of their letters."""
    return attribute.lower(), attribute


def _by_attribute(feats: str) -> dict[str, str]:
    return {} if feats in ("", UNKNOWN) else {attribute_of(feature): feature for feature in feats.split("|")}


@cache
def _canonical(feats: str) -> str:
    """FEATS in UD's order."""
    return "|".join(sorted(feats.split("|"), key=lambda feature: _order(attribute_of(feature))))


@dataclass(frozen=True, config=STRICT)
class Columns:
    """What training sentences have in the columns UPOS, XPOS, FEATS and LEMMA.

    A column that is "_" in all of them is none that the model knows.

    Attributes
    ----------
    analyses
        UPOS, XPOS and FEATS of words, the most frequent ones first.
    lemma_rules
        See `LemmaRule`.
    lexicon
        The lemma of a form, a tab and its UPOS or, where there are several lemmas, of these, another tab and FEATS.
    seen
        Of each form, the indices of its analyses, each followed by how often it had it.
    """

    analyses: tuple[tuple[Tag, Tag, Value], ...] = ()
    lemma_rules: tuple[Rule, ...] = ()
    lexicon: dict[str, Value] = Field(default_factory=dict)
    seen: dict[str, tuple[Cut, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        features = sum(len(features) + 1 for features in self.attributes.values())
        if (len(self.upos) + len(self.xpos) + features) * len(self.analyses) > MOST_CELLS:
            raise ValueError("analyses: too many values of too many attributes")
        for form, pairs in self.seen.items():
            if len(pairs) % 2 or max(pairs[::2], default=0) >= len(self.analyses) or 0 in pairs[1::2]:
                raise ValueError(f"seen: {form!r} has no such analyses")
        return self

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sentence]) -> Columns:
        """All that training sentences hold."""
        analyses: Counter[Analysis] = Counter()
        of_form: dict[str, Counter[Analysis]] = defaultdict(Counter)
        pairs: Counter[tuple[str, str]] = Counter()
        lemmas: dict[str, set[str]] = defaultdict(set)
        for sentence in sentences:
            tags = list(zip(sentence.upos, sentence.xpos, map(_canonical, sentence.feats), strict=True))
            analyses.update(tags)
            for form, analysis in zip(sentence.forms, tags, strict=True):
                of_form[form][analysis] += 1
            for form, lemma, (upos, _, feats) in zip(sentence.forms, sentence.lemmas, tags, strict=True):
                if lemma != UNKNOWN:
                    pairs[form, lemma] += 1
                    lemmas[f"{form}\t{upos}"].add(lemma)
                    lemmas[f"{form}\t{upos}\t{feats}"].add(lemma)
        rules: Counter[LemmaRule] = Counter()
        for (form, lemma), count in pairs.items():
            rules[lemma_rule(form, lemma)] += count
        lexicon = {}
        for key, found in lemmas.items():
            if len(found) == 1 and (key.count("\t") == 1 or len(lemmas[key.rpartition("\t")[0]]) > 1):
                (lexicon[key],) = found
        ordered = _by_frequency(analyses)
        index = {analysis: k for k, analysis in enumerate(ordered)}
        seen = {
            form: tuple(number for analysis in _by_frequency(found) for number in (index[analysis], found[analysis]))
            for form, found in of_form.items()
        }
        return cls(ordered, _by_frequency(rules), lexicon, seen)

    @cached_property
    def upos(self) -> tuple[str, ...]:
        """The tags, without "_"; the most frequent one first."""
        return _distinct(upos for upos, _, _ in self.analyses if upos != UNKNOWN)

    @cached_property
    def _all_xpos(self) -> tuple[str, ...]:
        return _distinct(xpos for _, xpos, _ in self.analyses if xpos != UNKNOWN)

    @cached_property
    def xpos(self) -> tuple[str, ...]:
        """The tags, without "_"; none if they are too many: then XPOS is the commonest one of UPOS and FEATS."""
        return self._all_xpos if len(self._all_xpos) <= MOST_XPOS else ()

    @cached_property
    def attributes(self) -> dict[str, tuple[str, ...]]:
        """The attributes in FEATS in UD's order, each with its features, such as ``Case=Nom``."""
        values: dict[str, dict[str, None]] = defaultdict(dict)
        for _, _, feats in self.analyses:
            for attribute, feature in _by_attribute(feats).items():
                values[attribute][feature] = None
        return {attribute: tuple(values[attribute]) for attribute in sorted(values, key=_order)}

    @cached_property
    def rules(self) -> tuple[LemmaRule, ...]:
        """The rules of lemmas."""
        return tuple(LemmaRule(*rule) for rule in self.lemma_rules)

    @cached_property
    def known(self) -> frozenset[str]:
        """Which of the columns "upos", "xpos", "feats" and "lemmas" the model knows."""
        sizes = {"upos": self.upos, "xpos": self._all_xpos, "feats": self.attributes, "lemmas": self.lemma_rules}
        return frozenset(name for name, values in sizes.items() if values)

    @cached_property
    def classes(self) -> Classes:
        """How many classes the network tells apart. Class 0 of an attribute is that a word does not have it."""
        counts = [len(features) + 1 for features in self.attributes.values()]
        first = np.cumsum([0, *counts])
        values = np.zeros((first[-1], len(self.choices)), np.float32)
        for k, (_, _, feats) in enumerate(self.choices):
            rows = first[:-1].copy()
            for attribute, value in map(self._feature_index.__getitem__, _by_attribute(feats).values()):
                rows[attribute] += value
            values[rows, k] = 1
        indices = np.array([self._indices(*choice) for choice in self.choices], np.int64).reshape(-1, 3)
        analyses = Analyses(indices[:, 0], indices[:, 1], indices[:, 2], values)
        return Classes(len(self.upos), len(self.xpos), len(values), len(self.lemma_rules), analyses)

    @cached_property
    def upos_index(self) -> dict[str, int]:
        """Index of each UPOS."""
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
        """Of an analysis that is known; `IGNORED` where UPOS or XPOS has none."""
        xpos_index = self._xpos_index.get(xpos, IGNORED)
        return self.upos_index.get(upos, IGNORED), xpos_index, self._feats_index[_canonical(feats)]

    @cached_property
    def _rule_index(self) -> dict[LemmaRule, int]:
        return {rule: index for index, rule in enumerate(self.rules)}

    @cached_property
    def choices(self) -> tuple[Analysis, ...]:
        """The analyses to choose from: all or, without classes of XPOS, the commonest one of UPOS and FEATS."""
        if self.xpos:
            return self.analyses
        commonest: dict[tuple[str, str], Analysis] = {}
        for analysis in self.analyses:
            commonest.setdefault((analysis[0], analysis[2]), analysis)
        return tuple(commonest.values())

    def seen_choices(self) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], np.ndarray]:
        """Of each form, the indices of its choices, int64, and how often it had them, float32; and of all, float32."""
        places = {(choice if self.xpos else choice[::2]): k for k, choice in enumerate(self.choices)}
        place_of = np.array([places[analysis if self.xpos else analysis[::2]] for analysis in self.analyses], np.int64)
        totals = np.zeros(len(places), np.float32)
        found = {}
        for form, pairs in self.seen.items():
            indices, which = np.unique(place_of[list(pairs[::2])], return_inverse=True)
            counts = np.bincount(which, pairs[1::2]).astype(np.float32)
            totals[indices] += counts
            found[form] = indices, counts
        return found, totals

    def targets(self, sentence: Sentence) -> np.ndarray:
        """Classes of the n words of a training sentence, int64 (n, 4): UPOS, XPOS, FEATS, lemma rule.

        What is "_", other than FEATS, is `IGNORED`.
        """
        rules = [
            IGNORED if lemma == UNKNOWN else self._rule_index.get(lemma_rule(form, lemma), IGNORED)
            for form, lemma in zip(sentence.forms, sentence.lemmas, strict=True)
        ]
        analyses = map(self._indices, sentence.upos, sentence.xpos, sentence.feats)
        return np.array([(*analysis, rule) for analysis, rule in zip(analyses, rules, strict=True)], np.int64)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _by_frequency(counts: Counter) -> tuple:
    return tuple(sorted(counts, key=lambda item: (-counts[item], item)))
