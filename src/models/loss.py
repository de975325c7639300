"""Structured and multiclass hinge losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
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


@njit(cache=True, nogil=True)
def _mark_gold(bonus, heads, ends):
    start = 0
    for b in range(ends.shape[0]):
        for d in range(1, ends[b] - start):
            bonus[b, heads[start + d], d] = 0.0
        start = ends[b]


def cost_bonus(gold_heads: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Cost augmentation: float32 (B, size, size), 1 on every arc that is not one of the B trees, 0 on those of them."""
    bonus = np.ones((len(gold_heads), size, size), np.float32)
    _mark_gold(bonus, np.concatenate(gold_heads), np.cumsum([len(heads) for heads in gold_heads]))
    return bonus


@njit(cache=True, nogil=True)
def _cancel(parts, ends, counts, sentences, left, weights):
    """What is left of parts, of a prediction and a gold derivation in turn, ending at ``ends``; how many they are.

    Parameters
    ----------
    parts : (T, 3)
    ends : (2 · B,)
    counts : (channels, N, N), zeros
    sentences, left, weights : (T,), (T, 3) and (T,), filled, sorted by channel
    """
    found = np.empty(len(parts), np.int64)
    sentence_of = np.empty(len(parts), np.int64)
    amounts = np.empty(len(parts), np.float32)
    of_channel = np.zeros(counts.shape[0] + 1, np.int64)
    total = 0
    for pair in range(len(ends) // 2):
        start, middle, end = ends[2 * pair - 1] if pair else 0, ends[2 * pair], ends[2 * pair + 1]
        for p in range(start, end):
            channel, row, column = parts[p, 0], parts[p, 1], parts[p, 2]
            counts[channel, row, column] += 1.0 if p < middle else -1.0
        for p in range(start, end):
            channel, row, column = parts[p, 0], parts[p, 1], parts[p, 2]
            amount = counts[channel, row, column]
            if amount != 0.0:
                found[total], sentence_of[total], amounts[total] = p, pair, amount
                of_channel[channel + 1] += 1
                total += 1
                counts[channel, row, column] = 0.0
    position = np.cumsum(of_channel)
    for t in range(total):
        p = found[t]
        at = position[parts[p, 0]]
        position[parts[p, 0]] += 1
        sentences[at], weights[at] = sentence_of[t], amounts[t]
        left[at, 0], left[at, 1], left[at, 2] = parts[p, 0], parts[p, 1], parts[p, 2]
    return total


def part_difference(predicted: Sequence[Derivation], gold: Sequence[Derivation]) -> PartDifference:
    """The bag of parts through which the gradient flows."""
    pairs = list(zip(predicted, gold, strict=True))
    all_parts = [derivation.parts for pair in pairs for derivation in pair]
    parts = np.concatenate(all_parts)
    size = max(len(derivation.heads) for derivation in predicted) + 1
    counts = np.zeros((int(parts[:, 0].max()) + 1, size, size), np.float32)
    sentences, left = np.empty(len(parts), np.int64), np.empty((len(parts), 3), np.int64)
    weights = np.empty(len(parts), np.float32)
    count = _cancel(parts, np.cumsum([len(own) for own in all_parts]), counts, sentences, left, weights)
    heads = (np.concatenate([derivation.heads for derivation in own]) for own in (predicted, gold))
    cost = float(np.count_nonzero(np.not_equal(*heads)))
    return PartDifference(sentences[:count], left[:count], weights[:count], cost)


def find_violations(
    decoder: Decoder, scores: np.ndarray, gold_heads: Sequence[np.ndarray], threads: int | None = None
) -> PartDifference:
    """The best derivation, augmented by the cost, minus the best one of the gold tree (Taskar et al. 2005).

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class
    """
    lengths = [len(heads) - 1 for heads in gold_heads]
    size = scores.shape[-1]
    gold = decoder.derive_batch(scores, gold_heads)
    predicted = decoder.decode_batch(scores, lengths, cost_bonus(gold_heads, size), threads)
    return part_difference(predicted, gold)


def multiclass_hinge(scores: Tensor, gold: Tensor) -> Tensor:
    """Sum over rows of max(0, 1 + best wrong class − gold class). scores (M, K), gold int64 (M,)."""
    if scores.shape[1] < 2:
        return scores.sum() * 0.0
    right = scores.gather(1, gold[:, None]).squeeze(1)
    wrong = scores.scatter(1, gold[:, None], float("-inf")).amax(1)
    return torch.relu(1.0 + wrong - right).sum()
