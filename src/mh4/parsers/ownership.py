"""Ownership of a model folder by whoever writes to it; others fail with a message that names the owner."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from mh4.data.errors import DataError
from mh4.data.files import failure_reason, lock

OWNER = ".owner"  # file that describes the owner, for messages


@contextmanager
def sole_owner(folder: Path) -> Iterator[None]:
    """Own a folder until the block or the process ends; create it if need be, and remove it if it stays empty.

    The folder itself is locked, and the system releases the lock however a process ends, so it is never stale. On
    systems or file systems without such locks (`mh4.data.files.lock`), other owners go unnoticed.

    DataError: Another process or thread owns the folder, or the folder cannot be created or written to.
    """
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None
    with _locked(folder):
        try:
            _note_owner(folder)
            yield
        finally:
            with suppress(OSError):  # not empty: it has a model, or other files
                (folder / OWNER).unlink(missing_ok=True)
                for parent in made:
                    parent.rmdir()


@contextmanager
def without_owner(folder: Path) -> Iterator[None]:
    """Nobody owns a folder until the block ends, so that what is read there belongs together; it may be read-only.

    DataError: Another process or thread owns the folder.
    """
    with _locked(folder, shared=True):
        yield


@contextmanager
def _locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    if os.name != "posix":
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"{folder}: cannot be opened: {failure_reason(error)}") from None
    try:
        if lock(descriptor, shared=shared) is False:
            problem = f"{_owner(folder)} is working on the model in this folder (wait for it, or choose another one)"
            raise DataError(f"{folder}: {problem}")
        yield
    finally:
        os.close(descriptor)


def _note_owner(folder: Path) -> None:
    now = datetime.now().isoformat(" ", "seconds")
    owner = f"process {os.getpid()} on {socket.gethostname()}, since {now},"
    try:
        (folder / OWNER).write_text(owner, encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> DataError:
    return DataError(f"{folder}: no model can be written here: {failure_reason(error)}")


def _owner(folder: Path) -> str:
    try:
        return (folder / OWNER).read_text(encoding="utf-8")
    except OSError:  # the other process is just beginning or ending
        return "another process"
