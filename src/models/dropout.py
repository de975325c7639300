"""Dropout; on the CPU, masks come from a compiled loop, which is several times faster than PyTorch's generator."""

from collections.abc import Sequence

import numpy as np
import torch
from llvmlite import ir
from numba import njit, types
from torch import Tensor, nn

from mh4.decoders.lanes import intrinsic

from .randomness import Random


@intrinsic
def _hashed(typing_context, index, seed):
    """A 32-bit hash of an index and 64 bits of seed, by shifts and odd factors (C. Wellons' "lowbias32")."""

    def generate(context, builder, signature, arguments):
        integer = ir.IntType(32)
        index, seed = arguments
        bits = builder.add(builder.trunc(index, integer), builder.trunc(seed, integer))
        second_seed = builder.trunc(builder.lshr(seed, ir.Constant(seed.type, 32)), integer)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            bits = builder.xor(bits, builder.lshr(bits, ir.Constant(integer, shift)))
            bits = builder.add(builder.mul(bits, ir.Constant(integer, factor)), second_seed)
        return builder.xor(bits, builder.lshr(bits, ir.Constant(integer, 16)))

    return types.int32(types.int64, types.int64), generate


@njit(cache=True, nogil=True)
def _fill(mask, kept, scale, seed):
    """``scale`` where the hash of the index is below ``kept``, else 0."""
    for i in range(mask.shape[0]):
        mask[i] = scale if _hashed(i, seed) < kept else np.float32(0.0)


def dropout_mask(shape: Sequence[int], p: float, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A float32 mask on the device of ``like``: 0 with probability p, else 1 / (1 − p)."""
    keep = 1.0 - p
    if like.device.type != "cpu":
        return like.new_empty(shape).bernoulli_(keep, generator=generator).div_(keep)
    mask = torch.empty(tuple(shape), dtype=torch.float32)
    seed = int(torch.randint(-(2**63), 2**63 - 1, (), generator=generator))
    _fill(mask.view(-1).numpy(), np.int32(round(keep * (2**32 - 1)) - 2**31), np.float32(1.0 / keep), np.int64(seed))
    return mask


class Dropout(nn.Module, Random):
    """Inverted dropout in training, at a rate that may rise as training goes on (Morerio et al. 2017).

    Attributes
    ----------
    rate : float
        The full rate.
    share : float
        The factor on it that is in force, 0 to 1.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.share = 1.0

    @property
    def current(self) -> float:
        """The rate in force; 0 outside training."""
        return self.rate * self.share if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with single elements dropped."""
        if not self.current:
            return x
        return x * self._mask(x.shape, x)

    def by_sequence(self, x: Tensor, sequence_of: Tensor, count: int) -> Tensor:
        """``x`` (P, C) with one mask for each of ``count`` sequences (Gal & Ghahramani 2016).

        ``sequence_of``, int64 (P,), is the sequence of each row.
        """
        if not self.current:
            return x
        return x * self._mask((count, x.shape[1]), x).index_select(0, sequence_of)

    def _mask(self, shape: Sequence[int], like: Tensor) -> Tensor:
        return dropout_mask(shape, self.current, like, self.generator(like.device))
