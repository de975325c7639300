"""Several sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import overload

from .blocks import text_blocks
from .errors import counted, quote
from .sentence import Sentence

DRAWN = 20  # sentences that a notebook shows


class Document(Sequence[Sentence]):
    """Sentences, in their order; documents are equal if their sentences are."""

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._sentences = tuple(sentences)
        if wrong := next((item for item in self._sentences if not isinstance(item, Sentence)), None):
            raise TypeError(f"{quote(str(wrong))} is no sentence; see mh4.Sentence and Document.from_conllu")

    @classmethod
    def from_conllu(cls, text: str, *, source: str = "text") -> Document:
        """The sentences of a text in the CoNLL-U format; a `DataError` if one is not valid."""
        found = text_blocks(text, source)
        return cls(Sentence.from_block(block, source, number) for number, block in enumerate(found, start=1))

    def __len__(self) -> int:
        return len(self._sentences)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...

    @overload
    def __getitem__(self, index: slice) -> Document: ...

    def __getitem__(self, index: int | slice) -> Sentence | Document:
        return Document(self._sentences[index]) if isinstance(index, slice) else self._sentences[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Document) and self._sentences == other._sentences

    def __hash__(self) -> int:
        return hash(self._sentences)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Document: {counted(len(self), 'sentence')}, {counted(sum(map(len, self)), 'word')}>"

    @property
    def text(self) -> str:
        """The text, a line for each sentence."""
        return "\n".join(sentence.text for sentence in self)

    def to_conllu(self) -> str:
        """The sentences in the CoNLL-U format."""
        return "".join(sentence.to_conllu() for sentence in self)

    def to_json(self) -> str:
        """The sentences as a JSON array; see `Sentence.to_dict`."""
        return json.dumps([sentence.to_dict() for sentence in self], ensure_ascii=False, allow_nan=False)

    def _repr_html_(self) -> str:
        """The trees, in a notebook."""
        parts = [sentence._repr_svg_() or escape(sentence.text) for sentence in self[:DRAWN]]
        if len(self) > DRAWN:
            parts.append(f"… and {len(self) - DRAWN} more sentences")
        return "".join(f"<div>{part}</div>" for part in parts)
