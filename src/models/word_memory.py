"""Vectors of words that come again: what is computed from a word's characters alone is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

MOST_WORDS = 1 << 15
LONGEST_KEY = 256  # bytes; longer words hardly come again


class WordMemory:
    """Vectors by the characters they were computed from; any number of threads may share it.

    It holds `MOST_WORDS` at most, and those of one version of the weights.
    """

    def __init__(self) -> None:
        self._known: tuple[int, dict[bytes, np.ndarray]] = (-1, {})

    def forget(self) -> None:
        """Know nothing any more."""
        self._known = -1, {}

    def vectors(self, keys: Sequence[bytes], version: int, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The vectors (K, size) of words.

        Parameters
        ----------
        keys
            The characters of each.
        version
            Of the weights; with another one, nothing is known any more.
        compute
            Makes the vectors (M, size) of the words with the given indices, int64 (M,), M at least 1.
        """
        of, known = self._known  # another thread may put a new one in its place: all that follows is about this one
        if of != version or len(known) > MOST_WORDS:
            known = {}
            self._known = version, known
        rows = [known.get(key) for key in keys]
        missing = [i for i, row in enumerate(rows) if row is None]
        if missing:
            computed = compute(np.array(missing))
            for i, row in zip(missing, computed, strict=True):
                rows[i] = row
                if len(keys[i]) <= LONGEST_KEY:
                    known[keys[i]] = row
        return np.concatenate(rows).reshape(len(rows), -1)  # type: ignore[arg-type]
