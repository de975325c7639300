"""Locks of runs: several workers, on one or more machines that share a folder, never do the same run at once.

The file of a lock names its holder, who touches it every few seconds. A lock is *stale*, and taken over by the next who
asks for it, when its holder is a process of this machine that is gone, or when it was not touched for long. Looking at
a lock file and changing it happens under a short `flock` on a guard file in the same folder, so two workers never take
over the same lock; "long" is measured by the clock of the file system, so the machines' clocks need not agree.
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
    """Another worker took this lock over, because its holder seemed to be dead."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: the machine (or container) by name, the process, its start in clock ticks, a secret."""

    host: str
    pid: int
    started: str
    token: str

    @classmethod
    def this_process(cls) -> Holder:
        """The running process, with a new token."""
        return cls(_host(), os.getpid(), _start_of(os.getpid()), secrets.token_hex(8))

    def is_gone(self) -> bool:
        """Whether it is known to be dead; of another machine's processes nothing is known."""
        if self.host != _host():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # somebody else's process
            pass
        return _start_of(self.pid) != self.started  # the number was given to another process


def _host() -> str:
    namespace = Path("/proc/self/ns/pid")  # containers may share a name, but process ids mean nothing across them
    return f"{socket.gethostname()} {os.readlink(namespace)}" if namespace.is_symlink() else socket.gethostname()


def _start_of(pid: int) -> str:
    """Start time of a process as the kernel gives it; empty where it cannot be read, or of a zombie."""
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
    """A lock that is held; a context manager that keeps it fresh and gives it back.

    Attributes
    ----------
    taken_over : Holder or None
        The dead holder before; None if there was none, or an unknown one.
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
        """Take a lock, unless a living worker holds it.

        Parameters
        ----------
        path
            The lock's file, in a folder that exists.
        stale_seconds : float
            A lock that was not touched for so long is free.
        on_beat
            Called every few seconds while the lock is held, in another thread.
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
        """LockLostError if another worker is known to have taken the lock over."""
        if self._lost:
            raise LockLostError(f"{self.path} was taken over")

    @contextmanager
    def still_held(self) -> Iterator[None]:
        """A block that nobody can take the lock over within; LockLostError if somebody already has."""
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
    """The holder in a lock file; None without one, or where a worker died while writing it."""
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def holder_of(path: Path) -> Holder | None:
    """Who holds a lock now, living or dead."""
    with _guard(path.parent):
        return _read(path)
