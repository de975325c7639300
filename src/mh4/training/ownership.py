"""One training owns a model folder: a second one, resumed or not, is told who does."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from mh4.data.errors import DataError

LOCK, OWNER = ".lock", ".owner"


@contextmanager
def sole_owner(folder: Path) -> Iterator[None]:
    """Own a folder, which is made if it is not there, until the block or the process ends.

    The system gives the lock back when a process dies, however it does, so none is ever stale.

    Raises
    ------
    DataError
        Another process owns the folder, or it cannot be written to.
    """
    made = not folder.exists()
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            f"{folder}: {_owner(folder)} is training a model in this folder (wait for it, or choose another one)"
        ) from None
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise DataError(f"{folder}: no model can be written here: {reason}") from None
    try:
        now = datetime.now().isoformat(" ", "seconds")
        (folder / OWNER).write_text(f"process {os.getpid()} on {socket.gethostname()}, since {now},", encoding="utf-8")
        yield
    finally:
        (folder / OWNER).unlink(missing_ok=True)
        if made and {path.name for path in folder.iterdir()} <= {LOCK}:  # it came to nothing
            with suppress(OSError):
                (folder / LOCK).unlink()
                folder.rmdir()
        lock.release()


def _owner(folder: Path) -> str:
    try:
        return (folder / OWNER).read_text(encoding="utf-8")
    except OSError:  # it has only just begun, or is about to end
        return "another process"
