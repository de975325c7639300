"""Packages of models: ZIP files with the files of a model folder and a card. Unpacking trusts nothing in them."""

from __future__ import annotations

import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from mh4.data.errors import DataError, quote
from mh4.data.files import atomic_output
from mh4.data.udpipe import UDPIPE_FILE

from ..checksums import SUMS

CHUNK = 1 << 20
MOST_FILES = 100
MOST_BYTES = 8 << 30
MOST_TIMES = 100  # limit of the files' size relative to the package; JSON of words is about five times as large
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal models make equal packages
_ENCRYPTED = 1
_KINDS = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]*\.(?:json|safetensors|md)|{SUMS}|{re.escape(UDPIPE_FILE)}")


def pack(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a package atomically; equal files make equal packages."""
    with atomic_output(path) as stream, ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for name, content in files:
            info = ZipInfo(name, _EPOCH)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content, ZIP_DEFLATED)


def unpack(path: Path, folder: Path) -> None:
    """Unpack a package into an empty folder.

    DataError: The package is damaged, or contains what no model does: folders, links, files of other kinds, or far more
    bytes than its size suggests.
    """
    try:
        with ZipFile(path) as archive:
            for info in _checked(archive, path):
                with archive.open(info) as source, (folder / info.filename).open("xb") as target:
                    shutil.copyfileobj(source, target, CHUNK)  # never more bytes than the archive declares
    except (BadZipFile, EOFError, zlib.error, NotImplementedError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name}: is not a complete package: {error}") from None


def _checked(archive: ZipFile, path: Path) -> list[ZipInfo]:
    members = archive.infolist()
    for problem in _problems(members, path.stat().st_size):
        raise DataError(f"{path.name}: {problem} (mh4 did not make this package)")
    return members


def _problems(members: list[ZipInfo], size: int) -> Iterator[str]:
    total = sum(info.file_size for info in members)
    if len(members) > MOST_FILES:
        yield f"holds {len(members)} files, and a model has {MOST_FILES} at most"
    if total > min(MOST_BYTES, MOST_TIMES * size):
        yield f"unpacks to {total} bytes, too many for its {size}"
    for info in members:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not _KINDS.fullmatch(info.orig_filename) or info.orig_filename != info.filename:
            yield f"holds {quote(info.orig_filename)}, which does not belong to a model"
        if kind not in (0, stat.S_IFREG):
            yield f"holds {info.filename} as a link or device"
        if info.flag_bits & _ENCRYPTED or info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            yield f"holds {info.filename} encrypted or packed in an unknown way"
    if len({info.filename.lower() for info in members}) < len(members):
        yield "holds a file twice"
