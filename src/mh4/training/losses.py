"""The loss of a minibatch: trees, labels, tags, morphological features and what is annotated."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from mh4.models.loss import multiclass_hinge
from mh4.models.network import Encoded, ParserNetwork
from mh4.models.network_config import NetworkConfig
from mh4.parsers.profiling import stage

from .batches import TrainingBatch
from .objectives import Objective


class BatchLoss(nn.Module):
    """The loss of a batch: trees, labels, tags, morphological features and what is annotated.

    Encoder, MLPs and classifiers compute inside of what ``precision`` makes; trees are scored and losses summed in
    float32.
    """

    def __init__(
        self,
        network: ParserNetwork[Any],
        objective: Objective,
        weights: NetworkConfig,
        precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.weights = weights
        self.precision = precision

    def forward(self, batch: TrainingBatch | None, epoch: int) -> Tensor:
        """Sum over the words of a batch; 0 for no batch, with a gradient that is 0 everywhere."""
        network = self.network
        if batch is None:
            return torch.stack([parameter.sum() for parameter in network.parameters()]).sum() * 0.0
        with stage("encode"), self.precision():
            encoded = network.encode(batch.words)
        tree_loss = self.objective.loss(encoded, batch.heads, epoch)
        with self.precision():
            return self._with_others(tree_loss, encoded, batch)

    def _with_others(self, tree_loss: Tensor, encoded: Encoded, batch: TrainingBatch) -> Tensor:
        """The loss of trees and all others."""
        network = self.network
        labels = network.label_scores(encoded.states, batch.arc_sentence, batch.arc_head, batch.arc_dependent)
        labeled = multiclass_hinge(labels, batch.relations)
        tagged_words = encoded.tagger_states[batch.sentence_of, batch.dependent]
        tagged = sum(
            multiclass_hinge(tagger(tagged_words), gold)
            for tagger, gold in zip(network.taggers, (batch.tags, batch.tag_pairs), strict=False)  # both or none
        )
        loss = tree_loss + self.weights.labeler_weight * labeled + self.weights.tagger_weight * tagged
        if network.features is not None:
            scores = network.features(tagged_words)
            loss = loss + self.weights.feature_weight * binary_cross_entropy_with_logits(
                scores, batch.features.to(scores.dtype), reduction="sum"
            )
        if network.annotator is not None:
            words = network.annotation_vectors(encoded, batch.sentence_of, batch.dependent)
            loss = loss + network.annotator.loss(words, batch.columns)
        return loss
