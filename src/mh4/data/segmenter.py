"""Cutting raw text into sentences, words and multiword tokens, with a model of UDPipe (Straka and Straková 2017)."""

from __future__ import annotations

import io
import os
import re
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from .blocks import blocks
from .errors import DataError, Errors, require
from .sentence import Sentence
from .text import PORTION, Span, portions, sentence_lines
from .values import FORM, MISC

EXTRA = "text"
LONGEST_SENTENCE = 250  # tokens: where no end of a sentence is found, one is made
LONGEST_TOKEN = 1000  # characters

_HEADER = b"\x12morphodita_parsito"  # of a model of UDPipe 1

# UDPipe ends a text at NUL, and takes for words what Python, and every reader of lines, takes for white space.
_FOR_UDPIPE = str.maketrans({"\0": "\1"} | dict.fromkeys("\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029", " "))
_RANGE = re.compile(r"TokenRange=(\d+):(\d+)")


class Cut(NamedTuple):
    """Sentences that follow each other in a text.

    Attributes
    ----------
    conllu
        The sentences.
    starts
        Where the first token of each begins in the text, in characters.
    """

    conllu: bytes
    starts: array[int]

    def to_bytes(self) -> bytes:
        """For `from_bytes` in another process."""
        return len(self.starts).to_bytes(4, "little") + self.starts.tobytes() + self.conllu

    @classmethod
    def from_bytes(cls, data: bytes) -> Cut:
        """What `to_bytes` has made."""
        starts = array("q")
        end = 4 + starts.itemsize * int.from_bytes(data[:4], "little")
        starts.frombytes(data[4:end])
        return cls(data[end:], starts)


@dataclass(frozen=True)
class SegmenterModel:
    """A model of UDPipe, read from a file that may go away afterwards.

    Attributes
    ----------
    path : Path
        The file, as messages name it.
    content : bytes
    """

    path: Path
    content: bytes = field(repr=False)

    @classmethod
    def of(cls, given: Self | str | Path) -> Self:
        """A model as it is, or that of a file; a `DataError` if there is no such file."""
        if isinstance(given, cls):
            return given
        path = Path(given)  # type: ignore[arg-type]
        if not path.is_file():
            raise DataError(f"{path}: no such file (a segmenter is needed to cut text)")
        return cls(path, path.read_bytes())

    @contextmanager
    def copied(self) -> Iterator[Path]:
        """A file with the content, as UDPipe loads nothing else; it is removed in the end, if it is still there."""
        descriptor, name = tempfile.mkstemp(prefix="mh4-", suffix=".udpipe")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(self.content)
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)


class Segmenter:
    """A trained segmenter; any number of threads may share it.

    Parameters
    ----------
    model
        A model of UDPipe with a tokenizer, or its file.

    Raises
    ------
    DataError
        The file is missing, damaged, or no such model.
    ValueError
        `ufal.udpipe` is not installed.
    """

    def __init__(self, model: SegmenterModel | str | Path) -> None:
        self._udpipe = require("ufal.udpipe", EXTRA)
        self.model = SegmenterModel.of(model)
        self._model: Any = None
        if self.model.content.startswith(_HEADER):  # UDPipe ends the process at what is not its own
            with self.model.copied() as copy:
                self._model = self._udpipe.Model.load(str(copy))
        if self._model is None or self._model.newTokenizer("") is None:
            raise DataError(f"{self.model.path}: is damaged, or no segmenter of UDPipe (train the model again)")
        self._writer = self._udpipe.OutputFormat.newConlluOutputFormat()

    def __reduce__(self) -> tuple[type[Self], tuple[SegmenterModel]]:
        return type(self), (self.model,)

    def cut(self, text: str, source: str = "text") -> Iterator[Sentence]:
        """The sentences of a text.

        Raises
        ------
        DataError
            The text holds a lone surrogate or NUL, which no file can.
        """
        try:
            stream = io.BytesIO(text.encode())
        except UnicodeEncodeError as error:
            raise DataError(
                f"{source}: character {error.start + 1} (U+{ord(text[error.start]):04X}) is a lone surrogate, "
                "which is not valid Unicode"
            ) from None
        number, marked = 0, text.startswith("\ufeff")
        for cut in self.cut_stream(stream, source, Errors("raise")):
            for sentence in read_cut(cut, source, number, before=int(marked)):
                number = sentence.number
                yield sentence

    def cut_stream(self, stream: Any, source: str, report: Errors, document: str = "") -> Iterator[Cut]:
        """The sentences of a stream of bytes, those of a paragraph as soon as its blank line is read.

        Parameters
        ----------
        stream
            A binary stream of UTF-8.
        source
            Its name in messages.
        report
            Gets the errors of paragraphs; if it returns, they are left out.
        document
            An ID for ``# newdoc``.
        """
        number = 0
        carried, before = "", ""
        begins = False
        for portion in portions(stream, source, report):
            begins = begins or portion.begins
            text, offset = carried + portion.text, portion.start - len(carried)
            before += portion.before
            sentences, carried = self._sentences(text), ""
            if not portion.ends and len(sentences) > 1:  # nobody knows yet where the last one ends
                carried = text[sentences.pop()[0].start :]
            end = len(text) - len(carried)
            lines: list[str] = []
            if not sentences:
                before = (before + text)[-PORTION:]
            for i, tokens in enumerate(sentences):
                following = sentences[i + 1][0].start if i + 1 < len(sentences) else end
                if number == 0:
                    lines.append(f"# newdoc id = {document}" if document else "# newdoc")
                if begins:
                    lines.append("# newpar")
                number += 1
                start = before + text[: tokens[0].start] if i == 0 else ""
                lines += [f"# sent_id = {number}", *sentence_lines(text, tokens, following, start), ""]
                before, begins = "", False
            if lines:
                starts = array("q", [offset + tokens[0].start for tokens in sentences])
                yield Cut(("\n".join(lines) + "\n").encode(), starts)

    def _sentences(self, text: str) -> list[list[Span]]:
        """The tokens of each sentence, none too long; white space apart, they cover the text."""
        error, tokenizer = self._udpipe.ProcessingError(), self._model.newTokenizer(self._udpipe.Model.TOKENIZER_RANGES)
        tokenizer.setText(text.translate(_FOR_UDPIPE))
        sentences: list[list[Span]] = []
        while tokenizer.nextSentence(sentence := self._udpipe.Sentence(), error):
            tokens = [short for token in _tokens(self._writer.writeSentence(sentence)) for short in _shortened(token)]
            sentences += [tokens[i : i + LONGEST_SENTENCE] for i in range(0, len(tokens), LONGEST_SENTENCE)]
        if error.occurred():
            raise DataError(f"{self.model.path}: {error.message}")
        return sentences


def _tokens(conllu: str) -> Iterator[Span]:
    """The tokens of a sentence as UDPipe writes it."""
    rows = [line.split("\t") for line in conllu.split("\n") if line[:1].isdigit()]
    row = 0
    while row < len(rows):
        first, dash, last = rows[row][0].partition("-")
        start, stop = _RANGE.search(rows[row][MISC]).groups()  # type: ignore[union-attr]
        words = rows[row + 1 : row + 2 + int(last) - int(first)] if dash else []
        yield Span(int(start), int(stop), tuple(word[FORM] for word in words))
        row += 1 + len(words)


def _shortened(token: Span) -> Iterator[Span]:
    """The token, in pieces if it is too long."""
    if token.stop - token.start <= LONGEST_TOKEN:
        yield token
        return
    for start in range(token.start, token.stop, LONGEST_TOKEN):
        yield Span(start, min(start + LONGEST_TOKEN, token.stop))


def read_cut(cut: Cut, source: str, number: int = 0, before: int = 0) -> Iterator[Sentence]:
    """The sentences of some that `Segmenter.cut_stream` has cut, after ``number`` others.

    ``before`` are characters at the beginning of the text that it did not see.
    """
    for i, block in enumerate(blocks(io.BytesIO(cut.conllu))):
        yield Sentence.from_block(block, source, number + i + 1, cut.starts[i] + before)
