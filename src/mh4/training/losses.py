"""The loss of a minibatch: trees, labels, tags and annotated columns."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from mh4.models.loss import multiclass_hinge
from mh4.models.network import Encoded, ParserNetwork
from mh4.models.network_config import LossWeights
from mh4.parsers.profiling import stage

from .batches import TrainingBatch
from .objectives import Objective


class BatchLoss(nn.Module):
    """The loss of a batch: trees, labels, tags and annotated columns.

    Encoder, MLPs and classifiers compute inside the context that ``precision`` makes; trees are scored and losses
    summed in float32.
    """

    def __init__(
        self,
        network: ParserNetwork[Any],
        objective: Objective,
        weights: LossWeights,
        precision: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__()
        self.network = network
        self.objective = objective
        self.weights = weights
        self.precision = precision

    def forward(self, batch: TrainingBatch | None, epoch: int) -> Tensor:
        """The loss, summed over the words of a batch; for None, 0 with a gradient that is 0 everywhere."""
        network = self.network
        if batch is None:
            return torch.stack([own.sum() for own in network.parameters() if own.requires_grad]).sum() * 0.0
        with stage("encode"), self.precision():
            encoded = network.encode(batch.words)
        finish = self.objective.start(encoded, batch.heads, epoch)
        if encoded.states.device.type == "cpu":
            tree_loss, others = finish(), self._others(encoded, batch)
        else:  # a GPU computes the other losses while the CPU decodes
            others, tree_loss = self._others(encoded, batch), finish()
        return sum(others, tree_loss)

    def _others(self, encoded: Encoded, batch: TrainingBatch) -> list[Tensor]:
        """All weighted losses but the loss of trees."""
        network, weights = self.network, self.weights
        with self.precision():
            arcs = network.arc_vectors(encoded.states, batch.arc_sentence, batch.arc_head, batch.arc_dependent)
            labels = network.labeler.by_member(arcs)
            hinge = multiclass_hinge(labels.flatten(0, 1), batch.relations.repeat(len(labels))) / len(labels)
            losses = [weights.labeler_weight * hinge]
            if network.taggers:
                words = network.tagger_vectors(encoded, batch.sentence_of, batch.dependent)
                both = zip(network.taggers, (batch.tags, batch.tag_pairs), strict=True)
                tagged = [multiclass_hinge(tagger(words), gold) for tagger, gold in both]
                losses.append(weights.tagger_weight * torch.stack(tagged).sum())
            if network.annotator is not None:
                vectors = network.annotation_vectors(encoded, batch.sentence_of, batch.dependent)
                losses.append(network.annotator.loss(vectors, batch.columns))
        return losses
