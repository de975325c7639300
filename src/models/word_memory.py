"""A cache of word vectors that are computed from a word's characters alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

MOST_WORDS = 1 << 15
LONGEST_KEY = 256  # bytes; longer words rarely recur


class WordMemory:
    """Vectors by the characters that they were computed from; any number of threads may share the cache.

    It is emptied when it holds more than `MOST_WORDS` words, or when the weights change.
    """

    def __init__(self) -> None:
        self._known: tuple[int, dict[bytes, np.ndarray]] = (-1, {})

    def forget(self) -> None:
        """Empty the cache."""
        self._known = -1, {}

    def vectors(self, keys: Sequence[bytes], version: int, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The vectors (K, size) of words.

        Parameters
        ----------
        keys
            The characters of each word.
        version
            The version of the weights; another one than before empties the cache.
        compute
            Computes the vectors (M, size) of the words with the given indices, int64 (M,), where M is at least 1.
        """
        of, known = self._known  # another thread may replace it; this call keeps to this one
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
