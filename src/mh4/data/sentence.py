"""Sentences and their words."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any, NamedTuple, overload

import numpy as np
from conllu.models import TokenList

from .annotation import Annotation
from .blocks import STRIDE, Block, find_comment, read_block, sentence_name, text_blocks
from .confidence import Confidence
from .drawing import Drawing, draw_svg, draw_text
from .edits import changed_comments, replace_column, replace_heads, with_comment, with_comments, with_multiword_tokens
from .errors import DataError, counted, located, quote
from .exchange import Exchanged
from .guesses import SENTENCE
from .records import read_dictionary, records, token_list
from .spaces import NO_SPACE, Spaced, spans_in_line, spans_in_text
from .values import DEPREL, DEPS, FEATS, FORM, LEMMA, MISC, UPOS, XPOS, value_problem
from .word import Token, Word


class Layout(NamedTuple):
    """Position of a sentence in its source, and the bytes around its lines.

    Attributes
    ----------
    newline
        The line end, ``"\\n"`` or ``"\\r\\n"``. With mixed line ends, it is ``"\\n"`` and the lines keep their "\\r".
    lead, blank
        Surplus blank lines before the first line, and the blank line after the last.
    start
        Character offset of its first token in the text that it was cut from; None if it was not cut from a text.
    """

    source: str = "words"
    first_line: int = 1
    number: int = 1
    newline: str = "\n"
    lead: str = ""
    blank: str = "\n"
    start: int | None = None


class _Column:
    """Descriptor of a column of the words, extracted from the fields on first access."""

    def __init__(self, column: int) -> None:
        self.column = column

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, sentence: Sentence, owner: type) -> tuple[str, ...]:
        values = tuple(sentence._fields[self.column :: STRIDE])
        if self.column == MISC:
            values = tuple(value.partition("\n")[0].removesuffix("\r") for value in values)
        sentence.__dict__[self.name] = values
        return values


class Sentence(Exchanged, Sequence[Word]):
    """One sentence with n words (multiword tokens and empty nodes are not words); ``sentence[0]`` is word 1.

    A sentence is immutable: `replace` and `with_comment` return new ones, and `heads` is read-only. Sentences are equal
    if their lines are equal.

    Attributes
    ----------
    forms, lemmas, upos, xpos, feats, relations, deps, misc
        Columns FORM, LEMMA, UPOS, XPOS, FEATS, DEPREL, DEPS and MISC of the n words, as written.
    heads
        int32 (n,): the ID of each word's head, 0 for the root, -1 where HEAD is "_".
    padded_heads
        int32 (n+1,): `heads` preceded by -1 for the root, so that ``padded_heads[d]`` is the head of word d; the form
        that decoders return and `mh4.trees` takes.
    score
        The parser's score of a predicted tree, if it has one.
    confidence
        The parser's `Confidence`, if requested.
    source, first_line, number
        The file; in it, the line number of ``lines[0]`` and the number of the sentence, both from 1.
    layout
        The three values above, and the bytes around the lines.
    """

    forms, lemmas, upos, xpos, feats = (_Column(column) for column in (FORM, LEMMA, UPOS, XPOS, FEATS))
    relations, deps, misc = _Column(DEPREL), _Column(DEPS), _Column(MISC)
    padded_heads: np.ndarray
    score: float | None
    confidence: Confidence | None
    layout: Layout
    _fields: list[str]
    _others: tuple[tuple[int, str], ...]
    _guesses = SENTENCE

    def __init__(self, forms: Sequence[str], **columns: Any) -> None:
        """A sentence of the given words; other columns are "_" unless given; see `from_words` and `replace`."""
        self.__dict__.update(vars(Sentence.from_words(forms).replace(**columns)))

    @classmethod
    def _of(
        cls,
        fields: list[str],
        padded_heads: np.ndarray,
        others: tuple[tuple[int, str], ...],
        layout: Layout,
        score: float | None = None,
        confidence: Confidence | None = None,
    ) -> Sentence:
        sentence = cls.__new__(cls)
        padded_heads.flags.writeable = False
        sentence.__dict__.update(
            _fields=fields, padded_heads=padded_heads, _others=others, layout=layout, score=score, confidence=confidence
        )
        return sentence

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.padded_heads.flags.writeable = False  # pickle and copy make it writeable

    def __setattr__(self, name: str, value: object = None) -> None:
        raise AttributeError(f"sentences are immutable; write new = sentence.replace({name}=…)")

    __delattr__ = __setattr__

    @classmethod
    def from_words(cls, forms: Sequence[str], *, source: str = "words", number: int = 1) -> Sentence:
        """A sentence of the given words, every other column "_"; words of subclasses of `str` become plain strings.

        Raises
        ------
        DataError
            There are no words; or a word is blank, contains a tab, a line break or NUL, or is not valid Unicode.
        TypeError
            `forms` is one string instead of a sequence of strings, or a word is not a string.
        """
        if isinstance(forms, str):
            raise TypeError(f"forms must be a sequence of words such as {forms.split()!r}, not one string")
        if isinstance(forms, bytes) or not isinstance(forms, Iterable):
            raise TypeError(f"forms must be a sequence of words such as ['A', 'kutya'], not {reprlib.repr(forms)}")
        forms = list(forms)
        name = f"sentence {number}"
        if len(forms) == 0:
            raise DataError(f"{source}: {name}: holds no words")
        for i, form in enumerate(forms, start=1):
            if not isinstance(form, str):
                raise TypeError(f"word {i} of {name} is {form!r}, not a string")
            if problem := value_problem(form, FORM):
                raise DataError(f"{source}: {name}: word {i} ({quote(form)}) {problem}")
        return cls.of_columns([*map(str.__str__, forms)], ["_"] * len(forms), (), Layout(source, number=number))

    @classmethod
    def from_conllu(cls, text: str, *, source: str = "text") -> Sentence:
        """The one sentence of a text in the CoNLL-U format.

        DataError: The text is invalid, or does not hold exactly one sentence.
        """
        found = list(text_blocks(text, source))
        if len(found) != 1:
            raise DataError(f"{source}: holds {len(found)} sentences (for several, see Document.from_conllu)")
        return cls.from_block(found[0], source, 1)

    @classmethod
    def from_block(cls, block: Block, source: str, number: int, start: int | None = None) -> Sentence:
        """Read a block, the ``number``-th of its source; a `DataError` if it is not valid CoNLL-U.

        See `Layout` for ``start``.
        """
        content = read_block(block, source, number)
        newline = content.newline
        blank = block.blank.decode() if block.blank.endswith(b"\n") else newline
        lead = block.lead.decode().replace("\ufeff", "")  # no BOM: the sentence may be written anywhere
        layout = Layout(source, block.first_line or 1, number, newline, lead, blank, start)
        return cls._of(content.fields, content.heads, content.others, layout)

    @classmethod
    def of_columns(
        cls, forms: Sequence[str], misc: Sequence[str], others: Iterable[tuple[int, str]], layout: Layout
    ) -> Sentence:
        """A sentence with the given FORM and MISC, every other column "_"; nothing is checked.

        ``others`` are all lines but those of words, each with the number of words before it.
        """
        n = len(forms)
        fields = ["_"] * (STRIDE * n + 1)
        fields[0] = "1"
        fields[FORM::STRIDE] = forms
        fields[MISC:-1:STRIDE] = [f"{value}\n{word}" for word, value in enumerate(misc[:-1], start=2)]
        fields[-1] = misc[-1]
        return cls._of(fields, np.full(n + 1, -1, np.int32), tuple(others), layout)

    # As a sequence of words.

    def __len__(self) -> int:
        return len(self.padded_heads) - 1

    @property
    def heads(self) -> np.ndarray:
        """int32 (n,); see the class."""
        return self.padded_heads[1:]

    @overload
    def __getitem__(self, index: int) -> Word: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Word, ...]: ...

    def __getitem__(self, index: int | slice) -> Word | tuple[Word, ...]:
        try:
            places = range(len(self))[index]
        except IndexError:
            raise IndexError(f"word {index} of {len(self)}: the first word has the index 0") from None
        except TypeError:
            raise TypeError(f"the index of a word must be an integer, not {index!r}") from None
        return Word(self, places) if isinstance(places, int) else tuple(Word(self, place) for place in places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentence) and (self._fields, self._others) == (other._fields, other._others)

    def __hash__(self) -> int:
        return hash(self.forms)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.name[0].upper()}{self.name[1:]}: {counted(len(self), 'word')}, {quote(self.text)}>"

    # Content of the lines.

    @property
    def lines(self) -> tuple[str, ...]:
        """The raw lines without line ends: comments, multiword tokens, empty nodes, words."""
        lines = "\t".join(self._fields).split("\n")
        for earlier, (before, line) in enumerate(self._others):
            lines.insert(earlier + before, line)
        return tuple(lines)

    @property
    def comments(self) -> tuple[str, ...]:
        """The lines that begin with "#"."""
        return tuple(line.removesuffix("\r") for _, line in self._others if line.startswith("#"))

    @property
    def sent_id(self) -> str | None:
        """The value of the comment ``# sent_id``, if there is one."""
        return find_comment(self.comments, "sent_id")

    @property
    def text(self) -> str:
        """The value of the comment ``# text`` or, without it, the tokens joined with their spaces."""
        text = find_comment(self.comments, "text")
        return self._joined if text is None else text

    @property
    def words(self) -> tuple[Word, ...]:
        """The words, as iterating over the sentence yields them."""
        return self[:]

    @property
    def _joined(self) -> str:
        """The tokens joined with their spaces."""
        return "".join(form + " " * _space_after(misc) for _, _, form, misc in self._token_lines()).rstrip(" ")

    def _token_lines(self) -> Iterator[tuple[int, int, str, str]]:
        """First word, last word, form and MISC of each token of the text."""
        several = {}
        for _, line in self._others:
            first, dash, end = line.partition("\t")[0].partition("-")
            if dash and not line.startswith("#"):
                fields = line.split("\t")
                several[int(first)] = int(end), fields[FORM], fields[MISC].removesuffix("\r")
        word = 1
        while word <= len(self):
            last, form, misc = several.get(word, (word, self.forms[word - 1], self.misc[word - 1]))
            yield word, last, form, misc
            word = last + 1

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the text, each of one word or of several."""
        lines = list(self._token_lines())
        spaced = [Spaced.of(form, misc) for _, _, form, misc in lines]
        if self.layout.start is not None:
            spans = spans_in_text(spaced, self.layout.start)
        else:
            forms = [form for _, _, form, _ in lines]
            found = spans_in_line(forms, self.text)
            spans = found if found is not None else spans_in_line(forms, self._joined) or []
        return tuple(
            Token(first, last, form, _space_after(misc), misc, *span)
            for (first, last, form, misc), span in zip(lines, spans, strict=True)
        )

    @cached_property
    def _token_of(self) -> tuple[Token, ...]:
        """The token of each word."""
        return tuple(token for token in self.tokens for _ in range(token.first, token.last + 1))

    @property
    def roots(self) -> tuple[int, ...]:
        """IDs of the words whose head is 0, in order."""
        return tuple(np.flatnonzero(self.padded_heads == 0).tolist())

    @property
    def root(self) -> Word | None:
        """The first word whose head is 0."""
        return self[self.roots[0] - 1] if self.roots else None

    def arcs(self) -> list[tuple[int, int, str]]:
        """(head, dependent, relation) of every arc, ordered by dependent."""
        arcs = zip(self.heads.tolist(), range(1, len(self) + 1), self.relations, strict=True)
        return [arc for arc in arcs if arc[0] >= 0]

    @property
    def is_projective(self) -> bool:
        """Whether no two arcs cross, including the arc from the root; a ValueError if the heads are not a tree."""
        from mh4.decoders.trees import is_projective  # loads Numba

        return is_projective(self.padded_heads)

    # Position in the source.

    source: str = property(lambda self: self.layout.source)  # type: ignore[assignment]
    first_line: int = property(lambda self: self.layout.first_line)  # type: ignore[assignment]
    number: int = property(lambda self: self.layout.number)  # type: ignore[assignment]

    @property
    def name(self) -> str:
        """Name in messages: ``sentence ID`` or, without a sent_id, ``sentence NUMBER``; long IDs are shortened."""
        return sentence_name(self.sent_id, self.number)

    @property
    def label(self) -> str:
        """The sent_id, with tabs as spaces, or the number if there is none."""
        sent_id = self.sent_id
        return str(self.number) if sent_id is None else sent_id.replace("\t", " ")

    def error(self, problem: str, word: int | None = None) -> DataError:
        """A `DataError` (to raise) about this sentence, located at `word` (from 1) or at its first line."""
        return located(self.source, self.first_line if word is None else self.line_of(word), self.name, problem)

    def line_of(self, word: int) -> int:
        """The line of a word in its file, both from 1."""
        return self.first_line + word - 1 + sum(before < word for before, _ in self._others)

    # Changed copies.

    def annotated(self, annotation: Annotation) -> Sentence:
        """Return the sentence with the columns of an annotation; see `replace`."""
        said = {name: value for name, value in vars(annotation).items() if value is not None}
        del said["next_best"]
        return self.replace(**said)

    def replace(
        self,
        *,
        heads: np.ndarray | Sequence[int] | None = None,
        score: float | None = None,
        confidence: Confidence | None = None,
        comments: Iterable[str] | None = None,
        multiword_tokens: Iterable[tuple[int, int, str] | Token] | None = None,
        **columns: Sequence[str | Mapping[str, str | None] | Iterable[tuple[str, Any]] | None],
    ) -> Sentence:
        """Return the sentence with columns or other lines replaced; everything else stays byte for byte.

        Parameters
        ----------
        heads
            n integers in -1…n: the ID of each word's head, 0 for the root, -1 if it is unknown ("_").
        score, confidence
            Score and confidence of the tree; by default, they are kept, or dropped if `heads` is given.
        comments
            Lines that begin with "#".
        multiword_tokens
            (first word, last word, form) of each, with False appended if no space follows; `tokens` is accepted.
        forms, lemmas, upos, xpos, feats, relations, deps, misc
            n values each. An unknown value is "_" or None. As in `Word`, FEATS and MISC may be mappings, written as
            ``Case=Nom|Number=Sing``, and DEPS lists such as ``[("nsubj", 4)]``.

        Raises
        ------
        ValueError
            A column has a wrong length, a head is out of range, or a value would break the file.
        TypeError
            An unknown column, or a value of the wrong type.
        """
        fields = self._fields.copy()
        for name, values in columns.items():
            if name not in _COLUMNS:
                column = SENTENCE.get(name, "").removeprefix("sentence.")
                advice = f"; write {column}=[…]" if column in (*_COLUMNS, "heads") else ""
                raise TypeError(f"a sentence has no column {name!r}{advice}; known: heads, {', '.join(_COLUMNS)}")
            replace_column(fields, _COLUMNS[name], values)
        others = self._others
        if multiword_tokens is not None:
            others = with_multiword_tokens(others, multiword_tokens, len(self), self._fields[MISC])
        if comments is not None:
            others = with_comments(others, comments, self._fields[MISC])
        if heads is None:
            score, confidence = score if score is not None else self.score, confidence or self.confidence
            return Sentence._of(fields, self.padded_heads, others, self.layout, score, confidence)
        return Sentence._of(fields, replace_heads(fields, heads), others, self.layout, score, confidence)

    def changed_comments(self, change: Callable[[str], str | None]) -> Sentence:
        """Return the sentence with each comment replaced by a function's result; None removes the comment."""
        others = changed_comments(self._others, change)
        return Sentence._of(self._fields, self.padded_heads, others, self.layout, self.score, self.confidence)

    def with_comment(self, key: str, value: object) -> Sentence:
        """Return the sentence with ``# key = value`` as its last comment, replacing an earlier value."""
        others = with_comment(self._others, key, value, self._fields[MISC])
        return Sentence._of(self._fields, self.padded_heads, others, self.layout, self.score, self.confidence)

    # Writing.

    def to_bytes(self) -> bytes:
        """The sentence in UTF-8, with its blank line; everything not replaced is written as it was read."""
        newline, lead, blank = self.layout.newline, self.layout.lead, self.layout.blank
        body = "\t".join(self._fields)
        if self._others and self._others[-1][0]:
            body = "\n".join(self.lines)
        elif self._others:
            body = "\n".join([*(line for _, line in self._others), body])
        if newline != "\n":
            body = body.replace("\n", newline)
        return f"{lead}{body}{newline}{blank}".encode()

    def to_conllu(self) -> str:
        """The sentence in the CoNLL-U format, closed by a blank line, with "\\n" as line end."""
        return "".join(line.removesuffix("\r") + "\n" for line in self.lines) + "\n"

    def to_tokenlist(self) -> TokenList:
        """The sentence as an object of the library `conllu`."""
        return token_list(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Comments, tokens and score, ready for JSON; unknown values and infinite scores are left out.

        ``tokens`` has the form of a sentence in Stanza: a dictionary for each word, multiword token and empty node (the
        id of the last two is a pair); see `Word.to_dict`.
        """
        names = {"sent_id": self.sent_id, "text": self.text, "comments": list(self.comments)}
        numbers = {"score": self.score, "tree_confidence": None if self.confidence is None else self.confidence.tree}
        return {
            **{key: value for key, value in names.items() if value is not None},
            "tokens": records(self),
            **{key: float(value) for key, value in numbers.items() if value is not None and isfinite(value)},
        }

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "dictionary", number: int = 1) -> Sentence:
        """Restore a sentence from `to_dict`, or from a sentence of Stanza's `to_dict`, a list of tokens.

        DataError: The data is not a sentence; the message begins with ``source`` and ``number``.
        """
        try:
            lines, spans, score, confidence = read_dictionary(data)
        except (TypeError, ValueError, OverflowError) as error:
            raise located(source, None, sentence_name(None, number), str(error)) from None
        block = Block(b"", [f"{line}\n".encode() for line in lines], b"\n", 0)
        sentence = cls.from_block(block, source, number)
        if spans and spans != [(token.start, token.end) for token in sentence.tokens]:  # in the text it was cut from
            sentence = cls.from_block(block, source, number, spans[0][0])
        return sentence.replace(score=score, confidence=confidence)

    def draw(self, width: int | None = None) -> Drawing:
        """Draw the tree as text, in notebooks as a picture; see `draw_text`. ValueError if the heads are not a tree."""
        if not isinstance(width, int | np.integer | None):
            raise TypeError(f"width is a number of columns; got {width!r} (the source of a picture is drawing.svg)")
        text = draw_text(self.forms, self.padded_heads, self.relations, width, confidence=self.confidence)
        return Drawing(text, draw_svg(self.forms, self.padded_heads, self.relations, self.confidence))

    def _repr_svg_(self) -> str | None:
        """The picture for notebooks; None if the heads are not a tree."""
        from mh4.decoders.trees import is_tree  # loads Numba

        heads = self.padded_heads
        return draw_svg(self.forms, heads, self.relations, self.confidence) if is_tree(heads) else None


def _space_after(misc: str) -> bool:
    return NO_SPACE not in misc.split("|")


_COLUMNS = {name: value.column for name, value in vars(Sentence).items() if isinstance(value, _Column)}


def share_strings(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences with equal strings made one object, to save memory when many sentences are kept."""
    shared: dict[str, str] = {}
    for sentence in sentences:
        sentence._fields[:] = map(shared.setdefault, sentence._fields, sentence._fields)
        yield sentence
