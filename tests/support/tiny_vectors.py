"""A small file of word vectors."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np


def make_vectors(path: Path, words: Iterable[str], size: int = 6, seed: int = 1) -> Path:
    """Write random vectors in word2vec's text format; repeated words are written once."""
    words = list(dict.fromkeys(words))
    rows = np.random.default_rng(seed).normal(size=(len(words), size))
    lines = [f"{word} {' '.join(f'{number:.4f}' for number in row)}\n" for word, row in zip(words, rows, strict=True)]
    path.write_text(f"{len(words)} {size}\n{''.join(lines)}", encoding="utf-8")
    return path
