"""Files of a model folder: written with their checksums, which are verified on reading.

``SHA256SUMS`` has the format of ``sha256sum``; that of ``sha256sum -b`` and ``shasum`` can be read, too. While a file
is being replaced, both its old and its new checksum are listed, so that the process may be killed at any moment. Files
that are not listed, as in folders of older versions, are not verified.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mh4.data.errors import DataError
from mh4.data.files import atomic_output, failure_reason

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](?:\./)?(.+)")
_TRIES = 3  # training may replace a file between the reading of its checksum and of its content

Sums = dict[str, list[str]]


def read_file(path: Path) -> bytes:
    """The content of a file of a model folder.

    Raises
    ------
    DataError
        It is missing, cannot be read, or does not have its checksum.
    """
    for _ in range(_TRIES):
        known = _read_sums(path.parent).get(path.name)
        content = _read(path)
        if known is None or digest(content) in known:
            return content
    raise DataError(
        f"{path}: is damaged or was changed: its checksum differs from that in {SUMS} (get the model again; if the "
        f"change is yours, remove the line from {SUMS})"
    )


def write_file(path: Path, content: bytes) -> None:
    """Write a file of a model folder atomically."""
    sums = _read_sums(path.parent)
    new = digest(content)
    _write_sums(path.parent, sums | {path.name: [*sums.get(path.name, []), new]})
    with atomic_output(path) as stream:
        stream.write(content)
    _write_sums(path.parent, sums | {path.name: [new]})


def listed_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of all listed files; a `DataError` as for `read_file`."""
    for name in sorted(_read_sums(folder)):
        yield name, read_file(folder / name)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove those files that exist from a model folder, and their checksums."""
    names = set(names)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    sums = _read_sums(folder)
    if names & sums.keys():
        _write_sums(folder, {name: known for name, known in sums.items() if name not in names})


def move_files(source: Path, folder: Path, outdated: Iterable[str], last: str) -> None:
    """Remove files from a model folder, in this order, and move all files of another one there, ``last`` at the end."""
    outdated = list(outdated)
    old, new = _read_sums(folder), _read_sums(source)
    _write_sums(folder, {name: [*old.get(name, []), *new.get(name, [])] for name in old | new})
    for name in outdated:
        (folder / name).unlink(missing_ok=True)
    moved = [path for path in source.iterdir() if path.name != SUMS]
    for path in sorted(moved, key=lambda path: path.name == last):
        os.replace(path, folder / path.name)
    _write_sums(folder, {name: known for name, known in old.items() if name not in outdated} | new)


def digest(content: bytes) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file (is {path.parent} a model folder?)") from None
    except NotADirectoryError:
        raise DataError(f"{path.parent}: is a file, not a model folder (name the folder)") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {failure_reason(error)}") from None


def _read_sums(folder: Path) -> Sums:
    path = folder / SUMS
    if not path.exists():
        return {}
    sums: Sums = {}
    for number, line in enumerate(_read(path).decode(errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise DataError(f"{path}:{number}: is not a line with a checksum (get the model again)")
        sums.setdefault(found[2], []).append(found[1].lower())
    return sums


def listing(sums: Sums) -> bytes:
    """The content of a file `SUMS` with these checksums."""
    return "".join(f"{known}  {name}\n" for name, digests in sorted(sums.items()) for known in digests).encode()


def _write_sums(folder: Path, sums: Sums) -> None:
    with atomic_output(folder / SUMS) as stream:
        stream.write(listing(sums))
