"""The relations, tags and column values that a model learns from its training treebank."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, asdict
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from mh4.data.sentence import Sentence
from mh4.models.checked import STRICT, as_json, checked
from mh4.models.word_encoder import VOCABULARY
from mh4.models.word_vocabulary import WordVocabulary, by_frequency

from .columns import Columns
from .relation_places import RelationPlaces

SPACED = 0.005  # share of spaces among the characters of words above which words often contain spaces
Names = tuple[Annotated[str, Field(pattern=r"^[^\t\r\n]*$")], ...]  # each fits into a column of CoNLL-U


def _indices(names: Iterable[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


@dataclass(frozen=True, config=STRICT)
class Vocabulary:
    """Names of relations and tags, in index order.

    Attributes
    ----------
    spaced
        Whether many words hold spaces, as in Vietnamese; a few numbers such as "10 000" do not count.
    """

    relations: Names
    tags: Names
    tag_pairs: Names
    columns: Columns | None = None  # of models that annotate
    only_root: Names | None = None  # see `RelationPlaces`; None in older models, which follow UD's rule
    only_words: Names | None = None
    spaced: bool = False
    features: InitVar[Names] = ()  # in older models, which learnt features as an auxiliary task; ignored

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], annotates: bool = False) -> Vocabulary:
        """Collect the vocabulary of training sentences, most frequent names first."""
        sentences = list(sentences)
        characters: Counter[str] = Counter()
        relations: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        pairs: Counter[str] = Counter()
        for sentence in sentences:
            characters.update("".join(sentence.forms))
            relations.update(
                name for head, name in zip(sentence.heads.tolist(), sentence.relations, strict=True) if head >= 0
            )
            tags.update(sentence.upos)
            pairs.update(tag_pair_names(sentence))
        del relations["_"]  # of unlabelled arcs; kept only if there is no other relation
        relations = relations or Counter("_")
        only_root, only_words = (tuple(sorted(names)) for names in RelationPlaces.from_sentences(sentences))
        return cls(
            tuple(by_frequency(relations)),
            tuple(by_frequency(tags)),
            tuple(by_frequency(pairs)),
            Columns.from_sentences(sentences) if annotates else None,
            only_root,
            only_words,
            _are_spaced(characters),
        )

    @cached_property
    def places(self) -> RelationPlaces:
        """Which relations only children of the root have, and which they never have."""
        if self.only_root is None or self.only_words is None:
            return RelationPlaces.of_ud(self.relations)
        return RelationPlaces(frozenset(self.only_root), frozenset(self.only_words))

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


def tag_pair_names(sentence: Sentence) -> list[str]:
    """UPOS|XPOS of each word."""
    return [f"{upos}|{xpos}" for upos, xpos in zip(sentence.upos, sentence.xpos, strict=True)]


def _are_spaced(characters: Mapping[str, int]) -> bool:
    return characters.get(" ", 0) > SPACED * sum(characters.values())


def without_words(data: dict[str, Any]) -> tuple[bytes, dict[str, bytes]]:
    """Split the data of a vocab.json up to format 3 into the present vocab.json and the encoder's files by name.

    ValueError: Invalid counts of words or characters.
    """
    counts = {name: data.pop(name) for name in ("words", "characters") if name in data}
    words = checked(WordVocabulary, json.dumps(counts))
    return as_json(data | {"spaced": _are_spaced(words.characters)}), {VOCABULARY: as_json(asdict(words))}
