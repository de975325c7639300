"""What a model knows of its training text: words, characters, relations, tags."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import repeat
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.models.bilstm_encoder import BEGIN, END, UNKNOWN, WordIds
from mh4.models.network_config import STRICT

from .columns import Columns
from .relation_places import RelationPlaces

MIN_WORD_COUNT = 5  # as published
SPACED = 0.005  # share of spaces in all characters beyond which words are taken to hold them as a rule
Counts = dict[str, Annotated[int, Field(ge=0)]]
Names = tuple[Annotated[str, Field(pattern=r"^[^\t\r\n]*$")], ...]  # each fits into a column of CoNLL-U
_FIRST_CHARACTER = END + 1
_DIGIT = re.compile(r"\d")


def normalise(form: str) -> str:
    """Digits become 0, letters lower case."""
    return _DIGIT.sub("0", form.lower())


def _indices(names: Iterable[str], first: int = 0) -> dict[str, int]:
    return {name: index for index, name in enumerate(names, start=first)}


def _by_frequency(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, config=STRICT)
class Vocabulary:
    """Counts of frequent words and of characters; names of relations, tags and features, in index order.

    Words and characters count from 1 and from 3: index 0 is the unknown one, characters 1 and 2 enclose a word.
    """

    words: Counts
    characters: Counts
    relations: Names
    tags: Names
    tag_pairs: Names
    features: Names = ()  # models made before there were any
    columns: Columns | None = None  # of models that annotate
    only_root: Names | None = None  # see `RelationPlaces`; models made before there were any keep to UD's rule
    only_words: Names | None = None

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sentence], min_word_count: int = MIN_WORD_COUNT, annotates: bool = False
    ) -> Vocabulary:
        """Count what training sentences hold; words rarer than ``min_word_count`` have no embedding of their own."""
        sentences = list(sentences)
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        relations: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        pairs: Counter[str] = Counter()
        features: Counter[str] = Counter()
        for sentence in sentences:
            words.update(map(normalise, sentence.forms))
            for form in sentence.forms:
                characters.update(form)
            relations.update(
                name for head, name in zip(sentence.heads[1:].tolist(), sentence.relations, strict=True) if head >= 0
            )
            tags.update(sentence.upos)
            pairs.update(tag_pair_names(sentence))
            features.update(name for names in feature_names(sentence) for name in names)
        del relations["_"]  # of arcs that are not labelled; but there has to be one
        relations = relations or Counter("_")
        frequent = Counter({word: count for word, count in words.items() if count >= min_word_count})
        return cls(
            _by_frequency(frequent),
            _by_frequency(characters),
            tuple(_by_frequency(relations)),
            tuple(_by_frequency(tags)),
            tuple(_by_frequency(pairs)),
            tuple(_by_frequency(features)),
            Columns.from_sentences(sentences) if annotates else None,
            *(tuple(sorted(names)) for names in RelationPlaces.from_sentences(sentences)),
        )

    @cached_property
    def places(self) -> RelationPlaces:
        """Which relations are for children of the root."""
        if self.only_root is None or self.only_words is None:
            return RelationPlaces.of_ud(self.relations)
        return RelationPlaces(frozenset(self.only_root), frozenset(self.only_words))

    @property
    def spaced(self) -> bool:
        """Whether many words hold spaces, as in Vietnamese; a few numbers such as "10 000" do not count."""
        return self.characters.get(" ", 0) > SPACED * sum(self.characters.values())

    @cached_property
    def _word_index(self) -> dict[str, int]:
        return _indices(self.words, UNKNOWN + 1)

    @cached_property
    def _character_index(self) -> dict[str, int]:
        return _indices(self.characters, _FIRST_CHARACTER)

    @cached_property
    def relation_index(self) -> dict[str, int]:
        """Index of each relation."""
        return _indices(self.relations)

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """Index of each UPOS tag."""
        return _indices(self.tags)

    @cached_property
    def tag_pair_index(self) -> dict[str, int]:
        """Index of each UPOS|XPOS pair."""
        return _indices(self.tag_pairs)

    @cached_property
    def feature_index(self) -> dict[str, int]:
        """Index of each morphological feature."""
        return _indices(self.features)

    def word_unknown(self, strength: float) -> Tensor:
        """Probability (V,) that a word is taken for unknown in training: strength / (strength + count)."""
        counts = np.array(list(self.words.values()), dtype=np.float32)
        return torch.from_numpy(np.concatenate([[0.0], strength / (strength + counts)]).astype(np.float32))

    def character_unknown(self, strength: float) -> Tensor:
        """The same for characters (K,); 0 for the two that enclose a word."""
        counts = np.array(list(self.characters.values()), dtype=np.float32)
        probabilities = np.concatenate([np.zeros(_FIRST_CHARACTER), strength / (strength + counts)])
        return torch.from_numpy(probabilities.astype(np.float32))

    def ids(self, sentence: Sentence) -> WordIds:
        """What a `BiLSTMEncoder` sees of a sentence; its ``collate`` makes a batch of several."""
        words, characters, unknown = self._word_index.get, self._character_index.get, repeat(UNKNOWN)
        forms = sentence.forms
        return WordIds(
            forms,
            np.array([words(normalise(form), UNKNOWN) for form in forms]),
            np.array([index for form in forms for index in (BEGIN, *map(characters, form, unknown), END)]),
            np.array([len(form) + 2 for form in forms]),
        )


def tag_pair_names(sentence: Sentence) -> list[str]:
    """UPOS|XPOS of each word."""
    return [f"{upos}|{xpos}" for upos, xpos in zip(sentence.upos, sentence.xpos, strict=True)]


def feature_names(sentence: Sentence) -> list[list[str]]:
    """Morphological features of each word, as ``Name=Value``."""
    return [[] if feats in ("", "_") else feats.split("|") for feats in sentence.feats]
