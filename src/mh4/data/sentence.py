"""Sentences, and what a parser or a tagger says about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from typing import overload

import numpy as np

from .errors import DataError

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(len(COLUMNS))


def quote(value: str) -> str:
    """A value from a file as shown in a message: quoted, escaped and not too long."""
    return repr(value if len(value) <= 40 else value[:39] + "…")


def located(source: str, line: int | None, name: str, problem: str) -> DataError:
    """A `DataError` that names file, line and sentence."""
    place = source if line is None else f"{source}:{line}"
    return DataError(f"{place}: {name}: {problem}")


@dataclass(frozen=True, eq=False)
class Annotation:
    """What a parser or a tagger says about the n words of a sentence; None where it says nothing.

    Attributes
    ----------
    heads
        int32 (n+1,) with ``heads[0] == -1``.
    relations, upos, xpos, feats, lemmas
        n values each.
    score
        Of the tree, if it has one.
    """

    heads: np.ndarray | None = None
    relations: tuple[str, ...] | None = None
    upos: tuple[str, ...] | None = None
    xpos: tuple[str, ...] | None = None
    feats: tuple[str, ...] | None = None
    lemmas: tuple[str, ...] | None = None
    score: float | None = None

    @property
    def tree(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """Heads and relations, as every parser gives them.

        Raises
        ------
        ValueError
            An annotation without them.
        """
        if self.heads is None or self.relations is None:
            raise ValueError("the annotation holds no tree")
        return self.heads, self.relations


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence of a treebank with n words (multiword tokens and empty nodes are not words).

    Attributes
    ----------
    lines
        Raw lines without line ends: comments, multiword tokens, empty nodes, words.
    newline
        The line end, ``"\\n"`` or ``"\\r\\n"``. Where a sentence mixes both, ``"\\n"``, and the lines keep their "\\r".
    source, first_line, number, sent_id
        File, line of ``lines[0]`` in it (from 1), count of the sentence in it (from 1), ``# sent_id`` or None.
    forms, lemmas, upos, xpos, feats, relations
        Columns FORM, LEMMA, UPOS, XPOS, FEATS and DEPREL of the n words, as written.
    heads
        int32 (n+1,); ``heads[d]`` is the head of word d, 0 the root, -1 where HEAD is "_"; ``heads[0]`` is -1.
    rows
        Index in `lines` of each word.
    lead, blank
        What stood before the first line (byte order mark, surplus blank lines), and the blank line after the last.
    score
        What the parser gave the tree, if there is one that was predicted and has a score.
    """

    lines: tuple[str, ...]
    newline: str
    source: str
    first_line: int
    number: int
    sent_id: str | None
    forms: tuple[str, ...]
    lemmas: tuple[str, ...]
    upos: tuple[str, ...]
    xpos: tuple[str, ...]
    feats: tuple[str, ...]
    heads: np.ndarray
    relations: tuple[str, ...]
    rows: tuple[int, ...]
    lead: str = ""
    blank: str = "\n"
    score: float | None = None

    def __len__(self) -> int:
        return len(self.forms)

    @property
    def name(self) -> str:
        """``sentence ID``, or ``sentence NUMBER`` without a sent_id, as used in messages."""
        return f"sentence {self.label}"

    @property
    def label(self) -> str:
        """The sent_id, tabs as spaces, or, without one, the number."""
        return str(self.number) if self.sent_id is None else self.sent_id.replace("\t", " ")

    @property
    def roots(self) -> tuple[int, ...]:
        """The words whose head is 0, in order."""
        return tuple(np.flatnonzero(self.heads == 0).tolist())

    def error(self, problem: str, word: int | None = None) -> DataError:
        """A `DataError` (to raise) about this sentence, located at `word` (from 1) or at its first line."""
        return located(self.source, self.first_line + (0 if word is None else self.rows[word - 1]), self.name, problem)

    @classmethod
    def from_words(cls, forms: Sequence[str], *, source: str = "words", number: int = 1) -> Sentence:
        """A sentence of the given words, every other column "_".

        Raises
        ------
        DataError
            There is no word, or a word is empty, only spaces, holds a tab or a line break, or is not valid Unicode.
        TypeError
            `forms` is one string instead of a sequence of strings, or a word is none.
        """
        if isinstance(forms, str):
            raise TypeError(f"forms must be a sequence of words such as {forms.split()!r}, not one string")
        name = f"sentence {number}"
        if len(forms) == 0:
            raise DataError(f"{source}: {name}: holds no words")
        for i, form in enumerate(forms, start=1):
            if not isinstance(form, str):
                raise TypeError(f"word {i} of {name} is {form!r}, not a string")
            if problem := _word_problem(form):
                raise DataError(f"{source}: {name}: word {i} ({quote(form)}) {problem}")
        n = len(forms)
        empty = ("_",) * n
        return cls(
            lines=tuple(f"{i}\t{form}" + "\t_" * (len(COLUMNS) - 2) for i, form in enumerate(forms, start=1)),
            newline="\n",
            source=source,
            first_line=1,
            number=number,
            sent_id=None,
            forms=tuple(forms),
            lemmas=empty,
            upos=empty,
            xpos=empty,
            feats=empty,
            heads=np.full(n + 1, -1, dtype=np.int32),
            relations=empty,
            rows=tuple(range(n)),
        )

    def to_bytes(self) -> bytes:
        """The sentence as UTF-8 text, closed by its blank line."""
        return f"{self.lead}{self.newline.join(self.lines)}{self.newline}{self.blank}".encode()

    def annotated(self, annotation: Annotation) -> Sentence:
        """The sentence with the columns and the score of an annotation; see `replace`."""
        columns = ("heads", "relations", "upos", "xpos", "feats", "lemmas")
        found = {name: getattr(annotation, name) for name in columns if getattr(annotation, name) is not None}
        return self.replace(**found, score=annotation.score)

    def replace(
        self,
        *,
        heads: np.ndarray | Sequence[int] | None = None,
        relations: Sequence[str] | None = None,
        upos: Sequence[str] | None = None,
        xpos: Sequence[str] | None = None,
        feats: Sequence[str] | None = None,
        lemmas: Sequence[str] | None = None,
        score: float | None = None,
    ) -> Sentence:
        """The sentence with the given columns of the words replaced; all else stays byte for byte.

        Parameters
        ----------
        heads
            (n+1,), in -1…n; ``heads[0]`` is not read, -1 is written as "_".
        relations, upos, xpos, feats, lemmas
            n values each.
        score
            The score of the new tree.

        Raises
        ------
        ValueError
            A column has a wrong length, a head is out of range, or a value is empty or holds a tab or line break.
        """
        replaced: dict[int, Sequence[str]] = {}
        attributes: dict[str, object] = {"score": score}
        if heads is not None:
            replaced[HEAD] = self._head_column(heads)
            attributes["heads"] = np.array([-1, *list(heads)[1:]], np.int32)
        given = {"relations": relations, "upos": upos, "xpos": xpos, "feats": feats, "lemmas": lemmas}
        for (name, values), column in zip(given.items(), (DEPREL, UPOS, XPOS, FEATS, LEMMA), strict=True):
            if values is not None:
                replaced[column] = self._checked_column(column, values)
                attributes[name] = tuple(values)
        lines = list(self.lines)
        for i, row in enumerate(self.rows):
            fields = lines[row].split("\t")
            for column, values in replaced.items():
                fields[column] = values[i]
            lines[row] = "\t".join(fields)
        return dataclass_replace(self, lines=tuple(lines), **attributes)  # type: ignore[arg-type]

    def _head_column(self, heads: np.ndarray | Sequence[int]) -> list[str]:
        n = len(self)
        values = np.asarray(heads)
        if values.shape != (n + 1,) or values.dtype.kind not in "iu":
            raise ValueError(f"heads must be {n + 1} integers, not {values.dtype} of shape {values.shape}")
        if values[1:].min() < -1 or values[1:].max() > n:
            raise ValueError(f"heads must lie in -1…{n}")
        return ["_" if head < 0 else str(head) for head in values[1:].tolist()]

    def _checked_column(self, column: int, values: Sequence[str]) -> Sequence[str]:
        if isinstance(values, str) or len(values) != len(self):
            raise ValueError(f"{COLUMNS[column]} needs one value for each of {len(self)} words")
        for value in values:
            if not value or "\t" in value or "\n" in value or "\r" in value:
                raise ValueError(f"{COLUMNS[column]} may not be {quote(value)}")
        return values


def _word_problem(form: str) -> str | None:
    if not form.strip(" "):
        return "is empty"
    if any(character in form for character in "\t\n\r"):
        return "holds a tab or a line break"
    try:
        form.encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return None


def set_comment(lines: list[str], comment: str, value: object) -> None:
    """Put a comment after the others, in place of an earlier one of its kind."""
    lines[:] = [line for line in lines if not line.startswith(comment)]
    first = next(row for row, line in enumerate(lines) if not line.startswith("#"))
    line_end = "\r" if lines[first].endswith("\r") else ""
    lines.insert(first, f"{comment}{value}{line_end}")


class Document(Sequence[Sentence]):
    """Sentences, in their order."""

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self.sentences = tuple(sentences)

    @overload
    def __getitem__(self, index: int) -> Sentence: ...

    @overload
    def __getitem__(self, index: slice) -> Document: ...

    def __getitem__(self, index: int | slice) -> Sentence | Document:
        return Document(self.sentences[index]) if isinstance(index, slice) else self.sentences[index]

    def __len__(self) -> int:
        return len(self.sentences)
