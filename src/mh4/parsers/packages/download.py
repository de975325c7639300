"""Downloads models that an index lists, by name, from a server or a folder; resumes interrupted downloads.

This uses the standard library: pooch verifies checksums but cannot resume, and the downloader of huggingface_hub is
private and needs an extra.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from mh4 import __version__
from mh4.data.errors import DataError
from mh4.data.files import atomic_output, failure_reason
from mh4.models.checked import as_json

from ..checksums import listed_files
from ..folder import ModelFolder
from .archive import CHUNK, unpack
from .cache import CURRENT, installed, models_home, version_folder
from .index import INDEX, Entry, Index

INDEX_VARIABLE = "MH4_INDEX"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TRIES = 4  # connections that may break off before a download fails
TIMEOUT = 60  # seconds without any data
MOST_INDEX = 64 << 20  # bytes
_FAILURES = (OSError, http.client.HTTPException)  # errors of reading from a network, timeouts included

OnProgress = Callable[[int, int], object]


def download(name: str, index: str | Path | None = None, *, on_progress: OnProgress | None = None) -> Path:
    """Download a model, unless the index's version of it is there undamaged; ``mh4.load(name)`` then finds it.

    Parameters
    ----------
    name : str
        Its name in the index.
    index : str or path, optional
        An https address or a folder that holds ``index.json`` and the packages; by default, the value of the
        environment variable ``MH4_INDEX``.
    on_progress : callable, optional
        Called with the number of bytes downloaded so far, and in total.

    Returns
    -------
    Path
        The model folder, below ``MH4_HOME`` or the user's cache.

    Raises
    ------
    DataError
        The index or the package is missing or damaged, or the package is not the one in the index; the download broke
        off (call again to continue it); or the disk is full.
    ValueError
        No index is given.
    """
    source = Source.of(index)
    entry = source.index().find(name, str(source))
    place = models_home() / entry.name
    try:
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(place / ".lock"):  # of two simultaneous downloads, the second finds the result of the first
            current = _whole(entry.name)
            if current is None or current.sha256 != entry.sha256:
                _install(entry, source, place, on_progress or (lambda done, size: None))
            if current != entry:
                with atomic_output(place / CURRENT) as stream:
                    stream.write(as_json(asdict(entry)))
                _clean(place, version_folder(entry))
    except OSError as error:
        raise DataError(f"{place}: {name} cannot be written here: {failure_reason(error)}") from None
    return version_folder(entry)


def _whole(name: str) -> Entry | None:
    """The index entry of a downloaded model; None if there is none or if it is damaged."""
    try:
        if (entry := installed(name)) is not None:
            for _ in listed_files(version_folder(entry)):
                pass
        return entry
    except DataError:
        return None


class BrokenOffError(DataError):
    """A connection failed; another attempt may succeed."""


class Source:
    """The place of an index and its packages: a folder or an address, without ``index.json`` at the end."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.is_remote = "://" in place
        if self.is_remote:
            _check_address(place)

    @classmethod
    def of(cls, index: str | Path | None) -> Source:
        """The source of an index given by its folder, address or file; by default the one in `INDEX_VARIABLE`."""
        given = str(index or os.environ.get(INDEX_VARIABLE, ""))
        if not given:
            raise ValueError(
                f'no index of models: name its address or folder, as in index="models", or set {INDEX_VARIABLE}'
            )
        scheme, _, rest = given.partition("://")
        if scheme == "file":
            given = urllib.request.url2pathname(rest)
        parent, slash, last = given.rstrip("/").rpartition("/")
        return cls((parent or slash or ".") if last == INDEX else given.rstrip("/") or "/")

    def __str__(self) -> str:
        return f"{self.place}/{INDEX}"

    def index(self) -> Index:
        """Read the index."""
        with self.open(INDEX) as (stream, _):
            try:
                content = _read(stream, MOST_INDEX)
            except BrokenOffError as error:
                raise BrokenOffError(f"{self}: cannot be read: {error}") from None
        return Index.of(content, str(self))

    @contextmanager
    def open(self, file: str, start: int = 0) -> Iterator[tuple[BinaryIO, int]]:
        """Open a file from byte ``start`` on; yields it with its actual first byte, 0 if a server cannot resume."""
        where = f"{self.place}/{file}"
        try:
            if self.is_remote:
                stream, begins = self._open_remote(file, start)
            else:
                stream, begins = open(where, "rb"), start  # noqa: SIM115 (closed below)
        except urllib.error.HTTPError as error:
            kind = BrokenOffError if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR else DataError
            raise kind(f"{where}: the server says {error.code} {error.reason}") from None
        except _FAILURES as error:
            reason = getattr(error, "reason", error)  # urllib wraps most of them
            problem = failure_reason(reason) if isinstance(reason, OSError) else str(reason) or type(error).__name__
            raise BrokenOffError(f"{where}: cannot be read: {problem}") from None
        with closing(stream):
            if not self.is_remote:
                stream.seek(begins)
            yield stream, begins

    def _open_remote(self, file: str, start: int) -> tuple[Any, int]:
        headers = {"User-Agent": f"mh4/{__version__}", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        request = urllib.request.Request(f"{self.place}/{urllib.parse.quote(file)}", headers=headers)
        try:
            answer = _OPENER.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if start and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return self._open_remote(file, 0)
            raise
        range_ = answer.headers.get("Content-Range") or ""
        resumed = answer.status == HTTPStatus.PARTIAL_CONTENT and range_.startswith(f"bytes {start}-")
        return answer, start if resumed else 0


def _check_address(address: str) -> None:
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise DataError(f"{address}: is not safe to download from (use an https address or a folder)")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_OPENER = urllib.request.build_opener(_SafeRedirects)


def _read(stream: BinaryIO, size: int) -> bytes:
    try:
        return stream.read(size)
    except _FAILURES as error:
        raise BrokenOffError(failure_reason(error) if isinstance(error, OSError) else type(error).__name__) from None


def _install(entry: Entry, source: Source, place: Path, on_progress: OnProgress) -> None:
    """Fetch a package, check it, and put its files into the folder of this version."""
    free, needed = shutil.disk_usage(place).free, entry.size + entry.unpacked
    if free < needed:
        raise DataError(f"{place}: {entry.name} needs {needed >> 20} MiB, and the disk has {free >> 20} MiB left")
    package = place / f"{entry.sha256}.part"
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=place))
    try:
        _fetch(entry, source, package, on_progress)
        with package.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != entry.sha256:
            package.unlink()
            problem = f"its checksum is not the one in {source}"
            raise DataError(f"{entry.file}: is damaged or another file: {problem} (nothing of it is kept; try again)")
        unpack(package, new)
        _ = ModelFolder(new).config  # a DataError unless it is a model
        shutil.rmtree(version_folder(entry), ignore_errors=True)
        new.chmod(0o755)
        new.rename(version_folder(entry))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            package.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _clean(place: Path, folder: Path) -> None:
    """Remove earlier versions, and leftovers of earlier downloads."""
    for old in place.iterdir():
        if old.is_dir() and old != folder:
            shutil.rmtree(old, ignore_errors=True)
        elif old.suffix == ".part":
            old.unlink()


def _fetch(entry: Entry, source: Source, package: Path, on_progress: OnProgress) -> None:
    """Download a package, or the rest of one that an earlier download began."""
    reason = "the connection was closed"
    for tries_left in reversed(range(TRIES + 1)):
        with package.open("ab") as target:
            done = target.tell()
            if done < entry.size and tries_left:
                try:
                    _append(entry, source, target, on_progress)
                except BrokenOffError as error:
                    reason = str(error)
        if done == entry.size:
            return
        if done > entry.size:
            package.unlink()
            raise DataError(f"{entry.file}: is larger than {source} says (nothing of it is kept)")
    what = f"the download broke off after {done} of {entry.size} bytes"
    raise DataError(f"{entry.file}: {what}: {reason} (start it again to continue)")


def _append(entry: Entry, source: Source, target: BinaryIO, on_progress: OnProgress) -> None:
    """Append the rest of a package; reading one byte beyond its size, if there is one, shows that it is too large."""
    with source.open(entry.file, target.tell()) as (stream, start):
        target.truncate(start)
        target.seek(start)
        while (done := target.tell()) <= entry.size:
            on_progress(done, entry.size)
            if not (piece := _read(stream, min(CHUNK, entry.size + 1 - done))):
                break
            target.write(piece)
            target.flush()  # lets another download continue here if this process is killed
