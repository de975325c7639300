"""A model on disk: a folder of JSON and safetensors files, each replaced as a whole. Loading runs no code from it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from torch import Tensor

from mh4.data.errors import DataError
from mh4.data.files import failure_reason
from mh4.data.segmenter import Segmenter
from mh4.data.udpipe import UDPIPE_FILE, UDPipeSegmenter
from mh4.machine import undisturbed
from mh4.models.checked import checked

from .calibration import Calibration
from .checksums import SUMS, digest, move_files, read_file, remove_files, write_file
from .config import Config, as_dict, from_dict
from .definition import C as NetworkConfigType
from .definition import Definition
from .model_files import (
    CALIBRATION,
    CONFIG,
    LOG,
    META,
    STATE,
    VOCABULARY,
    WEIGHTS,
    named_folder,
    read_object,
    read_weights,
    write_json,
)
from .ownership import sole_owner
from .packages.cache import find_model
from .segmenter import SEGMENTER_FILES, SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS, NeuralSegmenter, SegmenterSettings
from .vocabulary import Vocabulary, without_words

ENCODER = "encoder."  # prefix of the encoder's files
# Files that a new model replaces or, if it does not have them, removes; so do all files with the prefix `ENCODER`.
REPLACED = (CONFIG, VOCABULARY, WEIGHTS, *SEGMENTER_FILES, META, STATE, LOG, CALIBRATION)
_TEMPORARY = ".mh4-"  # prefix of folders
_OLD = 3600  # seconds: no model takes so long to write

C = TypeVar("C", bound=Config)
V = TypeVar("V")


class EncoderFiles(Mapping[str, bytes]):
    """The encoder's files in a model folder, by their names without the prefix `ENCODER`; every access reads a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """The path of a file."""
        return self._folder / f"{ENCODER}{name}"

    def __getitem__(self, name: str) -> bytes:
        return read_file(self.path(name))

    def __contains__(self, name: object) -> bool:
        return self.path(str(name)).exists()

    def __iter__(self) -> Iterator[str]:
        return (path.name.removeprefix(ENCODER) for path in sorted(self._folder.glob(f"{ENCODER}*")))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ModelFolder:
    """Reads and writes the files of a model folder; properties read their file once, on first access.

    A file that is missing or damaged is a `DataError` that names it.

    Parameters
    ----------
    path : path
        ValueError: It is empty, as from an unset variable; the working folder is ".".

    Attributes
    ----------
    path : Path
    encoder_files : EncoderFiles
    """

    def __init__(self, path: str | Path) -> None:
        self.path = named_folder(path)
        self.encoder_files = EncoderFiles(self.path)

    @classmethod
    def find(cls, model: str | Path) -> Self:
        """The folder of that name or, if there is none, the downloaded model; a `DataError` if there is neither."""
        return cls(find_model(model))

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def __str__(self) -> str:
        return str(self.path)

    def has(self, name: str) -> bool:
        """Whether a file exists."""
        return (self / name).exists()

    @property
    def all_files(self) -> tuple[str, ...]:
        """Names of the files that a model of any kind may have, ``config.json`` first; of encoder files, those here."""
        return (*REPLACED, *(ENCODER + name for name in self.encoder_files))

    @cached_property
    def checksum(self) -> str:
        """A checksum of all files of the model; empty for older models, which have no checksums."""
        return digest((self / SUMS).read_bytes()) if self.has(SUMS) else ""

    @cached_property
    def config(self) -> Config:
        """The configuration of a model of any kind."""
        data = read_object(self / CONFIG)
        try:
            return from_dict(data)
        except ValueError as error:
            raise DataError(f"{self / CONFIG}: {error}") from None

    def config_of(self, config_type: type[C]) -> C:
        """The configuration of a model of one kind; a `DataError` if the model is of another kind."""
        config = self.config
        if not isinstance(config, config_type):
            raise DataError(
                f"{self}: holds a {config.kind} parser, not a {config_type.kind} parser "
                f"(load it with {config.kind.capitalize()}Parser.load or, whatever it is, with mh4.load)"
            )
        return config

    def vocabulary(self, vocabulary_type: type[V], content: bytes | None = None) -> V:
        """The vocabulary, of the type for this kind of model, in ``content`` or, by default, in its file."""
        content = read_file(self / VOCABULARY) if content is None else content
        with self._locating(VOCABULARY):
            return checked(vocabulary_type, content)

    def definition(self, config_type: type[NetworkConfigType]) -> Definition[NetworkConfigType]:
        """Configuration, vocabulary and encoder files of a parser with a network; a `DataError` for another kind."""
        config = self.config_of(config_type)
        if not self.encoder_files and "words" in (data := read_object(self / VOCABULARY)):
            with self._locating(VOCABULARY):
                content, files = without_words(data)
            return Definition(config, self.vocabulary(Vocabulary, content), files)
        return Definition(config, self.vocabulary(Vocabulary), self.encoder_files)

    @contextmanager
    def _locating(self, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise DataError(f"{self / name}: {error}") from None

    def weights(self) -> dict[str, Tensor]:
        """Read the weights; they are not cached, since the parser holds them."""
        return read_weights(self / WEIGHTS)

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """The contents of meta.json, which says where the model comes from; empty if there is no such file."""
        return read_object(self / META) if self.has(META) else {}

    @cached_property
    def segmenter(self) -> Segmenter | None:
        """The segmenter; None if the model has none."""
        if self.has(SEGMENTER_SETTINGS):
            content, weights = read_file(self / SEGMENTER_SETTINGS), read_file(self / SEGMENTER_WEIGHTS)
            with self._locating(SEGMENTER_SETTINGS):
                settings = checked(SegmenterSettings, content)
            with self._locating(SEGMENTER_WEIGHTS):
                return NeuralSegmenter.of_weights(settings, weights)
        if self.has(UDPIPE_FILE):
            return UDPipeSegmenter(self / UDPIPE_FILE, read_file(self / UDPIPE_FILE))
        return None

    @cached_property
    def calibration(self) -> Calibration | None:
        """The calibration; None if the model has not been calibrated."""
        return Calibration.load(self.path)

    def write_definition(
        self, config: Config, vocabulary: Any, encoder_files: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        """Write configuration, vocabulary and encoder files, which are fixed before training starts."""
        self.path.mkdir(parents=True, exist_ok=True)
        remove_files(self.path, (ENCODER + name for name in self.encoder_files if name not in encoder_files))
        for name, content in encoder_files.items():
            write_file(self.encoder_files.path(name), content)
        write_json(self / VOCABULARY, asdict(vocabulary))
        write_json(self / CONFIG, as_dict(config))  # last: this file makes the folder a model folder

    def write_origin(self, meta: Mapping[str, Any], segmenter: Segmenter | None) -> None:
        """Write meta.json and the segmenter's files, as far as there are any."""
        if meta:
            write_json(self / META, dict(meta))
        if segmenter is not None:
            for name, content in segmenter.files.items():
                write_file(self / name, content)

    @contextmanager
    def replaced(self, overwrite: bool) -> Iterator[Self]:
        """A temporary folder to write a model to, which replaces the files of this folder once it is complete.

        DataError: The folder holds a model, and ``overwrite`` is False; it cannot be written; or another process or
        thread is writing to it.
        """
        with sole_owner(self.path):
            if self.has(CONFIG) and not overwrite:
                raise DataError(f"{self}: holds a model already (replace it with overwrite=True)")
            with self.renewed(self.all_files) as place:
                yield place

    @contextmanager
    def renewed(self, outdated: Iterable[str]) -> Iterator[Self]:
        """A temporary folder whose files replace those of this folder, and its ``outdated`` ones, when the block ends.

        If the block raises, this folder stays as it is; otherwise Ctrl-C and SIGTERM wait until the new files are in
        place. The caller owns the folder.

        DataError: The folder cannot be written.
        """
        for left in self.path.glob(f"{_TEMPORARY}*/"):  # by a killed process
            if time.time() - left.stat().st_mtime > _OLD:
                shutil.rmtree(left, ignore_errors=True)
        try:
            with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self.path, ignore_cleanup_errors=True) as written:
                place = type(self)(written)
                yield place
                with undisturbed():
                    move_files(place.path, self.path, outdated, last=CONFIG)  # it makes the folder a model folder
        except OSError as error:
            raise DataError(f"{self}: no model can be written here: {failure_reason(error)}") from error
