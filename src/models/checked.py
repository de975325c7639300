"""Checks of values from outside: their types and ranges are validated, and errors say where a value is wrong."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Positive = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of a vector
HalvedSize = Annotated[int, Field(ge=2, le=65_536, multiple_of=2)]  # of a BiLSTM: half for each direction
Layers = Annotated[int, Field(ge=1, le=100)]
Weight = Annotated[float, Field(ge=0, le=1e36)]  # far from the end of float32
Share = Annotated[float, Field(ge=0, lt=1)]

T = TypeVar("T")


class SettingsError(ValueError):
    """Values that a dataclass rejects.

    ``problems`` has pairs (place, message), such as ("encoder.hidden", "must be …").
    """

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{place}: {message}" if place else message for place, message in problems))
        self.problems = problems


def checked(kind: type[T], data: str | bytes | Mapping[str, Any]) -> T:
    """Make a dataclass from JSON, where types must be exact, or from a mapping, where numbers may be strings.

    ValueError: A value is wrong; the message says where, and what would be right.
    """
    adapter = TypeAdapter(kind)
    with problems_in_words(kind):
        if isinstance(data, Mapping):
            return adapter.validate_python(data)
        return adapter.validate_json(data, strict=True)


@contextmanager
def problems_in_words(kind: type[Any]) -> Iterator[None]:
    """Turn pydantic's error about values that a dataclass rejects into a ValueError of one line, a `SettingsError`."""
    try:
        yield
    except ValidationError as error:
        raise SettingsError(
            [one for found in error.errors(include_url=False) for one in _describe(kind, found)]
        ) from None


def _describe(kind: type[Any], error: Mapping[str, Any]) -> list[tuple[str, str]]:
    place = ".".join(map(str, error["loc"]))
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        for step in error["loc"][:-1]:
            hint = get_type_hints(kind)[step]
            # The dataclass may be in a union, such as "Columns | None".
            kind = next(one for one in (hint, *get_args(hint)) if isinstance(one, type) and is_dataclass(one))
        known = ", ".join(field.name for field in fields(kind))
        message = f"unknown option; known: {known}"
    elif error["type"] == "missing":
        message = "is missing"
    elif error["type"] == "value_error":
        reason = error["ctx"]["error"]
        if isinstance(reason, SettingsError):  # of a nested dataclass that was checked by itself
            return [(f"{place}.{inner}" if inner else place, message) for inner, message in reason.problems]
        message = str(reason)
    elif error["type"] == "json_invalid":
        message = f"not valid JSON: {error['ctx']['error']}"
    else:
        message = f"{re.sub('^[A-Z][a-z]+ should', 'must', error['msg'])}; got {reprlib.repr(error['input'])}"
    return [(place, message)]


def as_json(data: Any) -> bytes:
    """Encode as JSON, in the layout of all files of a model."""
    return (json.dumps(data, ensure_ascii=False, indent=1) + "\n").encode(errors="replace")
