"""Open inputs, and write outputs that are either complete or absent."""

import bz2
import codecs
import errno
import gzip
import io
import lzma
import os
import re
import secrets
import stat
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from .errors import DataError, quote

try:
    import fcntl
except ImportError:  # Windows: temporary files of killed processes are not removed
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "STDOUT_NAME",
    "atomic_output",
    "check_apart",
    "check_input",
    "check_output",
    "failure_reason",
    "is_descriptor",
    "is_standard_input",
    "may_wait",
    "named_path",
    "open_input",
    "open_unread",
    "source_name",
]

_OPENED = re.compile(r"/dev/stderr|/(?:dev|proc/self)/fd/(\d+)")
STDIN_NAME = "standard input"
STDOUT_NAME = "standard output"
# Formats that are unpacked, by their first bytes; `_KNOWN` has formats that are refused.
_COMPRESSED: dict[bytes, Callable[[BinaryIO], object]] = {
    rb"\x1f\x8b": lambda stream: gzip.GzipFile(fileobj=stream),
    rb"\xfd7zXZ\x00": lzma.LZMAFile,
    rb"BZh[1-9][1\x17]": bz2.BZ2File,
}
_BUFFER = 1 << 18  # bytes buffered before writing
_START = 8  # bytes read to recognise a format
_PACKING: dict[str, Callable[[BinaryIO], object]] = {
    ".gz": lambda stream: gzip.GzipFile(fileobj=stream, mode="wb", mtime=0),  # equal bytes for equal content
    ".xz": lambda stream: lzma.LZMAFile(stream, "wb"),  # noqa: SIM115 (`_packed` closes it)
    ".bz2": lambda stream: bz2.BZ2File(stream, "wb"),
}
_KNOWN = {
    b"PK\x03\x04": "a ZIP archive (unpack it first)",
    b"\x28\xb5\x2f\xfd": "compressed with Zstandard (unpack it first)",
    b"\xff\xfe\0\0": "UTF-32 text (convert it to UTF-8)",
    b"\xff\xfe": "UTF-16 text (convert it to UTF-8)",
    b"\xfe\xff": "UTF-16 text (convert it to UTF-8)",
}
_TEMPORARY = ".mh4-*.tmp"
_YOUNG = 60  # seconds: a temporary file younger than this may not be locked yet


def failure_reason(error: OSError) -> str:
    """The system's message for an OSError, in lower case."""
    return (error.strerror or type(error).__name__).lower()


def _opened(stream: TextIO | None, name: str) -> TextIO:
    """Return a standard stream; a `DataError` if it is None, as in a process started without it."""
    if stream is None:
        raise DataError(f"{name}: is closed (name a file)")
    return stream


def is_standard_input(path: object) -> bool:
    """Whether ``path`` means standard input: ``-`` or ``/dev/stdin``; anything but a path does not."""
    return isinstance(path, str | os.PathLike) and str(path) in ("-", "/dev/stdin")


def named_path(name: str | Path) -> Path:
    """The path with a name; ``./-``, which `Path` shortens to ``-``, stays a file and does not mean standard input."""
    path = Path(name)
    return path.absolute() if str(path) == "-" != str(name) else path


def is_descriptor(path: str | Path) -> bool:
    """Whether ``path`` names a descriptor that this process has open, such as a shell's ``<(…)``."""
    return is_standard_input(path) or str(path) == "/dev/stdout" or _OPENED.fullmatch(str(path)) is not None


def may_wait(path: str | Path) -> bool:
    """Whether reading an input may wait for another program: standard input, pipes and terminals, but not files."""
    return is_standard_input(path) or not (os.path.isfile(path) or not os.path.exists(path))


def source_name(path: str | Path) -> str:
    """The name of an input in error messages."""
    return STDIN_NAME if is_standard_input(path) else os.fspath(path)


@contextmanager
def open_unread(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; standard input (see `is_standard_input`) is left open afterwards.

    DataError: The file is missing, is a folder or may not be read.
    """
    if is_standard_input(path):
        stdin = _opened(sys.stdin, STDIN_NAME)
        yield stdin.buffer if hasattr(stdin, "buffer") else io.BytesIO(stdin.read().encode(errors="surrogatepass"))
        return
    _check_characters(path, "input")
    try:
        opened = open(path, "rb")  # noqa: SIM115 (the body's own errors must not pass through this handler)
    except FileNotFoundError:
        _check_no_text(path)
        raise DataError(f"{path}: no such file (check the path)") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file (name a file in it)") from None
    except OSError as error:
        _check_no_text(path)  # a long one cannot even be looked for
        raise DataError(f"{path}: cannot be read: {failure_reason(error)}") from error
    with opened:
        yield opened


def _check_no_text(path: str | Path) -> None:
    """Raise a `DataError` for lines of text in place of the name of a file."""
    if "\n" in str(path):
        raise DataError(f"{quote(str(path))} is text, not a path (mh4.Document.from_conllu reads text in CoNLL-U)")


@contextmanager
def open_input(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file or standard input for reading bytes, unpacked if it is compressed with gzip, xz or bzip2.

    DataError: The file is missing, is a folder, may not be read, is damaged or holds no text.
    """
    name = source_name(path)
    with open_unread(path) as opened, _naming(name), _unpacked(opened, name) as stream:
        yield stream


def check_input(path: str | Path) -> None:
    """Raise a `DataError` early, before work begins, if `open_input` would refuse the input; pipes are not opened."""
    if not is_standard_input(path) and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path)):
        with open_input(path):
            pass


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Add the file name to an OSError raised in the block without one."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


@contextmanager
def _unpacked(stream: BinaryIO, path: str | Path) -> Iterator[BinaryIO]:
    """Yield the stream, unpacked if its first bytes say that it is compressed."""
    try:
        start = stream.peek(_START)[:_START] if isinstance(stream, io.BufferedReader) else b""
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {failure_reason(error)}") from error
    for magic, unpack in _COMPRESSED.items():
        if re.match(magic, start):
            try:
                unpacked = io.BufferedReader(cast(io.RawIOBase, unpack(stream)))
                _check_start(unpacked.peek(_START)[:_START], path)
                yield cast(BinaryIO, unpacked)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                if isinstance(error, OSError) and error.errno is not None:  # from the system, not from a decompressor
                    raise
                raise DataError(f"{path}: is compressed and damaged: {error} (get it again)") from None
            return
    _check_start(start, path)
    yield stream


def _check_start(start: bytes, path: str | Path) -> None:
    """Raise a `DataError` unless the first bytes of a file, unpacked if compressed, look like text."""
    if any(re.match(magic, start) for magic in _COMPRESSED):
        raise DataError(f"{path}: is compressed twice (unpack it first)")
    for magic, what in _KNOWN.items():
        if start.startswith(magic):
            raise DataError(f"{path}: is {what}")
    if b"\0" in start:
        raise DataError(f"{path}: is a binary file (expected text or CoNLL-U in UTF-8)")


@contextmanager
def atomic_output(path: str | Path) -> Iterator[BinaryIO]:
    """Write a file so that other programs see either the old content or all of the new one.

    The bytes go to a hidden temporary file in the same folder. When the block succeeds, it is flushed to the disk and
    renamed to `path`; when the block raises, it is removed and an older file at `path` stays as it was. A process
    killed inside the block leaves the old file intact; a later call in the folder removes the temporary file. The
    permissions of a replaced file are kept; a new file gets those of the umask. A symbolic link stays a link: its
    target is replaced. A file named ``.gz``, ``.xz`` or ``.bz2`` is compressed.

    Some outputs are written directly: ``-`` (or ``/dev/stdout``) is standard output, flushed when the block succeeds
    and left open; ``/dev/stderr`` and ``/dev/fd/N`` are open already, perhaps as a file that must not be replaced;
    devices and named pipes cannot be replaced by a file.

    Raises
    ------
    DataError
        The folder does not exist, `path` is a folder, or the file may not be written.
    OSError
        The disk is full, or another failure while writing; no file is left behind.
    """
    _check_name(path)
    if str(path) in ("-", "/dev/stdout"):
        stdout = _opened(sys.stdout, STDOUT_NAME)
        with _naming(STDOUT_NAME):
            stdout.flush()  # so that text printed earlier comes first
            content = stdout.buffer if hasattr(stdout, "buffer") else cast(BinaryIO, _Decoding(stdout))
            yield content
            content.flush()
        return
    if (opened := _OPENED.fullmatch(str(path))) is not None:
        with _naming(path), _output_stream(path, lambda: os.dup(int(opened[1] or 2))) as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    mode = _checked_mode(path, target)
    if mode is not None and not stat.S_ISREG(mode):
        with _naming(path), _output_stream(path, lambda: _open(path, os.O_WRONLY)) as stream:
            yield stream
        return

    temporary = target.parent / f".mh4-{secrets.token_hex(8)}.tmp"
    stream = _output_stream(path, lambda: _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    try:
        with _naming(path), stream:
            lock(stream.fileno())  # held until the stream is closed or the process dies
            _remove_left_behind(target.parent)
            with _packed(stream, Path(path).suffix.lower()) as content:
                yield content
            stream.flush()
            os.fsync(stream.fileno())
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            if fcntl is None:
                stream.close()  # Windows cannot rename an open file
            os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class _Decoding(io.BufferedIOBase):
    """Writes bytes in UTF-8 to a stream of text alone, such as standard output in a notebook."""

    def __init__(self, text: TextIO) -> None:
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, content: Any) -> int:
        self._text.write(self._decoder.decode(content))
        return len(content)

    def flush(self) -> None:
        self._text.flush()


@contextmanager
def _packed(stream: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Yield a stream that compresses into ``stream`` if the suffix asks for it, else ``stream`` itself."""
    if (pack := _PACKING.get(suffix)) is None:
        yield stream
        return
    with closing(cast(BinaryIO, pack(stream))) as packed:
        yield packed


def lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed or the process ends; ``shared`` locks only exclude exclusive ones.

    Returns True on success, False if it is locked already, and None if the system (Windows) or the file system has no
    such locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
            raise
        return None
    return True


def _check_name(path: str | Path) -> None:
    """Raise a TypeError for anything but a path, a `DataError` for an empty name (unset variable?) or NUL in it."""
    if not isinstance(path, str | Path):
        raise TypeError(f'an output must be a path, or "-" for standard output; got {path!r}')
    _check_characters(path, "output")


def _check_characters(path: str | Path, kind: str) -> None:
    if not str(path):
        raise DataError(f"the {kind} has no name (name a file, or - for standard {kind})")
    if "\0" in str(path):
        raise DataError(f"{str(path)!r}: holds NUL, which no name of a file does")


def check_output(path: str | Path) -> None:
    """Raise a `DataError` early, before work begins, if `atomic_output` would refuse the output."""
    _check_name(path)
    if str(path) not in ("-", "/dev/stdout") and _OPENED.fullmatch(str(path)) is None:
        _checked_mode(path, Path(os.path.realpath(path)))


def check_apart(source: object, target: str | Path) -> None:
    """Raise a `DataError` if an output would replace the file that it is made from."""
    if not isinstance(source, str | os.PathLike) or is_standard_input(source) or str(target) == "-":
        return
    if os.path.isfile(source) and os.path.isfile(target) and os.path.samefile(source, target):
        raise DataError(f"{target}: is the input and would be replaced (choose another output)")


def _remove_left_behind(folder: Path) -> None:
    """Remove the temporary files of killed processes: those that no process has locked."""
    for path in folder.glob(_TEMPORARY):
        try:
            if time.time() - path.stat().st_mtime < _YOUNG:
                continue
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:  # removed by another process, or owned by another user
            continue
        try:
            if lock(descriptor):
                path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _checked_mode(path: str | Path, target: Path) -> int | None:
    """The mode of an existing output file, None for a new one.

    Raises a `DataError` early, before hours of work, for outputs that the final rename would refuse or should not
    replace.
    """
    try:
        # Not of `target`: the system can follow the link /dev/fd/N of a pipe, but its text is no path.
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if str(path).endswith(tuple(filter(None, (os.sep, os.altsep)))):
            raise DataError(f"{path}: is the name of a folder, not of a file (name a file in it)") from None
        if not target.parent.is_dir():
            raise DataError(f"{path}: the folder {target.parent} does not exist (create it first)") from None
        _check_folder(path, target.parent)
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {failure_reason(error)}") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: is a folder, not a file (name a file in it)")
    # A rename needs no permission on the replaced file itself, but a write-protected file is not ours to replace.
    if not os.access(path, os.W_OK):
        raise DataError(f"{path}: is write-protected (remove it or choose another name)")
    if stat.S_ISREG(mode):
        _check_folder(path, target.parent)
    return mode


def _check_folder(path: str | Path, folder: Path) -> None:
    """Raise a `DataError` if the temporary file, which comes first, cannot be created."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataError(f"{path}: the folder {folder} is write-protected (choose another folder)")


def _open(path: str | Path, flags: int) -> int:
    # Mode 0o666 lets the system apply the umask; O_BINARY exists on Windows only.
    return os.open(path, flags | getattr(os, "O_BINARY", 0), 0o666)


def _output_stream(path: str | Path, open_descriptor: Callable[[], int]) -> BinaryIO:
    try:
        return os.fdopen(open_descriptor(), "wb", _BUFFER)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {failure_reason(error)}") from error
