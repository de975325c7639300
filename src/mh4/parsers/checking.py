"""Values from outside: types and ranges are checked, and errors say where something is wrong."""

import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from operator import index
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def check_flag(name: str, value: Any) -> None:
    """TypeError unless an option is True or False: a string such as "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {reprlib.repr(value)}")


def check_number(name: str, value: Any) -> int:
    """A whole number of at least 1; else a TypeError or a ValueError that names the option."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number; got {reprlib.repr(value)}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1; got {number}")
    return number


def checked(kind: type[T], data: str | bytes | Mapping[str, Any]) -> T:
    """A dataclass of its values: in JSON, where types have to be right, or in a mapping, where numbers may be strings.

    ValueError: Where something is wrong, what, and what would be right.
    """
    adapter = TypeAdapter(kind)
    with problems_in_words(kind):
        if isinstance(data, Mapping):
            return adapter.validate_python(data)
        return adapter.validate_json(data, strict=True)


@contextmanager
def problems_in_words(kind: type[Any]) -> Iterator[None]:
    """Values that a dataclass refuses inside the ``with`` block end in a ValueError of one line."""
    try:
        yield
    except ValidationError as error:
        errors = error.errors(include_url=False)
        raise ValueError("; ".join(_describe(kind, dict(one)) for one in errors)) from None


def _describe(kind: type[Any], error: Mapping[str, Any]) -> str:
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        for place in error["loc"][:-1]:
            hint = get_type_hints(kind)[place]
            # Of "Columns | None", too.
            kind = next(one for one in (hint, *get_args(hint)) if isinstance(one, type) and is_dataclass(one))
        known = ", ".join(field.name for field in fields(kind))
        message = f"unknown option; known: {known}"
    elif error["type"] == "missing":
        message = "is missing"
    elif error["type"] == "value_error":
        message = str(error["ctx"]["error"])
    elif error["type"] == "json_invalid":
        message = f"not valid JSON: {error['ctx']['error']}"
    else:
        message = f"{re.sub('^[A-Z][a-z]+ should', 'must', error['msg'])}; got {reprlib.repr(error['input'])}"
    place = ".".join(map(str, error["loc"]))
    return f"{place}: {message}" if place else message
