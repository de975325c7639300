"""What an encoder is: it makes context vectors of words, from which everything else is predicted."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn


class Batch(Protocol):
    """B sentences as tensors, as an encoder takes them."""

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, int64 (B,), on the host."""

    def to(self, device: torch.device) -> Self:
        """The same batch, to be encoded on ``device``."""


class Encoder(nn.Module, ABC):
    """From words to one context vector per position.

    Attributes
    ----------
    size : int
        Of the context vectors.
    """

    size: int

    @abstractmethod
    def collate(self, sentences: Sequence[Any]) -> Batch:
        """A batch of sentences, each given by what the vocabulary makes of it once, such as the ids of its words."""

    @abstractmethod
    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """States of all positions, (B, T + 1, size), the root first: of trees and their labels, and of the taggers."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters that are not to learn as fast as all others: ``params``, and ``factor`` of the learning rate."""
        return []
