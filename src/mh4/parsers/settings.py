"""Frozen dataclasses as settings: changed by "NAME=VALUE" on the command line, read back from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any


def parse_settings(settings: Sequence[str], *parts: type[Any]) -> tuple[Any, ...]:
    """An instance of each dataclass, with some of the defaults changed.

    Parameters
    ----------
    settings : sequence of "NAME=VALUE"
        Of a name that is given twice, the last value counts.
    *parts : dataclasses
        Their fields have defaults, which are numbers or strings; no two have a field of the same name.

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type; what a dataclass refuses.
    """
    types: dict[str, type] = {field.name: type(field.default) for part in parts for field in fields(part)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in types:
            raise ValueError(f"unknown setting {name!r}; known: {', '.join(sorted(types))}")
        try:
            values[name] = types[name](value)
        except ValueError:
            raise ValueError(f"setting {name} must be of type {types[name].__name__}; got {value!r}") from None
    names = ({field.name for field in fields(part)} for part in parts)
    return tuple(
        part(**{name: value for name, value in values.items() if name in own})
        for part, own in zip(parts, names, strict=True)
    )


def build(part: type[Any], values: Mapping[str, Any]) -> Any:
    """An instance of a dataclass from the values of its fields, by name; what is left out keeps its default.

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type; what the dataclass refuses.
    """
    known = {field.name for field in fields(part)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise ValueError(f"unknown option {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    for field in fields(part):
        if field.default is not MISSING and field.name in values:
            value, kind = values[field.name], type(field.default)
            if not isinstance(value, (kind, int) if kind is float else kind):
                raise ValueError(f"option {field.name} must be of type {kind.__name__}; got {value!r}")
    return part(**values)
