"""Structured and multiclass hinge losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mh4.decoders import Decoder, Derivation


class PartDifference(NamedTuple):
    """Parts of the predictions minus parts of the gold derivations of a batch; parts that cancel are gone.

    Attributes
    ----------
    sentences : int64 (P,)
    parts : int64 (P, 3), rows (channel, row, column), sorted by channel
    weights : float32 (P,), times predicted minus times gold
    cost : float
        Wrong heads in all predictions together.
    """

    sentences: np.ndarray
    parts: np.ndarray
    weights: np.ndarray
    cost: float


def cost_bonus(gold_heads: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Cost augmentation: float32 (B, size, size), 1 on every arc that is not gold, 0 on the gold arcs."""
    bonus = np.ones((len(gold_heads), size, size), np.float32)
    for sentence, heads in zip(bonus, gold_heads, strict=True):
        sentence[heads[1:], np.arange(1, len(heads))] = 0.0
    return bonus


def part_difference(predicted: Sequence[Derivation], gold: Sequence[Derivation]) -> PartDifference:
    """The bag of parts through which the gradient flows."""
    pairs = list(zip(predicted, gold, strict=True))
    derivations = [derivation for pair in pairs for derivation in pair]
    number = np.repeat(np.arange(len(derivations)), [len(derivation.parts) for derivation in derivations])
    channels, rows, columns = np.concatenate([derivation.parts for derivation in derivations]).T.astype(np.int64)
    size = max(len(derivation.heads) for derivation in derivations) + 1
    shape = (int(channels.max()) + 1, len(pairs), size, size)
    keys, inverse = np.unique(np.ravel_multi_index((channels, number // 2, rows, columns), shape), return_inverse=True)
    total = np.bincount(inverse, np.where(number % 2, -1.0, 1.0)).astype(np.float32)
    channels, sentences, rows, columns = np.unravel_index(keys[total != 0.0], shape)
    cost = sum(float(np.count_nonzero(one.heads != other.heads)) for one, other in pairs)
    return PartDifference(sentences, np.column_stack([channels, rows, columns]), total[total != 0.0], cost)


def find_violations(
    decoder: Decoder, scores: np.ndarray, gold_heads: Sequence[np.ndarray], threads: int | None = None
) -> PartDifference:
    """The best derivation, augmented by the cost, and the best one of the gold tree (Taskar et al. 2005).

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class
    """
    lengths = [len(heads) - 1 for heads in gold_heads]
    size = scores.shape[-1]
    predicted = decoder.decode_batch(scores, lengths, cost_bonus(gold_heads, size), threads)
    gold = decoder.derive_batch(scores, gold_heads, threads)
    return part_difference(predicted, gold)


def multiclass_hinge(scores: Tensor, gold: Tensor) -> Tensor:
    """Sum over rows of max(0, 1 + best wrong class − gold class). scores (M, K), gold int64 (M,)."""
    if scores.shape[1] < 2:
        return scores.sum() * 0.0
    right = scores.gather(1, gold[:, None]).squeeze(1)
    wrong = scores.scatter(1, gold[:, None], float("-inf")).amax(1)
    return torch.relu(1.0 + wrong - right).sum()
