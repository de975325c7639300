"""The encoder classes, by kind."""

from typing import Any

from .bilstm_config import BiLSTMConfig
from .bilstm_encoder import BiLSTMEncoder
from .encoder import Encoder
from .transformer_config import TransformerConfig
from .transformer_encoder import TransformerEncoder

DEFAULT, PRETRAINED = BiLSTMConfig(), TransformerConfig()
ENCODERS: dict[str, type[Encoder[Any, Any]]] = {DEFAULT.kind: BiLSTMEncoder, PRETRAINED.kind: TransformerEncoder}
