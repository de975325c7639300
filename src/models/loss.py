"""Structured losses, by the best derivation or by all of them, and the multiclass hinge loss.

Gold heads of −1 are unknown: then the gold side is the best of all trees, or all trees, that have the known ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from mh4.decoders import Decoder, Derivation
from mh4.decoders.trees import given_heads_bonus


class PartDifference(NamedTuple):
    """Parts of the predictions minus parts of the gold derivations of a batch; parts that cancel are gone.

    Attributes
    ----------
    sentences : int64 (P,)
    parts : int64 (P, 3), rows (channel, row, column), sorted by channel
    weights : float32 (P,), times predicted minus times gold
    cost : float
        Wrong heads in all predictions together, among those that are known.
    """

    sentences: np.ndarray
    parts: np.ndarray
    weights: np.ndarray
    cost: float

    @classmethod
    def joined(cls, batches: Sequence[tuple[PartDifference, int]]) -> PartDifference:
        """Of several batches, with the number of sentences of each, that of all their sentences together."""
        if len(batches) == 1:
            return batches[0][0]
        differences, counts = zip(*batches, strict=True)
        firsts = np.cumsum([0, *counts[:-1]])
        sentences = np.concatenate([own.sentences + first for own, first in zip(differences, firsts, strict=True)])
        parts = np.concatenate([own.parts for own in differences])
        order = np.argsort(parts[:, 0], kind="stable")
        weights = np.concatenate([own.weights for own in differences])
        return cls(sentences[order], parts[order], weights[order], sum(own.cost for own in differences))


@njit(cache=True, nogil=True)
def _mark_gold(bonus, heads, ends):
    start = 0
    for b in range(ends.shape[0]):
        for d in range(1, ends[b] - start):
            if heads[start + d] < 0:
                bonus[b, :, d] = 0.0
            else:
                bonus[b, heads[start + d], d] = 0.0
        start = ends[b]


def cost_bonus(gold_heads: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Cost augmentation: float32 (B, size, size), 1 on arcs to words with another known head, 0 on all others."""
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


def _part_difference(
    predicted: Sequence[Derivation], gold: Sequence[Derivation], gold_heads: Sequence[np.ndarray]
) -> PartDifference:
    """The bag of parts through which the gradient flows."""
    pairs = list(zip(predicted, gold, strict=True))
    all_parts = [derivation.parts for pair in pairs for derivation in pair]
    parts = np.concatenate(all_parts)
    size = max(len(derivation.heads) for derivation in predicted) + 1
    counts = np.zeros((int(parts[:, 0].max()) + 1, size, size), np.float32)
    sentences, left = np.empty(len(parts), np.int64), np.empty((len(parts), 3), np.int64)
    weights = np.empty(len(parts), np.float32)
    count = _cancel(parts, np.cumsum([len(own) for own in all_parts]), counts, sentences, left, weights)
    found, known = np.concatenate([derivation.heads for derivation in predicted]), np.concatenate(gold_heads)
    cost = float(np.count_nonzero((found != known) & (known >= 0)))
    return PartDifference(sentences[:count], left[:count], weights[:count], cost)


def find_violations(
    decoder: Decoder, scores: np.ndarray, gold_heads: Sequence[np.ndarray], threads: int | None = None
) -> PartDifference:
    """The best derivation, augmented by the cost, minus the best one of the gold tree (Taskar et al. 2005).

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class, or parts of such trees
    """
    lengths = [len(heads) - 1 for heads in gold_heads]
    size = scores.shape[-1]
    if all((heads[1:] >= 0).all() for heads in gold_heads):
        gold = decoder.derive_batch(scores, gold_heads)
    else:
        gold = decoder.decode_batch(scores, lengths, given_heads_bonus(gold_heads, size), threads)
    predicted = decoder.decode_batch(scores, lengths, cost_bonus(gold_heads, size), threads)
    return _part_difference(predicted, gold, gold_heads)


def log_loss(
    decoder: Decoder,
    scores: np.ndarray,
    gold_heads: Sequence[np.ndarray],
    cost_augmented: bool,
    threads: int | None = None,
) -> tuple[float, np.ndarray]:
    """Minus the log-probability of the gold trees, over all their derivations, and its gradient.

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class, or parts of such trees
    cost_augmented : bool
        Add the number of wrong heads to the score of every tree: the softmax-margin of Gimpel and Smith (2010); without
        it this is the loss of a conditional random field.

    Returns
    -------
    loss : float
        Summed over the batch.
    gradient : float32 (B, C, N, N)
        Its derivative with respect to each score: how often all trees have a part, on average, minus how often the gold
        trees have it.
    """
    lengths = [len(heads) - 1 for heads in gold_heads]
    size = scores.shape[-1]
    cost = cost_bonus(gold_heads, size) if cost_augmented else None
    everything = decoder.part_marginals_batch(scores, lengths, cost, threads=threads)
    gold = decoder.part_marginals_batch(scores, lengths, given_heads_bonus(gold_heads, size), threads=threads)
    loss, gradient = 0.0, np.zeros_like(scores)
    for all_trees, gold_trees, matrices, n in zip(everything, gold, gradient, lengths, strict=True):
        loss += all_trees.log_partition - gold_trees.log_partition
        matrices[:, : n + 2, : n + 2] = all_trees.parts - gold_trees.parts
    return loss, gradient


def multiclass_hinge(scores: Tensor, gold: Tensor) -> Tensor:
    """Sum over rows of max(0, 1 + best wrong class − gold class). scores (M, K), gold int64 (M,)."""
    if scores.shape[1] < 2:
        return scores.sum() * 0.0
    right = scores.gather(1, gold[:, None]).squeeze(1)
    wrong = scores.scatter(1, gold[:, None], float("-inf")).amax(1)
    return torch.relu(1.0 + wrong - right).sum()
