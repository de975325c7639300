"""Context vectors from word embeddings, character-based vectors and the states of a pretrained transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .bilstm_encoder import BiLSTMEncoder
from .encoder import States
from .layers import SMALL, room
from .transformer import TransformerStates
from .transformer_config import TransformerConfig
from .word_source import JointBatch, WordSource


class RootAhead(nn.Module):
    """Prepends a learnt root vector to the unchanged word vectors; replaces the `SentenceEncoder`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.root = nn.Parameter(room(config.word_size).uniform_(-SMALL, SMALL))

    def forward(self, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, word_size) → (B, T + 1, word_size), twice; see `SentenceEncoder`."""
        states = torch.cat([self.root.expand(len(words), 1, -1), words], 1)
        return states, states


class TransformerEncoder(BiLSTMEncoder):
    """A `BiLSTMEncoder` with the states of a pretrained transformer as a further source of word vectors."""

    config_type = TransformerConfig

    def __init__(self, config: TransformerConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        if config.encoder_head == "none":
            self.size, self.word_size = config.word_size, 0

    @classmethod
    def source_types(cls, config: Any) -> dict[str, type[WordSource[Any, Any]]]:
        return super().source_types(config) | {"transformer": TransformerStates}

    def head(self, config: TransformerConfig) -> nn.Module:
        return super().head(config) if config.encoder_head == "lstm" else RootAhead(config)

    def forward(self, batch: JointBatch) -> States:
        states = super().forward(batch)
        return states if self.word_size else states._replace(words=None)
