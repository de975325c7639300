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
        descriptor = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        _lock(folder, descriptor)
        try:
            _note_owner(folder)
            yield
        finally:
            with suppress(OSError):  # not empty: it has a model, or other files
                (folder / OWNER).unlink(missing_ok=True)
                for parent in made:
                    parent.rmdir()
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def without_owner(folder: Path) -> Iterator[None]:
    """Nobody owns a folder until the block ends, so that what is read there belongs together; it may be read-only.

    DataError: Another process or thread owns the folder.
    """
    descriptor = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    try:
        _lock(folder, descriptor, shared=True)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(folder: Path, descriptor: int | None, *, shared: bool = False) -> None:
    if descriptor is not None and lock(descriptor, shared=shared) is False:
        raise DataError(
            f"{folder}: {_owner(folder)} is working on the model in this folder (wait for it, or choose another one)"
        )


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
