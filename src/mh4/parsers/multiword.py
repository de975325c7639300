"""Splits multiword tokens into words: known tokens as in training, others by rules learnt from these."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Self, TypeVar

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from mh4.data.lemma_rules import lower
from mh4.data.values import FORM, value_problem
from mh4.models.checked import STRICT

CONTEXT = 3  # characters, at most, that a rule matches beyond those that it changes

Words = tuple[str, ...]
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, config=STRICT)
class MultiwordTokens:
    """Known multiword tokens and splitting rules, all in lower case; the rule with the longest match applies.

    Attributes
    ----------
    known
        The words of each token.
    endings
        Rules by the end of a token: how many final characters to cut off, and what replaces them, the rest of the first
        word followed by all other words.
    beginnings
        Rules by the beginning of a token: how many initial characters to cut off, and what replaces them, all other
        words followed by the beginning of the last word.
    """

    known: dict[str, Words]
    endings: dict[str, tuple[int, Words]]
    beginnings: dict[str, tuple[int, Words]]

    @model_validator(mode="after")
    def _check_words(self) -> Self:
        for token, words in self.known.items():
            if problem := next(filter(None, (value_problem(word, FORM) for word in words)), None):
                raise ValueError(f"a word of {token!r} {problem}")
            if len(words) < 2:
                raise ValueError(f"{token!r} has fewer than two words")
        for token, (count, parts) in (*self.endings.items(), *self.beginnings.items()):
            if (
                not 0 <= count <= len(token)
                or len(parts) < 2
                or any(value_problem(part or "x", FORM) for part in parts)
            ):
                raise ValueError(f"the rule for {token!r} cannot be applied")
        return self

    @classmethod
    def learn(cls, tokens: Iterable[tuple[str, Sequence[str]]]) -> Self:
        """Learn from the multiword tokens of a treebank and their words; the most frequent split or rule wins."""
        known: dict[str, Counter[Words]] = defaultdict(Counter)
        for form, words in tokens:
            token = lower(form)
            known[token][tuple(words) if form == token else tuple(map(lower, words))] += 1
        endings: dict[str, Counter[tuple[int, Words]]] = defaultdict(Counter)
        beginnings: dict[str, Counter[tuple[int, Words]]] = defaultdict(Counter)
        for form, counts in known.items():
            for words, count in counts.items():
                stays = _shared(form, words[0])
                changed, rule = len(form) - stays, (words[0][stays:], *words[1:])
                kept = _shared(form[::-1], words[-1][::-1])
                start, other = len(form) - kept, (*words[:-1], words[-1][: len(words[-1]) - kept])
                for length in range(max(changed, 1), min(changed + CONTEXT, len(form)) + 1):
                    endings[form[-length:]][changed, rule] += count
                for length in range(max(start, 1), min(start + CONTEXT, len(form)) + 1):
                    beginnings[form[:length]][start, other] += count
        return cls(_commonest(known), _commonest(endings), _commonest(beginnings))

    def words(self, form: str) -> Words:
        """The words of a multiword token, in its letter case; empty if no rule applies."""
        token = lower(form)
        words = next(filter(None, self._candidates(token)), ())
        if any(value_problem(word, FORM) for word in words):
            return ()
        if form == token or not words:
            return words
        if "".join(words) == token:
            ends = accumulate(map(len, words), initial=0)
            return tuple(form[start:end] for start, end in pairwise(ends))
        if len(form) > 1 and form == form.upper():
            return tuple(word.upper() for word in words)
        first, *others = words
        if stays := _shared(token, first):
            first = form[:stays] + first[stays:]
        elif form[0] != token[0]:
            first = first[:1].upper() + first[1:]
        if token.endswith(others[-1]):
            others[-1] = form[-len(others[-1]) :]
        return (first, *others)

    def _candidates(self, token: str) -> Iterator[Words]:
        yield self.known.get(token, ())
        for length in range(len(token), 0, -1):
            if rule := self.endings.get(token[-length:]):
                count, (rest, *others) = rule
                yield (token[: len(token) - count] + rest, *others)
            if rule := self.beginnings.get(token[:length]):
                count, (*others, rest) = rule
                yield (*others, rest + token[count:])


def _shared(one: str, other: str) -> int:
    """The length of the common prefix of two strings."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _commonest(counts: dict[str, Counter[T]]) -> dict[str, T]:
    """The most frequent value of each key; the smallest in a tie."""
    return {key: min(own, key=lambda value: (-own[value], value)) for key, own in sorted(counts.items())}
