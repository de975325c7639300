"""Where relations may stand: some only below the root, some only below words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from mh4.data.sentence import Sentence

ROOT_RELATION = "root"  # as in UD


class RelationPlaces(NamedTuple):
    """Which relations of a treebank occur only below the root, and which never do.

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
        """Collect from sentences; words without a head or a relation do not count."""
        of_root: set[str] = set()
        of_words: set[str] = set()
        for sentence in sentences:
            for head, name in zip(sentence.heads.tolist(), sentence.relations, strict=True):
                if head >= 0 and name != "_":
                    (of_words if head else of_root).add(name)
        return cls(frozenset(of_root - of_words), frozenset(of_words - of_root))

    @classmethod
    def of_ud(cls, relations: Iterable[str] = ()) -> Self:
        """UD's rule: ``root`` is the relation of all children of the root, and of no other word."""
        names = set(relations)
        return cls(frozenset({ROOT_RELATION}), frozenset(names - {ROOT_RELATION} if ROOT_RELATION in names else ()))

    def allowed(self, relations: Sequence[str]) -> np.ndarray:
        """bool (2, R): whether a relation may stand below a word (row 0), and below the root (row 1).

        A row without any allowed relation allows all.
        """
        rows = [[name not in banned for name in relations] for banned in (self.only_root, self.only_words)]
        return np.array([row if any(row) else [True] * len(row) for row in rows], np.bool_).reshape(2, -1)
