"""A model on disk: a folder of JSON and safetensors files, each replaced as a whole. Loading runs no code from it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from mh4.data.errors import DataError
from mh4.data.files import failure_reason
from mh4.data.segmenter import SegmenterModel
from mh4.models.checked import as_json, checked
from mh4.models.devices import HostCopy

from .checksums import read_file, remove_files, write_file
from .config import Config, as_dict, from_dict
from .vocabulary import Vocabulary, without_words

CONFIG, VOCABULARY, WEIGHTS, SEGMENTER, META, STATE, LOG, CALIBRATION = (
    "config.json",
    "vocab.json",
    "weights.safetensors",
    "segmenter.udpipe",
    "meta.json",
    "training.safetensors",
    "log.jsonl",
    "calibration.json",
)
ENCODER = "encoder."  # files of the encoder begin with it
_METADATA = "state"

C = TypeVar("C", bound=Config)
V = TypeVar("V")


def named_folder(folder: str | Path) -> Path:
    """The folder, if it has a name: an empty one, of a variable that was never set, is not the working folder."""
    if not str(folder):
        raise ValueError("the model folder has no name (write '.' for the working folder)")
    return Path(folder)


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically, with its checksum."""
    write_file(path, as_json(data))


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; a missing or damaged file is a `DataError` that names it."""
    content = read_file(path)
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, numbers too long, nested too deeply
        raise DataError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise DataError(f"{path}: not a JSON object")
    return data


def read_meta(folder: Path) -> dict[str, Any]:
    """What a model says of where it comes from; empty where it does not."""
    path = folder / META
    return read_object(path) if path.exists() else {}


def read_segmenter(folder: str | Path) -> SegmenterModel | None:
    """The segmenter of a model; None if it has none, a `DataError` if it is damaged."""
    path = Path(folder) / SEGMENTER
    return SegmenterModel(path, read_file(path)) if path.exists() else None


def write_tensors(path: Path, tensors: dict[str, Tensor], state: dict[str, Any] | None = None) -> None:
    """Write tensors, and JSON in the header, atomically as one safetensors file."""
    metadata = None if state is None else {_METADATA: json.dumps(state)}
    on_host = zip(tensors, HostCopy(*tensors.values()).tensors(), strict=True)
    write_file(path, save({name: tensor.contiguous() for name, tensor in on_host}, metadata))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file; a missing or damaged file is a `DataError` that names it."""
    try:
        tensors = load(read_file(path))
    except SafetensorError as error:
        raise DataError(f"{path}: not a whole safetensors file: {error}") from None
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise DataError(f"{path}: {name} holds values that are no numbers")
    return tensors


def describe(tensor: Tensor) -> str:
    """Type and shape, for messages."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def misfit(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> str | None:
    """Why some tensors cannot stand for others: one is missing, too many, or of another shape or type."""
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


@contextmanager
def new_folder(path: str | Path, overwrite: bool) -> Iterator[Path]:
    """A place to write a model, which moves into its folder once it is whole; until then another model stays there.

    DataError: The folder holds a model, and ``overwrite`` is False; or there can be no such folder.
    """
    folder = named_folder(path)
    if (folder / CONFIG).exists() and not overwrite:
        raise DataError(f"{folder}: holds a model already (replace it with overwrite=True)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=".mh4-", dir=folder))
    except OSError as error:
        raise DataError(f"{folder}: no model can be written here: {failure_reason(error)}") from None
    try:
        yield place
        known = (CONFIG, VOCABULARY, WEIGHTS, SEGMENTER, META, STATE, LOG, CALIBRATION)
        remove_files(folder, (*known, *(ENCODER + name for name in EncoderFiles(folder))))
        for written in sorted(place.iterdir(), key=lambda written: written.name == CONFIG):  # where it is, is a model
            os.replace(written, folder / written.name)
    finally:
        shutil.rmtree(place, ignore_errors=True)


class EncoderFiles(Mapping[str, bytes]):
    """The files of an encoder in a model folder, by the names that it has for them; each is read when asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> bytes:
        return read_file(encoder_file(self._folder, name))

    def __iter__(self) -> Iterator[str]:
        return (path.name.removeprefix(ENCODER) for path in sorted(self._folder.glob(f"{ENCODER}*")))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def encoder_file(folder: Path, name: str) -> Path:
    """Where a file of the encoder is."""
    return folder / f"{ENCODER}{name}"


def write_definition(
    folder: Path, config: Config, vocabulary: Any, encoder_files: Mapping[str, bytes] = MappingProxyType({})
) -> None:
    """Write what is fixed before training starts."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_files(folder, (ENCODER + name for name in EncoderFiles(folder) if name not in encoder_files))
    for name, content in encoder_files.items():
        write_file(encoder_file(folder, name), content)
    write_json(folder / VOCABULARY, asdict(vocabulary))
    write_json(folder / CONFIG, as_dict(config))  # the last one: where it is, there is a model


def read_config(folder: Path) -> Config:
    """The configuration of a model of any kind; a missing or damaged file is a `DataError` that names it."""
    path = folder / CONFIG
    data = read_object(path)
    try:
        return from_dict(data)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None


def read_definition(folder: Path, config_type: type[C], vocabulary_type: type[V]) -> tuple[C, V, Mapping[str, bytes]]:
    """Configuration, vocabulary and files of the encoder of a model of the kind that ``config_type`` is of.

    Raises
    ------
    DataError
        Something is missing or damaged, or the model is of another kind.
    """
    config = read_config(folder)
    if not isinstance(config, config_type):
        raise DataError(
            f"{folder}: holds a {config.kind} parser, not a {config_type.kind} parser "
            f"(load it with {config.kind.capitalize()}Parser.load or, whatever it is, with mh4.Parser.load)"
        )
    path = folder / VOCABULARY
    files: Mapping[str, bytes] = EncoderFiles(folder)
    content = read_file(path)
    try:
        if vocabulary_type is Vocabulary and not files and "words" in (data := read_object(path)):
            content, files = without_words(data)
        return config, checked(vocabulary_type, content), files
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
