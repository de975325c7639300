"""Profiling by stages: time spent ``with stage("decode"):`` is added to the active `Profile`, if there is one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Profile:
    """Seconds by stage, summed over all threads that record on this profile.

    Attributes
    ----------
    seconds : dict
        Time in each stage, without the stages inside it.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the stages of this thread, and of functions wrapped by `booked_here` meanwhile, on this profile."""
        token = _running.set((self, None))
        try:
            yield
        finally:
            _running.reset(token)

    def add(self, name: str, seconds: float) -> None:
        """Add time to a stage."""
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


# The active profile of this thread, and its innermost open stage.
_running: ContextVar[tuple[Profile, _Stage | None] | None] = ContextVar("mh4_profile", default=None)
_NO_STAGE = nullcontext()


def stage(name: str) -> AbstractContextManager[None]:
    """Record the time of a ``with`` block under this name; time in inner stages counts only for these."""
    running = _running.get()
    return _NO_STAGE if running is None else _Stage(name, *running)


def booked_here(function: Callable[[], T]) -> Callable[[], T]:
    """Wrap a function so that its stages are recorded on the profile active here, whichever thread calls it."""
    running = _running.get()
    if running is None:
        return function

    def run() -> T:
        with running[0].recording():
            return function()

    return run
