"""States of a frozen transformer, computed once and kept on the disk while a parser is trained on them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .word_pieces import WordPieces


class RememberedStates:
    """States of words in an unnamed file, which is gone as soon as this object is, or its process.

    Parameters
    ----------
    folder : Path
        Where the file is.
    shape : (M, K, H)
        Words of all sentences, layers, and size of a layer's states.
    """

    def __init__(self, folder: Path, shape: tuple[int, int, int]) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".mh4-")  # noqa: SIM115
        self._states = np.memmap(self._file, np.float16, "w+", shape=shape)
        self._rows: dict[bytes, slice] = {}
        self._filled = 0

    def add(self, sentences: Sequence[WordPieces], states: Tensor) -> None:
        """Keep the states (M, K, H), float16, of the words of some sentences."""
        first = self._filled
        self._states[first : first + len(states)] = states.numpy()
        for sentence in sentences:
            self._rows[sentence.key] = slice(self._filled, self._filled + len(sentence.counts))
            self._filled += len(sentence.counts)

    def of(self, sentences: Sequence[WordPieces]) -> Tensor | None:
        """The states of the words of some sentences, float16 (M, K, H); None unless all are known."""
        rows = [self._rows.get(sentence.key) for sentence in sentences]
        if None in rows:
            return None
        return torch.from_numpy(np.concatenate([self._states[own] for own in rows]))
