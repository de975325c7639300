"""Where relations may stand: some are those of the root's children alone, some are never theirs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from mh4.data.sentence import Sentence

ROOT_RELATION = "root"  # as in UD


class RelationPlaces(NamedTuple):
    """The rule that a treebank keeps.

    Attributes
    ----------
    only_root : frozenset of str
        Relations that only children of the root have.
    only_words : frozenset of str
        Relations that children of the root never have.
    """

    only_root: frozenset[str]
    only_words: frozenset[str]

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence]) -> Self:
        """The rule that the sentences keep; words without a head or a relation say nothing."""
        of_root: set[str] = set()
        of_words: set[str] = set()
        for sentence in sentences:
            for head, name in zip(sentence.heads.tolist(), sentence.relations, strict=True):
                if head >= 0 and name != "_":
                    (of_words if head else of_root).add(name)
        return cls(frozenset(of_root - of_words), frozenset(of_words - of_root))

    @classmethod
    def of_ud(cls, relations: Iterable[str] = ()) -> Self:
        """``root`` is the relation of the root's children, and of no other word."""
        names = set(relations)
        return cls(frozenset({ROOT_RELATION}), frozenset(names - {ROOT_RELATION} if ROOT_RELATION in names else ()))

    def allowed(self, relations: Sequence[str]) -> np.ndarray:
        """bool (2, R): whether words have a relation, in the first row below words, in the second below the root.

        Where the rule leaves none, all are allowed.
        """
        rows = [[name not in banned for name in relations] for banned in (self.only_root, self.only_words)]
        return np.array([row if any(row) else [True] * len(row) for row in rows], np.bool_).reshape(2, -1)
