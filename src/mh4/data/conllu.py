"""Treebanks in the CoNLL-U format: reading one sentence at a time, validating, writing back.

The `conllu` library interprets ids, heads and comments. The columns themselves are taken from the raw lines, because
the library would drop comments without "=", split a form that holds two spaces and cut ``Ref=a=b``. A sentence keeps
its raw lines, and writing replaces only the columns that were predicted, so every other byte comes out as it was read:
comments, multiword tokens, empty nodes, all ten columns, line ends, a byte order mark, surplus blank lines before a
sentence. Two things are normalised. A sentence is always written with its closing line end and blank line, also
when the file ended without them, so that sentences can be written in any order. Surplus blank lines after the last
sentence are not kept: a sentence is handed on as soon as its blank line is read, which a pipe relies on.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from conllu.exceptions import ParseException
from conllu.parser import parse_comment_line, parse_id_value, parse_int_value

from .errors import DataError, ErrorPolicy, Errors
from .files import STDIN_NAME, open_input
from .sentence import COLUMNS, DEPREL, FEATS, FORM, HEAD, ID, LEMMA, UPOS, XPOS, Sentence, located, quote

__all__ = ["Block", "blocks", "parse_block", "read_conllu"]

_BOM = "\ufeff".encode()
# Equal strings of a treebank (tags, relations, frequent forms) share one object; bounded, so streams stay constant.
_shared = lru_cache(maxsize=1 << 16)(str)
_cached_int = lru_cache(maxsize=1 << 12)(parse_int_value)


def read_conllu(
    path: str | Path,
    *,
    trees: Literal["any", "required"] = "any",
    errors: ErrorPolicy = "raise",
) -> Iterator[Sentence]:
    """Read the sentences of a CoNLL-U file one by one, in memory that does not grow with the file.

    Every sentence is checked: UTF-8; ten columns; word ids 1…n in order, multiword tokens and empty nodes at their
    place; at least one word; no empty FORM, UPOS, XPOS or DEPREL; HEAD either "_" or in 0…n. Several roots are
    accepted (`Sentence.roots`).

    Parameters
    ----------
    path
        A file, or ``-`` for standard input.
    trees
        "required" for training and evaluation: every HEAD must be filled, no word may be its own head, there may be no
        cycle, and a file without sentences is an error. "any" takes whatever heads there are.
    errors
        What happens at a bad sentence: "raise", "skip" or a function that takes the error; see `Errors.of`.

    Raises
    ------
    DataError
        The file cannot be read or, unless `errors` says otherwise, at the first bad sentence. With required trees,
        also when the file holds no (good) sentences. Raised while iterating, as everything is read on demand.
    ValueError
        `trees` or `errors` is none of the above.
    """
    if trees not in ("any", "required"):
        raise ValueError(f'trees must be "any" or "required", not {trees!r}')
    report = Errors.of(errors)
    source = STDIN_NAME if str(path) == "-" else os.fspath(path)
    good = number = 0
    with open_input(path) as stream:
        for number, block in enumerate(blocks(stream), start=1):
            try:
                sentence = parse_block(block, source, number)
                if trees == "required":
                    check_tree(sentence)
            except DataError as error:
                report(error)
                continue
            good += 1
            yield sentence
    if trees == "required" and not good:
        what = f"all of its {number} sentences are bad" if number else "holds no sentences"
        raise DataError(f"{source}: {what} (a CoNLL-U file with trees is needed)")


class Block(NamedTuple):
    """The raw lines of one sentence, with their line ends."""

    lead: bytes
    lines: list[bytes]
    blank: bytes
    first_line: int


def blocks(stream: Iterable[bytes]) -> Iterator[Block]:
    """Cut a stream of lines at its blank lines (empty or only spaces). Only "\\n" ends a line."""
    lead, first_line = b"", 1
    lines: list[bytes] = []
    for number, line in enumerate(stream, start=1):
        if not lines and line.startswith(_BOM):  # at any sentence, as in files joined by `cat`
            lead += _BOM
            line = line[len(_BOM) :]
        if line.strip(b" \r\n"):
            if not lines:
                first_line = number
            lines.append(line)
        elif lines:
            yield Block(lead, lines, line, first_line)
            lead, lines = b"", []
        else:
            lead += line
    if lines:
        yield Block(lead, lines, b"", first_line)


def parse_block(block: Block, source: str, number: int) -> Sentence:
    """The sentence of a block, the ``number``-th of its source; a `DataError` if it is not valid CoNLL-U."""
    lines, newline = _split_line_ends(block, source, number)
    sent_id = _find_sent_id(lines)
    name = f"sentence {number if sent_id is None else sent_id}"

    def error(row: int, problem: str) -> DataError:
        return located(source, block.first_line + row, name, problem)

    rows: list[int] = []
    words: list[list[str]] = []
    range_end = range_row = 0
    for row, line in enumerate(lines):
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise error(row, _column_problem(line, len(fields)))
        expected = len(words) + 1
        if fields[ID] == str(expected):
            for index in (FORM, UPOS, XPOS, DEPREL):
                if not fields[index].strip(" "):
                    raise error(row, f"{COLUMNS[index]} of word {expected} is empty (an unknown value is _)")
            rows.append(row)
            words.append(fields)
        elif problem := _id_problem(fields[ID], expected, range_end):
            raise error(row, problem)
        elif "-" in fields[ID]:
            range_end, range_row = int(fields[ID].split("-")[1]), row
    n = len(words)
    if n == 0:
        raise error(0, "holds no words, only comments, multiword tokens or empty nodes (remove it)")
    if range_end > n:
        raise error(range_row, f"multiword token {lines[range_row].split()[0]} reaches beyond the last word, {n}")

    heads = [-1] * (n + 1)
    for word, fields in enumerate(words, start=1):
        if fields[HEAD] == "_":
            continue
        head = _parse_head(fields[HEAD])
        if head is None:
            raise error(rows[word - 1], f'HEAD {quote(fields[HEAD])} of word {word} is neither a number nor "_"')
        if not 0 <= head <= n:
            raise error(rows[word - 1], f"HEAD {_short(head)} of word {word} is out of range 0…{n}")
        heads[word] = head

    columns = list(zip(*words, strict=True))

    def column(index: int) -> tuple[str, ...]:
        return tuple(map(_shared, columns[index]))

    return Sentence(
        lines=tuple(lines),
        newline=newline,
        source=source,
        first_line=block.first_line,
        number=number,
        sent_id=sent_id,
        forms=column(FORM),
        lemmas=column(LEMMA),
        upos=column(UPOS),
        xpos=column(XPOS),
        feats=column(FEATS),
        heads=np.array(heads, dtype=np.int32),
        relations=column(DEPREL),
        rows=tuple(rows),
        lead=block.lead.decode(),
        blank=block.blank.decode() if block.blank.endswith(b"\n") else newline,
    )


def _split_line_ends(block: Block, source: str, number: int) -> tuple[list[str], str]:
    """Decode the lines of a block and take their line ends off."""
    try:
        lines = b"".join(block.lines).decode().split("\n")
    except UnicodeDecodeError:
        raise _decode_error(block, source, number) from None
    if not lines[-1]:
        lines.pop()
    ended = [line for line in block.lines if line.endswith(b"\n")]
    if ended and all(line.endswith(b"\r\n") for line in ended):
        return [line.removesuffix("\r") for line in lines], "\r\n"
    return lines, "\n"


def _decode_error(block: Block, source: str, number: int) -> DataError:
    sent_id = _find_sent_id([line.decode(errors="replace") for line in block.lines])
    name = f"sentence {number if sent_id is None else sent_id}"
    for row, line in enumerate(block.lines):
        try:
            line.decode()
        except UnicodeDecodeError as error:
            problem = f"byte 0x{line[error.start]:02X} at position {error.start + 1} of the line is not UTF-8"
            return located(source, block.first_line + row, name, f"{problem} (convert the file to UTF-8)")
    raise AssertionError("a line break cannot be inside a UTF-8 character, so one of the lines is bad")


def _find_sent_id(lines: Iterable[str]) -> str | None:
    for line in lines:
        if line.startswith("#") and "sent_id" in line:
            for key, value in parse_comment_line(line):
                if key == "sent_id":
                    return value
    return None


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
        return _cached_int(value)
    except (ParseException, ValueError):  # ValueError: more digits than Python converts
        return None


def _short(number: int) -> str:
    text = str(number)
    return text if len(text) <= 12 else text[:11] + "…"


def check_tree(sentence: Sentence) -> None:
    """Raise the `DataError` of a sentence whose heads are not a tree (several roots are allowed)."""
    for word, head in enumerate(sentence.heads[1:].tolist(), start=1):
        if head < 0:
            raise sentence.error(f"HEAD of word {word} is missing (a gold tree needs every head)", word)
    # From every word the heads lead to the root or into a cycle; so a graph without cycles has a root.
    check_no_cycle(sentence)


def check_no_cycle(sentence: Sentence) -> None:
    """Raise the `DataError` of a sentence with a word that is its own head, or with a cycle; heads may be missing."""
    heads = sentence.heads.tolist()
    for word, head in enumerate(heads[1:], start=1):
        if head == word:
            raise sentence.error(f"word {word} ({quote(sentence.forms[word - 1])}) is its own head", word)
    if cycle := _find_cycle(heads):
        steps = [f"{word} ({quote(sentence.forms[word - 1])})" for word in [*cycle, cycle[0]]]
        path = " → ".join(steps if len(steps) <= 12 else [*steps[:6], "…", *steps[-5:]])
        no_root = "" if 0 in heads[1:] or -1 in heads[1:] else "no word has HEAD 0, and "
        raise sentence.error(f"{no_root}the heads of words {path} form a cycle", min(cycle))


def _find_cycle(heads: Sequence[int]) -> list[int]:
    """A cycle of words, each followed by its head, starting at its smallest word; empty if there is none."""
    seen_from = [0] * len(heads)  # the word whose walk towards the root came here first
    for start in range(1, len(heads)):
        word = start
        while word > 0 and not seen_from[word]:
            seen_from[word] = start
            word = heads[word]
        if word > 0 and seen_from[word] == start:
            cycle = [word]
            while (word := heads[word]) != cycle[0]:
                cycle.append(word)
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
    return []
