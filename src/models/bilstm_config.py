"""Settings of the BiLSTM encoder."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from .checked import STRICT, HalvedSize, Layers, Positive, Share, Size, Weight
from .encoder import EncoderConfig


@dataclass(frozen=True, config=STRICT)
class BiLSTMConfig(EncoderConfig):
    """Sizes, dropout rates and vocabulary; the defaults are the published settings.

    Attributes
    ----------
    tagger_layer
        Layer of the sentence BiLSTM from which tags and other columns are predicted, counted from 1; 0 is the last
        one, as published.
    characters
        Words whose vectors are predicted from their characters: "rare", as published, or "all", in addition to their
        embeddings.
    spelling_dropout
        Probability that the characters of a word with an embedding are left out in training.
    min_word_count
        Rarer words have no embedding; their vectors come from their characters.
    word_unknown, character_unknown
        A word (character) seen c times is treated as unknown in training with probability x / (x + c).
    vectors
        The file from which frozen word vectors were read; empty if there are none. The model folder has a copy of the
        rows that it needs.
    vectors_keep
        Number of words from the beginning of that file to keep in the model folder, besides those of the treebanks.
    """

    kind: Literal["bilstm"] = "bilstm"
    word_size: Size = 128
    character_size: Size = 64
    character_hidden: HalvedSize = 128
    character_layers: Layers = 2
    hidden: HalvedSize = 192
    layers: Layers = 2
    lstm_dropout: Share = 0.3
    block_dropout: Share = 0.1
    tagger_layer: Annotated[int, Field(ge=0)] = 0
    characters: Literal["rare", "all"] = "rare"
    spelling_dropout: Share = 0.0
    min_word_count: Positive = 5
    word_unknown: Weight = 2.5
    character_unknown: Weight = 0.25
    vectors: str = ""
    vectors_keep: Annotated[int, Field(ge=0)] = 200_000

    @model_validator(mode="after")
    def _check_tagger_layer(self) -> Self:
        if self.tagger_layer > self.layers:
            raise ValueError(f"tagger_layer must be from 0 to {self.layers}; got {self.tagger_layer}")
        return self
