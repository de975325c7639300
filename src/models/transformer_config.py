"""Settings of the encoder that joins a pretrained transformer to learnt and spelt words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from .bilstm_config import BiLSTMConfig
from .checked import STRICT, Layers, Share, Weight

Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, config=STRICT)
class TransformerConfig(BiLSTMConfig):
    """What a `BiLSTMConfig` has, and the pretrained model.

    Attributes
    ----------
    pretrained
        The folder or the name on the hub that it was read from; the model folder has a copy of all that is needed.
    encoder_head
        What reads the word vectors: the BiLSTM ("lstm"), or the MLPs at once ("none").
    encoder_freeze
        Whether the pretrained weights stay as they are. The table of pieces does in any case.
    encoder_layers
        The last layers whose states are mixed, with weights that are learnt.
    encoder_rate, encoder_warm_up, encoder_clip
        Learning rate of the pretrained weights, the steps over which it rises linearly from none, and the largest norm
        of their gradient, which is cut by itself. The rate falls as that of the other weights does.
    encoder_layer_decay
        What a layer's learning rate is multiplied by for each layer above it, so that the lowest ones, which know most
        about language in general, change least (Howard and Ruder 2018).
    encoder_dropout
        Inside the transformer, but for its attention.
    encoder_window
        Pieces that it reads at a time, or as many as it has positions, if these are fewer. Longer sentences are read in
        windows that overlap by half, and each word has the state of the window in whose middle it is.
    encoder_storage
        Of the pretrained weights in the model folder.
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
