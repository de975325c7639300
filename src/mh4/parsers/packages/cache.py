"""Where downloaded models are: ``MH4_HOME/models/NAME``, with a folder for each version, and which one is current."""

from __future__ import annotations

import re
from pathlib import Path

from mh4 import machine
from mh4.data.errors import DataError
from mh4.models.checked import checked

from ..checksums import read_file
from ..model_files import named_folder
from .index import NAME, Entry

CURRENT = "model.json"  # the entry of the index that the current version came with


def models_home() -> Path:
    """The folder of all downloaded models."""
    return machine.home() / "models"


def version_folder(entry: Entry) -> Path:
    """The model folder of a version."""
    return models_home() / entry.name / entry.sha256[:16]


def installed(name: str) -> Entry | None:
    """The downloaded model of a name, if there is one."""
    path = models_home() / name / CURRENT
    if not re.fullmatch(NAME, name) or not path.exists():
        return None
    try:
        entry = checked(Entry, read_file(path))
    except ValueError as error:
        raise DataError(f"{path}: {error} (download the model again)") from None
    return entry if version_folder(entry).is_dir() else None


def find_model(model: str | Path) -> Path:
    """A model's folder: the one of that name or, if there is none, the downloaded model.

    DataError: There is neither, and the name is not a path.
    """
    folder = named_folder(model)
    if folder.exists() or not re.fullmatch(NAME, str(model)):
        return folder
    if (entry := installed(str(model))) is None:
        raise DataError(f"{model}: no such folder, and no downloaded model of this name (mh4 download {model})")
    return version_folder(entry)
