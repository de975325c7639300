"""The package of a model: a ZIP file of a model folder's files and its card. Nothing in one that is read is trusted."""

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
MOST_TIMES = 100  # how much larger than the package its files may be; JSON of words packs to a fifth
_EPOCH = (1980, 1, 1, 0, 0, 0)  # equal models are equal packages
_ENCRYPTED = 1
_KINDS = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]*\.(?:json|safetensors|md)|{SUMS}|{re.escape(UDPIPE_FILE)}")


def pack(path: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a package, which appears once it is whole; equal files make equal packages."""
    with atomic_output(path) as stream, ZipFile(stream, "w", ZIP_DEFLATED) as archive:
        for name, content in files:
            info = ZipInfo(name, _EPOCH)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content, ZIP_DEFLATED)


def unpack(path: Path, folder: Path) -> None:
    """Write the files of a package into a folder, which is empty.

    DataError: It is damaged, or holds what no model has: folders, links, files of other kinds, or far more bytes than
    its size suggests.
    """
    try:
        with ZipFile(path) as archive:
            for info in _checked(archive, path):
                with archive.open(info) as source, (folder / info.filename).open("xb") as target:
                    shutil.copyfileobj(source, target, CHUNK)  # reads as many bytes as are declared at most
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
