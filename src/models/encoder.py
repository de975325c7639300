"""What an encoder is: it makes context vectors of words, from which everything else is predicted."""

from __future__ import annotations

import dataclasses
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from .checked import STRICT
from .devices import HOST

P = TypeVar("P")
B = TypeVar("B", bound="Batch")

OnReading = Callable[[int, int], None]  # is told how much of a file is read, and of how much, in bytes


def unreported(done: int, total: int) -> None:
    """An `OnReading` that tells nobody."""


class Words(Protocol):
    """A sentence, as encoders know it."""

    @property
    def forms(self) -> Sequence[str]:
        """Its words."""

    def __len__(self) -> int: ...


class Batch(Protocol):
    """B sentences as tensors, as an encoder takes them."""

    @property
    def lengths(self) -> Tensor:
        """Words of each sentence, int64 (B,), on the host."""

    def to(self, device: torch.device) -> Self:
        """The same batch, to be encoded on ``device``."""


@dataclasses.dataclass(frozen=True)
class HostBatch:
    """A batch on the host, and the device on which it is to be computed."""

    device: torch.device = dataclasses.field(default=HOST, kw_only=True)

    def to(self, device: torch.device) -> Self:
        """The same batch for ``device``."""
        return dataclasses.replace(self, device=device)


class FileError(ValueError):
    """A file of an encoder, named by its name in `Encoder.files`, that does not hold what it should."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


class States(NamedTuple):
    """What an encoder makes of B sentences of up to T words; position 0 is the root."""

    trees: Tensor  # (B, T + 1, size), context vectors for trees and their labels
    tags: Tensor  # (B, T + 1, size), the same for tags
    words: Tensor | None = None  # (B, T, word_size), vectors of the words alone, if it has such


@dataclass(frozen=True, config=STRICT)
class EncoderConfig:
    """Settings of an encoder of some kind; those of each kind are a subclass, with a default for ``kind``."""

    kind: str


class UnusableError(ValueError):
    """What a new encoder is to be made of, such as a pretrained model, cannot be used; the message names it."""


class Reader(nn.Module, ABC, Generic[P, B]):
    """What makes vectors of the words of sentences: a whole encoder, or a `WordSource`, which is a part of one."""

    @abstractmethod
    def prepare(self, sentence: Words) -> P:
        """What it sees of a sentence, such as ids of words; `collate` makes batches of that."""

    @abstractmethod
    def collate(self, sentences: Sequence[P]) -> B:
        """A batch of some sentences."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """What it adds to the model folder, by name: all that it needs beside its settings and the learnt weights."""

    def cost(self, sentence: Words) -> int:
        """How much of a batch a sentence takes, in words of the usual length."""
        return len(sentence)

    def remember(self, sentences: Sequence[Words], folder: Path) -> None:
        """Compute what never changes and is needed again and again for these sentences, and keep it on the disk.

        Until this object is gone there may be a file in ``folder``.
        """

    def forget(self) -> None:
        """Drop what is kept of words seen before to save time, if anything is; results stay the same."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters that learn otherwise than all others: ``params``, and how, where that differs.

        ``factor`` is that of the learning rate, or ``rate`` a learning rate of their own; ``warm_up`` is the number of
        steps over which it rises; ``clip`` is the largest norm of their gradient, which is then cut by itself.
        """
        return []

    def halved(self) -> set[str]:
        """Names of learnt weights that the model folder keeps in half precision."""
        return set()


class Encoder(Reader[P, B]):
    """From words to one context vector per position.

    Made of its settings and of its files, whether it is to be trained or has been: `learn` makes the files of a new
    one, some of them perhaps only to begin with; a model folder holds those that `files` returns. Parameters that do
    not learn (``requires_grad`` is False) are not among the weights of the model, and so have to come from the files.
    A trained encoder is made without memory for the others (``torch.device("meta")``): what comes from files is made by
    NumPy or by safetensors.

    Attributes
    ----------
    config_type : subclass of EncoderConfig
    size : int
        Of the context vectors.
    word_size : int
        Of the vectors of words alone; 0 without.
    longest : int
        Words of the longest sentence that it takes; longer ones are parsed in pieces.
    treebanks : tuple of str
        Names of the treebanks that it tells apart.
    """

    config_type: ClassVar[type[EncoderConfig]]
    size: int
    word_size: int = 0
    longest: int = sys.maxsize
    treebanks: tuple[str, ...] = ()

    @abstractmethod
    def __init__(self, config: Any, files: Mapping[str, bytes]) -> None:
        """FileError: A file does not hold what it should."""
        super().__init__()

    @classmethod
    @abstractmethod
    def learn(
        cls,
        config: Any,
        train: Sequence[Words],
        dev: Sequence[Words] = (),
        on_reading: OnReading = unreported,
        treebanks: Sequence[str] = (),
    ) -> dict[str, bytes]:
        """The files of a new encoder, from its settings and training sentences.

        Of ``dev`` nothing is learnt; what its words have in a file that the settings name is kept. ``treebanks`` are
        the names of those that sentences come from, if there are several to tell apart.

        UnusableError: The settings name something that cannot be used.
        """

    @abstractmethod
    def prepare(self, sentence: Words, treebank: str | None = None) -> P:
        """See `Reader`; ``treebank`` is one of `treebanks`, or None for a sentence of no particular one."""

    @abstractmethod
    def forward(self, batch: B) -> States:
        """Vectors of all positions."""
