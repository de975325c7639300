"""The kinds of encoders."""

from typing import Any

from .bilstm_config import BiLSTMConfig
from .bilstm_encoder import BiLSTMEncoder
from .encoder import Encoder

DEFAULT = BiLSTMConfig()
ENCODERS: dict[str, type[Encoder[Any, Any]]] = {DEFAULT.kind: BiLSTMEncoder}
