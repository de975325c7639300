"""Constant content of model files, held in memory once however many models use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from .encoder import FileError

T = TypeVar("T")

_made: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


def shared(make: Callable[..., T], *contents: bytes) -> T:
    """``make(*contents)``, or its earlier result for equal contents while something still refers to that."""
    key = make, *(hashlib.sha256(content).digest() for content in contents)
    made: T | None = _made.get(key)
    if made is None:
        made = _made[key] = make(*contents)
    return made


def read_tensors(name: str, content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file; FileError if it is damaged."""
    try:
        return load(content)
    except SafetensorError as error:
        raise FileError(name, f"not a complete safetensors file: {error}") from None
