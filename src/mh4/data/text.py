"""Read raw text by paragraphs, read text that is already split into words, and restore the text of sentences.

White space between tokens is kept in MISC, see `mh4.data.spaces`; `text_of` writes it out again.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from .arriving import arriving_lines
from .blocks import WAITING, comment_name
from .errors import BadFileError, DataError, Errors
from .files import may_wait, open_input, source_name
from .sentence import Layout, Sentence
from .spaces import NO_SPACE, Spaced, escaped, one_line

PORTION = 1 << 16  # longer lines (in bytes) and paragraphs (in characters) are processed in pieces

_UNUSUAL = re.compile(r"[^\S ]|  ")  # white space other than single blanks
_USUAL = {" ": "_", "": NO_SPACE}  # in MISC
_UNKNOWN = "\t_" * 7 + "\t"  # the columns between FORM and MISC


class Portion(NamedTuple):
    """A paragraph, or a piece of a long one.

    Attributes
    ----------
    text
        The text, with the blank line after it.
    before
        White space before its first line.
    begins, ends
        Whether the paragraph begins and ends here.
    start
        Offset of ``text`` in the whole text, in characters, not counting skipped lines and a byte order mark.
    """

    text: str
    before: str
    begins: bool
    ends: bool
    start: int


class Span(NamedTuple):
    """A token: characters ``start`` to ``stop`` (exclusive) of a text, and its words if it is a multiword token."""

    start: int
    stop: int
    words: tuple[str, ...] = ()


def portions(raws: Iterable[bytes], source: str) -> Iterator[Portion | DataError | None]:
    """Yield the paragraphs of a text, each as soon as its blank line is read; memory does not grow with the text.

    ``raws`` are lines, or pieces of long ones. Yields None where reading would block, and an error for each line that
    is not UTF-8 or contains NUL; such a line ends the paragraph before it.
    """
    lines: list[str] = []
    before, size, begins, line_begins = "", 0, True, True
    start = 0
    for line in decoded(raws, source):
        if line is None:
            yield None
            continue
        if not isinstance(line, str):
            if lines or not begins:
                yield Portion("".join(lines), before, begins, True, start)
            yield line
            lines, before, start, size, begins, line_begins = [], "", start + size, 0, True, True
            continue
        ends = line.endswith("\n")
        blank = line_begins and ends and not line.strip()  # a piece of a line may be blank where the line is not
        line_begins = ends
        if blank and begins and not lines:
            before = (before + line)[-PORTION:]
            start += len(line)
            continue
        lines.append(line)
        size += len(line)
        if blank or size >= PORTION:
            yield Portion("".join(lines), before, begins, blank, start)
            lines, before, start, size, begins = [], "", start + size, 0, blank
    if lines or not begins:
        yield Portion("".join(lines), before, begins, True, start)


def decoded(raws: Iterable[bytes], source: str) -> Iterator[str | DataError | None]:
    """Yield lines, or pieces of long ones; a DataError for a line that is not text; None while reading would block."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number, first = 1, True
    for raw in chain(raws, (b"",)):
        if raw is WAITING:
            yield None
            continue
        whole = raw.endswith(b"\n") or not raw
        try:
            line = decoder.decode(raw, final=whole)
        except UnicodeDecodeError as error:
            decoder.reset()
            byte = error.object[error.start]
            yield DataError(f"{source}:{number}: byte 0x{byte:02X} is not UTF-8 (convert the text to UTF-8)")
            line = ""
        if first:
            line = line.removeprefix("\ufeff")
        if "\0" in line:
            yield DataError(f"{source}:{number}: holds a NUL character (expected text)")
        elif line:
            yield line
        number += whole
        first = False


def sentence_of(
    text: str,
    tokens: Sequence[Span],
    stop: int,
    before: str,
    comments: Iterable[str],
    source: str,
    number: int,
    start: int,
) -> Sentence:
    """A sentence of tokens in a text, with white space up to character ``stop``; columns but FORM and MISC are "_".

    Parameters
    ----------
    before
        White space before the first token.
    comments
        Comments to put before ``# text``.
    source, number, start
        See `Layout`.
    """
    starts, stops, several = zip(*tokens, strict=True)
    written = text[starts[0] : stops[-1]]
    forms = list(map(text.__getitem__, map(slice, starts, stops)))
    gaps = list(map(text.__getitem__, map(slice, stops, (*starts[1:], stop))))
    misc = [_USUAL[gap] if gap in _USUAL else "SpacesAfter=" + escaped(gap) for gap in gaps]
    if before:
        misc[0] = _also(misc[0], "SpacesBefore=" + escaped(before))
    if _UNUSUAL.search(written):
        for i, form in enumerate(forms):
            if (written_form := one_line(form)) != form:
                forms[i] = written_form
                misc[i] = _also(misc[i], "SpacesInToken=" + escaped(form))
        written = "".join(form + " " * bool(gap) for form, gap in zip(forms, gaps, strict=True)).rstrip(" ")
    others = [(0, comment) for comment in (*comments, "# text = " + written)]
    for i in [i for i, words in enumerate(several) if words][::-1] if any(several) else ():
        words = several[i]
        own = sum(max(1, len(split)) for split in several[:i])
        others.append((own, f"{own + 1}-{own + len(words)}\t{forms[i]}{_UNKNOWN}{misc[i]}"))
        forms[i : i + 1], misc[i : i + 1] = words, ["_"] * len(words)
    others.sort(key=itemgetter(0))
    return Sentence.of_columns(forms, misc, others, Layout(source, number=number, start=start))


def _also(misc: str, entry: str) -> str:
    return entry if misc == "_" else f"{misc}|{entry}"


def text_of(sentences: Iterable[Sentence]) -> Iterator[str]:
    """Yield the text that sentences were cut from, piece by piece.

    Where the white space is unknown, an empty line separates documents and paragraphs, and a blank separates sentences.
    """
    known = True  # whether the white space after the last token is known
    for sentence in sentences:
        if not known and not {"newdoc", "newpar"}.isdisjoint(map(comment_name, sentence.comments)):
            yield "\n\n"
        for token in sentence.tokens:
            spaced = Spaced.of(token.form, token.misc)
            yield spaced.before
            yield spaced.written
            yield spaced.after
            known = spaced.is_known


def read_words(path: str | Path, layout: str, report: Errors) -> Generator[Sentence | None, None, None]:
    """Yield the sentences of text that is already split into words; None where standard input would block.

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    layout : {"horizontal", "vertical"}
        One sentence per line, its words separated by spaces or tabs (U+00A0 is a space inside a word); or one word per
        line (up to a tab), and a blank line after each sentence. White space alone is not a word.
    report
        Called with the error of each invalid sentence; if it returns, the sentence is left out.

    Raises
    ------
    DataError
        The file cannot be read, or lines end with CR alone.
    """
    source = source_name(path)
    with open_input(path) as stream:
        raws = arriving_lines(stream) if may_wait(path) else stream
        yield from read_word_lines(raws, source, layout, report)


def read_word_lines(
    raws: Iterable[bytes], source: str, layout: str, report: Errors
) -> Generator[Sentence | None, None, None]:
    """Like `read_words`, for the lines of a file."""
    number = 0
    for words in _word_lists(decoded(raws, source), source, layout == "vertical"):
        if words is None:
            yield None
            continue
        if isinstance(words, DataError):
            report(words)
            continue
        number += 1
        comments = ["# newdoc"] * (number == 1) + [f"# sent_id = {number}", "# text = " + " ".join(words)]
        yield Sentence.from_words(words, source=source, number=number).replace(comments=comments)


def _word_lists(
    lines: Iterator[str | DataError | None], source: str, vertical: bool
) -> Iterator[list[str] | DataError | None]:
    """Yield the words of each sentence, or its error; None where reading would block."""
    words: list[str] = []
    pieces: list[str] = []
    problem: DataError | None = None
    number = 0
    for line in chain(lines, ("\n", "\n")):  # line ends that the file may lack
        if line is None:
            yield None
            continue
        if isinstance(line, DataError):
            number += 1
            if vertical:
                problem = problem or line
            else:
                yield line
            continue
        pieces.append(line)
        if not line.endswith("\n"):
            continue
        number += 1
        text = "".join(pieces)
        pieces = []
        if "\r" in text.rstrip("\r\n"):
            raise BadFileError(f"{source}:{number}: holds a CR that ends no line (lines end with LF or CR LF)")
        if vertical:
            found = [text.partition("\t")[0].strip(" \r\n")]
        else:  # as UDPipe writes and reads words that hold a space
            found = [word.replace("\u00a0", " ").strip(" ") for word in re.split("[ \t\r\n]+", text)]
        words += filter(str.strip, found)
        if vertical and text.strip():
            if not found[0].strip():
                problem = problem or DataError(
                    f"{source}:{number}: holds no word before its first tab (remove the line)"
                )
            continue
        if problem is not None or words:
            yield problem or words
        words, problem = [], None
