"""What an encoder is: it makes context vectors of words, from which everything else is predicted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn


class Batch(Protocol):
    """B sentences as tensors, as an encoder takes them."""

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, int64 (B,), on the host."""

    def to(self, device: torch.device) -> Self:
        """The same batch, to be encoded on ``device``."""


class States(NamedTuple):
    """What an encoder makes of B sentences of up to T words; position 0 is the root."""

    trees: Tensor  # (B, T + 1, size), context vectors for trees and their labels
    tags: Tensor  # (B, T + 1, size), the same for tags
    words: Tensor | None = None  # (B, T, word_size), vectors of the words alone, if it has such


class Encoder(nn.Module, ABC):
    """From words to one context vector per position.

    Attributes
    ----------
    size : int
        Of the context vectors.
    word_size : int
        Of the vectors of words alone; 0 without.
    """

    size: int
    word_size: int = 0

    @abstractmethod
    def collate(self, sentences: Sequence[Any]) -> Batch:
        """A batch of sentences, each given by what the vocabulary makes of it once, such as the ids of its words."""

    @abstractmethod
    def forward(self, batch: Any) -> States:
        """Vectors of all positions."""

    def forget(self) -> None:
        """Drop what is kept of words seen before to save time, if anything is; results stay the same."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters that are not to learn as fast as all others: ``params``, and ``factor`` of the learning rate."""
        return []
