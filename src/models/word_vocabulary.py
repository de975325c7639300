"""The words and characters of the training text, and the ids that a word encoder reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from .checked import STRICT

UNKNOWN = 0  # index of the unknown word and of the unknown character
BEGIN, END = 1, 2  # characters around every word
LONGEST = 1000  # characters that are read of a word; of longer words, half of them at either end
_FIRST_CHARACTER = END + 1
LONGEST_KEPT = 32  # characters of the forms in caches; longer ones rarely recur
_MOST_KEPT = 1 << 15  # forms in the cache
_DIGIT = re.compile(r"\d")

K = TypeVar("K")

Counts = dict[str, Annotated[int, Field(ge=0)]]


class WordIds(NamedTuple):
    """The words of a sentence, as a `WordEncoder` reads them."""

    forms: Sequence[str]
    words: np.ndarray  # int64 (n,): vocabulary index of each word, `UNKNOWN` for unknown words
    characters: np.ndarray  # int64 (M,): characters of the words, word by word, with `BEGIN` and `END`
    character_lengths: np.ndarray  # int64 (n,): characters of each word, M in all


def normalise(form: str) -> str:
    """Replace each digit by 0, and make letters lower case, İ one character."""
    return _DIGIT.sub("0", form.replace("İ", "i").lower())


def shortened(form: str) -> str:
    """The characters that are read of a word, at most `LONGEST`."""
    return form if len(form) <= LONGEST else form[: LONGEST // 2] + form[-LONGEST // 2 :]


def by_frequency(counts: Mapping[K, int]) -> dict[K, int]:
    """The same counts in descending order; equal ones in the order of their keys."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, config=STRICT)
class WordVocabulary:
    """Counts of frequent words and of characters, in index order.

    Words are numbered from 1, characters from 3: index 0 is the unknown one, characters 1 and 2 enclose a word.
    """

    words: Counts
    characters: Counts

    @classmethod
    def of(cls, forms: Iterable[str], min_count: int) -> WordVocabulary:
        """Count the words of a text; those rarer than ``min_count`` have no index of their own."""
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for form in forms:
            words[normalise(form)] += 1
            characters.update(form)
        frequent = {word: count for word, count in words.items() if count >= min_count}
        return cls(by_frequency(frequent), by_frequency(characters))

    @cached_property
    def _word_index(self) -> dict[str, int]:
        return {word: index for index, word in enumerate(self.words, start=UNKNOWN + 1)}

    @cached_property
    def _character_index(self) -> dict[str, int]:
        return {character: index for index, character in enumerate(self.characters, start=_FIRST_CHARACTER)}

    def word_unknown(self, strength: float) -> Tensor:
        """Probability (V,) that a word is treated as unknown in training: strength / (strength + count)."""
        return _unknown(self.words, strength, UNKNOWN + 1)

    def character_unknown(self, strength: float) -> Tensor:
        """The same for characters (K,); 0 for the two that enclose a word."""
        return _unknown(self.characters, strength, _FIRST_CHARACTER)

    @cached_property
    def _seen(self) -> dict[str, tuple[int, np.ndarray]]:
        """The cache of `_look_up`, which threads share."""
        return {}

    def ids(self, forms: Sequence[str]) -> WordIds:
        """The words of a sentence, as a `WordEncoder` reads them."""
        seen = self._seen.get
        found = [seen(form) or self._look_up(form) for form in forms]
        characters = [own for _, own in found]
        return WordIds(
            forms,
            np.array([word for word, _ in found]),
            np.concatenate(characters),
            np.array([len(own) for own in characters]),
        )

    def _look_up(self, form: str) -> tuple[int, np.ndarray]:
        """The index of a form among the words, and the ids of its characters."""
        characters = map(self._character_index.get, shortened(form), repeat(UNKNOWN))
        index = self._word_index
        as_of_old = index.get(_DIGIT.sub("0", form.lower()), UNKNOWN) if "İ" in form else UNKNOWN  # in older models
        found = as_of_old or index.get(normalise(form), UNKNOWN), np.array([BEGIN, *characters, END])
        if len(form) <= LONGEST_KEPT:
            if len(self._seen) >= _MOST_KEPT:
                self._seen.clear()
            self._seen[form] = found
        return found


def _unknown(counts: Mapping[str, int], strength: float, first: int) -> Tensor:
    own = strength / (strength + np.array(list(counts.values()), dtype=np.float32))
    return torch.from_numpy(np.concatenate([np.zeros(first), own]).astype(np.float32))
