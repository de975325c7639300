"""Rules that make lemmas of forms: what becomes of the letters' case, and what is cut and added at either end.

As in UDPipe 2 (Straka 2018, section 3.3): a rule that was seen with some words makes the lemmas of unseen ones, so that
lemmatisation is classification.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple


def _title(form: str) -> str:
    lower = form.lower()
    return lower[:1].upper() + lower[1:]


CASINGS: dict[str, Callable[[str], str]] = {"lower": str.lower, "as is": str, "title": _title}
LONGEST = 1000
ABSOLUTE = "absolute"  # the lemma, whatever the form


class LemmaRule(NamedTuple):
    """How to make a lemma of a form.

    Attributes
    ----------
    casing
        What is done to the form first: one of `CASINGS`; or `ABSOLUTE`, then ``before`` is the lemma.
    cut_before, before
        Characters that are cut off at the beginning, and what stands there instead.
    cut_after, after
        The same at the end. At least one character of the form stays.
    """

    casing: str
    cut_before: int
    before: str
    cut_after: int
    after: str

    def apply(self, form: str) -> str | None:
        """The lemma of a form; None if the form is too short for the rule."""
        if self.casing == ABSOLUTE:
            return self.before
        cased = CASINGS[self.casing](form)
        end = len(cased) - self.cut_after
        return self.before + cased[self.cut_before : end] + self.after if self.cut_before < end else None

    @property
    def cut(self) -> int:
        """Characters that are cut off, at both ends; a form has to be longer."""
        return -1 if self.casing == ABSOLUTE else self.cut_before + self.cut_after


@lru_cache(1 << 17)  # a treebank asks again for most of its words
def lemma_rule(form: str, lemma: str) -> LemmaRule:
    """The rule with which a form and its lemma have most in common: ``lemma_rule(f, l).apply(f) == l`` for all strings.

    What is in common is a substring of both; in a tie lower case is taken, so that a word at the beginning of a
    sentence has the rule that it has elsewhere. Of words of more than `LONGEST` characters that do not hold each other
    the lemma is taken whole.
    """
    best, kept = LemmaRule(ABSOLUTE, 0, lemma, 0, ""), 0
    for name, change in CASINGS.items():
        cased = change(form)
        start, in_lemma, size = _longest_match(cased, lemma)
        if size > kept:
            kept, end = size, start + size
            best = LemmaRule(name, start, lemma[:in_lemma], len(cased) - end, lemma[in_lemma + size :])
    return best


def _longest_match(form: str, lemma: str) -> tuple[int, int, int]:
    """Where the longest common substring begins in either string, and how long it is; the first of several."""
    if (start := form.find(lemma)) >= 0:
        return start, 0, len(lemma)
    if (start := lemma.find(form)) >= 0:
        return 0, start, len(form)
    if max(len(form), len(lemma)) > LONGEST:  # it takes the product of the lengths
        return 0, 0, 0
    return SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
