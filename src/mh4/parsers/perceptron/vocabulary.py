"""Numbers for the forms, tags and relations of a treebank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from pydantic import model_validator
from pydantic.dataclasses import dataclass

from mh4.data.sentence import Sentence
from mh4.models.checked import STRICT
from mh4.models.word_vocabulary import by_frequency

from ..config import TagColumn
from ..relation_places import RelationPlaces
from ..vocabulary import SPACED, Names
from .loops import Gold, Text

UNKNOWN, ROOT = 0, 1  # numbers of forms and tags outside the vocabulary, and of the root's form and tag
NO_RELATION = "_"
_FIRST = 2


@dataclass(frozen=True, config=STRICT)
class PerceptronVocabulary:
    """Numbers forms and tags from 2, relations from 0.

    Attributes
    ----------
    forms, tags, relations : tuple of str
        All that occur in the training treebank; among the relations, "_", an unknown one, only if there is no other.
    root_relation : str
        The relation of words below the root; the most frequent one if there are several. If all of these are unknown,
        the most frequent relation.
    root_only : bool
        Whether all words below the root have this relation, and no others do; used only in models without ``only_root``
        and ``only_words``.
    single_root : bool
        Whether every training sentence has exactly one word below the root.
    tag_column : {"upos", "xpos"}
    only_root, only_words : tuple of str, optional
        See `RelationPlaces`.
    """

    forms: Names
    tags: Names
    relations: Names
    root_relation: str
    root_only: bool
    single_root: bool
    tag_column: TagColumn
    only_root: Names | None = None
    only_words: Names | None = None

    @model_validator(mode="after")
    def _check_root_relation(self) -> Self:
        if self.root_relation not in self.relations:
            raise ValueError(f"the relation {self.root_relation!r} of the root is not among the relations")
        return self

    @property
    def spaced(self) -> bool:
        """Whether many words hold spaces, as in Vietnamese; a few numbers such as "10 000" do not count."""
        return sum(form.count(" ") for form in self.forms) > SPACED * sum(map(len, self.forms))

    @cached_property
    def _numbers(self) -> dict[str, dict[str, int]]:
        firsts = {"forms": _FIRST, "tags": _FIRST, "relations": 0}
        return {what: {name: i for i, name in enumerate(getattr(self, what), first)} for what, first in firsts.items()}

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], tag_column: TagColumn = "upos") -> PerceptronVocabulary:
        """Collect the forms, tags and relations of training sentences."""
        forms: set[str] = set()
        tags: set[str] = set()
        below_root: Counter[str] = Counter()
        elsewhere: Counter[str] = Counter()
        single_root = True
        sentences = list(sentences)
        for sentence in sentences:
            single_root &= len(sentence.roots) == 1
            forms.update(sentence.forms)
            tags.update(getattr(sentence, tag_column))
            for head, relation in zip(sentence.heads.tolist(), sentence.relations, strict=True):
                if relation != NO_RELATION:
                    (elsewhere if head else below_root)[relation] += 1
        return cls(
            tuple(sorted(forms)),
            tuple(sorted(tags)),
            tuple(sorted(elsewhere | below_root)) or (NO_RELATION,),
            next(iter(by_frequency(below_root or elsewhere)), NO_RELATION),
            len(below_root) == 1 and not elsewhere.keys() & below_root.keys(),
            single_root,
            tag_column,
            *(tuple(sorted(names)) for names in RelationPlaces.from_sentences(sentences)),
        )

    def relation_number(self, relation: str) -> int:
        """The number of a relation; KeyError if it is unknown."""
        return self._numbers["relations"][relation]

    @cached_property
    def places(self) -> RelationPlaces:
        """Which relations only children of the root have, and which they never have."""
        if self.only_root is not None and self.only_words is not None:
            return RelationPlaces(frozenset(self.only_root), frozenset(self.only_words))
        only_root = frozenset({self.root_relation}) if self.root_only else frozenset()
        return RelationPlaces(only_root, frozenset(self.relations) - only_root if self.root_only else frozenset())

    def text(self, sentences: Sequence[Sentence]) -> Text:
        """Encode sentences in flat arrays."""
        offsets = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)], dtype=np.int64)
        words = np.full((2, offsets[-1]), ROOT, np.int32)
        forms, tags = self._numbers["forms"], self._numbers["tags"]
        for start, stop, sentence in zip(offsets[:-1], offsets[1:], sentences, strict=True):
            words[0, start + 1 : stop] = [forms.get(form, UNKNOWN) for form in sentence.forms]
            words[1, start + 1 : stop] = [tags.get(tag, UNKNOWN) for tag in getattr(sentence, self.tag_column)]
        return Text(offsets, words)

    def gold(self, sentences: Sequence[Sentence], trees: Sequence[np.ndarray]) -> Gold:
        """Encode target trees of training sentences in flat arrays, with the relations in the sentences."""
        size = sum(len(tree) for tree in trees)
        heads = np.concatenate(trees).astype(np.int32) if trees else np.empty(0, np.int32)
        relations = np.full(size, -1, np.int32)
        numbers = self._numbers["relations"]
        start = 0
        for sentence in sentences:
            relations[start + 1 : start + len(sentence) + 1] = [numbers.get(name, -1) for name in sentence.relations]
            start += len(sentence) + 1
        # Where a tree was changed, the relation may no longer fit.
        relations[(relations >= 0) & ~self.places.allowed(self.relations)[(heads == 0).astype(int), relations]] = -1
        return Gold(heads, relations)
