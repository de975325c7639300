"""The raw lines of CoNLL-U: cut into sentences, checked, and taken apart into columns.

Nearly every sentence is taken apart in a few steps for all of its words together. Whatever is unusual about one, right
or wrong, is looked at line by line, which also words the errors.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from .errors import DataError, located, quote

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC = range(len(COLUMNS))
REQUIRED = (FORM, UPOS, XPOS, DEPREL)  # may not be empty; an unknown value is "_"

STRIDE = 9  # fields per word, see `Content`

WAITING = bytes(bytearray(b"\0nothing more yet"))  # this very object: a line that has not come
_BOM = "\ufeff".encode()
_HEADS = {"_": -1, **{str(head): head for head in range(4096)}}
_NEXT_IDS = [f"\n{word}" for word in range(2, 4097)]


class Block(NamedTuple):
    """The raw lines of one sentence, with their line ends."""

    lead: bytes
    lines: list[bytes]
    blank: bytes
    first_line: int


class Content(NamedTuple):
    """What the lines of a sentence of n words hold.

    The ``fields`` are the lines of the words, cut at their tabs alone: 9 n + 1 fields. The first is "1", the ID of the
    first word; ``fields[FORM::9]`` … ``fields[DEPS::9]`` are columns; ``fields[MISC::9]`` is MISC, with the line break
    and the ID of the next word behind it.
    """

    fields: list[str]
    heads: np.ndarray  # int32 (n+1,), -1 where HEAD is "_", and at 0
    others: tuple[tuple[int, str], ...]  # lines that are no words, each with the number of words before it
    newline: str  # "\n" or "\r\n"; where a sentence mixes both, "\n", and the lines keep their "\r"


def blocks(stream: Iterable[bytes]) -> Iterator[Block]:
    """Cut a stream of lines at its blank lines (empty or only spaces). Only "\\n" ends a line.

    A block without lines stands where the stream says that it is `WAITING`.
    """
    lead, before = b"", 0  # lines that came before the block
    lines: list[bytes] = []
    for line in stream:
        if 32 < line[0] < 128:  # neither blank nor a byte order mark, like nearly every line
            lines.append(line)
            continue
        if line is WAITING:
            yield Block(b"", [], b"", 0)
            continue
        if not lines and line.startswith(_BOM):  # at any sentence, as in files joined by `cat`
            lead += _BOM
            line = line[len(_BOM) :]
        if line.strip(b" \r\n"):
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


def read_block(block: Block, source: str, number: int) -> Content:
    """What the lines of a block hold, the ``number``-th of its source; a `DataError` if it is not valid CoNLL-U."""
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
    """Fields, heads and other lines of so many lines, if they have nothing unusual; else None."""
    others: Others = []
    start = 0
    while text.startswith("#", start):
        end = text.find("\n", start)
        if end < 0:
            return None
        others.append((0, text[start:end]))
        start = end + 1
    body = text[start:]
    if "\t " in body or "\t\t" in body:  # blank or empty fields
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


def _is_in_order(fields: list[str], n: int) -> bool:
    """Whether the fields are those of n lines, each of ten columns, with the IDs 1…n."""
    if len(fields) != STRIDE * n + 1 or fields[0] != "1" or n > len(_NEXT_IDS):
        return False
    return all(map(str.endswith, fields[MISC:-1:STRIDE], _NEXT_IDS))


def _leave_out_others(lines: list[str], others: Others) -> list[str]:
    """The lines of words; multiword tokens and empty nodes, up to the first that is wrong, go to the other lines."""
    words: list[str] = []
    range_end = 0
    for line in lines:
        word_id = line.partition("\t")[0]
        if word_id.isdecimal():
            words.append(line)
        elif line.count("\t") != STRIDE or _id_problem(word_id, len(words) + 1, range_end):
            return []
        else:
            if "-" in word_id:
                range_end = int(word_id.split("-")[1])
            others.append((len(words), line))
    return words if range_end <= len(words) else []


def _read_lines(lines: list[str], first_line: int, source: str, number: int) -> Taken:
    """Fields, heads and other lines, one line after the other; a `DataError` at the first that is wrong."""
    sent_id = find_comment(lines, "sent_id")
    name = f"sentence {number if sent_id is None else sent_id}"

    def error(row: int, problem: str) -> DataError:
        return located(source, first_line + row, name, problem)

    rows: list[int] = []
    words: list[list[str]] = []
    others: list[tuple[int, str]] = []
    range_end = range_row = 0
    for row, line in enumerate(lines):
        if line.startswith("#"):
            others.append((len(words), line))
            continue
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise error(row, _column_problem(line, len(fields)))
        expected = len(words) + 1
        if fields[ID] == str(expected):
            for index in REQUIRED:
                if not fields[index].strip(" "):
                    raise error(row, f"{COLUMNS[index]} of word {expected} is empty (an unknown value is _)")
            rows.append(row)
            words.append(fields)
        elif problem := _id_problem(fields[ID], expected, range_end):
            raise error(row, problem)
        else:
            if "-" in fields[ID]:
                range_end, range_row = int(fields[ID].split("-")[1]), row
            others.append((len(words), line))
    n = len(words)
    if n == 0:
        raise error(0, "holds no words, only comments, multiword tokens or empty nodes (remove it)")
    if range_end > n:
        raise error(range_row, f"multiword token {lines[range_row].split()[0]} reaches beyond the last word, {n}")
    heads = []
    for word, (row, fields) in enumerate(zip(rows, words, strict=True), start=1):
        head = -1 if fields[HEAD] == "_" else _parse_head(fields[HEAD])
        if head is None:
            raise error(row, f'HEAD {quote(fields[HEAD])} of word {word} is neither a number nor "_"')
        if not (0 <= head <= n or fields[HEAD] == "_"):
            raise error(row, f"HEAD {_short(head)} of word {word} is out of range 0…{n}")
        heads.append(head)
    return "\n".join(map("\t".join, words)).split("\t"), heads, others


def find_comment(lines: Iterable[str], key: str) -> str | None:
    """The value of the first comment ``# key = value``; None if there is none."""
    for line in lines:
        if line.startswith("#") and key in line:
            for found, value in parse_comment_line(line):
                if found == key:
                    return value
    return None


def _no_text(block: Block, source: str, number: int) -> DataError:
    sent_id = find_comment([line.decode(errors="replace") for line in block.lines], "sent_id")
    name = f"sentence {number if sent_id is None else sent_id}"
    for row, line in enumerate(block.lines):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            problem = f"byte 0x{line[error.start]:02X} at position {error.start + 1} of the line is not UTF-8"
            return located(source, block.first_line + row, name, f"{problem} (convert the file to UTF-8)")
        if b"\0" in line:
            return located(source, block.first_line + row, name, "the line holds a NUL character (text is needed)")
    raise AssertionError("a line break cannot be inside a UTF-8 character, so one of the lines is bad")


def _column_problem(line: str, count: int) -> str:
    hint = "an unknown value is _"
    if "\r" in line.rstrip("\r"):
        hint = "lines end with LF or CR LF, not with CR alone"
    elif "\t" not in line:
        hint = "columns are separated by tabs, not spaces"
    return f"{count} tab-separated column{'s'[: count != 1]} instead of {len(COLUMNS)} ({hint})"


def _id_problem(value: str, expected: int, range_end: int) -> str | None:
    """What is wrong with an ID that is not the next word's, or None for a multiword token or empty node in place."""
    try:
        parsed = parse_id_value(value)
    except (ParseException, ValueError):  # ValueError: more digits than Python converts
        parsed = None
    match parsed:
        case (int(start), "-", int()):
            if start != expected:
                return f"multiword token {value} does not stand before word {start}"
            if start <= range_end:
                return f"multiword token {value} overlaps the one before it"
            return None
        case (int(before), ".", int()):
            return None if before == expected - 1 else f"empty node {value} does not stand after word {before}"
        case int():
            return f"ID {value} where word {expected} is expected (ids count 1, 2, 3, …)"
    return f"ID {quote(value)} is not a word id, a range such as 1-2 or an empty node such as 1.1"


def _parse_head(value: str) -> int | None:
    try:
        return parse_int_value(value)
    except (ParseException, ValueError):  # ValueError: more digits than Python converts
        return None


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 12 else text[:11] + "…"
