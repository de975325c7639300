"""Sentences as data frames of pandas, a row for each word. Needs the extra ``mh4[pandas]``."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

from mh4.machine import require

from .errors import DataError, located, quote
from .records import KEYS, record

_TYPES = {"sentence": "int64", "sent_id": "string", "id": "int64"} | dict.fromkeys(KEYS[1:], "string")
_TYPES |= {"head": "Int64", "start_char": "int64", "end_char": "int64", "token": "string", "other_lines": "string"}
_IF_KNOWN = dict.fromkeys(
    ("confidence", "head_confidence", "margin", "relation_share", "score", "tree_confidence"), "float64"
) | {"next_head": "Int64"}
_WHOLE = ("id", "head", "start_char", "end_char", "next_head")


def to_frame(sentences: Iterable[Any]) -> Any:
    """See `Document.to_pandas`."""
    pandas = require("pandas", "pandas")
    rows = [row for number, sentence in enumerate(sentences, start=1) for row in _rows(sentence, number)]
    types = _TYPES | {name: kind for name, kind in _IF_KNOWN.items() if any(name in row for row in rows)}
    return pandas.DataFrame(
        {name: pandas.Series([row.get(name) for row in rows], dtype=kind) for name, kind in types.items()}
    )


def _rows(sentence: Any, number: int) -> Iterator[dict[str, Any]]:
    data = sentence.to_dict()
    of_all = {"sentence": number} | {key: data[key] for key in ("sent_id", "score", "tree_confidence") if key in data}
    lines = (line.removesuffix("\r") for line in sentence.lines)
    others = [line for line in lines if not line.partition("\t")[0].isdecimal()]
    if others:
        of_all |= {"other_lines": "\n".join(others)}
    tokens = (token.form for token in sentence.tokens for _ in range(token.first, token.last + 1))
    for word, token in zip(sentence, tokens, strict=True):
        values = {key: inf if value is None else value for key, value in word.to_dict().items()}
        yield of_all | values | {"token": token}
        of_all.pop("other_lines", None)  # only the first word has them


def read_frame(frame: Any, source: str) -> list[dict[str, Any]]:
    """The sentences of a data frame as dictionaries; see `Document.from_pandas`."""
    pandas = require("pandas", "pandas")
    if not isinstance(frame, pandas.DataFrame):
        raise TypeError(f"expected a pandas data frame, not {reprlib.repr(frame)}")
    if levels := [name for name in frame.index.names if name in _TYPES and name not in frame]:
        frame = frame.reset_index(levels)
    if "text" not in frame:
        raise DataError(f"{source}: has no column text, with a row for each word (it has {', '.join(map(str, frame))})")
    known = frame.astype(object).where(frame.notna(), None).to_dict("records")
    sentences: list[list[dict[str, Any]]] = []
    before: Any = None
    for values in known:
        row = {key: _typed(key, value) for key, value in values.items() if value is not None}
        if not sentences or row.get("sentence") != before or row.get("id") == 1:
            sentences.append([])
        sentences[-1].append(row)
        before = row.get("sentence")
    return [_dictionary(rows, "other_lines" in frame, source, i) for i, rows in enumerate(sentences, start=1)]


def _typed(key: Any, value: Any) -> Any:
    """The value with its type in `to_frame`: untyped files hold integers as text, or as floats because of gaps."""
    if isinstance(value, float) and value.is_integer() and key in (*_WHOLE, "sent_id"):
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and key in _WHOLE else value


def _dictionary(rows: Sequence[dict[str, Any]], has_others: bool, source: str, number: int) -> dict[str, Any]:
    first = rows[0]
    data = {key: first[key] for key in ("sent_id", "score", "tree_confidence") if key in first}
    if not has_others:
        return data | {"tokens": rows}
    comments, several, empty = [], [], []
    for line in str(first["other_lines"]).split("\n") if "other_lines" in first else ():
        name = line.partition("\t")[0]
        try:
            if line.startswith("#"):
                comments.append(line)
            elif "-" in name:
                several.append(record(line.split("\t")))
            else:
                empty.append(record(line.split("\t")))
        except ValueError:
            problem = f"other_lines has {quote(line)}, which is neither a comment nor a line of CoNLL-U"
            raise located(source, None, f"sentence {number}", problem) from None
    return data | {"comments": comments, "tokens": [*several, *rows, *empty]}
