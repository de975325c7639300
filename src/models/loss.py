"""Structured losses, over the best derivation or over all derivations, and the multiclass hinge loss.

Gold heads of −1 are unknown. The gold side of a loss is then the best tree with the known heads, or all such trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numba import njit
from torch import Tensor

from mh4.decoders import Decoder
from mh4.decoders.tree_batch import TreeBatch
from mh4.decoders.trees import given_heads_bonus


class PartDifference(NamedTuple):
    """The parts of predicted derivations minus the parts of gold derivations in a batch; parts that cancel are gone.

    Attributes
    ----------
    sentences : int64 (P,)
    parts : int64 (P, 3), rows (channel, row, column), sorted by channel
    weights : float32 (P,), occurrences in predictions minus occurrences in gold derivations
    cost : float
        The number of wrong heads in all predictions, among words with known gold heads.
    changed : int64 (4, A)
        Words whose predicted and gold heads differ: sentence, predicted head, gold head, word.
    """

    sentences: np.ndarray
    parts: np.ndarray
    weights: np.ndarray
    cost: float
    changed: np.ndarray

    @classmethod
    def joined(cls, batches: Sequence[tuple[PartDifference, int]]) -> PartDifference:
        """Join the differences of several batches, each given with its number of sentences."""
        if len(batches) == 1:
            return batches[0][0]
        differences, counts = zip(*batches, strict=True)
        firsts = np.cumsum([0, *counts[:-1]])
        sentences = np.concatenate([own.sentences + first for own, first in zip(differences, firsts, strict=True)])
        changed = [
            own.changed + np.array([[first], [0], [0], [0]]) for own, first in zip(differences, firsts, strict=True)
        ]
        parts = np.concatenate([own.parts for own in differences])
        order = np.argsort(parts[:, 0], kind="stable")
        weights = np.concatenate([own.weights for own in differences])
        cost = sum(own.cost for own in differences)
        return cls(sentences[order], parts[order], weights[order], cost, np.concatenate(changed, 1))

    def of_members(self, members: int, channels: int) -> PartDifference:
        """The difference for a `ChannelScorer` of several members, if each sentence came once for each of them.

        ``channels`` is the number of channels of one member.
        """
        parts = self.parts + np.outer(self.sentences % members * channels, [1, 0, 0])
        order = np.argsort(parts[:, 0], kind="stable")
        changed = np.concatenate([self.changed[:1] // members, self.changed[1:]])
        return PartDifference(self.sentences[order] // members, parts[order], self.weights[order], self.cost, changed)


@njit(cache=True, nogil=True)
def _mark_gold(bonus, heads, ends):
    """Clear the bonus of gold arcs and of all arcs to words with an unknown head; return the number of these words."""
    start, unknown = 0, 0
    for b in range(ends.shape[0]):
        for d in range(1, ends[b] - start):
            if heads[start + d] < 0:
                bonus[b, :, d] = 0.0
                unknown += 1
            else:
                bonus[b, heads[start + d], d] = 0.0
        start = ends[b]
    return unknown


def cost_bonus(gold: TreeBatch, size: int) -> tuple[np.ndarray, int]:
    """Cost augmentation, float32 (B, size, size): 1 on wrong arcs, else 0; and the number of unknown heads.

    Arcs to words with an unknown head do not count as wrong.
    """
    bonus = np.ones((len(gold.ends), size, size), np.float32)
    return bonus, _mark_gold(bonus, gold.heads, gold.ends)


@njit(cache=True, nogil=True)
def _cancel(ends, predicted, predicted_counts, gold, gold_counts, counts, sentences, left, weights):
    """Subtract the parts of gold derivations from the parts of predictions; return the number of parts left.

    Parameters
    ----------
    ends, predicted, predicted_counts, gold, gold_counts
        Ends, parts and counts of `TreeBatch`.
    counts : (channels, N, N), zeros
    sentences, left, weights : (T,), (T, 3) and (T,), filled, sorted by channel
    """
    room = len(weights)
    found = np.empty((room, 3), np.int32)
    sentence_of = np.empty(room, np.int64)
    amounts = np.empty(room, np.float32)
    position = np.zeros(counts.shape[0] + 1, np.int64)
    total, start = 0, 0
    for b in range(len(ends)):
        for side in range(4):  # count the parts of both, then collect each part once
            parts, count, sign = (
                (predicted, predicted_counts[b], 1.0) if side % 2 == 0 else (gold, gold_counts[b], -1.0)
            )
            for p in range(3 * start, 3 * start + count):
                channel, row, column = parts[p, 0], parts[p, 1], parts[p, 2]
                if side < 2:
                    counts[channel, row, column] += sign
                    continue
                amount = counts[channel, row, column]
                if amount != 0.0:
                    found[total, 0], found[total, 1], found[total, 2] = channel, row, column
                    sentence_of[total], amounts[total] = b, amount
                    position[channel + 1] += 1
                    total += 1
                    counts[channel, row, column] = 0.0
        start = ends[b]
    position = np.cumsum(position)
    for t in range(total):
        at = position[found[t, 0]]
        position[found[t, 0]] += 1
        sentences[at], weights[at] = sentence_of[t], amounts[t]
        left[at, 0], left[at, 1], left[at, 2] = found[t, 0], found[t, 1], found[t, 2]
    return total


def find_violations(
    decoder: Decoder,
    scores: np.ndarray,
    gold_heads: Sequence[np.ndarray],
    threads: int | None = None,
    bonus: np.ndarray | None = None,
) -> PartDifference:
    """The best cost-augmented derivation minus the best derivation of the gold tree (Taskar et al. 2005).

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class, or parts of such trees
    bonus : float32 (B, N, N), optional
        Added to the score of every arc; not one of the parts.
    """
    size = scores.shape[-1]
    gold = TreeBatch.of(gold_heads)
    known, lengths = gold.heads, gold.lengths
    cost, unknown = cost_bonus(gold, size)
    if unknown:
        gold = decoder.decode_together(scores, lengths, _plus(given_heads_bonus(gold_heads, size), bonus), threads)
    else:
        decoder.derive_together(scores, gold)
    predicted = decoder.decode_together(scores, lengths, _plus(cost, bonus), threads)

    room = sum(predicted.counts.tolist()) + sum(gold.counts.tolist())
    sentences, parts = np.empty(room, np.int64), np.empty((room, 3), np.int64)
    weights = np.empty(room, np.float32)
    counts = np.zeros(scores.shape[1:], np.float32)
    bags = (predicted.parts, predicted.counts, gold.parts, gold.counts)
    count = _cancel(gold.ends, *bags, counts, sentences, parts, weights)
    wrong = np.count_nonzero((predicted.heads != known) & (known >= 0))
    places = np.flatnonzero(predicted.heads != gold.heads)
    owners = np.searchsorted(gold.ends, places, side="right")
    words = places - np.concatenate([[0], gold.ends])[owners]
    changed = np.stack([owners, predicted.heads[places], gold.heads[places], words])
    return PartDifference(sentences[:count], parts[:count], weights[:count], float(wrong), changed)


def _plus(values: np.ndarray, bonus: np.ndarray | None) -> np.ndarray:
    return values if bonus is None else values + bonus


def log_loss(
    decoder: Decoder,
    scores: np.ndarray,
    gold_heads: Sequence[np.ndarray],
    cost_augmented: bool,
    threads: int | None = None,
    bonus: np.ndarray | None = None,
) -> tuple[float, np.ndarray, np.ndarray]:
    """The negative log-probability of the gold trees, summed over their derivations, and its gradient.

    Parameters
    ----------
    scores : float32 (B, C, N, N)
    gold_heads : B arrays int (n + 1,), trees of the decoder's class, or parts of such trees
    cost_augmented : bool
        Add the number of wrong heads to the score of every tree: the softmax-margin of Gimpel and Smith (2010); without
        it this is the loss of a conditional random field.
    bonus : float32 (B, N, N), optional
        Added to the score of every arc.

    Returns
    -------
    loss : float
        Summed over the batch.
    gradient : float32 (B, C, N, N)
        The derivative with respect to each score: the expected count of the part over all derivations minus its
        expected count over gold derivations.
    arcs : float32 (B, N, N)
        The same difference for every arc: the derivative with respect to the bonus.
    """
    lengths = [len(heads) - 1 for heads in gold_heads]
    size = scores.shape[-1]
    augmented = _plus(cost_bonus(TreeBatch.of(gold_heads), size)[0], bonus) if cost_augmented else bonus
    everything = decoder.part_marginals_batch(scores, lengths, augmented, threads=threads)
    given = _plus(given_heads_bonus(gold_heads, size), bonus)
    gold = decoder.part_marginals_batch(scores, lengths, given, threads=threads)
    loss, gradient, arcs = 0.0, np.zeros_like(scores), np.zeros_like(scores[:, 0])
    for all_trees, gold_trees, matrices, matrix, n in zip(everything, gold, gradient, arcs, lengths, strict=True):
        loss += all_trees.log_partition - gold_trees.log_partition
        matrices[:, : n + 2, : n + 2] = all_trees.parts - gold_trees.parts
        matrix[: n + 2, : n + 2] = all_trees.arcs - gold_trees.arcs
    return loss, gradient, arcs


def multiclass_hinge(scores: Tensor, gold: Tensor) -> Tensor:
    """Sum over rows of max(0, 1 + best wrong class − gold class). scores (M, K), gold int64 (M,)."""
    if scores.shape[1] < 2:
        return scores.sum() * 0.0
    right = scores.gather(1, gold[:, None]).squeeze(1)
    wrong = scores.scatter(1, gold[:, None], float("-inf")).amax(1)
    return torch.relu(1.0 + wrong - right).sum()
