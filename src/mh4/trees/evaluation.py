"""Scores of a parsed file against a gold treebank.

The metrics are those of the CoNLL 2017 and 2018 shared tasks on parsing from raw text to Universal Dependencies
(Zeman et al. 2017 and 2018, sections on evaluation): each counts *correct* units and gives precision over the system's
units, recall over the gold units and their harmonic mean. Unaligned words are wrong. A relation's subtype (after ":")
is ignored except in ``LAS+subtypes``. UFeats and AllTags are those of 2018; in 2017 they included features that are not
universal. Two breakdowns are added to show how a parser deals with crossing dependencies: attachment on crossed arcs,
and attachment by arc length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mh4.data.guesses import guided
from mh4.data.sentence import Sentence
from mh4.decoders.trees import crossed_arcs

from .alignment import ROOT, UNALIGNED, Analysis, align_words, read_analysis, require_same_text
from .scores import CROSSING, LENGTH_BINS, METRICS, Counts, Evaluation, Score, length_row

__all__ = [
    "LENGTH_BINS",
    "METRICS",
    "Comparison",
    "Evaluation",
    "Score",
    "attachment_scores",
    "count_units",
    "evaluate",
    "evaluate_pairs",
]

COLUMNS: dict[str, Callable[[Analysis], Sequence[str]]] = {
    "UPOS": lambda side: side.upos,
    "XPOS": lambda side: side.xpos,
    "FEATS": lambda side: side.feats,
    "LEMMA": lambda side: side.lemmas,
    "DEPREL": lambda side: side.relations,
}

# Universal relations by kind; punct is neither.
# fmt: off
CONTENT_RELATIONS = frozenset((
    "nsubj", "csubj", "obj", "iobj", "ccomp", "xcomp", "obl", "vocative", "expl", "dislocated", "advcl", "advmod",
    "discourse", "nmod", "appos", "nummod", "acl", "amod", "conj", "fixed", "flat", "compound", "list", "parataxis",
    "orphan", "goeswith", "reparandum", "root", "dep",
))
FUNCTION_RELATIONS = frozenset(("aux", "cop", "mark", "det", "clf", "case", "cc"))
# The features of version 2.0 of the UD guidelines, as in the tasks; others are left out of UFeats, AllTags and MLAS.
UNIVERSAL_FEATURES = frozenset((
    "PronType", "NumType", "Poss", "Reflex", "Foreign", "Abbr", "Gender", "Animacy", "Number", "Case", "Definite",
    "Degree", "VerbForm", "Mood", "Tense", "Aspect", "Voice", "Evident", "Polarity", "Person", "Polite",
))
# fmt: on


@guided({})
def evaluate(
    gold: str | Path | Sentence | Iterable[Sentence], system: str | Path | Sentence | Iterable[Sentence]
) -> Evaluation:
    """Score an analysis against the gold analysis of the same text; both are CoNLL-U files, sentences or one sentence.

    Words, multiword tokens and sentences may be segmented differently; words are aligned by their characters
    (`mh4.trees.alignment`). Unlike the shared tasks' scripts, sentences with several children of the root are accepted
    on either side.

    Raises
    ------
    DataError
        A file cannot be read; some but not all of its sentences lack a tree (a head is missing, a cycle); or the texts
        differ in more than spaces. The message says where.
    """
    return evaluate_pairs(Comparison.of(read_analysis(gold), read_analysis(system)))


def evaluate_pairs(pairs: Comparison, counts: Mapping[str, Counts] | None = None) -> Evaluation:
    """`evaluate` for analyses that are already aligned; ``counts`` is the result of `count_units`, if at hand."""
    totals = {name: part.total() for name, part in (counts or count_units(pairs)).items()}
    missing = [
        name
        for name, column in COLUMNS.items()
        if _is_blank(column(pairs.system)) and not _is_blank(column(pairs.gold))
    ]
    missing += ["HEAD"] * bool(pairs.gold.trees and not pairs.system.trees)
    return Evaluation(
        {name: totals[name] for name in METRICS if name in totals},
        totals.get(CROSSING),
        {name: totals[length_row(name)] for name in LENGTH_BINS if length_row(name) in totals},
        tuple(missing),
        pairs.copied(),
    )


def count_units(pairs: Comparison) -> dict[str, Counts]:
    """The counts behind each of `Evaluation.rows`, by name."""
    counts = _word_counts(pairs)
    if pairs.gold.trees and pairs.system.trees:
        counts |= _tree_counts(pairs) | {CROSSING: _crossing_counts(pairs)} | _length_counts(pairs)
    return counts


def _is_blank(column: Sequence[str]) -> bool:
    return all(value == "_" for value in column)


class Comparison:
    """Two analyses and their P pairs of aligned words.

    Attributes
    ----------
    gold_words, system_words : int64 (P,)
        The two words of each pair.
    gold_heads, system_heads : int64 (words of the side,)
        Only if both have trees.
    head_right, same_upos, same_feats, same_lemma : bool (P,)
    """

    def __init__(self, gold: Analysis, system: Analysis) -> None:
        self.gold, self.system = gold, system
        self.gold_of = align_words(gold, system)
        self.system_words = np.flatnonzero(self.gold_of != UNALIGNED)
        self.gold_words = self.gold_of[self.system_words]

    @classmethod
    def of(cls, gold: Analysis, system: Analysis) -> Comparison:
        """The comparison; a `DataError` if the two are not analyses of the same text."""
        require_same_text(gold, system)
        return cls(gold, system)

    @cached_property
    def gold_heads(self) -> np.ndarray:
        """The head of each gold word, see `Analysis.heads`."""
        return self.gold.heads()

    @cached_property
    def system_heads(self) -> np.ndarray:
        """The head of each word of the system."""
        return self.system.heads()

    @cached_property
    def head_right(self) -> np.ndarray:
        """Whether the two heads of each pair are a pair themselves, or both the root."""
        return self.gold_heads[self.gold_words] == self.in_gold_words(self.system_heads)[self.system_words]

    @cached_property
    def same_upos(self) -> np.ndarray:
        """Whether the two words of each pair have the same tag."""
        return self.same(lambda side: side.upos)

    @cached_property
    def same_feats(self) -> np.ndarray:
        """Whether the two words of each pair have the same universal features."""
        return self.same(lambda side: map(_universal_features, side.feats))

    @cached_property
    def same_lemma(self) -> np.ndarray:
        """Whether the two words of each pair have the same lemma, or the gold word has none."""
        no_lemma = np.fromiter((lemma == "_" for lemma in self.gold.lemmas), bool, len(self.gold))
        return self.same(lambda side: side.lemmas) | no_lemma[self.gold_words]

    def in_gold_words(self, words: np.ndarray) -> np.ndarray:
        """Translate words of the system into gold words; `ROOT` stays, unaligned words become `UNALIGNED`."""
        return np.where(words == ROOT, ROOT, self.gold_of[words])

    def same(self, column: Callable[[Analysis], Iterable[Any]]) -> np.ndarray:
        """bool (P,): whether the two words of each pair have the same value in a column."""
        codes: dict[Any, int] = {}
        gold, system = (
            np.fromiter((codes.setdefault(value, len(codes)) for value in column(side)), np.int64, len(side))
            for side in (self.gold, self.system)
        )
        return gold[self.gold_words] == system[self.system_words]

    def copied(self) -> tuple[str, ...]:
        """See `Evaluation.copied`."""
        columns = {
            name: column
            for name, column in COLUMNS.items()
            if name != "DEPREL" and not _is_blank(column(self.gold)) and not _is_blank(column(self.system))
        }
        for column in columns.values():
            given = np.fromiter((value != "_" for value in column(self.gold)), bool, len(self.gold))
            given[self.gold_words[self.same(column)]] = False
            if given.any():
                return ()
        return tuple(columns)

    def sentences_of(self, spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """int (spans,): the gold sentence in which each span of the text begins."""
        starts = [start for start, _ in self.gold.sentences]
        return np.searchsorted(starts, [start for start, _ in spans], side="right") - 1

    @cached_property
    def gold_sentences(self) -> np.ndarray:
        """int (gold words,): the sentence of each word."""
        return self.sentences_of(self.gold.spans)

    @cached_property
    def system_sentences(self) -> np.ndarray:
        """int (system words,): the gold sentence in which each word begins."""
        return self.sentences_of(self.system.spans)

    def tally(self, sentences: np.ndarray) -> np.ndarray:
        """int (S,): how often each gold sentence occurs in ``sentences``."""
        return np.bincount(sentences, minlength=len(self.gold.sentences))

    def counts(
        self, right: np.ndarray, in_gold: np.ndarray | None = None, in_system: np.ndarray | None = None
    ) -> Counts:
        """Count pairs that are ``right``, bool (P,), among all words or in a class of words, bool (words,) per side."""
        pairs = self.gold_sentences[self.gold_words]
        if in_gold is None or in_system is None:
            totals = self.tally(self.gold_sentences), self.tally(self.system_sentences), self.tally(pairs)
            return Counts(self.tally(pairs[right]), *totals)
        gold_pairs, system_pairs = in_gold[self.gold_words], in_system[self.system_words]
        return Counts(
            correct=self.tally(pairs[right & gold_pairs]),
            gold_total=self.tally(self.gold_sentences[in_gold]),
            system_total=self.tally(self.system_sentences[in_system]),
            aligned_total=self.tally(pairs[gold_pairs]),
            correct_in_system=self.tally(pairs[right & system_pairs]),
        )

    def span_counts(self, gold: Sequence[tuple[int, int]], system: Sequence[tuple[int, int]]) -> Counts:
        """Count the spans of the text that both sides have as correct."""
        both = sorted(set(gold) & set(system))
        return Counts(*(self.tally(self.sentences_of(spans)) for spans in (both, gold, system)))


def _word_counts(pairs: Comparison) -> dict[str, Counts]:
    gold, system = pairs.gold, pairs.system
    upos, xpos, feats = pairs.same_upos, pairs.same(lambda side: side.xpos), pairs.same_feats
    words = pairs.counts(np.ones(len(pairs.gold_words), bool))
    return {
        "Tokens": pairs.span_counts(gold.tokens, system.tokens),
        "Sentences": pairs.span_counts(gold.sentences, system.sentences),
        "Words": Counts(words.correct, words.gold_total, words.system_total),
        "UPOS": pairs.counts(upos),
        "XPOS": pairs.counts(xpos),
        "UFeats": pairs.counts(feats),
        "AllTags": pairs.counts(upos & xpos & feats),
        "Lemmas": pairs.counts(pairs.same_lemma),
    }


def _tree_counts(pairs: Comparison) -> dict[str, Counts]:
    gold, system = pairs.gold, pairs.system
    las = pairs.head_right & pairs.same(lambda side: map(_universal_relation, side.relations))
    morphology = las & pairs.same_upos & pairs.same_feats
    content = (_has_relation(gold, CONTENT_RELATIONS), _has_relation(system, CONTENT_RELATIONS))
    return {
        "UAS": pairs.counts(pairs.head_right),
        "LAS": pairs.counts(las),
        "LAS+subtypes": pairs.counts(pairs.head_right & pairs.same(lambda side: side.relations)),
        "CLAS": pairs.counts(las, *content),
        "MLAS": pairs.counts(morphology & _same_function_words(pairs, morphology), *content),
        "BLEX": pairs.counts(las & pairs.same_lemma, *content),
    }


def _universal_relation(relation: str) -> str:
    return relation.partition(":")[0]


@lru_cache(maxsize=1 << 16)
def _universal_features(feats: str) -> tuple[str, ...]:
    """The universal features, sorted: neither order nor language-specific features matter."""
    return tuple(sorted(pair for pair in feats.split("|") if pair.partition("=")[0] in UNIVERSAL_FEATURES))


def _has_relation(side: Analysis, relations: frozenset[str]) -> np.ndarray:
    return np.fromiter((_universal_relation(relation) in relations for relation in side.relations), bool, len(side))


def _same_function_words(pairs: Comparison, pair_right: np.ndarray) -> np.ndarray:
    """bool (P,): whether the two words have the same function words as dependents, with the same tags and features.

    ``pair_right``, bool (P,), says for each pair whether head, relation, tag and features agree.
    """
    gold_is_function = _has_relation(pairs.gold, FUNCTION_RELATIONS)
    system_is_function = _has_relation(pairs.system, FUNCTION_RELATIONS)
    gold_count = _dependents(pairs.gold_heads, gold_is_function)
    system_count = _dependents(pairs.system_heads, system_is_function)
    # A right pair has the same relation on both sides, so each gold function word below is one on the system's side.
    shared = np.zeros(len(pairs.gold), bool)
    shared[pairs.gold_words[pair_right]] = True
    shared_count = _dependents(pairs.gold_heads, shared & gold_is_function)[pairs.gold_words]
    return (gold_count[pairs.gold_words] == shared_count) & (system_count[pairs.system_words] == shared_count)


def _dependents(heads: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """int (words,): how many ``counted`` dependents each word has."""
    return np.bincount(heads[counted & (heads != ROOT)], minlength=len(heads))


def _crossing_counts(pairs: Comparison) -> Counts:
    gold, system = (
        np.concatenate([crossed_arcs(heads)[1:] for heads in side.trees]) for side in (pairs.gold, pairs.system)
    )
    return pairs.counts(pairs.head_right, gold, system)


def _length_counts(pairs: Comparison) -> dict[str, Counts]:
    gold, system = (_length_bin(heads) for heads in (pairs.gold_heads, pairs.system_heads))
    return {
        length_row(name): pairs.counts(pairs.head_right, gold == b, system == b) for b, name in enumerate(LENGTH_BINS)
    }


def _length_bin(heads: np.ndarray) -> np.ndarray:
    """Index in `LENGTH_BINS` of the arc to each word."""
    distance = np.abs(heads - np.arange(len(heads)))
    return np.where(heads == ROOT, 0, np.digitize(distance, [1, 2, 3, 7]))


class Tree(Protocol):
    """A sentence or an annotation, to be scored."""

    @property
    def heads(self) -> np.ndarray | None:
        """int (n,): heads of the words 1…n; 0 is the root."""

    @property
    def relations(self) -> Sequence[str] | None:
        """Relations of the words 1…n."""


def attachment_scores(golds: Sequence[Tree], systems: Sequence[Tree]) -> tuple[float, float]:
    """UAS and LAS, in percent, of trees over the gold words; every word counts, relation subtypes do not.

    Parameters
    ----------
    golds, systems : sequences of `mh4.data.sentence.Sentence` or `mh4.data.annotation.Annotation`
        The gold trees, and a system's trees of the same words.

    Raises
    ------
    ValueError
        The two sides differ in their number of sentences or of words in a sentence, a tree or a head is missing, or
        there are no words.
    """
    words = heads_right = relations_right = 0
    for number, (gold, system) in enumerate(zip(golds, systems, strict=True), start=1):
        if gold.heads is None or system.heads is None or gold.relations is None or system.relations is None:
            raise ValueError(f"sentence {number} has no tree to score")
        sizes = (len(gold.heads), len(system.heads), len(gold.relations), len(system.relations))
        if len(set(sizes)) > 1:
            raise ValueError(
                "sentence {}: {} and {} words by their heads, {} and {} by their relations".format(number, *sizes)
            )
        if (gold.heads < 0).any() or (system.heads < 0).any():
            raise ValueError(f"sentence {number} has a word without a head, so it has no tree to score")
        same_head = gold.heads == system.heads
        words += len(same_head)
        heads_right += int(same_head.sum())
        relations_right += sum(
            right and _universal_relation(a) == _universal_relation(b)
            for right, a, b in zip(same_head.tolist(), gold.relations, system.relations, strict=True)
        )
    if not words:
        raise ValueError("there are no words to score")
    return 100.0 * heads_right / words, 100.0 * relations_right / words
