"""The whole network: encoder, scorer, labeler, and taggers as auxiliary tasks, trained jointly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from .dropout import Dropout
from .encoder import SentenceEncoder, WordBatch, WordEncoder
from .layers import Classifier
from .scorer import ChannelScorer
from .transition_scorer import TransitionScorer

S = TypeVar("S", bound=ChannelScorer | TransitionScorer)


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


class Encoded(NamedTuple):
    """What one pass over a batch of sentences yields: context vectors and role vectors."""

    states: Tensor  # (B, T + 1, hidden)
    tagger_states: Tensor  # (B, T + 1, hidden), what tags are predicted from
    roles: Tensor  # (B, T + 2, R, …), as of the scorer's ``role_vectors``


class ParserNetwork(nn.Module, Generic[S]):
    """Scores of parts or of transitions, labels of arcs, tags as auxiliary tasks.

    Parameters
    ----------
    config : NetworkConfig
    make_scorer : called with the configuration, makes the scorer of a decoder's channels or of a system's transitions
    word_unknown : (V,), probability that a word is taken for unknown in training
    character_unknown : (K,), likewise for characters
    relations, tags, tag_pairs : int
        Number of relations, of UPOS tags and of UPOS|XPOS pairs; 0 leaves that head out.
    features : int
        Number of morphological features; predicted if their loss has a weight.
    """

    def __init__(
        self,
        config: NetworkConfig,
        make_scorer: Callable[[NetworkConfig], S],
        word_unknown: Tensor,
        character_unknown: Tensor,
        relations: int,
        tags: int,
        tag_pairs: int,
        features: int,
    ) -> None:
        super().__init__()
        self.words = WordEncoder(
            word_unknown,
            character_unknown,
            config.word_size,
            config.character_size,
            config.character_hidden,
            config.character_layers,
            config.lstm_dropout,
            config.block_dropout,
            config.characters,
            config.spelling_dropout,
        )
        self.sentence = SentenceEncoder(
            config.word_size, config.hidden, config.layers, config.lstm_dropout, config.tagger_layer or config.layers
        )
        self.scorer = make_scorer(config)
        self.labeler = Classifier(2 * config.hidden, config.mlp, relations, config.mlp_dropout)
        self.taggers = nn.ModuleList(
            Classifier(config.hidden, config.mlp, classes, config.mlp_dropout) for classes in (tags, tag_pairs)
        )
        self.features = None
        if config.feature_weight and features:
            self.features = Classifier(config.hidden, config.mlp, features, config.mlp_dropout)

    def encode(self, batch: WordBatch) -> Encoded:
        """Context and role vectors of a batch."""
        states, tagger_states = self.sentence(self.words(batch), batch.lengths)
        return Encoded(states, tagger_states, self.scorer.role_vectors(states, batch.lengths))

    def scale_dropout(self, share: float) -> None:
        """Put a share of the dropout rates of BiLSTMs and MLPs in force, all of them if it is 1."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.share = share

    def label_scores(self, states: Tensor, sentences: Tensor, heads: Tensor, dependents: Tensor) -> Tensor:
        """Scores (M, relations) of the relations of M arcs, given as int64 (M,) each."""
        return self.labeler(torch.cat([states[sentences, heads], states[sentences, dependents]], dim=-1))
