"""Load parsers of any kind from model folders: `mh4.load`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from mh4.data.errors import DataError
from mh4.data.guesses import LOADING, guided
from mh4.data.segmenter import Segmenter

from .folder import ModelFolder
from .model_files import CONFIG
from .runtime import Runtime, check_combination


class Origin(NamedTuple):
    """Which model a parser was loaded from, and how."""

    folder: str
    checksum: str
    runtime: Runtime


class Loaded:
    """Base of loadable classes; each is registered for a ``kind`` of configuration."""

    segmenter: Segmenter | None = None
    _origin: Origin | None = None

    _kinds: ClassVar[dict[str, type[Any]]] = {}  # classes by the kind of their configuration

    def __init_subclass__(cls, kind: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        if kind is not None:
            Loaded._kinds[kind] = cls

    @classmethod
    @guided(LOADING)
    def load(
        cls,
        *folders: str | Path,
        device: str = "auto",
        threads: int | None = None,
        search: str = "exact",
        combine: str = "votes",
    ) -> Self:
        """Load a trained model of any kind, or several as an ensemble.

        Parameters
        ----------
        *folders
            Model folders, or names of downloaded models; the best model first.
        device : {"auto", "cpu", "cuda"}
            Where networks run; ``auto`` uses CUDA if available.
        threads : int, optional
            CPU threads for decoding; by default one per core.
        search : {"exact", "beam:K", "greedy"}
            How a model with a decoder finds the tree; transition-based parsers are always greedy.
        combine : {"votes", "scores"}
            How an ensemble decides; see `mh4.parsers.ensemble.EnsembleParser`.

        Raises
        ------
        DataError
            A file of a folder is missing or damaged, or the model is not of the kind of the class.
        ValueError, TypeError
            No folder, or an option that is unknown or unsupported by a model.
        """
        runtime = Runtime(device, threads, search)
        check_combination(combine)
        if not folders:
            raise ValueError('no model: write mh4.load("FOLDER")')
        for folder in folders:
            if not isinstance(folder, str | Path):
                raise TypeError(
                    f"a model is a folder; write mh4.load('A', 'B') for an ensemble of several, not {folder!r}"
                )
        members = [cls._load(ModelFolder.find(folder), runtime) for folder in folders]
        return members[0] if len(members) == 1 else cls._kinds["ensemble"](members, combine=combine)

    @classmethod
    def _load(cls, folder: ModelFolder, runtime: Runtime) -> Self:
        checksum = folder.checksum
        own = cls._kinds[folder.config.kind]
        parser = (own if issubclass(own, cls) else cls).read_folder(folder, runtime)
        parser.segmenter = folder.segmenter
        parser._origin = Origin(str(folder.path.resolve()), checksum, runtime)
        return parser

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the path of the folder, which the other process must be able to read; it loads each model once.

        TypeError: The parser was not loaded from a folder.
        """
        if self._origin is None:
            raise TypeError(f"{self!r} has no folder, which pickling needs; write parser.save(folder), then load it")
        return _reopened, (type(self), self._origin)

    @classmethod
    def read_folder(cls, folder: ModelFolder, runtime: Runtime) -> Self:
        """Read a model of this kind, without its segmenter; a DataError if the folder holds another kind."""
        raise DataError(
            f"{folder.path}: holds a {folder.config.kind} parser, which {cls.__name__} cannot load; write mh4.load(…)"
        )


_reopening = threading.Lock()  # so that several threads that unpickle a model load it once


def _reopened(kind: type[Loaded], origin: Origin) -> Loaded:
    with _reopening:
        return _reopened_once(kind, origin)  # type: ignore[arg-type]  # classes can be hashed


@lru_cache(maxsize=32)  # larger than an ensemble, whose members are unpickled one by one
def _reopened_once(kind: type[Loaded], origin: Origin) -> Loaded:
    folder = ModelFolder(origin.folder)
    if not folder.has(CONFIG):
        raise DataError(
            f"{folder}: no such model here (a parser is pickled as the path of its folder; put the folder where all "
            "processes can read it, and load it from there)"
        )
    if folder.checksum != origin.checksum:
        raise DataError(f"{folder}: does not hold the model of the parser that another process sent")
    return kind._load(folder, origin.runtime)
