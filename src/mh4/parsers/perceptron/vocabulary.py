"""Numbers for the forms, tags and relations of a treebank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mh4.data.sentence import Sentence

from ..vocabulary import read_names
from .loops import Gold, Text

UNKNOWN, ROOT = 0, 1  # forms and tags that are not in the vocabulary; those of position 0
_FIRST = 2
TAG_COLUMNS = ("upos", "xpos")


def _check_tag_column(name: str) -> None:
    if name not in TAG_COLUMNS:
        raise ValueError(f"unknown tag column {name!r}; known: {', '.join(TAG_COLUMNS)}")


@dataclass(frozen=True)
class PerceptronVocabulary:
    """Forms and tags count from 2, relations from 0.

    Attributes
    ----------
    forms, tags, relations : tuple of str
        All that occur in the training treebank.
    root_relation : str
        The relation of words below the root, the commonest one if there are several.
    root_only : bool
        Whether that relation is the one of all words below the root, and of no others.
    single_root : bool
        Whether there is one word below the root in every sentence.
    tag_column : str
        One of `TAG_COLUMNS`.
    """

    forms: tuple[str, ...]
    tags: tuple[str, ...]
    relations: tuple[str, ...]
    root_relation: str
    root_only: bool
    single_root: bool
    tag_column: str
    _numbers: dict[str, dict[str, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        firsts = {"forms": _FIRST, "tags": _FIRST, "relations": 0}
        numbers = {
            what: {name: i for i, name in enumerate(getattr(self, what), first)} for what, first in firsts.items()
        }
        object.__setattr__(self, "_numbers", numbers)
        _check_tag_column(self.tag_column)
        if self.root_relation not in numbers["relations"]:
            raise ValueError(f"the relation {self.root_relation!r} of words below the root is none of the relations")

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], tag_column: str = "upos") -> PerceptronVocabulary:
        """Collect what the training sentences hold.

        Raises
        ------
        ValueError
            An unknown tag column.
        """
        _check_tag_column(tag_column)
        forms: set[str] = set()
        tags: set[str] = set()
        below_root: dict[str, int] = {}
        elsewhere: set[str] = set()
        single_root = True
        for sentence in sentences:
            single_root &= len(sentence.roots) == 1
            forms.update(sentence.forms)
            tags.update(getattr(sentence, tag_column))
            for head, relation in zip(sentence.heads[1:].tolist(), sentence.relations, strict=True):
                if head == 0:
                    below_root[relation] = below_root.get(relation, 0) + 1
                else:
                    elsewhere.add(relation)
        return cls(
            tuple(sorted(forms)),
            tuple(sorted(tags)),
            tuple(sorted(elsewhere | set(below_root))),
            max(sorted(below_root), key=below_root.__getitem__),
            len(below_root) == 1 and not elsewhere & set(below_root),
            single_root,
            tag_column,
        )

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content; `from_dict` reads it back."""
        return {
            "forms": list(self.forms),
            "tags": list(self.tags),
            "relations": list(self.relations),
            "root_relation": self.root_relation,
            "root_only": self.root_only,
            "single_root": self.single_root,
            "tag_column": self.tag_column,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PerceptronVocabulary:
        """Inverse of `as_dict`.

        Raises
        ------
        KeyError, ValueError
            Something is missing or of another kind.
        """
        for name in ("root_only", "single_root"):
            if not isinstance(data[name], bool):
                raise ValueError(f"{name} must be true or false; got {data[name]!r}")
        return cls(
            read_names(data, "forms"),
            read_names(data, "tags"),
            read_names(data, "relations"),
            data["root_relation"],
            data["root_only"],
            data["single_root"],
            data["tag_column"],
        )

    def relation_number(self, relation: str) -> int:
        """The number of a relation."""
        return self._numbers["relations"][relation]

    @property
    def forced_root(self) -> int:
        """As `loops.Actions.root_relation`."""
        return self.relation_number(self.root_relation) if self.root_only else -1

    def text(self, sentences: Sequence[Sentence]) -> Text:
        """Arrays of some sentences."""
        offsets = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)], dtype=np.int64)
        words = np.full((2, offsets[-1]), ROOT, np.int32)
        forms, tags = self._numbers["forms"], self._numbers["tags"]
        for start, stop, sentence in zip(offsets[:-1], offsets[1:], sentences, strict=True):
            words[0, start + 1 : stop] = [forms.get(form, UNKNOWN) for form in sentence.forms]
            words[1, start + 1 : stop] = [tags.get(tag, UNKNOWN) for tag in getattr(sentence, self.tag_column)]
        return Text(offsets, words)

    def gold(self, sentences: Sequence[Sentence], trees: Sequence[np.ndarray]) -> Gold:
        """Arrays of the trees that some training sentences are to get, and of their words' relations."""
        size = sum(len(tree) for tree in trees)
        heads = np.concatenate(trees).astype(np.int32) if trees else np.empty(0, np.int32)
        relations = np.full(size, -1, np.int32)
        numbers = self._numbers["relations"]
        start = 0
        for sentence in sentences:
            relations[start + 1 : start + len(sentence) + 1] = [numbers[name] for name in sentence.relations]
            start += len(sentence) + 1
        if self.root_only:  # where a tree was changed, the relation may no longer fit
            relations[(heads == 0) != (relations == self.forced_root)] = -1
        return Gold(heads, relations)
