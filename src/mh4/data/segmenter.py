"""Segment raw text into sentences, words and multiword tokens; subclasses of `Segmenter` find them in paragraphs."""

from __future__ import annotations

import io
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

from .arriving import arriving_lines
from .errors import DataError, Errors
from .sentence import Sentence
from .text import PORTION, Portion, Span, decoded, portions, sentence_of

LONGEST_SENTENCE = 250  # tokens; longer sentences are split
LONGEST_TOKEN = 1000  # characters
_CONLLU = re.compile(r"^1\t(?:[^\t\n]+\t){8}[^\t\n]+$", re.MULTILINE)  # the line of a sentence's first word
_FOR_CONLLU = "leave out --text for a file, and see mh4.Document.from_conllu for a string"
log = logging.getLogger("mh4")


class Segmenter(ABC):
    """Base class of segmenters, which find sentences in text; any number of threads may share one."""

    @property
    @abstractmethod
    def files(self) -> Mapping[str, bytes]:
        """The segmenter's files in a model folder: content by file name."""

    @abstractmethod
    def _tokens(self, texts: Sequence[str]) -> list[list[list[Span]]]:
        """The tokens of each sentence of each paragraph, in order; together they cover all but white space."""

    def cut(self, text: str, source: str = "text") -> Iterator[Sentence]:
        """The sentences of a text.

        Raises
        ------
        DataError
            The text holds a lone surrogate or NUL.
        """
        before = int(text.startswith("\ufeff"))
        return filter(None, self.cut_stream(_stream(text, source), source, Errors("raise"), before=before))

    def cut_lines(self, text: str, source: str = "text") -> Iterator[Sentence]:
        """Every line of a text, unless it is blank, as one sentence; lines end with LF.

        Raises
        ------
        DataError
            The text holds a lone surrogate or NUL, or a line has more than 65,536 characters.
        """
        number, before = 0, ""
        for together in _groups(_lines(text, source)):
            for line, sentences in zip(together, self._tokens([own.text for own in together]), strict=True):
                tokens = [token for sentence in sentences for token in sentence]
                before += line.before
                if not tokens:
                    before += line.text
                    continue
                number += 1
                comments = ["# newdoc", "# newpar"] * (number == 1) + [f"# sent_id = {number}"]
                first = tokens[0].start
                yield sentence_of(
                    line.text,
                    tokens,
                    len(line.text),
                    before + line.text[:first],
                    comments,
                    source,
                    number,
                    line.start + first,
                )
                before = ""

    def cut_stream(
        self, stream: BinaryIO, source: str, report: Errors, document: str = "", before: int = 0
    ) -> Iterator[Sentence | None]:
        """Yield the sentences of a text; None where reading would block.

        Complete paragraphs are cut before waiting for more text. The sentences do not depend on how the text arrives.

        Parameters
        ----------
        stream
            A binary stream of UTF-8.
        source
            Its name in messages.
        report
            Called with the error of each bad line; if it returns, the line is left out.
        document
            An ID for ``# newdoc``.
        before
            Characters of the text before those that the stream counts, such as a byte order mark.
        """
        writer = _Writer(source, document, before)
        together: list[Portion] = []
        size = 0
        begins = True
        for portion in portions(arriving_lines(stream, PORTION), source):
            if isinstance(portion, Portion):
                if begins and _CONLLU.search(portion.text):
                    log.warning("%s is taken as text, but looks like CoNLL-U; %s", source, _FOR_CONLLU)
                begins = False
                together.append(portion)
                size += len(portion.text)
                if size < PORTION and portion.ends:
                    continue
            yield from self._cut_together(together, writer)
            together, size = [], 0
            if isinstance(portion, DataError):
                report(portion)
            elif portion is None:
                yield None
        yield from self._cut_together(together, writer)

    def _cut_together(self, together: Sequence[Portion], writer: _Writer) -> Iterator[Sentence]:
        if not together:
            return
        texts = [portion.text for portion in together]
        texts[0] = writer.carried + texts[0]
        for portion, text, sentences in zip(together, texts, self._tokens(texts), strict=True):
            own = [
                tokens[i : i + LONGEST_SENTENCE]
                for tokens in sentences
                for i in range(0, len(tokens), LONGEST_SENTENCE)
            ]
            yield from writer.write(portion, text, own)


def _stream(text: str, source: str) -> BinaryIO:
    try:
        return io.BytesIO(text.encode())
    except UnicodeEncodeError as error:
        raise DataError(
            f"{source}: character {error.start + 1} (U+{ord(text[error.start]):04X}) is a lone surrogate, "
            "which is not valid Unicode"
        ) from None


def _lines(text: str, source: str) -> Iterator[Portion]:
    """The lines of a text that are not blank, each a paragraph."""
    before, start = "", int(text.startswith("\ufeff"))
    for line in decoded(_stream(text, source), source):
        if isinstance(line, DataError):
            raise line
        if line is None:
            continue
        if len(line) > PORTION:
            number = text.count("\n", 0, start) + 1
            raise DataError(f"{source}:{number}: has more than {PORTION} characters (write one sentence in each line)")
        if line.strip():
            yield Portion(line, before, True, True, start)
            before = ""
        else:
            before = (before + line)[-PORTION:]
        start += len(line)


def _groups(lines: Iterable[Portion]) -> Iterator[list[Portion]]:
    """Lines that together have about `PORTION` characters."""
    together: list[Portion] = []
    size = 0
    for line in lines:
        together.append(line)
        size += len(line.text)
        if size >= PORTION:
            yield together
            together, size = [], 0
    if together:
        yield together


class _Writer:
    """Builds numbered sentences from tokens.

    Attributes
    ----------
    carried
        The last, perhaps incomplete, sentence of a text, to be cut again with the next portion.
    """

    def __init__(self, source: str, document: str, start: int) -> None:
        self.carried = ""
        self._source, self._document, self._start = source, document, start
        self._number = 0
        self._before = ""  # white space not yet assigned to a sentence
        self._begins = False

    def write(self, portion: Portion, text: str, sentences: list[list[Span]]) -> Iterator[Sentence]:
        """Yield the sentences of ``text``: the carried text followed by ``portion``."""
        self._begins = self._begins or portion.begins
        offset = self._start + portion.start - len(self.carried)
        self._before += portion.before
        self.carried = ""
        if not portion.ends and len(sentences) > 1:  # the last one may continue in the next portion
            self.carried = text[sentences.pop()[0].start :]
        end = len(text) - len(self.carried)
        if not sentences:
            self._before = (self._before + text)[-PORTION:]
        for i, tokens in enumerate(sentences):
            following = sentences[i + 1][0].start if i + 1 < len(sentences) else end
            comments = []
            if self._number == 0:
                comments.append(f"# newdoc id = {self._document}" if self._document else "# newdoc")
            if self._begins:
                comments.append("# newpar")
            self._number += 1
            comments.append(f"# sent_id = {self._number}")
            before = self._before + text[: tokens[0].start] if i == 0 else ""
            yield sentence_of(
                text, tokens, following, before, comments, self._source, self._number, offset + tokens[0].start
            )
            self._before, self._begins = "", False


def shortened(token: Span) -> Iterator[Span]:
    """Split a token into pieces of at most `LONGEST_TOKEN` characters."""
    if token.stop - token.start <= LONGEST_TOKEN:
        yield token
        return
    for start in range(token.start, token.stop, LONGEST_TOKEN):
        yield Span(start, min(start + LONGEST_TOKEN, token.stop))
