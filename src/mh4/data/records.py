"""Sentences as objects of the library `conllu`, and as dictionaries with the keys of Stanza's `to_dict`, and back."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

from conllu.models import Metadata, Token, TokenList
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_comment_line

from .confidence import Confidence
from .edits import checked_comment
from .entries import written
from .errors import quote
from .values import COLUMNS, FORM, HEAD, ID, value_problem

KEYS = ("id", "text", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")  # as in `COLUMNS`
_WORD, _EMPTY_NODE, _MULTIWORD = range(3)  # sorted in this order at the same place


def record(fields: Sequence[str]) -> dict[str, Any]:
    """The known columns of a line, by key; HEAD stays text, and IDs of multiword tokens and empty nodes are pairs."""
    known = zip(KEYS, fields, strict=True)
    found: dict[str, Any] = {key: value for key, value in known if value != "_" or key == "text"}
    found["id"] = int(fields[ID]) if fields[ID].isdecimal() else tuple(map(int, re.split("[-.]", fields[ID])))
    return found


def records(sentence: Any) -> list[dict[str, Any]]:
    """The words, multiword tokens and empty nodes of a `Sentence`, in the order of their lines."""
    found = []
    for line in sentence.lines:
        fields = line.removesuffix("\r").split("\t")
        first, several, _ = fields[ID].partition("-")
        if fields[ID].isdecimal():
            found.append(sentence[int(first) - 1].to_dict())
        elif not line.startswith("#"):
            word = sentence[int(first) - 1] if several else None
            found.append(record(fields) | ({"start_char": word.start, "end_char": word.end} if word else {}))
    return found


def token_list(lines: Iterable[str]) -> TokenList:
    """The lines of a sentence as an object of the library `conllu`, whose own reader also splits at two spaces."""
    metadata, tokens = Metadata(), []
    for line in lines:
        if line.startswith("#"):
            metadata.update(parse_comment_line(line))
            continue
        fields, token = line.removesuffix("\r").split("\t"), Token()
        for column, name in enumerate(DEFAULT_FIELDS):
            parse = DEFAULT_FIELD_PARSERS.get(name)
            token[name] = parse(fields, column) if parse else fields[column]
        tokens.append(token)
    return TokenList(tokens, metadata, default_fields=DEFAULT_FIELDS)


class Read(NamedTuple):
    """A sentence read from a dictionary: CoNLL-U lines, offsets of its tokens in the text, and what CoNLL-U lacks."""

    lines: list[str]
    spans: list[tuple[int, int]]
    score: float | None
    confidence: Confidence | None


def read_dictionary(data: Any) -> Read:
    """Read the result of `Sentence.to_dict`, or a sentence of Stanza's `to_dict`, a list of tokens.

    Values are checked so that none breaks a line or column; "" is an unknown value, except as text. Unknown keys are
    ignored.

    Raises
    ------
    TypeError, ValueError, OverflowError
        Something has the wrong type, a token has no text, or a value cannot stand in its column.
    """
    if not isinstance(data, Mapping):
        data = {"tokens": data}
    tokens, comments = data.get("tokens"), data.get("comments")
    if isinstance(tokens, str | bytes | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(f"tokens must be a list of dictionaries, not {reprlib.repr(tokens)}")
    if comments is None:
        comments = [f"# {key} = {data[key]}" for key in ("sent_id", "text") if data.get(key) is not None]
    if isinstance(comments, str) or not isinstance(comments, Iterable):
        raise TypeError(f"comments must be a list of lines, not {reprlib.repr(comments)}")
    rows: list[tuple[int, int, str]] = []
    words: list[Mapping[str, Any]] = []
    spans: dict[int, tuple[int, int]] = {}  # of words, or of the multiword tokens that begin with them
    several: dict[int, int] = {}  # the last word of each multiword token, by its first
    for number, token in enumerate(tokens, start=1):
        if not isinstance(token, Mapping):
            raise TypeError(f"token {number} is {reprlib.repr(token)}, not a dictionary")
        if "tokens" in token:
            raise TypeError("these are several sentences; see Document.from_dict")
        if token.get("text") is None:
            raise ValueError(f"token {number} has no text")
        place, kind, name = _place(token.get("id"), number, len(words))
        rows.append((place, kind, "\t".join((name, *_values(token, number)))))
        if kind == _WORD:
            words.append(token)
        elif kind == _MULTIWORD:
            several[place + 1] = index(token["id"][1])
        if token.get("start_char") is not None and kind != _EMPTY_NODE:
            start, end = index(token["start_char"]), token.get("end_char")
            span = (start, start + len(token["text"]) if end is None else index(end))
            spans.setdefault(place + (kind == _MULTIWORD), span)
    if not words:
        raise ValueError("holds no words")
    lines = [*map(checked_comment, comments), *(line for _, _, line in sorted(rows, key=lambda row: row[:2]))]
    score = data.get("score")
    confidence = Confidence.of_entries(words, data.get("tree_confidence"))
    return Read(lines, _token_spans(spans, several), None if score is None else float(score), confidence)


def _token_spans(spans: Mapping[int, tuple[int, int]], several: Mapping[int, int]) -> list[tuple[int, int]]:
    """Where the tokens begin and end, in their order; none if that of the first one is not known."""
    found = []
    last = 0  # word of the last multiword token
    for word in sorted(spans) if 1 in spans else ():
        if word > last:
            found.append(spans[word])
            last = several.get(word, last)
    return found


def _place(given: Any, number: int, words: int) -> tuple[int, int, str]:
    """Place, kind and ID of a token after ``words`` words; its place is the number of words up to it, inclusive."""
    try:
        ids = [words + 1] if given is None else [*map(index, given if isinstance(given, Sequence) else [given])]
    except TypeError:
        ids = []
    match ids:
        case [word]:
            return words + 1, _WORD, str(word)
        case [first, last] if first > words:
            return first - 1, _MULTIWORD, f"{first}-{last}"
        case [before, empty]:
            return before, _EMPTY_NODE, f"{before}.{empty}"
    raise TypeError(f"the id of token {number} must be a number or a pair of numbers, not {reprlib.repr(given)}")


def _values(token: Mapping[str, Any], number: int) -> Iterable[str]:
    for column, key in enumerate(KEYS[FORM:], start=FORM):
        value = token.get(key)
        if value == "" and column != FORM:  # Stanza's MISC where it held only offsets
            value = None
        if column == HEAD and not isinstance(value, str | bool | None):
            value = str(value)
        text = written(value, column)
        if problem := value_problem(text, column):
            raise ValueError(f"{COLUMNS[column]} {quote(text)} of token {number} {problem}")
        yield text
