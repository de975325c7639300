"""The interface of encoders, which make the context vectors of words from which everything else is predicted."""

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

OnReading = Callable[[int, int], None]  # takes the bytes of a file read so far, and in all


def unreported(done: int, total: int) -> None:
    """An `OnReading` that does nothing."""


class Words(Protocol):
    """A sentence, as encoders see it."""

    @property
    def forms(self) -> Sequence[str]:
        """The words of the sentence."""

    def __len__(self) -> int: ...


class Batch(Protocol):
    """B sentences as tensors, the input of an encoder."""

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
    """A file of an encoder has invalid content; ``name`` is the file's name in `Encoder.files`."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


class States(NamedTuple):
    """The output of an encoder for B sentences of up to T words; position 0 is the root."""

    trees: Tensor  # (B, T + 1, size), context vectors for trees and their labels
    tags: Tensor  # (B, T + 1, size), the same for tags
    words: Tensor | None = None  # (B, T, word_size), the vectors that go into the context vectors, if kept


@dataclass(frozen=True, config=STRICT)
class EncoderConfig:
    """Settings of an encoder; each kind of encoder has a subclass, with a default for ``kind``."""

    kind: str


class UnusableError(ValueError):
    """A source of a new encoder, such as a pretrained model, cannot be used; the message names it."""


class Reader(nn.Module, ABC, Generic[P, B]):
    """Base of modules that make vectors of words: whole encoders, and `WordSource`, which is a part of an encoder."""

    @abstractmethod
    def prepare(self, sentence: Words) -> P:
        """Turn a sentence into the module's input, such as ids of words; `collate` makes batches of that."""

    @abstractmethod
    def collate(self, sentences: Sequence[P]) -> B:
        """Make a batch of prepared sentences."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """The files to keep in the model folder, by name: all that is needed besides settings and learnt weights."""

    def cost(self, sentence: Words) -> int:
        """The cost of a sentence in a batch: its number of words or, with a transformer, of pieces."""
        return len(sentence)

    def remember(self, sentences: Sequence[Words], folder: Path) -> None:
        """Compute results for these sentences that never change in training, and keep them on disk.

        There may be a file in ``folder`` for as long as this object exists.
        """

    def forget(self) -> None:
        """Empty caches of words seen before, if there are any; results stay the same."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Optimizer groups of parameters with training settings of their own.

        Besides ``params``, a group may have ``factor``, a factor on the learning rate, or ``rate``, a learning rate of
        its own; ``warm_up``, the number of steps over which the rate rises; and ``clip``, the largest norm of its
        gradient, which is then clipped separately.
        """
        return []

    def halved(self) -> set[str]:
        """Names of learnt weights that the model folder keeps in half precision."""
        return set()


class Encoder(Reader[P, B]):
    """Turns words into one context vector per position.

    An encoder is made of its settings and its files, before training as well as after. `learn` makes the files of a new
    encoder, some of which may only serve to initialise it; a model folder holds the files that `files` returns. Frozen
    parameters (``requires_grad`` is False) are not among the weights of the model, and so have to come from the files.
    A trained encoder is created on ``torch.device("meta")``, without memory for the other parameters; frozen ones are
    made by NumPy or safetensors, which this does not affect.

    Attributes
    ----------
    config_type : subclass of EncoderConfig
    size : int
        The size of the context vectors.
    word_size : int
        The size of ``words`` in `States`; 0 if they are not kept.
    longest : int
        Number of words of the longest sentence that the encoder takes; longer sentences are parsed in pieces.
    treebanks : tuple of str
        The names of the treebanks that the encoder tells apart.
    """

    config_type: ClassVar[type[EncoderConfig]]
    size: int
    word_size: int = 0
    longest: int = sys.maxsize
    treebanks: tuple[str, ...] = ()

    @abstractmethod
    def __init__(self, config: Any, files: Mapping[str, bytes]) -> None:
        """FileError: A file has invalid content."""
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

        Nothing is learnt from ``dev``, but the vectors of its words in a file that the settings name are kept.
        ``treebanks`` are the names of the sentences' treebanks, if there are several to tell apart.

        UnusableError: The settings name something that cannot be used.
        """

    @abstractmethod
    def prepare(self, sentence: Words, treebank: str | None = None) -> P:
        """See `Reader`; ``treebank`` is one of `treebanks`, or None for a sentence of no particular one."""

    @abstractmethod
    def forward(self, batch: B) -> States:
        """Context vectors of all positions."""
