"""What a model knows of the columns UPOS, XPOS, FEATS and LEMMA: their values, and which go together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, product
from math import prod
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from mh4.data.lemma_rules import LemmaRule, lemma_rule
from mh4.data.sentence import Sentence
from mh4.models.annotator import IGNORED, Analyses, Classes
from mh4.models.checked import STRICT
from mh4.models.word_vocabulary import by_frequency

UNKNOWN = "_"
MOST_XPOS = 400  # with more tags, each is told from others by its characters
MOST_XPOS_CLASSES = 4000  # with more of those, XPOS is the commonest one that goes with UPOS and FEATS
LIKELY = 0.05  # a sentence without FEATS has none if that is as likely, else they are not known
MOST_CELLS = 10**7  # of tables with a column for each analysis

Value = Annotated[str, Field(pattern=r"^[^\t\r\n]*$")]
Tag = Annotated[str, Field(pattern=r"^[^\t\r\n]+$")]
Cut = Annotated[int, Field(ge=0, lt=2**31)]
Analysis = tuple[str, str, str]
Given = tuple[str | None, str | None, str | None]  # an analysis of a training word, None where it is not known
Rule = tuple[Literal["lower", "as is", "title", "absolute"], Cut, Value, Cut, Value]


def attribute_of(feature: str) -> str:
    """``Case`` of ``Case=Nom``."""
    return feature.partition("=")[0]


def _order(attribute: str) -> tuple[str, str]:
    """UD's order of attributes: whatever the case of their letters."""
    return attribute.lower(), attribute


def _by_attribute(feats: str) -> dict[str, str]:
    return {} if feats in ("", UNKNOWN) else {attribute_of(feature): feature for feature in feats.split("|")}


@lru_cache(maxsize=1 << 14)
def _canonical(feats: str) -> str:
    """FEATS in UD's order."""
    return "|".join(sorted(feats.split("|"), key=lambda feature: _order(attribute_of(feature))))


@dataclass(frozen=True, config=STRICT)
class Columns:
    """What training sentences have in the columns UPOS, XPOS, FEATS and LEMMA.

    A column that is "_" in all of them is not one that the model knows. In others "_" is an unknown UPOS, XPOS or
    LEMMA; in FEATS it is an empty value, unless the whole sentence has none and words like its words usually have some.

    Attributes
    ----------
    analyses
        UPOS, XPOS and FEATS of words, the most frequent ones first; "_" in what is unknown only if no other analysis
        has the rest.
    lemma_rules
        See `LemmaRule`.
    lexicon
        The lemma of a form, a tab and its UPOS or, where there are several lemmas, of these, another tab and FEATS.
    seen
        Of each form, the indices of its analyses, each followed by how often it had it. What is not known, and may be
        one of several, is not counted.
    by_relation
        The same of each relation: of its dependents.
    agreement
        Of a relation, a tab, the UPOS of dependents, a tab, that of heads, a tab and an attribute of FEATS that both
        have: how often they had the same value, and how often others.
    """

    analyses: tuple[tuple[Tag, Tag, Value], ...] = ()
    lemma_rules: tuple[Rule, ...] = ()
    lexicon: dict[str, Value] = Field(default_factory=dict)
    seen: dict[str, tuple[Cut, ...]] = Field(default_factory=dict)
    by_relation: dict[str, tuple[Cut, ...]] = Field(default_factory=dict)  # none in models of format 2
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
        """All that training sentences hold."""
        analyses = _Analyses(sentences)
        words: Counter[tuple[str, str, str, str | None]] = Counter()
        tagged: Counter[tuple[str, Analysis]] = Counter()
        arcs: Counter[tuple[str, Analysis, Analysis | None]] = Counter()
        for sentence, given in zip(sentences, analyses.given, strict=True):
            words.update(zip(sentence.forms, sentence.lemmas, sentence.upos, (a[2] for a in given), strict=True))
            tags = [analyses.only[analysis] for analysis in given]
            tagged.update((form, tag) for form, tag in zip(sentence.forms, tags, strict=True) if tag is not None)
            of_heads = [None, *tags]
            arcs.update(
                (relation, tag, of_heads[head])
                for head, relation, tag in zip(sentence.heads.tolist(), sentence.relations, tags, strict=True)
                if head >= 0 and relation != UNKNOWN and tag is not None
            )
        of_form: dict[str, Counter[Analysis]] = defaultdict(Counter)
        for (form, analysis), count in tagged.items():
            of_form[form][analysis] += count
        of_relation: dict[str, Counter[Analysis]] = defaultdict(Counter)
        agreement: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        by_attribute = {feats: _by_attribute(feats) for _, _, feats in analyses.counts}
        for (relation, analysis, of_head), count in arcs.items():
            of_relation[relation][analysis] += count
            if of_head is not None:
                features_of_head = by_attribute[of_head[2]]
                for attribute, feature in by_attribute[analysis[2]].items():
                    if attribute in features_of_head:
                        key = f"{relation}\t{analysis[0]}\t{of_head[0]}\t{attribute}"
                        agreement[key][feature != features_of_head[attribute]] += count
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
        ordered = tuple(by_frequency(analyses.counts))
        index = {analysis: k for k, analysis in enumerate(ordered)}
        seen, by_relation = (
            {
                name: tuple(n for analysis in by_frequency(found) for n in (index[analysis], found[analysis]))
                for name, found in of_names.items()
            }
            for of_names in (of_form, of_relation)
        )
        pairs_of = {key: (same, other) for key, (same, other) in agreement.items()}
        ordered_rules: Any = tuple(by_frequency(rules))
        return cls(ordered, ordered_rules, lexicon, seen, by_relation, pairs_of)

    @cached_property
    def upos(self) -> tuple[str, ...]:
        """The tags, without "_"; the most frequent one first."""
        return _distinct(upos for upos, _, _ in self.analyses if upos != UNKNOWN)

    @cached_property
    def xpos(self) -> tuple[str, ...]:
        """The tags, without "_"; the most frequent one first."""
        return _distinct(xpos for _, xpos, _ in self.analyses if xpos != UNKNOWN)

    @cached_property
    def _xpos_classes(self) -> tuple[int, list[list[int]]]:
        """How many classes tell the XPOS tags apart, and those of each tag.

        A tag has a class of its own or, if there are many, one for the character at each position, and for its end.
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
        sizes = {"upos": self.upos, "xpos": self.xpos, "feats": self.attributes, "lemmas": self.lemma_rules}
        return frozenset(name for name, values in sizes.items() if values)

    @cached_property
    def classes(self) -> Classes:
        """How many classes the network tells apart. Class 0 of an attribute is that a word does not have it."""
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
    def occurrences(self) -> Occurrences:
        """How often forms had their analyses."""
        pairs = np.fromiter(chain.from_iterable(self.seen.values()), np.int64).reshape(-1, 2)
        starts = np.cumsum([0, *(len(own) // 2 for own in self.seen.values())])
        numbers = {form: number for number, form in enumerate(self.seen)}
        return Occurrences(numbers, starts, pairs[:, 0], pairs[:, 1].astype(np.float32))

    @cached_property
    def totals(self) -> np.ndarray:
        """How often words of the lexicon had each analysis, float32 (K,)."""
        _, _, analyses, counts = self.occurrences
        return np.bincount(analyses, counts, len(self.analyses)).astype(np.float32)

    def relation_probabilities(self, relations: Sequence[str], smoothing: float) -> np.ndarray:
        """How probable relations are if a word has an analysis, float32 (R, K); all are 1 if nothing is known.

        Rare analyses are taken to have the relations of their UPOS, rare UPOS those of all words, as if they had been
        seen ``smoothing`` times more.
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
        """The value that each analysis has of each attribute, int32 (K, A); 0 for none."""
        values = np.zeros((len(self.analyses), len(self.attributes)), np.int32)
        for k, (_, _, feats) in enumerate(self.analyses):
            for attribute, value in map(self._feature_index.__getitem__, _by_attribute(feats).values()):
                values[k, attribute] = value
        return values

    def agreement_gains(self, relations: Sequence[str], smoothing: float) -> np.ndarray:
        """What it says that dependent and head have the same value of an attribute, or another one.

        Returns
        -------
        float32 (R + 1, tags + 1, tags + 1, A, 2)
            At [relation, UPOS of the dependent, that of its head, attribute] the logarithms of how many times as often
            as by chance that was so, as if chance had been seen ``smoothing`` times more. 0 where nothing is known, as
            in the last row of relations and of tags.
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
        return _shares_without_features(dict(zip(self.analyses, self.totals.tolist(), strict=True)))

    def targets(self, sentence: Sentence) -> np.ndarray:
        """Classes of the n words of a training sentence, int64 (n, 4): UPOS, XPOS, FEATS, lemma rule.

        What is not known is `IGNORED`.
        """
        rules = [
            IGNORED if lemma == UNKNOWN else self._rule_index.get(lemma_rule(form, lemma), IGNORED)
            for form, lemma in zip(sentence.forms, sentence.lemmas, strict=True)
        ]
        known = not self.attributes or not _lacks_features(sentence, self._featureless)
        words = zip(sentence.upos, sentence.xpos, map(_canonical, sentence.feats), rules, strict=True)
        return np.array(
            [(*self._target(upos, xpos, feats, known), rule) for upos, xpos, feats, rule in words], np.int64
        )

    def _target(self, upos: str, xpos: str, feats: str, known: bool) -> tuple[int, int, int]:
        """Indices of an analysis of a training word; `IGNORED` where it is not known."""
        return (
            self.upos_index.get(upos, IGNORED),
            self._xpos_index.get(xpos, IGNORED),
            self._feats_index.get(feats, IGNORED) if known else IGNORED,
        )


class Occurrences(NamedTuple):
    """The analyses that F forms had in training: P of them, those of one form after those of the other.

    Attributes
    ----------
    numbers
        The number of each form.
    starts : int64 (F + 1,)
        The first analysis of each form; then P.
    analyses : int64 (P,)
    counts : float32 (P,)
        How often the form had the analysis.
    """

    numbers: dict[str, int]
    starts: np.ndarray
    analyses: np.ndarray
    counts: np.ndarray

    def places(self, forms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the analyses of some forms are, int64 (Q,), and which of the forms has each of them, int64 (Q,).

        ``forms`` are numbers, int64.
        """
        starts, sizes = self.starts[forms], self.starts[forms + 1] - self.starts[forms]
        before = np.cumsum(sizes) - sizes
        return np.repeat(starts - before, sizes) + np.arange(sizes.sum()), np.repeat(np.arange(len(forms)), sizes)


class _Analyses:
    """The analyses of the words of training sentences.

    Attributes
    ----------
    given
        Of each sentence, what is known of the analysis of each word.
    counts
        How often there are those that are whole, and those that no other one completes, with "_" in what is not known.
    only
        Of each one that is given, the only analysis that has what is known; None if there are several.
    """

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.given: list[Sequence[Given]] = [
            list(zip(sentence.upos, sentence.xpos, map(_canonical, sentence.feats), strict=True))
            for sentence in sentences
        ]
        without = [_is_without_features(sentence) for sentence in sentences]
        if not all(without):
            counts = Counter(a for own, none in zip(self.given, without, strict=True) if not none for a in own)
            shares = _shares_without_features(counts)  # type: ignore[arg-type]
            for i in np.flatnonzero(without).tolist():
                if _lacks_features(sentences[i], shares):
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

    def _forget_empty(self, column: int) -> None:
        """Where others have a value, "_" is unknown."""
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


def _shares_without_features(counts: Mapping[Analysis, float]) -> dict[str, float]:
    """For each UPOS the share of its words that have no features, and as that of "" the share of all words."""
    totals: dict[str, float] = defaultdict(float)
    without: dict[str, float] = defaultdict(float)
    for (upos, _, feats), count in counts.items():
        for name in (upos, ""):
            totals[name] += count
            without[name] += count * (feats in ("", UNKNOWN))
    return {name: without[name] / total for name, total in totals.items() if total}


def _lacks_features(sentence: Sentence, shares: Mapping[str, float]) -> bool:
    """Whether FEATS are not known: the sentence has none, and that is not likely by `_shares_without_features`."""
    return (
        _is_without_features(sentence) and prod(shares.get(upos, shares.get("", 1)) for upos in sentence.upos) < LIKELY
    )


def _indices_and_counts(pairs: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(pairs[::2], np.int64), np.array(pairs[1::2], np.float32)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
