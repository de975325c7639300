"""Decoders by name."""

from .decoder import DEFAULT_MEMORY_LIMIT, Decoder
from .eisner import Eisner
from .mh3 import MH3
from .mh4 import MH4Hybrid, MH4Two
from .mst import MST
from .one_endpoint_crossing.first_order import OneEndpointCrossingFirstOrder
from .one_endpoint_crossing.third_order import OneEndpointCrossing
from .search import BeamSearch, beam_width

_DECODERS: dict[str, type[Decoder]] = {
    d.name: d for d in (MST, Eisner, MH3, MH4Two, MH4Hybrid, OneEndpointCrossing, OneEndpointCrossingFirstOrder)
}


def decoder_names() -> tuple[str, ...]:
    """Names that `get_decoder` knows."""
    return tuple(_DECODERS)


def get_decoder(
    name: str, single_root: bool = True, memory_limit: int = DEFAULT_MEMORY_LIMIT, search: str = "exact"
) -> Decoder:
    """The decoder called ``name``.

    Parameters
    ----------
    name : str
        One of `decoder_names`.
    single_root : bool
        Exactly one word is attached to the root, or at least one.
    memory_limit : int
        Largest chart (or beam), in bytes, that one sentence may take.
    search : str
        "exact"; or "greedy" or "beam:K" for an approximate search with the scores of mh3, mh4-two or mh4-hybrid.

    Raises
    ------
    ValueError
        An unknown name or search, the message listing the known ones; approximate search for another decoder.
    """
    if name not in _DECODERS:
        raise ValueError(f"unknown decoder {name!r}; known: {', '.join(_DECODERS)}")
    width = beam_width(search)
    if width is None:
        return _DECODERS[name](single_root=single_root, memory_limit=memory_limit)
    return BeamSearch(_DECODERS[name], width, single_root=single_root, memory_limit=memory_limit)
