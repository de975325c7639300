"""Locks of runs: several workers, on one or more machines that share a folder, never do the same run at once.

A lock file names its holder, which touches it every few seconds. A lock is *stale*, and the next worker that asks for
it takes it over, if its holder is a process of this machine that no longer exists, or if it was not touched for long.
Reading and changing a lock file happens under a short `flock` on a guard file in the same folder, so two workers never
take over the same lock; "long" is measured by the clock of the file system, so the machines' clocks need not agree.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

STALE_SECONDS = 600.0
BEAT_SECONDS = 15.0
_GUARD = ".guard"


class LockLostError(RuntimeError):
    """Another worker has taken this lock over, because its holder seemed dead."""


@dataclass(frozen=True)
class Holder:
    """The holder of a lock: name of the machine or container, process id, its start in clock ticks, random token."""

    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def this_process(cls) -> Holder:
        """The running process, with a new token."""
        return cls(_host(), os.getpid(), _start_of(os.getpid()), secrets.token_hex(8))

    def is_gone(self) -> bool:
        """Whether the holder is known to be dead; always False for processes of other machines."""
        if self.host != _host():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # a process of another user
            pass
        return _start_of(self.pid) != self.started  # the process id was reused


def _host() -> str:
    namespace = Path("/proc/self/ns/pid")  # containers may share a host name, but not process ids
    return f"{socket.gethostname()} {os.readlink(namespace)}" if namespace.is_symlink() else socket.gethostname()


def _start_of(pid: int) -> str:
    """The kernel's start time of a process; empty if it cannot be read or the process is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


@contextmanager
def _guard(folder: Path) -> Iterator[Path]:
    path = folder / _GUARD
    with open(path, "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield path


class RunLock:
    """A lock held by this process; as a context manager, it keeps the lock fresh and releases it at the end.

    Attributes
    ----------
    taken_over : Holder or None
        The dead previous holder; None if there was none or it is unknown.
    """

    def __init__(self, path: Path, holder: Holder, taken_over: Holder | None, on_beat: Callable[[], None]) -> None:
        self.path = path
        self.holder = holder
        self.taken_over = taken_over
        self._on_beat = on_beat
        self._lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    @classmethod
    def acquire(
        cls, path: Path, stale_seconds: float = STALE_SECONDS, on_beat: Callable[[], None] = lambda: None
    ) -> RunLock | None:
        """Take a lock; None if a living worker holds it.

        Parameters
        ----------
        path
            The lock file; its folder must exist.
        stale_seconds : float
            Time without a touch after which a lock is free.
        on_beat
            Called in another thread every few seconds while the lock is held.
        """
        with _guard(path.parent) as guard:
            before = _read(path)
            if before is not None and not before.is_gone():
                os.utime(guard)
                if guard.stat().st_mtime - path.stat().st_mtime < stale_seconds:
                    return None
            holder = Holder.this_process()
            path.write_text(json.dumps(asdict(holder)), encoding="utf-8")
        return cls(path, holder, before, on_beat)

    def check(self) -> None:
        """Raise LockLostError if another worker is known to have taken the lock over."""
        if self._lost:
            raise LockLostError(f"{self.path} was taken over")

    @contextmanager
    def still_held(self) -> Iterator[None]:
        """Context in which no other worker can take the lock over; LockLostError if one already has."""
        with _guard(self.path.parent):
            self._lost |= _read(self.path) != self.holder
            self.check()
            yield

    def _beat(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            with _guard(self.path.parent):
                if _read(self.path) != self.holder:
                    self._lost = True
                    return
                os.utime(self.path)
            self._on_beat()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        with _guard(self.path.parent):
            if _read(self.path) == self.holder:
                self.path.unlink()


def _read(path: Path) -> Holder | None:
    """The holder named in a lock file; None without a file, or if a worker died while writing it."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def holder_of(path: Path) -> Holder | None:
    """The present holder of a lock, living or dead; None if there is none."""
    with _guard(path.parent):
        return _read(path)
