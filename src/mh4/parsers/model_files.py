"""Files of a model: JSON and tensors, written and read as a whole, with their checksums. Reading runs no code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from mh4.data.errors import DataError, quote
from mh4.models.checked import as_json
from mh4.models.devices import HostCopy

from .checksums import read_file, write_file

CONFIG, VOCABULARY, WEIGHTS, META, STATE, LOG, CALIBRATION = (
    "config.json",
    "vocab.json",
    "weights.safetensors",
    "meta.json",
    "training.safetensors",
    "log.jsonl",
    "calibration.json",
)
_METADATA = "state"


def named_folder(folder: str | Path) -> Path:
    """The path of a folder; ValueError if it holds NUL or is empty, as from an unset variable: "." must be written."""
    if not str(folder):
        raise ValueError("the model folder has no name (write '.' for the working folder)")
    if "\0" in str(folder):
        raise ValueError(f"{quote(str(folder))}: holds NUL, which no name of a folder does")
    return Path(folder)


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically, with its checksum."""
    write_file(path, as_json(data))


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; a missing or damaged file is a `DataError` that names it."""
    content = read_file(path)
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, numbers too long, nested too deeply
        raise DataError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise DataError(f"{path}: not a JSON object")
    return data


def write_tensors(path: Path, tensors: dict[str, Tensor], state: dict[str, Any] | None = None) -> None:
    """Write tensors atomically as one safetensors file, with ``state`` as JSON in its header."""
    metadata = None if state is None else {_METADATA: json.dumps(state)}
    on_host = zip(tensors, HostCopy(*tensors.values()).tensors(), strict=True)
    write_file(path, save({name: tensor.contiguous() for name, tensor in on_host}, metadata))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file; a missing or damaged file, or NaN or infinity, is a `DataError`."""
    try:
        tensors = load(read_file(path))
    except SafetensorError as error:
        raise DataError(f"{path}: not a complete safetensors file: {error}") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise DataError(f"{path}: {name} holds NaN or infinity")
    return tensors


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read the weights of a network; those saved in half precision become float32."""
    return {name: own.float() if own.dtype is torch.float16 else own for name, own in read_tensors(path).items()}


def describe(tensor: Tensor) -> str:
    """Type and shape, for messages."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def misfit(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> str | None:
    """How the tensors found differ from those wanted, in names, shapes or types; None if they do not."""
    for name in sorted(wanted.keys() | found.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name} stands for nothing"
        if found[name].shape != wanted[name].shape or found[name].dtype != wanted[name].dtype:
            return f"{name} is {describe(found[name])} where {describe(wanted[name])} is expected"
    return None


def read_state(path: Path) -> dict[str, Any]:
    """The JSON in the header of a file that `write_tensors` wrote with a state; empty if there is none."""
    with safe_open(path, "pt") as stream:
        text = (stream.metadata() or {}).get(_METADATA, "{}")
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        state = None
    return state if isinstance(state, dict) else {}
