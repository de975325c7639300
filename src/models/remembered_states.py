"""States of a frozen transformer, computed once and kept on disk while a parser is trained on them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .word_pieces import WordPieces


class RememberedStates:
    """States of words in an unnamed temporary file, which disappears with this object or its process.

    Parameters
    ----------
    folder : Path
        The folder for the file.
    shape : (M, K, H)
        Number of words in all sentences, number of layers, and size of a layer's states.
    """

    def __init__(self, folder: Path, shape: tuple[int, int, int]) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".mh4-")  # noqa: SIM115
        self._states = np.memmap(self._file, np.float16, "w+", shape=shape)
        self._rows: dict[bytes, slice] = {}
        self._filled = 0

    def add(self, sentences: Sequence[WordPieces], states: Tensor) -> None:
        """Store the float16 states (M, K, H) of the M words of ``sentences``."""
        first = self._filled
        self._states[first : first + len(states)] = states.numpy()
        for sentence in sentences:
            self._rows[sentence.key] = slice(self._filled, self._filled + len(sentence.counts))
            self._filled += len(sentence.counts)

    def of(self, sentences: Sequence[WordPieces]) -> Tensor | None:
        """The stored states of the words of ``sentences``, float16 (M, K, H); None unless all sentences are stored."""
        rows = [self._rows.get(sentence.key) for sentence in sentences]
        if None in rows:
            return None
        return torch.from_numpy(np.concatenate([self._states[own] for own in rows]))
