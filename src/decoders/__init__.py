"""Exact chart decoders for dependency trees: numpy arrays in, derivations out. No PyTorch needed."""

from .decoder import Decoder
from .derivation import ChartTooLargeError, Derivation, InfeasibleError, Margins, PartMarginals, UnsupportedError
from .registry import decoder_names, get_decoder

__all__ = [
    "ChartTooLargeError",
    "Decoder",
    "Derivation",
    "InfeasibleError",
    "Margins",
    "PartMarginals",
    "UnsupportedError",
    "decoder_names",
    "get_decoder",
]
