"""Finds downloaded models: ``MH4_HOME/models/NAME`` has a folder per version, and a file that names the current one."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mh4 import machine
from mh4.data.errors import DataError
from mh4.data.files import failure_reason
from mh4.models.checked import checked

from ..checksums import read_file
from ..model_files import named_folder
from .index import NAME, Entry

CURRENT = "model.json"  # the index entry of the current version


def models_home() -> Path:
    """The folder of all downloaded models."""
    return machine.home() / "models"


def version_folder(entry: Entry) -> Path:
    """The folder of the version of a model that an index entry describes."""
    return models_home() / entry.name / entry.sha256[:16]


def installed(name: str) -> Entry | None:
    """The index entry of a downloaded model; None if there is no such model, a `DataError` if its file is damaged."""
    path = models_home() / name / CURRENT
    if not re.fullmatch(NAME, name) or not path.exists():
        return None
    try:
        entry = checked(Entry, read_file(path))
    except ValueError as error:
        raise DataError(f"{path}: {error} (download the model again)") from None
    return entry if version_folder(entry).is_dir() else None


def find_model(model: str | Path) -> Path:
    """The folder of a model: the folder of this name or, if there is none, the downloaded model's.

    DataError: There is neither, and the name is not a path; or the folder cannot be read.
    """
    folder = named_folder(model)
    try:
        os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        if re.fullmatch(NAME, str(model)) and not folder.exists():
            return _downloaded(str(model))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {failure_reason(error)}") from None
    return folder


def _downloaded(name: str) -> Path:
    if (entry := installed(name)) is None:
        raise DataError(f"{name}: no such folder, and no downloaded model of this name (mh4 download {name})")
    return version_folder(entry)
