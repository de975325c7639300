"""Split CoNLL-U into sentences, validate their lines and split them into columns.

A fast path handles all words of a sentence at once. Sentences with anything unusual, valid or not, take a slow path,
line by line, which also produces the error messages.
"""

import io
import re
import reprlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_int_value

from .errors import LONGEST_PATH, BadFileError, DataError, located, quote, shortened
from .ids import Ids
from .values import COLUMNS, HEAD, ID, MISC, SPACE, UNKNOWN_HINT, surely_sound, value_problem

STRIDE = 9  # fields per word, see `Content`

WAITING = bytes(bytearray(b"\0nothing more yet"))  # sentinel, compared with `is`: the next line has not arrived
_BOM = "\ufeff".encode()
_LINES_IN_LINE = re.compile(r"\r(?=[\r#]|[0-9][-.0-9]*\t)")  # a CR followed by the start of a CoNLL-U line
_COMMENT_NAME = re.compile(r"#\s*([^\s=]*)")
_HEADS = {"_": -1, **{str(head): head for head in range(4096)}}
_NEXT_IDS = [f"\n{word}" for word in range(2, 4097)]  # end of each MISC field but the last, see `Content`


class Block(NamedTuple):
    """The raw lines of one sentence, with their line ends.

    ``lead`` holds byte order marks and surplus blank lines before the sentence, ``blank`` the blank line after it, if
    any; ``first_line`` is the number of its first line in the source, 0 if there is no source text.
    """

    lead: bytes
    lines: list[bytes]
    blank: bytes
    first_line: int


class Content(NamedTuple):
    """The parsed lines of a sentence of n words.

    ``fields`` are the word lines split at tabs, but not at line breaks: 9 n + 1 fields. The first is "1", the ID of the
    first word; ``fields[FORM::9]`` … ``fields[DEPS::9]`` are columns; ``fields[MISC::9]`` is MISC, each value but the
    last followed by the line break and the ID of the next word.
    """

    fields: list[str]
    heads: np.ndarray  # int32 (n+1,), -1 at index 0 and where HEAD is "_"
    others: tuple[tuple[int, str], ...]  # all lines but those of words, each with the number of words before it
    newline: str  # "\n" or "\r\n"; with mixed line ends it is "\n", and the lines keep their "\r"


def blocks(stream: Iterable[bytes]) -> Iterator[Block]:
    """Split a stream of lines at blank lines (empty or only white space); only "\\n" ends a line.

    For `WAITING`, a block without lines is yielded.
    """
    lead, before = b"", 0  # surplus blank lines before the block; number of all lines before it
    lines: list[bytes] = []
    for line in stream:
        if 32 < line[0] < 128:  # the common case: neither blank nor a byte order mark
            lines.append(line)
            continue
        if line is WAITING:
            yield Block(b"", [], b"", 0)
            continue
        while not lines and line.startswith(_BOM):  # before any sentence, as in files joined by `cat`
            lead += _BOM
            line = line[len(_BOM) :]
        if line.decode(errors="replace").strip():
            lines.append(line)
        elif lines:
            yield Block(lead, lines, line, before + 1)
            before += len(lines) + 1
            lead, lines = b"", []
        else:
            lead += line
            before += 1
    if lines:
        yield Block(lead, lines, b"", before + 1)


def text_blocks(text: str, source: str) -> Iterator[Block]:
    """The blocks of a string, called ``source`` in messages.

    DataError: It contains a lone surrogate. TypeError: It is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected a string in CoNLL-U format, not {reprlib.repr(text)}")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        line, code = text.count("\n", 0, error.start) + 1, ord(text[error.start])
        raise DataError(f"{source}:{line}: U+{code:04X} is a lone surrogate, which is not valid Unicode") from None
    return blocks(io.BytesIO(content))


def read_block(block: Block, source: str, number: int) -> Content:
    """Parse a block, the ``number``-th of its source; a `DataError` if it is not valid CoNLL-U."""
    try:
        text = b"".join(block.lines).decode()
    except UnicodeDecodeError:
        raise _no_text(block, source, number) from None
    if "\0" in text:
        raise _no_text(block, source, number)
    newline = "\n"
    if "\r" in text and 0 < text.count("\r\n") == text.count("\n"):
        newline, text = "\r\n", text.replace("\r\n", "\n").removesuffix("\r")
    text = text.removesuffix("\n")
    taken = _read_together(text, len(block.lines))
    if taken is None:
        taken = _read_lines(text.split("\n"), block.first_line, source, number)
    fields, heads, others = taken
    return Content(fields, np.array([-1, *heads], np.int32), tuple(others), newline)


Others = list[tuple[int, str]]
Taken = tuple[list[str], list[int], Others]  # fields, heads of the words 1…n, other lines


def _read_together(text: str, count: int) -> Taken | None:
    """The fast path: parse all lines of a block at once; None if any line is unusual."""
    if "\r" in text:
        return None
    others: Others = []
    start = 0
    while text.startswith("#", start):
        end = text.find("\n", start)
        if end < 0:
            return None
        others.append((0, text[start:end]))
        start = end + 1
    body = text[start:]
    if not _are_sound(body, count - len(others)):
        return None
    fields = body.split("\t")
    if not _is_in_order(fields, count - len(others)):
        words = _leave_out_others(body.split("\n"), others)
        fields = "\n".join(words).split("\t")
        if not _is_in_order(fields, len(words)):
            return None
    try:
        heads = list(map(_HEADS.__getitem__, fields[HEAD::STRIDE]))
    except KeyError:
        return None
    return (fields, heads, others) if max(heads) <= len(heads) else None


def _are_sound(body: str, n: int) -> bool:
    """Whether all values of n lines are certainly valid, by a joint check; see `surely_sound`."""
    if "\t\t" in body or "\t\n" in body or body.endswith("\t"):
        return False
    if SPACE.search(body) is None:
        return True
    values = body.replace("\n", "\t").split("\t")
    columns = range(len(COLUMNS))
    return len(values) == len(COLUMNS) * n and all(surely_sound(values[c :: len(COLUMNS)], c) for c in columns)


def _is_in_order(fields: list[str], n: int) -> bool:
    """Whether the fields come from n lines of ten columns with the IDs 1…n; False beyond the IDs in `_NEXT_IDS`."""
    if len(fields) != STRIDE * n + 1 or fields[0] != "1" or n > len(_NEXT_IDS):
        return False
    return all(map(str.endswith, fields[MISC:-1:STRIDE], _NEXT_IDS))


def _leave_out_others(lines: list[str], others: Others) -> list[str]:
    """Return the word lines and append multiword tokens and empty nodes to ``others``; [] if a line is invalid."""
    words: list[str] = []
    ids = Ids()
    for line in lines:
        word_id = line.partition("\t")[0]
        if word_id.isdecimal():
            words.append(line)
            ids.add_word()
        elif line.count("\t") != STRIDE or ids.add(word_id):
            return []
        else:
            others.append((len(words), line))
    return words if ids.range_end <= len(words) else []


def _read_lines(lines: list[str], first_line: int, source: str, number: int) -> Taken:
    """The slow path: parse a block line by line; a `DataError` for the first invalid line."""
    name = sentence_name(find_comment(lines, "sent_id"), number)

    def error(row: int, problem: str) -> DataError:
        return located(source, first_line + row if first_line else None, name, problem)

    _check_line_ends(lines, first_line, source, name)
    rows: list[int] = []
    words: list[list[str]] = []
    others: list[tuple[int, str]] = []
    ids = Ids()
    range_row = 0
    for row, line in enumerate(lines):
        if line.startswith("#"):
            others.append((ids.words, line))
            continue
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise error(row, _column_problem(line, len(fields)))
        before = ids.words
        if problem := ids.add(fields[ID]):
            raise error(row, problem)
        is_word = ids.words > before
        if problem := _value_problem(fields, is_word):
            raise error(row, problem)
        if is_word:
            rows.append(row)
            words.append(fields)
            continue
        others.append((before, line))
        if "-" in fields[ID]:
            range_row = row
    n = ids.words
    if n == 0:
        raise error(0, "holds no words, only comments, multiword tokens or empty nodes (remove it)")
    if ids.range_end > n:
        shown = shortened(lines[range_row].split("\t")[ID])
        raise error(range_row, f"multiword token {shown} reaches beyond the last word, {n}")
    heads = []
    for word, (row, fields) in enumerate(zip(rows, words, strict=True), start=1):
        head = -1 if fields[HEAD] == "_" else _parse_head(fields[HEAD])
        if head is None:
            raise error(row, f'HEAD {quote(fields[HEAD])} of word {word} is neither a number nor "_"')
        if not (0 <= head <= n or fields[HEAD] == "_"):
            raise error(row, f"HEAD {shortened(fields[HEAD], 12)} of word {word} is out of range 0…{n}")
        heads.append(head)
    return "\n".join(map("\t".join, words)).split("\t"), heads, others


def _value_problem(fields: list[str], is_word: bool) -> str | None:
    """The problem with the first invalid value of a line, if any; heads of words are checked with the sentence."""
    for column, value in enumerate(fields):
        if column == ID or (column == HEAD and is_word):
            continue
        if column == MISC:
            value = value.removesuffix("\r")
        if problem := value_problem(value, column):
            kind = "word" if is_word else "multiword token" if "-" in fields[ID] else "empty node"
            shown = "" if not value or value.isspace() else f" {quote(value)}"
            return f"{COLUMNS[column]}{shown} of {kind} {shortened(fields[ID])} {problem} ({UNKNOWN_HINT})"
    return None


def _check_line_ends(lines: list[str], first_line: int, source: str, name: str) -> None:
    """Raise a `DataError` if a line contains a carriage return other than at its end."""
    for number, line in enumerate(lines, start=first_line):
        line = line.removesuffix("\r")
        if _LINES_IN_LINE.search(line):
            hint = "convert the file: lines end with LF or CR LF"
            raise BadFileError(f"{shortened(source, LONGEST_PATH)}:{number}: lines end with CR alone ({hint})")
        if "\r" in line:
            raise located(source, number, name, "holds a CR that ends no line (lines end with LF or CR LF)")


def find_comment(lines: Iterable[str], key: str) -> str | None:
    """The value of the first comment ``# key = value``; None if there is none."""
    for line in lines:
        if line.startswith("#") and key in line:
            for found, value in parse_comment_line(line):
                if found == key:
                    return value
    return None


def comment_name(line: str) -> str:
    """The first word of a comment, such as ``newdoc`` of ``# newdoc id = x``; empty for other lines."""
    found = _COMMENT_NAME.match(line)
    return found[1] if found else ""


def sentence_name(sent_id: str | None, number: int) -> str:
    """The name of a sentence in messages: ``sentence ID``, shortened if need be, or ``sentence NUMBER``."""
    return f"sentence {number if sent_id is None else shortened(sent_id)}"


def _no_text(block: Block, source: str, number: int) -> DataError:
    lines = [line.decode(errors="replace") for line in block.lines]
    name = sentence_name(find_comment(lines, "sent_id"), number)
    for row, line in enumerate(block.lines):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            problem = f"byte 0x{line[error.start]:02X} at position {error.start + 1} of the line is not UTF-8"
            return located(source, block.first_line + row, name, f"{problem} (convert the file to UTF-8)")
        if b"\0" in line:
            return located(source, block.first_line + row, name, "the line holds a NUL character (expected text)")
    raise AssertionError("a line break cannot be inside a UTF-8 character, so one of the lines is bad")


def _column_problem(line: str, count: int) -> str:
    hint = UNKNOWN_HINT if count < len(COLUMNS) else "values hold no tabs"
    if "\t" not in line:
        hint = "columns are separated by tabs, not spaces"
        if line.startswith(("{", "[")):
            hint = "JSON is read by mh4.Document.from_json"
        elif len(line.split()) != len(COLUMNS):
            hint += '; raw text needs format="text"'
    return f"{count} tab-separated column{'s'[: count != 1]} instead of {len(COLUMNS)} ({hint})"


def _parse_head(value: str) -> int | None:
    try:
        return parse_int_value(value)
    except (ParseException, ValueError):  # ValueError: more digits than Python converts
        return None
