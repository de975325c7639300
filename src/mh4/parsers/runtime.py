"""How a loaded model runs."""

from __future__ import annotations

from dataclasses import dataclass

from mh4.decoders.search import beam_width
from mh4.models.devices import check_device

from .checking import check_number

COMBINATIONS = ("votes", "scores")  # how ensembles decide


@dataclass(frozen=True)
class Runtime:
    """Checked options for running a model; `mh4.load` describes the fields."""

    device: str = "auto"
    threads: int | None = None
    search: str = "exact"

    def __post_init__(self) -> None:
        check_device(self.device)
        beam_width(self.search)
        if self.threads is not None:
            check_number("threads", self.threads)


def check_combination(combine: str) -> None:
    """ValueError unless it is one of `COMBINATIONS`."""
    if combine not in COMBINATIONS:
        raise ValueError(f"unknown combination {combine!r}; known: {', '.join(COMBINATIONS)}")


def check_greedy(search: str) -> None:
    """ValueError for a search that greedy parsers do not support."""
    beam_width(search)
    if search not in ("exact", "greedy"):
        raise ValueError(f"search {search!r} is for chart parsers; this is a greedy transition-based parser")
