"""Settings of the network apart from its encoder: MLPs, and the weights of losses."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from .checked import STRICT, Share, Size, Weight


@dataclass(frozen=True, config=STRICT)
class ScorerConfig:
    """The MLPs in front of all scorers and classifiers; the defaults are the published settings.

    Attributes
    ----------
    members
        Size of an ensemble that shares the encoder: each member has its own scorers of arcs and labels, and its own
        loss in training; decoding finds the tree with the best mean score. Chart decoders only.
    """

    mlp: Size = 192
    mlp_dropout: Share = 0.3
    members: Annotated[int, Field(ge=1, le=100)] = 1


@dataclass(frozen=True, config=STRICT)
class LossWeights:
    """Weights of all losses but the loss of trees; 0 turns one off. The defaults are the published settings.

    Attributes
    ----------
    labeler_weight, tagger_weight
        Relations (with 0, the best model is that with the highest UAS); UPOS and UPOS|XPOS as auxiliary tasks.
    analysis_weight, lemma_weight
        UPOS, XPOS and FEATS together; lemmas. With 0, they are not predicted.
    """

    tagger_weight: Weight = 0.2
    labeler_weight: Weight = 1.0
    analysis_weight: Weight = 0.0
    lemma_weight: Weight = 0.0

    @property
    def annotates(self) -> bool:
        """Whether any of the columns UPOS, XPOS, FEATS and LEMMA is predicted."""
        return any((self.analysis_weight, self.lemma_weight))
