"""The words of a sentence as objects, which look up their values in the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from .entries import read_dependencies, read_entries
from .guesses import WORD, Guided
from .records import record


class _Known:
    """An attribute of a word: its value in a column of the sentence, None for "_"."""

    def __init__(self, column: str) -> None:
        self.column = column

    def __get__(self, word: Word, owner: type) -> str | None:
        value = getattr(word.sentence, self.column)[word.id - 1]
        return None if value == "_" else value


class Word(Guided):
    """A word of a sentence; it is immutable, but `Sentence.replace` returns a changed sentence.

    Attributes
    ----------
    sentence, id, index
        The sentence; the word's position in it, counted from 1 (``id``) and from 0 (``index``).
    form, text
        The word as written.
    lemma, upos, xpos, deprel, relation
        Base form, parts of speech, relation to the head (two names); None where unknown ("_" in the file).
    """

    sentence: Any  # a `Sentence`; its module imports this one
    id: int
    index: int
    form: str
    lemma, upos, xpos = _Known("lemmas"), _Known("upos"), _Known("xpos")
    deprel = relation = _Known("relations")
    text: str = property(lambda self: self.form)  # type: ignore[assignment]

    _guesses = WORD

    def __init__(self, sentence: Any, index: int) -> None:
        self.__dict__.update(sentence=sentence, index=index, id=index + 1, form=sentence.forms[index])

    def __setattr__(self, name: str, value: object = None) -> None:
        column = _COLUMNS.get(name)
        how = "sentence.replace(…)" if column is None else f"new = sentence.replace({column}=[…])"
        raise AttributeError(f"words are immutable; write {how}")

    __delattr__ = __setattr__

    @property
    def feats(self) -> Mapping[str, str | None]:
        """Morphological features; a feature without "=" maps to None."""
        return MappingProxyType(read_entries(self.sentence.feats[self.index]))

    @property
    def head(self) -> int | None:
        """ID of the head, 0 for the root; None where unknown."""
        head = int(self.sentence.padded_heads[self.id])
        return None if head < 0 else head

    @property
    def deps(self) -> list[tuple[str, Any]]:
        """Enhanced dependencies as (relation, head) pairs; a head is 4, or (4, ".", 1) for an empty node.

        DataError: DEPS is malformed; `Sentence.deps` has the text.
        """
        try:
            return read_dependencies(self.sentence.deps[self.index])
        except ValueError as error:
            raise self.sentence.error(f"DEPS of word {self.id}: {error}", self.id) from None

    @property
    def misc(self) -> Mapping[str, str | None]:
        """Entries of MISC; an entry without "=" maps to None."""
        return MappingProxyType(read_entries(self.sentence.misc[self.index]))

    @property
    def parent(self) -> Word | None:
        """The head as a word; None if it is the root or unknown."""
        return Word(self.sentence, self.head - 1) if self.head else None

    @property
    def children(self) -> tuple[Word, ...]:
        """The words whose head is this word."""
        children = np.flatnonzero(self.sentence.padded_heads == self.id)
        return tuple(Word(self.sentence, child - 1) for child in children.tolist())

    @property
    def space_after(self) -> bool:
        """Whether a space follows the word in the text."""
        return self.id == self._token.last and self._token.space_after

    @property
    def start(self) -> int:
        """Character offset of the word's beginning in the parsed text or, if no text was parsed, in `Sentence.text`.

        Words of a multiword token share its offsets.
        """
        return self._token.start

    @property
    def end(self) -> int:
        """Character offset of the word's end, exclusive; see `start`."""
        return self._token.end

    @property
    def _token(self) -> Token:
        token: Token = self.sentence._token_of[self.index]
        return token

    # A parser's confidence, if requested; otherwise None.

    @property
    def confidence(self) -> float | None:
        """Estimated probability that head and relation are correct."""
        return self._confidence("words")

    @property
    def head_confidence(self) -> float | None:
        """Estimated probability that the head is correct."""
        return self._confidence("heads")

    @property
    def margin(self) -> float | None:
        """How much the score of the tree drops if the word gets another head; +inf if there is no other."""
        return self._confidence("margins")

    @property
    def alternatives(self) -> list[tuple[int, float]]:
        """Other heads with the drop in score that each costs, cheapest first; see `Confidence.alternatives`."""
        found = self.sentence.confidence
        return [] if found is None else found.alternatives(self.id)

    def _confidence(self, name: str) -> float | None:
        values = getattr(self.sentence.confidence, name, None)
        return None if values is None or np.isnan(values[self.index]) else float(values[self.index])

    def __getitem__(self, name: str) -> NoReturn:
        raise TypeError(f"a word is not a mapping; write {self._advice(str(name)) or f'word.{name}'}")

    def to_dict(self) -> dict[str, Any]:
        """The known columns, as written, under Stanza's keys (id, text, lemma, …, start_char, end_char).

        With a parser's confidence, also confidence, head_confidence, margin, next_head and relation_share; infinite
        values are None.
        """
        values = (getattr(self.sentence, name)[self.index] for name in _FIELDS)
        found = record([str(self.id), *map(str, values)])
        if self.head is None:
            del found["head"]
        else:
            found["head"] = self.head
        found |= {"start_char": self.start, "end_char": self.end}
        known = self.sentence.confidence
        return found if known is None else found | known.entries(self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Word) and (self.id, self.sentence) == (other.id, other.sentence)

    def __hash__(self) -> int:
        return hash((self.id, self.form))

    def __str__(self) -> str:
        return self.form

    def __repr__(self) -> str:
        return f"<Word {self.id} {self.form!r}: {self.deprel or '_'} of {'_' if self.head is None else self.head}>"


class Token(NamedTuple):
    """A token of the text: one word, or several (a multiword token)."""

    first: int
    """ID of its first word."""
    last: int
    """ID of its last word."""
    form: str
    space_after: bool
    misc: str
    start: int = 0
    """Where it begins in the text, see `Word.start`."""
    end: int = 0


_FIELDS = ("forms", "lemmas", "upos", "xpos", "feats", "heads", "relations", "deps", "misc")
_COLUMNS = {name: name for name in ("upos", "xpos", "feats", "deps", "misc")}  # attribute of Word → column of Sentence
_COLUMNS |= {"form": "forms", "text": "forms", "lemma": "lemmas", "head": "heads", "parent": "heads"}
_COLUMNS |= {"deprel": "relations", "relation": "relations"}
