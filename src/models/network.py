"""The whole network: encoder, scorer, labeler, and taggers as auxiliary tasks, trained jointly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from .dropout import Dropout
from .encoder import SentenceEncoder, WordBatch, WordEncoder
from .layers import Classifier
from .network_config import NetworkConfig
from .scorer import ChannelScorer
from .transition_scorer import BiaffineTransitionScorer, TransitionScorer

S = TypeVar("S", bound=ChannelScorer | TransitionScorer | BiaffineTransitionScorer)


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
        self.words = WordEncoder(config, word_unknown, character_unknown)
        self.sentence = SentenceEncoder(config)
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
