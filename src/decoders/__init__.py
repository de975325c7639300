"""Exact chart decoders for dependency trees: numpy arrays in, derivations out. No PyTorch needed."""

from .decoder import ChartTooLargeError, Decoder, Derivation, InfeasibleError
from .registry import decoder_names, get_decoder

__all__ = ["ChartTooLargeError", "Decoder", "Derivation", "InfeasibleError", "decoder_names", "get_decoder"]
