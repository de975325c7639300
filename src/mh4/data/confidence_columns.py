"""Parser confidence in CoNLL-U: MISC entries and comments, blanked heads of uncertain words, k-best trees."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isfinite, isnan
from numbers import Real
from typing import Any

import numpy as np

from .blocks import comment_name
from .confidence import Confidence, with_entries
from .sentence import Sentence
from .word import Word

WORD, HEAD, MARGIN, NEXT_HEAD = "Confidence", "HeadConfidence", "Margin", "NextHead"
TREE = "tree_confidence"
DIGITS = 3
_OF_FIRST = ("newdoc", "newpar", "parallel_id")  # comments that only the first of k trees keeps
_SENT_ID = re.compile(r"#\s*sent_id\s*=\s*(\S.*)")
# What an earlier parse wrote; other values of these names are the user's.
_OF_TREE = re.compile(rf"#\s*{TREE}\s*=\s*[0-9.]+\s*")
_ENTRY = re.compile(rf"({WORD}|{HEAD}|{MARGIN})=[0-9]+(\.[0-9]{{1,{DIGITS}}})?|{NEXT_HEAD}=[0-9]+")


@dataclass(frozen=True)
class Output:
    """How confidence shows in the output for a parsed sentence.

    Attributes
    ----------
    confidence
        Write ``Confidence``, ``HeadConfidence``, ``Margin`` and ``NextHead`` in MISC, and ``# tree_confidence``.
    min_confidence
        Words with a lower confidence get neither HEAD nor DEPREL; None keeps all.
    """

    confidence: bool = False
    min_confidence: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.min_confidence, bool) or not isinstance(self.min_confidence, Real | None):
            raise TypeError(f"min_confidence must be a number; got {self.min_confidence!r}")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise ValueError(f"min_confidence must be a probability from 0 to 1; got {self.min_confidence}")

    def __call__(self, sentence: Sentence, given: Sentence | None = None) -> Sentence:
        """Return the sentence to write; heads and relations in ``given`` are kept however uncertain they are."""
        if self.confidence:
            sentence = with_confidence(sentence)
        if self.min_confidence is not None:
            sentence = without_uncertain(sentence, self.min_confidence, given)
        return sentence


def with_confidence(sentence: Sentence) -> Sentence:
    """Return the sentence with its `Confidence` written into MISC and into the comment ``# tree_confidence``.

    Confidences written by an earlier parse are removed.
    """
    found, sentence = sentence.confidence, without_confidence(sentence)
    if found is None:
        return sentence
    misc = [with_entries(old, _entries(found, i)) for i, old in enumerate(sentence.misc)]
    noted = sentence.replace(misc=misc)
    return noted if found.tree is None else noted.with_comment(TREE, shown(found.tree))


def without_confidence(sentence: Sentence) -> Sentence:
    """Return the sentence without the MISC entries and the comment that `with_confidence` writes."""
    if any(map(_OF_TREE.fullmatch, sentence.comments)):
        sentence = sentence.changed_comments(lambda comment: None if _OF_TREE.fullmatch(comment) else comment)
    if any(name in misc for misc in sentence.misc if misc != "_" for name in (WORD, MARGIN)):
        sentence = sentence.replace(misc=[_forgotten(misc) for misc in sentence.misc])
    return sentence


def _entries(found: Confidence, i: int) -> dict[str, str]:
    """MISC entries of word i + 1, in alphabetical order."""
    margin, runner_up = float(found.margins[i]), int(found.runners_up[i])
    entries: dict[str, str] = {}
    if found.words is not None and found.heads is not None and not isnan(found.words[i]):
        entries |= {WORD: shown(found.words[i]), HEAD: shown(found.heads[i])}
    if isfinite(margin) and runner_up >= 0:
        entries |= {MARGIN: shown(margin), NEXT_HEAD: str(runner_up)}
    return entries


def _forgotten(misc: str) -> str:
    return "|".join(entry for entry in misc.split("|") if not _ENTRY.fullmatch(entry)) or "_"


def shown(number: float) -> str:
    """Format a confidence, margin or score with at most `DIGITS` decimals."""
    return f"{number:.{DIGITS}f}".rstrip("0").rstrip(".")


def without_uncertain(sentence: Sentence, least: float, given: Sentence | None = None) -> Sentence:
    """Return the sentence with "_" in HEAD and DEPREL of words whose confidence is below ``least`` or unknown.

    Heads known in ``given`` are kept, along with their known relations; an uncertain word with a known relation but no
    head in ``given`` keeps that relation.
    """
    found = sentence.confidence
    words = None if found is None else found.words
    sure = np.zeros(len(sentence), bool) if words is None else words >= least  # false for NaN
    known = np.zeros(len(sentence), bool) if given is None else given.heads >= 0
    heads = np.where(sure | known, sentence.heads, -1)
    before = ("_",) * len(sentence) if given is None else given.relations
    stays = (sure | known & np.array([name != "_" for name in before])).tolist()
    relations = [new if ok else old for new, old, ok in zip(sentence.relations, before, stays, strict=True)]
    return sentence.replace(heads=heads, relations=relations, score=sentence.score, confidence=found)


def ranked(sentence: Sentence, rank: int) -> Sentence:
    """Mark a sentence as the ``rank``-th best of k trees: comments ``# rank`` and ``# score``, sent_id ``ID-kRANK``.

    Only the first keeps comments about its document, paragraph or parallel sentence.
    """

    def own(comment: str) -> str | None:
        name = comment_name(comment)
        if rank > 1 and (name in _OF_FIRST or name.startswith("global.")):
            return None
        found = _SENT_ID.match(comment)
        return f"# sent_id = {found[1].rstrip()}-k{rank}" if found else comment

    sentence = sentence.changed_comments(own).with_comment("rank", rank)
    return sentence if sentence.score is None else sentence.with_comment("score", shown(sentence.score))


def read_confidence(misc: str) -> tuple[float, float, float]:
    """Confidence of the word, confidence of its head and margin, as written by `with_confidence`; NaN if missing.

    Raises
    ------
    ValueError
        A value is not a number, a confidence is outside 0…1, or a margin is negative.
    """
    if WORD not in misc and MARGIN not in misc:
        return np.nan, np.nan, np.nan
    entries = dict(entry.partition("=")[::2] for entry in misc.split("|"))
    word, head, margin = (float(entries.get(name, "nan")) for name in (WORD, HEAD, MARGIN))
    for name, value in ((WORD, word), (HEAD, head)):
        if value < 0 or value > 1:
            raise ValueError(f"{name}={entries[name]} is not a probability from 0 to 1")
    if margin < 0:
        raise ValueError(f"{MARGIN}={entries[MARGIN]} is negative")
    return word, head, margin


@dataclass(frozen=True)
class UncertainWord:
    """A word to check: its position and the parser's prediction; heads are ``ID FORM``, or ``0`` for the root."""

    source: str
    line: int
    sentence: str
    id: int
    form: str
    head: str
    deprel: str
    confidence: float
    next_head: str

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def least_certain(sentences: Iterable[Sentence], count: int) -> list[UncertainWord]:
    """The ``count`` words with the lowest confidence in parsed sentences, least certain first.

    Words without a confidence, and words with only one possible head, such as given heads, are left out.
    """
    certainties = (
        (float(words[i]), float(sentence.confidence.margins[i]), number, i, sentence)
        for number, sentence in enumerate(sentences)
        if sentence.confidence is not None and (words := sentence.confidence.words) is not None
        for i in range(len(words))
        if words[i] < 1 and sentence.confidence.margins[i] < np.inf  # false for NaN
    )
    found = heapq.nsmallest(count, certainties, key=lambda one: one[:4])
    return [_uncertain(sentence[i], confidence) for confidence, _, _, i, sentence in found]


def _uncertain(word: Word, confidence: float) -> UncertainWord:
    sentence = word.sentence

    def named(head: int) -> str:
        return "0" if head == 0 else f"{head} {sentence.forms[head - 1]}"

    return UncertainWord(
        sentence.source,
        sentence.line_of(word.id),
        sentence.label,
        word.id,
        word.form,
        "_" if word.head is None else named(word.head),
        word.deprel or "_",
        round(confidence, DIGITS),
        " ".join(named(head) for head, _ in word.alternatives[:1]),
    )
