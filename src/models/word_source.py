"""Sources of word vectors; an encoder adds up the vectors of all its sources."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from .encoder import B, Batch, OnReading, P, Reader, Words


class WordSource(Reader[P, B]):
    """A source of word vectors, such as learnt embeddings or the states of a language model."""

    @abstractmethod
    def __init__(self, config: Any, files: Mapping[str, bytes]) -> None:
        """See `Encoder`."""
        super().__init__()

    @classmethod
    @abstractmethod
    def learn(
        cls, config: Any, train: Sequence[Words], dev: Sequence[Words], on_reading: OnReading
    ) -> Mapping[str, bytes]:
        """See `Encoder.learn`."""

    @abstractmethod
    def forward(self, batch: B) -> Tensor:
        """Word vectors (B, T, size)."""


@dataclass(frozen=True)
class JointBatch:
    """A batch of the same sentences for each source, and the sentences' treebanks."""

    batches: tuple[Batch, ...]
    treebanks: Tensor | None = None  # float32 (B, K), on the host; see `TreebankVectors.shares`

    @property
    def lengths(self) -> Tensor:
        """int64 (B,): words of each sentence, on the host."""
        return self.batches[0].lengths

    def to(self, device: torch.device) -> JointBatch:
        """The same batch for ``device``."""
        return replace(self, batches=tuple(batch.to(device) for batch in self.batches))

    @classmethod
    def of(cls, sources: Sequence[Reader[Any, Any]], sentences: Sequence[Sequence[Any]]) -> JointBatch:
        """Collate sentences, each a tuple of what the sources prepared, in the order of ``sources``."""
        own = zip(*sentences, strict=True)
        return cls(tuple(source.collate(parts) for source, parts in zip(sources, own, strict=True)))
