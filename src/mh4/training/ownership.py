"""One training owns a model folder: a second one, resumed or not, is told who does."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from mh4.data.errors import DataError
from mh4.data.files import failure_reason, lock

OWNER = ".owner"  # who it is, for messages


@contextmanager
def sole_owner(folder: Path) -> Iterator[None]:
    """Own a folder, which is made if it is not there, until the block or the process ends. Empty, it goes again.

    The folder itself is locked, and the system gives the lock back however a process ends: it is never stale. On
    systems or file systems without such locks (`mh4.data.files.lock`) there is nobody to tell of another training.

    DataError: Another process, or another thread, owns the folder; or it cannot be made.
    """
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY) if os.name == "posix" else None
    except OSError as error:
        raise DataError(f"{folder}: no model can be written here: {failure_reason(error)}") from None
    try:
        if descriptor is not None and lock(descriptor) is False:
            raise DataError(
                f"{folder}: {_owner(folder)} is training a model in this folder (wait for it, or choose another one)"
            )
        now = datetime.now().isoformat(" ", "seconds")
        (folder / OWNER).write_text(f"process {os.getpid()} on {socket.gethostname()}, since {now},", encoding="utf-8")
        try:
            yield
        finally:
            (folder / OWNER).unlink(missing_ok=True)
            with suppress(OSError):  # not empty: there is a model, or what somebody else has put there
                for parent in made:
                    parent.rmdir()
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _owner(folder: Path) -> str:
    try:
        return (folder / OWNER).read_text(encoding="utf-8")
    except OSError:  # it has only just begun, or is about to end
        return "another process"
