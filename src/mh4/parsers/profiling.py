"""Where the time goes: what runs ``with stage("decode"):`` is booked on the profile that records, if one does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Profile:
    """Seconds by stage, of all threads that book on it.

    Attributes
    ----------
    seconds : dict
        Of each stage, less those of the stages inside it.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Book the stages inside on this profile, those of this thread and of what `booked_here` takes along."""
        token = _running.set((self, None))
        try:
            yield
        finally:
            _running.reset(token)

    def add(self, name: str, seconds: float) -> None:
        """Book some time on a stage."""
        with self._lock:
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())

    @property
    def shares(self) -> dict[str, float]:
        """Share of each stage in the total, 0 to 1."""
        total = self.total
        return {name: seconds / total for name, seconds in self.seconds.items()} if total else {}


class _Stage:
    def __init__(self, name: str, profile: Profile, outer: _Stage | None) -> None:
        self._name, self._profile, self._outer = name, profile, outer
        self._inner = 0.0

    def __enter__(self) -> None:
        self._token = _running.set((self._profile, self))
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        _running.reset(self._token)
        self._profile.add(self._name, seconds - self._inner)
        if self._outer is not None:
            self._outer._inner += seconds


# The profile that records in this thread, and the innermost stage it is in.
_running: ContextVar[tuple[Profile, _Stage | None] | None] = ContextVar("mh4_profile", default=None)
_NO_STAGE = nullcontext()


def stage(name: str) -> AbstractContextManager[None]:
    """A stage of the work, ``with stage("encode"):``; the time of one inside another is its own."""
    running = _running.get()
    return _NO_STAGE if running is None else _Stage(name, *running)


def booked_here(function: Callable[[], T]) -> Callable[[], T]:
    """The function, booked on the profile that records here, whichever thread calls it."""
    running = _running.get()
    if running is None:
        return function

    def run() -> T:
        with running[0].recording():
            return function()

    return run
