"""Scores of a parsed file against a gold treebank.

The metrics are those of the CoNLL 2017 and 2018 shared tasks on parsing from raw text to Universal Dependencies
(Zeman et al. 2017 and 2018, sections on evaluation): every one counts *correct* units and gives precision over the
system's units, recall over the gold ones and their harmonic mean. Unaligned words are wrong. A relation's subtype
(after ":") is ignored but in ``LAS+subtypes``. UFeats and AllTags are those of 2018; in 2017 they took in features that
are not universal. Two breakdowns are added that show what a parser of crossing dependencies gains: attachment on
crossed arcs, and attachment by arc length.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mh4.data.sentence import Sentence
from mh4.decoders.trees import crossed_arcs

from .alignment import ROOT, UNALIGNED, Analysis, align_words, read_analysis, require_same_text

__all__ = ["LENGTH_BINS", "METRICS", "Evaluation", "Score", "attachment_scores", "evaluate"]

METRICS = (
    *("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "AllTags", "Lemmas"),
    *("UAS", "LAS", "LAS+subtypes", "CLAS", "MLAS", "BLEX"),
)
COLUMNS: dict[str, Callable[[Analysis], Sequence[str]]] = {
    "UPOS": lambda side: side.upos,
    "XPOS": lambda side: side.xpos,
    "FEATS": lambda side: side.feats,
    "LEMMA": lambda side: side.lemmas,
    "DEPREL": lambda side: side.relations,
}
# Columns, HEAD apart, that a metric counts.
COUNTED = {
    "UPOS": frozenset(("UPOS",)),
    "XPOS": frozenset(("XPOS",)),
    "UFeats": frozenset(("FEATS",)),
    "AllTags": frozenset(("UPOS", "XPOS", "FEATS")),
    "Lemmas": frozenset(("LEMMA",)),
    "LAS": frozenset(("DEPREL",)),
    "CLAS": frozenset(("DEPREL",)),
    "MLAS": frozenset(("DEPREL", "UPOS", "FEATS")),
    "BLEX": frozenset(("DEPREL", "LEMMA")),
}
LENGTH_BINS = ("root", "1", "2", "3-6", "7+")

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


@dataclass(frozen=True)
class Score:
    """Counts behind one metric.

    Attributes
    ----------
    correct : int
        Correct units among those of the gold file.
    gold_total, system_total : int
        Units in the gold file and in the system's file.
    aligned_total : int, optional
        Units on words that were aligned; None for units that are not annotation of words.
    correct_in_system : int, optional
        Correct units among those of the system's file, by default `correct`. The two differ where a unit can belong to
        the class on one side only: an arc may be crossed in the gold tree and, correct as it is, not in the system's.
    """

    correct: int
    gold_total: int
    system_total: int
    aligned_total: int | None = None
    correct_in_system: int | None = None

    @property
    def precision(self) -> float:
        """Correct share of the system's units, in 0…1 (0 if there are none)."""
        correct = self.correct if self.correct_in_system is None else self.correct_in_system
        return correct / self.system_total if self.system_total else 0.0

    @property
    def recall(self) -> float:
        """Correct share of the gold units, in 0…1 (0 if there are none)."""
        return self.correct / self.gold_total if self.gold_total else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in 0…1."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def aligned_accuracy(self) -> float | None:
        """Correct share of the aligned units, in 0…1 (0 if there are none; None where alignment has no say)."""
        if self.aligned_total is None:
            return None
        return self.correct / self.aligned_total if self.aligned_total else 0.0

    def as_dict(self) -> dict[str, float | int | None]:
        """Ratios and counts, ready for JSON."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "aligned_accuracy": self.aligned_accuracy,
            "correct": self.correct,
            "correct_in_system": self.correct if self.correct_in_system is None else self.correct_in_system,
            "gold_total": self.gold_total,
            "system_total": self.system_total,
            "aligned_total": self.aligned_total,
        }


@dataclass(frozen=True)
class Evaluation:
    """All scores of one system file.

    Attributes
    ----------
    scores : dict
        A `Score` for each of `METRICS`, in that order.
    crossing : Score
        Unlabelled attachment of words whose arc is crossed by another arc of its sentence, the arc from the root
        (position 0) counting as one: recall over arcs crossed in the gold trees, precision over arcs crossed in the
        system's.
    by_length : dict
        Unlabelled attachment by distance between head and dependent in words, for each of `LENGTH_BINS`: recall over
        the gold arcs of that length, precision over the system's.
    missing : tuple of str
        Columns that are "_" everywhere in the system's file, and not in the gold one. What counts them is scored, and
        says little. Without HEAD in either file, ``scores`` has no metrics of trees, and there are no breakdowns.
    """

    scores: dict[str, Score]
    crossing: Score | None
    by_length: dict[str, Score]
    missing: tuple[str, ...] = ()

    @property
    def uas(self) -> float:
        """F1 of unlabelled attachment, in percent."""
        return self._percent("UAS")

    @property
    def las(self) -> float:
        """F1 of labelled attachment, without relation subtypes, in percent."""
        return self._percent("LAS")

    def _percent(self, name: str) -> float:
        if name not in self.scores:
            raise ValueError(f"there is no {name}: a file has no trees")
        return 100 * self.scores[name].f1

    def counts_missing(self, name: str) -> bool:
        """Whether a metric counts a column that the system's file does not have."""
        return not COUNTED.get(name, frozenset()).isdisjoint(self.missing)

    def __str__(self) -> str:
        return "  ".join(f"{name} {100 * score.f1:.2f}" for name, score in self.scores.items())

    def as_dict(self) -> dict[str, Any]:
        """The attributes as nested dictionaries, ready for JSON (`Score.as_dict` inside)."""
        return {
            "scores": {name: score.as_dict() for name, score in self.scores.items()},
            "crossing": None if self.crossing is None else self.crossing.as_dict(),
            "by_length": {name: score.as_dict() for name, score in self.by_length.items()},
            "missing": list(self.missing),
        }


def evaluate(gold: str | Path | Iterable[Sentence], system: str | Path | Iterable[Sentence]) -> Evaluation:
    """Score an analysis, CoNLL-U files, sentences or one, against the gold one of the same text.

    Words, multiword tokens and sentences may be cut differently; words are aligned by their characters
    (`mh4.trees.alignment`). Unlike the shared tasks' scripts, sentences with several words under the root are accepted
    on either side.

    Raises
    ------
    DataError
        A file cannot be read, a sentence in it has no tree (a head is missing, a cycle) while others have, or the files
        differ in more than spaces; the message says where.
    """
    gold_side, system_side = read_analysis(gold), read_analysis(system)
    require_same_text(gold_side, system_side)
    comparison = Comparison(gold_side, system_side)
    missing = [
        name for name, column in COLUMNS.items() if _is_blank(column(system_side)) and not _is_blank(column(gold_side))
    ]
    scores = _word_scores(comparison)
    if not (gold_side.trees and system_side.trees):
        missing += ["HEAD"] * bool(gold_side.trees)
        return Evaluation(scores, None, {}, tuple(missing))
    scores |= _tree_scores(comparison)
    scores = {name: scores[name] for name in METRICS}
    return Evaluation(scores, _crossing_score(comparison), _length_scores(comparison), tuple(missing))


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
        """Whether they have the same universal features."""
        return self.same(lambda side: map(_universal_features, side.feats))

    @cached_property
    def same_lemma(self) -> np.ndarray:
        """Whether they have the same lemma, or the gold word none."""
        no_lemma = np.fromiter((lemma == "_" for lemma in self.gold.lemmas), bool, len(self.gold))
        return self.same(lambda side: side.lemmas) | no_lemma[self.gold_words]  # where gold has none, any is right

    def in_gold_words(self, words: np.ndarray) -> np.ndarray:
        """Translate words of the system into gold words; `ROOT` stays, a word without partner is `UNALIGNED`."""
        return np.where(words == ROOT, ROOT, self.gold_of[words])

    def same(self, column: Callable[[Analysis], Iterable[Any]]) -> np.ndarray:
        """bool (P,): whether the two words of each pair have the same value in a column."""
        codes: dict[Any, int] = {}
        gold, system = (
            np.fromiter((codes.setdefault(value, len(codes)) for value in column(side)), np.int64, len(side))
            for side in (self.gold, self.system)
        )
        return gold[self.gold_words] == system[self.system_words]

    def score(self, right: np.ndarray, in_gold: np.ndarray | None = None, in_system: np.ndarray | None = None) -> Score:
        """Score of pairs that are ``right``, bool (P,), within a class of words of either side, bool (words,)."""
        if in_gold is None or in_system is None:
            return Score(int(right.sum()), len(self.gold), len(self.system), len(right))
        gold_pairs, system_pairs = in_gold[self.gold_words], in_system[self.system_words]
        return Score(
            correct=int((right & gold_pairs).sum()),
            gold_total=int(in_gold.sum()),
            system_total=int(in_system.sum()),
            aligned_total=int(gold_pairs.sum()),
            correct_in_system=int((right & system_pairs).sum()),
        )


def _word_scores(pairs: Comparison) -> dict[str, Score]:
    gold, system = pairs.gold, pairs.system
    upos, xpos, feats = pairs.same_upos, pairs.same(lambda side: side.xpos), pairs.same_feats
    return {
        "Tokens": _span_score(gold.tokens, system.tokens),
        "Sentences": _span_score(gold.sentences, system.sentences),
        "Words": Score(len(pairs.gold_words), len(gold), len(system)),
        "UPOS": pairs.score(upos),
        "XPOS": pairs.score(xpos),
        "UFeats": pairs.score(feats),
        "AllTags": pairs.score(upos & xpos & feats),
        "Lemmas": pairs.score(pairs.same_lemma),
    }


def _tree_scores(pairs: Comparison) -> dict[str, Score]:
    gold, system = pairs.gold, pairs.system
    las = pairs.head_right & pairs.same(lambda side: map(_universal_relation, side.relations))
    morphology = las & pairs.same_upos & pairs.same_feats
    content = (_has_relation(gold, CONTENT_RELATIONS), _has_relation(system, CONTENT_RELATIONS))
    return {
        "UAS": pairs.score(pairs.head_right),
        "LAS": pairs.score(las),
        "LAS+subtypes": pairs.score(pairs.head_right & pairs.same(lambda side: side.relations)),
        "CLAS": pairs.score(las, *content),
        "MLAS": pairs.score(morphology & _same_function_words(pairs, morphology), *content),
        "BLEX": pairs.score(las & pairs.same_lemma, *content),
    }


def _span_score(gold: Sequence[tuple[int, int]], system: Sequence[tuple[int, int]]) -> Score:
    return Score(len(set(gold) & set(system)), len(gold), len(system))


def _universal_relation(relation: str) -> str:
    return relation.partition(":")[0]


@lru_cache(maxsize=1 << 16)
def _universal_features(feats: str) -> tuple[str, ...]:
    """The universal ones of the features, sorted: neither their order nor language-specific ones matter."""
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
    """int (words,): how many of the counted words each word is the head of."""
    return np.bincount(heads[counted & (heads != ROOT)], minlength=len(heads))


def _crossing_score(pairs: Comparison) -> Score:
    gold, system = (
        np.concatenate([crossed_arcs(heads)[1:] for heads in side.trees]) for side in (pairs.gold, pairs.system)
    )
    return pairs.score(pairs.head_right, gold, system)


def _length_scores(pairs: Comparison) -> dict[str, Score]:
    gold, system = (_length_bin(heads) for heads in (pairs.gold_heads, pairs.system_heads))
    return {name: pairs.score(pairs.head_right, gold == b, system == b) for b, name in enumerate(LENGTH_BINS)}


def _length_bin(heads: np.ndarray) -> np.ndarray:
    """Index in `LENGTH_BINS` of the arc to each word."""
    distance = np.abs(heads - np.arange(len(heads)))
    return np.where(heads == ROOT, 0, np.digitize(distance, [1, 2, 3, 7]))


class Tree(Protocol):
    """A sentence or an annotation, to be scored."""

    @property
    def heads(self) -> np.ndarray | None:
        """int (n + 1,); ``heads[0]`` is not read."""

    @property
    def relations(self) -> Sequence[str] | None:
        """Those of the words 1…n."""


def attachment_scores(golds: Sequence[Tree], systems: Sequence[Tree]) -> tuple[float, float]:
    """UAS and LAS, in percent, of trees over the gold words; every word counts, relation subtypes do not.

    Parameters
    ----------
    golds, systems : sequences of `mh4.data.sentence.Sentence` or `mh4.data.sentence.Annotation`
        The gold trees, and a system's trees of the same words.

    Raises
    ------
    ValueError
        The two sides differ in their sentences or in the words of one, or there is no word at all.
    """
    words = heads_right = relations_right = 0
    for number, (gold, system) in enumerate(zip(golds, systems, strict=True), start=1):
        if gold.heads is None or system.heads is None or gold.relations is None or system.relations is None:
            raise ValueError(f"sentence {number} has no tree to be scored")
        sizes = (len(gold.heads) - 1, len(system.heads) - 1, len(gold.relations), len(system.relations))
        if len(set(sizes)) > 1:
            raise ValueError(
                "sentence {}: {} and {} words by their heads, {} and {} by their relations".format(number, *sizes)
            )
        same_head = gold.heads[1:] == system.heads[1:]
        words += len(same_head)
        heads_right += int(same_head.sum())
        relations_right += sum(
            right and _universal_relation(a) == _universal_relation(b)
            for right, a, b in zip(same_head.tolist(), gold.relations, system.relations, strict=True)
        )
    if not words:
        raise ValueError("there are no words to score")
    return 100.0 * heads_right / words, 100.0 * relations_right / words
