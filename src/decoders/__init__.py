"""Exact chart decoders for dependency trees: numpy arrays in, derivations out. No PyTorch needed.

Public names are imported on first use: Numba alone takes half a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .registry import decoder_names, get_decoder

if TYPE_CHECKING:
    from .decoder import Decoder
    from .derivation import ChartTooLargeError, Derivation, InfeasibleError, Margins, PartMarginals, UnsupportedError

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".decoder" if name == "Decoder" else ".derivation", __name__), name)
