"""Scores of what stands in the columns UPOS, XPOS, FEATS and LEMMA of words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .layers import Classifier
from .network_config import NetworkConfig

IGNORED = -100  # class of a word without one


class Classes(NamedTuple):
    """How many classes the columns have; 0 leaves one out.

    Attributes
    ----------
    upos, xpos, lemmas
        UPOS tags, XPOS tags, rules of lemmas.
    feats
        Of each attribute in FEATS; class 0 is that a word does not have it.
    """

    upos: int
    xpos: int
    feats: tuple[int, ...]
    lemmas: int

    @property
    def most_values(self) -> int:
        """Classes of the attribute that has most."""
        return max(self.feats, default=1)


class ColumnScores(NamedTuple):
    """Scores for M words; None where a column is left out.

    ``feats`` is −∞ beyond an attribute's classes; ``inside`` is where these are, bool (attributes, most values).
    """

    upos: Tensor | None  # (M, tags)
    xpos: Tensor | None  # (M, XPOS tags)
    feats: Tensor | None  # (M, attributes, most values)
    lemmas: Tensor | None  # (M, rules)
    inside: Tensor


class Annotator(nn.Module):
    """A classifier for each column; FEATS has one output layer for all attributes, with a softmax each.

    Parameters
    ----------
    size : int
        Of the vectors of words.
    """

    def __init__(self, config: NetworkConfig, size: int, classes: Classes) -> None:
        super().__init__()
        self.weights = config.upos_weight, config.xpos_weight, config.feats_weight, config.lemma_weight

        counts = classes.upos, classes.xpos, sum(classes.feats), classes.lemmas
        self.upos, self.xpos, self.feats, self.lemmas = (
            Classifier(size, config.mlp, count, config.mlp_dropout) if count and weight else None
            for count, weight in zip(counts, self.weights, strict=True)
        )
        inside = np.arange(classes.most_values) < np.array(classes.feats, np.int64)[:, None]
        self.register_buffer("inside", torch.from_numpy(inside), persistent=False)
        self.register_buffer("places", torch.from_numpy(np.flatnonzero(inside)), persistent=False)
        self.inside: Tensor
        self.places: Tensor

    def forward(self, words: Tensor) -> ColumnScores:
        """Scores for words, (M, size)."""
        upos, xpos, feats, lemmas = (
            None if classifier is None else classifier(words)
            for classifier in (self.upos, self.xpos, self.feats, self.lemmas)
        )
        if feats is not None:
            padded = feats.new_full((len(feats), self.inside.numel()), float("-inf"))
            feats = padded.index_copy(1, self.places, feats).unflatten(1, self.inside.shape)
        return ColumnScores(upos, xpos, feats, lemmas, self.inside)

    def loss(self, words: Tensor, targets: Tensor) -> Tensor:
        """Weighted sum of the cross-entropies of M words; targets int64 (M, 3 + attributes), see `Columns.targets`."""
        scores = self(words)
        losses = (
            (scores.upos, targets[:, 0]),
            (scores.xpos, targets[:, 1]),
            (None if scores.feats is None else scores.feats.flatten(0, 1), targets[:, 3:].flatten()),
            (scores.lemmas, targets[:, 2]),
        )
        total = words.new_zeros(())
        for weight, (of_column, gold) in zip(self.weights, losses, strict=True):
            if of_column is not None:
                total = total + weight * cross_entropy(of_column, gold, ignore_index=IGNORED, reduction="sum")
        return total
