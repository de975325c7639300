"""The index of a folder of packaged models, ``index.json``: what `mh4 download` can fetch, with checksums."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock
from pydantic import Field

from mh4.data.errors import DataError
from mh4.data.files import atomic_output
from mh4.models.checked import Positive, as_json, checked

from ..checksums import read_file

INDEX = "index.json"
SUFFIX = ".mh4.zip"
NAME = r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}"

Name = Annotated[str, Field(pattern=rf"^{NAME}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True)
class Entry:
    """A packaged model.

    Attributes
    ----------
    name : str
        Name of the model, for `mh4.load`.
    file : str
        File name of the package, beside the index.
    size, unpacked : int
        Bytes of the package, and of the files in it.
    sha256 : str
        Checksum of the package.
    licence : str, optional
        Licence of the treebank; None if unknown.
    non_commercial : bool
        Whether that licence forbids commercial use.
    languages : tuple of str
        ISO 639 codes.
    meta : dict
        The model's meta.json: treebank, scores, version, command, time.
    """

    name: Name
    file: Name
    size: Positive
    unpacked: Positive
    sha256: Digest
    licence: str | None = None
    non_commercial: bool = False
    languages: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Index:
    """All models of a folder, by name."""

    models: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, content: bytes, source: str) -> Index:
        """Parse the content of an index; a `DataError` that names ``source`` if it is invalid."""
        try:
            return checked(cls, content)
        except ValueError as error:
            raise DataError(f"{source}: is not an index of models: {error}") from None

    def find(self, name: str, source: str) -> Entry:
        """The entry of a model; a `DataError` that lists the known models if there is none of this name."""
        for entry in self.models:
            if entry.name == name:
                return entry
        known = ", ".join(entry.name for entry in self.models) or "none"
        raise DataError(f"{source}: has no model {name!r}; it has: {known}")


def read_index(folder: Path) -> Index:
    """The index of a folder, an empty one if there is none."""
    path = folder / INDEX
    return Index.of(read_file(path), str(path)) if path.exists() else Index()


def add_to_index(folder: Path, entry: Entry) -> None:
    """Add a model to the index of its folder, replacing one of the same name; a lock makes processes take turns."""
    with FileLock(folder / f".{INDEX}.lock"):
        others = [other for other in read_index(folder).models if other.name != entry.name]
        index = Index(tuple(sorted([*others, entry], key=lambda one: one.name)))
        with atomic_output(folder / INDEX) as stream:
            stream.write(as_json(asdict(index)))
