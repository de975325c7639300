"""Settings of the network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


def check_range(settings: Any, least: float, *names: str, below: float = math.inf) -> None:
    """ValueError unless these settings are at least ``least`` and below ``below``."""
    for name in names:
        value = getattr(settings, name)
        if not least <= value < below:
            limit = "" if below == math.inf else f" and below {below}"
            raise ValueError(f"{name} must be at least {least}{limit}; got {value}")


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes, dropout rates and weights of losses; the defaults are the published settings.

    Attributes
    ----------
    labeler_weight, tagger_weight
        Of the losses of relations, and of UPOS and of UPOS|XPOS.
    feature_weight
        Of the loss of morphological features (FEATS), which the published model does not learn.
    tagger_layer
        Layer of the sentence BiLSTM that tags and morphological features are predicted from, counted from 1; 0 stands
        for the last one, as published.
    characters
        Words whose vectors are predicted from their characters: "rare", as published, or "all", which have an embedding
        as well.
    spelling_dropout
        Probability that a word with both goes without its characters in training.
    """

    word_size: int = 128
    character_size: int = 64
    character_hidden: int = 128
    character_layers: int = 2
    hidden: int = 192
    layers: int = 2
    mlp: int = 192
    lstm_dropout: float = 0.3
    mlp_dropout: float = 0.3
    block_dropout: float = 0.1
    tagger_weight: float = 0.2
    labeler_weight: float = 1.0
    feature_weight: float = 0.0
    tagger_layer: int = 0
    characters: str = "rare"
    spelling_dropout: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, 1, "word_size", "character_size", "character_layers", "layers", "mlp")
        check_range(self, 2, "hidden", "character_hidden")
        check_range(self, 0, "lstm_dropout", "mlp_dropout", "block_dropout", "spelling_dropout", below=1)
        check_range(self, 0, "tagger_weight", "labeler_weight", "feature_weight")
        for name in ("hidden", "character_hidden"):
            if getattr(self, name) % 2:
                raise ValueError(f"{name} must be even, half for each direction; got {getattr(self, name)}")
        if self.characters not in ("rare", "all"):
            raise ValueError(f"characters must be rare or all; got {self.characters!r}")
        if not 0 <= self.tagger_layer <= self.layers:
            raise ValueError(f"tagger_layer must be from 0 to {self.layers}; got {self.tagger_layer}")
