"""Rules that turn forms into lemmas: change the case, then cut and add characters at both ends.

As in UDPipe 2 (Straka 2018, section 3.3): a rule seen with some words also lemmatises unseen ones, so that
lemmatisation becomes classification.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple


def lower(form: str) -> str:
    """The form in lower case, as many characters: only İ would become two, an i and a dot above."""
    return form.replace("İ", "i").lower()


def _capitalise(lower_case: str) -> str:
    return lower_case[:1].upper() + lower_case[1:]


_CASINGS: dict[str, Callable[[str], str]] = {
    "lowered": lower,
    "as is": str,
    "titled": lambda form: _capitalise(lower(form)),
}
# Those of older models make two characters of İ.
OLDER_CASINGS = {"lower": str.lower, "title": lambda form: _capitalise(form.lower())}
CASINGS = _CASINGS | OLDER_CASINGS
LONGEST = 1000  # characters: substrings of longer words are not searched for
ABSOLUTE = "absolute"  # instead of a casing: the same lemma for every form


class LemmaRule(NamedTuple):
    """A rule that turns a form into a lemma.

    Attributes
    ----------
    casing
        Change of case, applied first: a key of `CASINGS`; or `ABSOLUTE`, with the lemma in ``before``.
    cut_before, before
        Number of characters cut off at the beginning, and the string that replaces them.
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
        """Number of characters cut off at both ends, -1 for absolute rules; forms must be longer."""
        return -1 if self.casing == ABSOLUTE else self.cut_before + self.cut_after


@lru_cache(1 << 17)  # most words of a treebank recur
def lemma_rule(form: str, lemma: str) -> LemmaRule:
    """The rule that keeps the longest common substring of form and lemma; always ``lemma_rule(f, l).apply(f) == l``.

    Ties go to lower case, so that a word at the beginning of a sentence has the same rule as elsewhere. If one of them
    is longer than `LONGEST` and neither contains the other, the rule is absolute.
    """
    best, kept = LemmaRule(ABSOLUTE, 0, lemma, 0, ""), 0
    for name, change in _CASINGS.items():
        cased = change(form)
        start, in_lemma, size = _longest_match(cased, lemma)
        if size > kept:
            kept, end = size, start + size
            best = LemmaRule(name, start, lemma[:in_lemma], len(cased) - end, lemma[in_lemma + size :])
    return best


def _longest_match(form: str, lemma: str) -> tuple[int, int, int]:
    """Start in ``form``, start in ``lemma`` and length of their (first) longest common substring."""
    if (start := form.find(lemma)) >= 0:
        return start, 0, len(lemma)
    if (start := lemma.find(form)) >= 0:
        return 0, start, len(form)
    if max(len(form), len(lemma)) > LONGEST:  # the search takes time in the product of the lengths
        return 0, 0, 0
    return SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
