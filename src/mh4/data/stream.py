"""Streams: iterators over sentences that are read or parsed on demand."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from threading import RLock
from typing import Any, Generic, NoReturn, Self, TypeVar

from .guesses import STREAM, Guided

T = TypeVar("T")


class Stream(Guided, Iterator[T], Generic[T]):
    """An iterator that several threads may share; each item goes to one of them.

    It runs once: ``list(stream)`` keeps its items. `close`, or leaving a ``with`` block, stops the work behind it, such
    as reading files and splitting text.
    """

    _guesses = STREAM

    def __init__(self, items: Generator[T, None, None]) -> None:
        self._items = items
        self._lock = RLock()

    def __repr__(self) -> str:
        return "<Stream: yields sentences or documents one by one; list(…) keeps them>"

    def __next__(self) -> T:
        with self._lock:
            return next(self._items)

    def close(self) -> None:
        """Stop the stream and the work behind it."""
        with self._lock:
            self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        self._refuse("has no length")

    def __getitem__(self, index: Any) -> NoReturn:
        self._refuse("cannot be indexed")

    def _refuse(self, problem: str) -> NoReturn:
        raise TypeError(f"a stream of sentences {problem}; collect it with list(…) or mh4.Document(…) first")
