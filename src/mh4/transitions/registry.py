"""The transition systems by name."""

from collections.abc import Collection
from typing import Any

from .arc_eager import ArcEager, NormalizedArcEager
from .arc_hybrid import ArcHybrid
from .arc_standard import ArcStandard
from .covington import Covington
from .lr_spine import LRSpine
from .mh4 import MH4
from .transition_system import TransitionSystem

TRANSITION_SYSTEMS: dict[str, TransitionSystem[Any, Any]] = {
    system.name: system
    for system in (ArcStandard(), ArcEager(), NormalizedArcEager(), ArcHybrid(), MH4(), Covington(), LRSpine())
}
OTHER_NAMES = {"shift-reduce": ArcStandard.name}


def system_name(name: str, known: Collection[str] = tuple(TRANSITION_SYSTEMS)) -> str:
    """The registered name of a system, given this name or an alternative one.

    Any other name raises a ValueError that lists the known systems.
    """
    found = OTHER_NAMES.get(name, name)
    if found not in known:
        raise ValueError(f"unknown system {name!r}; known: {', '.join(known)}")
    return found
