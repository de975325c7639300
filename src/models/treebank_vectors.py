"""A learnt vector for each of several treebanks, added to the vectors of its words (Stymne et al. 2018)."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from .checked import STRICT, as_json, checked
from .encoder import FileError
from .layers import SMALL, room

NAMES = "treebanks.json"  # file of an encoder that was trained on several treebanks

_NAME = re.compile(r"[^\s=]+")


def check_name(name: Any) -> None:
    """Raise ValueError unless a treebank may have this name, which messages show and ``NAME=FILE`` must tell apart."""
    if not (isinstance(name, str) and _NAME.fullmatch(name) and name.isprintable()):
        raise ValueError(f"a treebank's name has no white space, '=' or control characters; got {reprlib.repr(name)}")


def _valid(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("a treebank is named twice")
    for name in names:
        check_name(name)
    return names


@dataclass(frozen=True, config=STRICT)
class _Names:
    treebanks: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_valid)]


class TreebankVectors(nn.Module):
    """One vector for each treebank; a sentence of no particular treebank gets their mean (Wagner et al. 2020).

    Attributes
    ----------
    names : tuple of str
        The names of the K treebanks.
    """

    def __init__(self, size: int, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names
        self.vectors = nn.Parameter(room(len(names), size).uniform_(-SMALL, SMALL))

    @staticmethod
    def names_in(files: Mapping[str, bytes]) -> tuple[str, ...]:
        """The names of the treebanks that an encoder with these files was trained on; () if they had no names.

        FileError: The file of names is not valid.
        """
        if NAMES not in files:
            return ()
        try:
            return checked(_Names, files[NAMES]).treebanks
        except ValueError as error:
            raise FileError(NAMES, str(error)) from None

    @staticmethod
    def files_of(names: Sequence[str]) -> dict[str, bytes]:
        """The file that `names_in` reads; {} without names."""
        return {NAMES: as_json({"treebanks": list(names)})} if names else {}

    def shares(self, treebank: str | None) -> Tensor:
        """The weight of each vector for a sentence of a treebank, float32 (K,), on the host; equal weights for None."""
        if treebank is None:
            return torch.full((len(self.names),), 1 / len(self.names), dtype=torch.float32)
        return (torch.arange(len(self.names)) == self.names.index(treebank)).float()

    def forward(self, shares: Tensor) -> Tensor:
        """Sums of the vectors, weighted by `shares`: (B, K) → (B, 1, size)."""
        return (shares[..., None] * self.vectors).sum(1, keepdim=True)
