"""Documents: sequences of sentences."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, overload

from .blocks import text_blocks
from .errors import counted
from .exchange import Exchanged, listed
from .guesses import DOCUMENT
from .sentence import Sentence

DRAWN = 20  # sentences that a notebook shows


class Document(Exchanged, Sequence[Sentence]):
    """A sequence of sentences; documents are equal if their sentences are.

    Attributes
    ----------
    sentences : tuple of Sentence
        The sentences, as iterating over the document yields them.
    """

    sentences: tuple[Sentence, ...]

    _guesses = DOCUMENT

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        if isinstance(sentences, str | bytes | Path) or not isinstance(sentences, Iterable):
            raise TypeError(
                f"a document consists of sentences, not {reprlib.repr(sentences)}; write parser(text) for text, "
                "mh4.Document(mh4.read_conllu(path)) for a file, mh4.Document.from_conllu(text) for CoNLL-U"
            )
        if isinstance(sentences, Sentence):
            raise TypeError("a document takes several sentences; write mh4.Document([sentence]) for one")
        self.sentences = tuple(sentences)
        for number, item in enumerate(self.sentences, start=1):
            if not isinstance(item, Sentence):
                raise TypeError(
                    f"item {number} is {reprlib.repr(item)}, not a sentence; see mh4.Sentence and Document.from_conllu"
                )

    @classmethod
    def from_conllu(cls, text: str, *, source: str = "text") -> Document:
        """Read a document from a string in the CoNLL-U format; a `DataError` if a sentence is invalid."""
        found = text_blocks(text, source)
        return cls(Sentence.from_block(block, source, number) for number, block in enumerate(found, start=1))

    def __len__(self) -> int:
        return len(self.sentences)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...

    @overload
    def __getitem__(self, index: slice) -> Document: ...

    def __getitem__(self, index: int | slice) -> Sentence | Document:
        return Document(self.sentences[index]) if isinstance(index, slice) else self.sentences[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self.sentences == other.sentences

    def __hash__(self) -> int:
        return hash(self.sentences)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Document: {counted(len(self), 'sentence')}, {counted(sum(map(len, self)), 'word')}>"

    @property
    def text(self) -> str:
        """The text, one sentence per line."""
        return "\n".join(sentence.text for sentence in self)

    def to_conllu(self) -> str:
        """The sentences in the CoNLL-U format."""
        return "".join(sentence.to_conllu() for sentence in self)

    def to_dict(self) -> list[dict[str, Any]]:
        """The sentences, for JSON; see `Sentence.to_dict`."""
        return [sentence.to_dict() for sentence in self]

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "dictionaries") -> Document:
        """Restore a document from `to_dict`, this class's or Stanza's; raises `DataError` like `Sentence.from_dict`."""
        found = enumerate(listed(data, source), start=1)
        return cls(Sentence.from_dict(one, source=source, number=number) for number, one in found)

    @property
    def _sentences(self) -> tuple[Sentence, ...]:
        return self.sentences

    @classmethod
    def _of_dictionaries(cls, found: list[dict[str, Any]], source: str) -> Document:
        return cls.from_dict(found, source=source)

    @classmethod
    def _advice(cls, name: str) -> str | None:
        of_sentences = name in {*dir(Sentence), *Sentence.__annotations__}
        return super()._advice(name) or (f"[sentence.{name} for sentence in document]" if of_sentences else None)

    def _repr_html_(self) -> str:
        """The trees, in a notebook."""
        parts = [sentence._repr_svg_() or escape(sentence.text) for sentence in self[:DRAWN]]
        if len(self) > DRAWN:
            parts.append(f"… and {len(self) - DRAWN} more sentences")
        return "".join(f"<div>{part}</div>" for part in parts)
