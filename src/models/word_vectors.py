"""Frozen word vectors from a file, which covers words that no treebank has."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np
import torch
from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass
from safetensors.numpy import save
from torch import Tensor, nn

from .bilstm_config import BiLSTMConfig
from .checked import STRICT, Positive, as_json, checked
from .devices import send_together
from .encoder import FileError, HostBatch, OnReading, UnusableError, Words
from .frozen import read_tensors, shared
from .layers import SMALL, Linear, room
from .randomness import Random
from .vector_files import read_vectors
from .word_source import WordSource
from .word_vocabulary import UNKNOWN, by_frequency, normalise

WORDS, TABLE = "vectors.json", "vectors.safetensors"
ROWS = "vectors"  # name of the only tensor in the file of the table
_PART = 1 << 12  # rows to normalise at a time

log = logging.getLogger("mh4")


@checked_dataclass(frozen=True, config=STRICT)
class VectorWords:
    """The words of a table in the order of its rows, from 1; row 0 is for all other words.

    ``counts`` are the frequencies of words in the training text. ``coverage`` is the share of words with a vector among
    the words of the development text that are unseen in training.
    """

    words: list[str]
    counts: dict[str, Positive]
    coverage: Annotated[float, Field(ge=0, le=1)]


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
        if lacking := self.words.counts.keys() - self._index:
            raise FileError(WORDS, f"counts: {min(lacking)!r} is not among the words")
        tensors = read_tensors(TABLE, table)
        if tensors.keys() != {ROWS}:
            raise FileError(TABLE, f"holds {', '.join(sorted(tensors)) or 'nothing'} where {ROWS} is expected")
        self.rows = rows = tensors[ROWS]
        expected = len(self._index) + 1
        if rows.dim() != 2 or len(rows) != expected or rows.dtype is not torch.float16 or not rows.shape[1]:
            found = f"{rows.dtype} {tuple(rows.shape)}".removeprefix("torch.")
            raise FileError(TABLE, f"{ROWS} is {found} where float16 ({expected}, …) is expected")

    def ids(self, forms: Sequence[str]) -> np.ndarray:
        """The rows of words, int64 (n,); `UNKNOWN` for words without a vector."""
        return np.array([self._index.get(found_as(form, self._index), UNKNOWN) for form in forms])

    def unknown(self, strength: float) -> np.ndarray:
        """The probability that a row is hidden in training, float32 (N + 1,).

        Unseen words that lack vectors in parsing must also be met in training, so rare words lose their vectors at a
        rate that falls to 0 if every unseen word has a vector. The square root raises the rate: a word looks unseen
        only if its embedding, drawn independently, is hidden too.
        """
        shares = np.zeros(len(self.rows), np.float32)
        for word, count in self.words.counts.items():
            shares[self._index[word]] = (1.0 - self.words.coverage) * np.sqrt(strength / (strength + count))
        return shares

    def files(self) -> dict[str, bytes]:
        """The files that the table is made of."""
        return {WORDS: as_json(asdict(self.words)), TABLE: save({ROWS: self.rows.numpy()})}


def spellings(form: str) -> Iterator[str]:
    """The spellings under which a file may have a word: as it is, in lower case, in lower case with digits as 0."""
    yield form
    yield form.lower()
    yield normalise(form)


def found_as(form: str, words: Container[str]) -> str:
    """The first of the `spellings` of a word that is among ``words``, or the empty string."""
    return next((own for own in spellings(form) if own in words), "")


def _normalised(vectors: np.ndarray) -> np.ndarray:
    """Centred vectors of length 1, after a row of zeros: float32 (N, D) → float16 (N + 1, D).

    Longer vectors would drown the learnt ones, which begin as small as the output of `Linear` for vectors of length 1.
    """
    rows = np.zeros((len(vectors) + 1, vectors.shape[1]), np.float16)
    mean = vectors.mean(0, dtype=np.float64)
    for start in range(0, len(vectors), _PART):
        part = vectors[start : start + _PART] - mean
        size = np.linalg.norm(part, axis=1, keepdims=True)
        with np.errstate(under="ignore"):  # of numbers too small for float16
            rows[start + 1 : start + 1 + len(part)] = np.divide(part, size, out=np.zeros_like(part), where=size > 0)
    return rows


@dataclass(frozen=True)
class VectorBatch(HostBatch):
    """The words of B sentences, padded to T."""

    lengths: Tensor  # int64 (B,): words of each sentence
    ids: Tensor  # int64 (B, T): rows of the table, `UNKNOWN` for unknown words and padding


class WordVectors(WordSource[np.ndarray, VectorBatch], Random):
    """Frozen vectors through a linear layer, and a learnt vector for the words without one.

    In training a word's vector is hidden with probability ``block_dropout`` and, where unseen words lack vectors, with
    the probability of `VectorTable.unknown`. The table is not a parameter; it stays on the host, which sends only the
    rows that a batch needs.
    """

    def __init__(self, config: BiLSTMConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        self.table = shared(VectorTable, files[WORDS], files[TABLE])
        # Not a buffer, so that it stays on the host.
        shown = (1.0 - config.block_dropout) * (1.0 - self.table.unknown(config.word_unknown))
        self.hidden = torch.from_numpy(1.0 - shown)
        self.linear = Linear(self.table.rows.shape[1], config.word_size)
        self.unknown = nn.Parameter(room(config.word_size).uniform_(-SMALL, SMALL))

    @classmethod
    def learn(
        cls, config: BiLSTMConfig, train: Sequence[Words], dev: Sequence[Words], on_reading: OnReading
    ) -> dict[str, bytes]:
        learnt, others = (Counter(form for sentence in part for form in sentence.forms) for part in (train, dev))
        wanted = {own for form in learnt | others for own in spellings(form)}
        words, vectors = read_vectors(config.vectors, config.vectors_keep, wanted, on_reading)
        having = set(words)
        counts: Counter[str] = Counter()
        for form, count in learnt.items():
            if word := found_as(form, having):
                counts[word] += count
        if not counts:
            raise UnusableError(f"{config.vectors}: has no word of the treebank (is it of another language?)")
        seen = {normalise(form) for form in learnt}
        unseen = Counter({form: count for form, count in others.items() if normalise(form) not in seen})
        covered = sum(count for form, count in unseen.items() if found_as(form, having))
        coverage = covered / unseen.total() if unseen else 1.0
        log.info(
            "%s has vectors of %.1f %% of the words of the treebank, and of %.1f %% of those that are new in dev",
            config.vectors,
            100 * counts.total() / learnt.total(),
            100 * coverage,
        )
        known = VectorWords(words, by_frequency(counts), coverage)
        return {WORDS: as_json(asdict(known)), TABLE: save({ROWS: _normalised(vectors)})}

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
        if self.training:
            drawn = torch.rand(ids.shape, dtype=torch.float32, generator=self.generator())
            ids = ids.masked_fill(drawn < self.hidden[ids], UNKNOWN)
        rows, known = send_together([self.table.rows[ids], ids != UNKNOWN], batch.device)
        return torch.where(known[..., None], self.linear(rows.float()), self.unknown)
