"""Decoders by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .decoder import Decoder

# Module and class of each decoder, as strings: importing a class needs Numba.
_HOMES = {
    "mst": ("mst", "MST"),
    "eisner": ("eisner", "Eisner"),
    "mh3": ("mh3", "MH3"),
    "mh4-two": ("mh4", "MH4Two"),
    "mh4-hybrid": ("mh4", "MH4Hybrid"),
    "1ec": ("one_endpoint_crossing.third_order", "OneEndpointCrossing"),
    "1ec-first-order": ("one_endpoint_crossing.first_order", "OneEndpointCrossingFirstOrder"),
}


def decoder_names() -> tuple[str, ...]:
    """Names that `get_decoder` knows."""
    return tuple(_HOMES)


def get_decoder(name: str, single_root: bool = True, memory_limit: int | None = None, search: str = "exact") -> Decoder:
    """The decoder called ``name``.

    Parameters
    ----------
    name : str
        One of `decoder_names`.
    single_root : bool
        Exactly one word is attached to the root, or at least one.
    memory_limit : int, optional
        Largest chart (or beam), in bytes, that one sentence may take; by default 2 GiB.
    search : str
        "exact"; or "greedy" or "beam:K" for an approximate search with the scores of mh3, mh4-two or mh4-hybrid.

    Raises
    ------
    ValueError
        An unknown name or search (the message lists the known ones), or a decoder without approximate search.
    """
    if name not in _HOMES:
        raise ValueError(f"unknown decoder {name!r}; known: {', '.join(_HOMES)}")
    from .decoder import DEFAULT_MEMORY_LIMIT
    from .search import BeamSearch, beam_width

    module, class_name = _HOMES[name]
    decoder: type[Decoder] = getattr(import_module(f".{module}", __package__), class_name)
    limit = DEFAULT_MEMORY_LIMIT if memory_limit is None else memory_limit
    width = beam_width(search)
    if width is None:
        return decoder(single_root=single_root, memory_limit=limit)
    return BeamSearch(decoder, width, single_root=single_root, memory_limit=limit)
