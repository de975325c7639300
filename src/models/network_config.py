"""Settings of the network."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
Positive = Annotated[int, Field(ge=1)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of a vector
Layers = Annotated[int, Field(ge=1, le=100)]
Weight = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
HalvedSize = Annotated[int, Field(ge=2, le=65_536, multiple_of=2)]  # half for each direction


@dataclass(frozen=True, config=STRICT)
class NetworkConfig:
    """Sizes, dropout rates and weights of losses; the defaults are the published settings.

    Attributes
    ----------
    encoder
        What makes context vectors of words: see `mh4.models.encoder`.
    labeler_weight, tagger_weight
        Of the losses of relations, and of UPOS and of UPOS|XPOS.
    feature_weight
        Of the loss of morphological features (FEATS), which the published model does not learn.
    analysis_weight, lemma_weight
        Of the losses of UPOS, XPOS and FEATS together, and of lemmas; without a weight, they are not predicted.
    tagger_layer
        Layer of the sentence BiLSTM that tags and morphological features are predicted from, counted from 1; 0 stands
        for the last one, as published.
    characters
        Words whose vectors are predicted from their characters: "rare", as published, or "all", which have an embedding
        as well.
    spelling_dropout
        Probability that a word with both goes without its characters in training.
    """

    encoder: Literal["bilstm"] = "bilstm"
    word_size: Size = 128
    character_size: Size = 64
    character_hidden: HalvedSize = 128
    character_layers: Layers = 2
    hidden: HalvedSize = 192
    layers: Layers = 2
    mlp: Size = 192
    lstm_dropout: Share = 0.3
    mlp_dropout: Share = 0.3
    block_dropout: Share = 0.1
    tagger_weight: Weight = 0.2
    labeler_weight: Weight = 1.0
    feature_weight: Weight = 0.0
    analysis_weight: Weight = 0.0
    lemma_weight: Weight = 0.0
    tagger_layer: Annotated[int, Field(ge=0)] = 0
    characters: Literal["rare", "all"] = "rare"
    spelling_dropout: Share = 0.0

    @property
    def annotates(self) -> bool:
        """Whether anything but trees is predicted."""
        return any((self.analysis_weight, self.lemma_weight))

    @model_validator(mode="after")
    def _check_tagger_layer(self) -> Self:
        if self.tagger_layer > self.layers:
            raise ValueError(f"tagger_layer must be from 0 to {self.layers}; got {self.tagger_layer}")
        return self
