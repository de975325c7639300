"""Settings of the encoder that adds the states of a pretrained transformer to the other word vectors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from .bilstm_config import BiLSTMConfig
from .checked import STRICT, Layers, Share, Weight

Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, config=STRICT)
class TransformerConfig(BiLSTMConfig):
    """The settings of `BiLSTMConfig`, and those of the pretrained model.

    Attributes
    ----------
    pretrained
        The folder or the name on the hub from which the model was read; the model folder has a copy of all that is
        needed.
    encoder_head
        What reads the word vectors: a BiLSTM ("lstm"), or the MLPs directly ("none").
    encoder_freeze
        Whether the pretrained weights are frozen. The embedding table of the word pieces always is.
    encoder_layers
        Number of layers, counted from the last, whose states are mixed with learnt weights.
    encoder_rate, encoder_warm_up, encoder_clip
        Learning rate of the pretrained weights, number of steps over which it rises linearly from 0, and the largest
        norm of their gradient, which is clipped separately (0: no limit). The rate falls like that of the other
        weights.
    encoder_layer_decay
        Factor on a layer's learning rate for each layer above it, so that the lowest layers, which hold the most
        general knowledge of language, change least (Howard and Ruder 2018).
    encoder_dropout
        Dropout rate inside the transformer, except in its attention.
    encoder_window
        Number of pieces that the transformer reads at a time, or its number of positions if that is smaller. Longer
        sentences are read in windows that overlap by half, and each word takes its state from the window whose middle
        is closest.
    encoder_storage
        Type of the pretrained weights in the model folder.
    """

    kind: Literal["transformer"] = "transformer"  # type: ignore[assignment]
    pretrained: str = ""
    encoder_head: Literal["lstm", "none"] = "lstm"
    encoder_freeze: bool = False
    encoder_layers: Layers = 6
    encoder_rate: Weight = 1e-4
    encoder_warm_up: Count = 300
    encoder_clip: Weight = 1.0
    encoder_layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    encoder_dropout: Share = 0.1
    encoder_window: Annotated[int, Field(ge=16)] = 512
    encoder_storage: Literal["float16", "float32"] = "float16"
