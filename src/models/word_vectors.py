"""Frozen vectors of words from a file, which know words that no treebank has."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors.numpy import save
from torch import Tensor, nn

from .bilstm_config import BiLSTMConfig
from .checked import STRICT, as_json, checked
from .devices import HOST, send_together
from .encoder import FileError, OnReading, UnusableError, Words
from .frozen import read_tensors, shared
from .layers import SMALL, Linear, room
from .randomness import Random
from .vector_files import read_vectors
from .word_source import WordSource
from .word_vocabulary import UNKNOWN, normalise

WORDS, TABLE = "vectors.json", "vectors.safetensors"
ROWS = "vectors"  # the only tensor of the table
_PART = 1 << 12  # rows that are normalised at a time

log = logging.getLogger("mh4")


@checked_dataclass(frozen=True, config=STRICT)
class VectorWords:
    """The words of a table in the order of its rows, from 1; row 0 is that of all others."""

    words: list[str]


class VectorTable:
    """Words and their vectors.

    Attributes
    ----------
    words : VectorWords
    rows : float16 (N + 1, D), on the host
    """

    def __init__(self, words: bytes, table: bytes) -> None:
        try:
            self.words = checked(VectorWords, words)
        except ValueError as error:
            raise FileError(WORDS, str(error)) from None
        self._index = {word: index for index, word in enumerate(self.words.words, start=UNKNOWN + 1)}
        tensors = read_tensors(TABLE, table)
        if tensors.keys() != {ROWS}:
            raise FileError(TABLE, f"holds {', '.join(sorted(tensors)) or 'nothing'} where {ROWS} is expected")
        self.rows = rows = tensors[ROWS]
        expected = len(self._index) + 1
        if rows.dim() != 2 or len(rows) != expected or rows.dtype is not torch.float16 or not rows.shape[1]:
            found = f"{rows.dtype} {tuple(rows.shape)}".removeprefix("torch.")
            raise FileError(TABLE, f"{ROWS} is {found} where float16 ({expected}, …) is expected")

    def ids(self, forms: Sequence[str]) -> np.ndarray:
        """Rows int64 (n,) of words."""
        known = self._index
        return np.array([next((known[own] for own in spellings(form) if own in known), UNKNOWN) for form in forms])

    def files(self) -> dict[str, bytes]:
        """What it is made of."""
        return {WORDS: as_json({"words": self.words.words}), TABLE: save({ROWS: self.rows.numpy()})}


def spellings(form: str) -> Iterator[str]:
    """A word as files of vectors may have it: as it is, in lower case, with digits as 0."""
    yield form
    yield form.lower()
    yield normalise(form)


def _normalised(vectors: np.ndarray) -> np.ndarray:
    """float32 (N, D) → float16 (N + 1, D): less their mean, each of length √D; a row of zeros is in front."""
    rows = np.zeros((len(vectors) + 1, vectors.shape[1]), np.float16)
    mean = vectors.mean(0, dtype=np.float64)
    for start in range(0, len(vectors), _PART):
        part = vectors[start : start + _PART] - mean
        size = np.sqrt((part**2).mean(1, keepdims=True))
        rows[start + 1 : start + 1 + len(part)] = np.divide(part, size, out=np.zeros_like(part), where=size > 0)
    return rows


@dataclass(frozen=True)
class VectorBatch:
    """The words of B sentences, padded to T."""

    lengths: Tensor  # int64 (B,): words of each sentence
    ids: Tensor  # int64 (B, T): rows of the table, `UNKNOWN` for unknown words and padding
    device: torch.device = HOST

    def to(self, device: torch.device) -> VectorBatch:
        """The same batch for ``device``."""
        return replace(self, device=device)


class WordVectors(WordSource[np.ndarray, VectorBatch], Random):
    """Frozen vectors through a linear layer, and a learnt vector for the words without one.

    In training a word is treated as one without with probability ``block_dropout``. The table is no parameter and stays
    on the host, which sends the rows of a batch.
    """

    def __init__(self, config: BiLSTMConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        self.table = shared(VectorTable, files[WORDS], files[TABLE])
        self.block_dropout = config.block_dropout
        self.linear = Linear(self.table.rows.shape[1], config.word_size)
        self.unknown = nn.Parameter(room(config.word_size).uniform_(-SMALL, SMALL))

    @classmethod
    def learn(
        cls, config: BiLSTMConfig, train: Sequence[Words], dev: Sequence[Words], on_reading: OnReading
    ) -> dict[str, bytes]:
        forms = [form for sentences in (train, dev) for sentence in sentences for form in sentence.forms]
        wanted = {own for form in set(forms) for own in spellings(form)}
        words, vectors = read_vectors(config.vectors, config.vectors_keep, wanted, on_reading)
        having = set(words)
        share = np.mean([not having.isdisjoint(spellings(form)) for form in forms])
        if not share:
            raise UnusableError(f"{config.vectors}: has no word of the treebank (is it of another language?)")
        log.info("%s has vectors of %.1f %% of the words of the treebanks", config.vectors, 100 * share)
        return {WORDS: as_json({"words": words}), TABLE: save({ROWS: _normalised(vectors)})}

    def files(self) -> dict[str, bytes]:
        return self.table.files()

    def prepare(self, sentence: Words) -> np.ndarray:
        return self.table.ids(sentence.forms)

    def collate(self, sentences: Sequence[np.ndarray]) -> VectorBatch:
        lengths = np.array([len(ids) for ids in sentences])
        padded = np.full((len(sentences), lengths.max()), UNKNOWN)
        for row, ids in zip(padded, sentences, strict=True):
            row[: len(ids)] = ids
        return VectorBatch(torch.from_numpy(lengths), torch.from_numpy(padded))

    def forward(self, batch: VectorBatch) -> Tensor:
        ids = batch.ids
        if self.training and self.block_dropout:
            drawn = torch.rand(ids.shape, dtype=torch.float32, generator=self.generator())
            ids = ids.masked_fill(drawn < self.block_dropout, UNKNOWN)
        rows, known = send_together([self.table.rows[ids], ids != UNKNOWN], batch.device)
        return torch.where(known[..., None], self.linear(rows.float()), self.unknown)
