"""Convert FEATS and MISC to mappings, DEPS to a list, and back; written values read back unchanged."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import quote
from .values import COLUMNS, DEPS, FEATS, MISC

_HEAD = re.compile(r"(0|[1-9][0-9]{0,17})(?:\.([1-9][0-9]{0,17}))?")  # Python converts no more than 4,300 digits
_DEPENDENCY = re.compile(_HEAD.pattern + ":([^|]+)")


def read_entries(value: str) -> dict[str, str | None]:
    """FEATS or MISC as a mapping; an entry without "=" maps to None. Of entries with the same name, the last counts."""
    entries = (entry.partition("=") for entry in value.split("|") if entry)
    return {} if value == "_" else {name: entry if sign else None for name, sign, entry in entries}


def read_dependencies(value: str) -> list[tuple[str, Any]]:
    """DEPS as (relation, head) pairs; a head is 4, or (4, ".", 1) for an empty node. ValueError: DEPS is malformed."""
    if value == "_":
        return []
    found = [_DEPENDENCY.fullmatch(entry) for entry in value.split("|")]
    if None in found:
        raise ValueError(f"{quote(value)} does not look like 4:nsubj|5.1:obj (an unknown value is _)")
    parts = [match.groups() for match in found if match is not None]
    return [(name, (int(head), ".", int(empty)) if empty else int(head)) for head, empty, name in parts]


def written(value: object, column: int) -> str:
    """Format a value for a column, as a plain `str`: strings unchanged, None as "_", mappings and lists of dependencies
    joined by "|".

    Raises
    ------
    ValueError
        The value would not read back unchanged.
    TypeError
        The column does not take such a value.
    """
    if isinstance(value, str):
        return str.__str__(value)  # subclasses, such as the strings of NumPy, do not suit every library
    if value is None:
        return "_"
    if column in (FEATS, MISC) and isinstance(value, Mapping):
        return _written_entries(value, COLUMNS[column])
    if column == DEPS and isinstance(value, Iterable) and not isinstance(value, Mapping):
        return "|".join(map(_written_dependency, value)) or "_"
    kinds = {FEATS: "a mapping, ", MISC: "a mapping, ", DEPS: "a list such as [('nsubj', 4)], "}.get(column, "")
    raise TypeError(f"{COLUMNS[column]} takes {kinds}a string or None, not {reprlib.repr(value)}")


def _written_entries(entries: Mapping[Any, Any], column: str) -> str:
    texts = []
    for name, value in entries.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str | int | float)):
            raise TypeError(f"{column} must map names to strings, not {reprlib.repr({name: value})}")
        text = name if value is None else f"{name}={value}"
        if not text or "=" in name or "|" in text:
            raise ValueError(f"{column} may not hold {quote(text)}: entries may not contain |, nor their names =")
        texts.append(text)
    if texts == ["_"]:
        raise ValueError(f"{column} may not hold '_' alone, which means unknown")
    return "|".join(texts) or "_"


def _written_dependency(dependency: object) -> str:
    match dependency:
        case (str(name), (word, ".", empty)):
            head = f"{word}.{empty}"
        case (str(name), head):
            pass
        case _:
            name, head = "", ""
    if _HEAD.fullmatch(str(head)) is None or not name or "|" in name:
        raise ValueError(f"DEPS takes relations with their heads, such as ('nsubj', 4), not {reprlib.repr(dependency)}")
    return f"{head}:{name}"
