"""Find the input files in folders, and pair each with its output in another folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from .errors import DataError
from .files import check_input, check_output, failure_reason, is_descriptor, is_standard_input, named_path

__all__ = ["FilePair", "is_folder_name", "pair_files", "text_name"]

_PACKED = re.compile(r"(?<=.)\.(gz|xz|bz2)$", re.IGNORECASE)
_TXT = re.compile(r"\.txt$", re.IGNORECASE)


class FilePair(NamedTuple):
    """An input file and its output file."""

    source: Path
    target: Path


def is_folder_name(path: str) -> bool:
    """Whether a path names a folder: it exists as one, or the path ends with a separator."""
    return path.endswith(tuple(filter(None, (os.sep, os.altsep)))) or os.path.isdir(path)


def text_name(file: str) -> str:
    """The name of a text: that of its file without ``.txt`` and without the suffix of its compression."""
    return _TXT.sub("", _PACKED.sub("", file))


def pair_files(inputs: Sequence[str | Path], output_folder: str | Path, form: str = "conllu") -> list[FilePair]:
    """Pair input files, named alone or found in folders, with their outputs ``output_folder / NAME``.

    A folder stands for all files below it that end in ``.conllu`` (``form`` "conllu") or ``.txt`` (other forms),
    compressed or not, except hidden files, the contents of hidden folders and those of the output folder; outputs keep
    the paths below the input folder. They lose ``.gz``, ``.xz`` and ``.bz2``; for other forms, ``.conllu`` replaces
    ``.txt`` or is appended.

    DataError: An input cannot be read or has no name, a folder holds no such file, two inputs share an output, an
    output cannot be written, or it would replace an input.
    """
    folder = Path(output_folder)
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder}: is a file, not a folder (parsed files are written to a folder)")
    found = [(source, place) for path in inputs for source, place in _files(path, form, folder)]
    sources = {_identity(source): source for source, _ in found}
    targets: dict[Path, Path] = {}
    for source, place in found:
        name = place.name
        place = place.with_name(_PACKED.sub("", name) if form == "conllu" else f"{text_name(name)}.conllu")
        target = named_path(os.path.join(folder, place))
        if target in targets and _identity(source) == _identity(targets[target]):
            raise DataError(f"{source}: is named twice")
        if target in targets:
            raise DataError(f"{source} and {targets[target]} would both be written to {target} (rename one)")
        if target.exists() and _identity(target) in sources:
            raise DataError(f"{target}: is an input and would be replaced (choose another output folder)")
        if target.parent.is_dir():
            check_output(target)
        targets[target] = source
    return [FilePair(source, target) for target, source in targets.items()]


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode, which identify a file under any of its names; a `DataError` for a link to nothing."""
    try:
        found = path.stat()
    except OSError as error:
        _unreadable(error)
    return found.st_dev, found.st_ino


def _files(path: str | Path, form: str, output_folder: Path) -> Iterator[tuple[Path, Path]]:
    """The files that an input stands for, each with its output's path relative to the output folder."""
    if is_standard_input(path) or is_descriptor(path):
        name = "standard input" if is_standard_input(path) else str(path)
        raise DataError(f"{name}: has no name for a file in the output folder (parse it alone)")
    path = named_path(path)
    if not os.path.isdir(path):
        check_input(path)
        yield path, Path(path.name)
        return
    ending = ".conllu" if form == "conllu" else ".txt"
    found = False
    output = output_folder.resolve()  # skipped, since it may hold the output of an earlier run
    above = {str(path): {path.resolve()}}  # by folder to visit: itself and its ancestors, against cycles of links
    for parent, folders, names in os.walk(path, onerror=_unreadable, followlinks=True):
        own = above.pop(parent)
        below = {name: Path(parent, name).resolve() for name in sorted(folders) if not name.startswith(".")}
        below = {name: folder for name, folder in below.items() if folder != output and folder not in own}
        above |= {os.path.join(parent, name): own | {folder} for name, folder in below.items()}
        folders[:] = list(below)
        for name in sorted(names):
            if _PACKED.sub("", name).lower().endswith(ending) and not name.startswith("."):
                found = True
                yield (file := Path(parent, name)), file.relative_to(path)
    if not found:
        raise DataError(f"{path}: holds no files that end in {ending} (name files, or another folder)")


def _unreadable(error: OSError) -> NoReturn:
    raise DataError(f"{error.filename}: cannot be read: {failure_reason(error)}") from error
