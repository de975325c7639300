"""The systems by name, and their kernels by code; the package's docstring says what each of them does."""

from __future__ import annotations

from numba import njit

from mh4.transitions.arrays import arc_eager, arc_hybrid, arc_standard, covington, lr_spine, mh4
from mh4.transitions.arrays.state import System, note_children, reset

ARC_STANDARD, ARC_EAGER, LR_SPINE, COVINGTON, ARC_HYBRID, MH4 = range(6)

SYSTEMS: dict[str, tuple[int, System]] = {
    system.name: (code, system)
    for code, system in (
        (ARC_STANDARD, arc_standard.SYSTEM),
        (ARC_EAGER, arc_eager.SYSTEM),
        (LR_SPINE, lr_spine.SYSTEM),
        (COVINGTON, covington.SYSTEM),
        (ARC_HYBRID, arc_hybrid.SYSTEM),
        (MH4, mh4.SYSTEM),
    )
}


def get_system(name: str) -> tuple[int, System]:
    """Code and description of a system.

    Raises
    ------
    ValueError
        An unknown name; the message lists the known ones.
    """
    if name not in SYSTEMS:
        raise ValueError(f"unknown system {name!r}; known: {', '.join(SYSTEMS)}")
    return SYSTEMS[name]


@njit(cache=True, nogil=True)
def initialize(system, state, n):
    """Make the initial configuration of n words."""
    reset(state, n)
    if system == ARC_STANDARD:
        arc_standard.initialize(state)
    elif system == ARC_EAGER:
        arc_eager.initialize(state)
    elif system == LR_SPINE:
        lr_spine.initialize(state)
    elif system == COVINGTON:
        covington.initialize(state)
    elif system == ARC_HYBRID:
        arc_hybrid.initialize(state)
    elif system == MH4:
        mh4.initialize(state)


@njit(cache=True, nogil=True)
def list_candidates(system, state, candidates):
    """List the legal transitions; returns how many there are, and how many contexts."""
    if system == ARC_STANDARD:
        return arc_standard.list_candidates(state, candidates)
    if system == ARC_EAGER:
        return arc_eager.list_candidates(state, candidates)
    if system == LR_SPINE:
        return lr_spine.list_candidates(state, candidates)
    if system == COVINGTON:
        return covington.list_candidates(state, candidates)
    if system == ARC_HYBRID:
        return arc_hybrid.list_candidates(state, candidates)
    if system == MH4:
        return mh4.list_candidates(state, candidates)
    return 0, 0


@njit(cache=True, nogil=True)
def apply(system, state, transition, argument, relation):
    """Take a step."""
    if system == ARC_STANDARD:
        arc_standard.apply(state, transition, argument, relation)
    elif system == ARC_EAGER:
        arc_eager.apply(state, transition, argument, relation)
    elif system == LR_SPINE:
        lr_spine.apply(state, transition, argument, relation)
    elif system == COVINGTON:
        covington.apply(state, transition, argument, relation)
    elif system == ARC_HYBRID:
        arc_hybrid.apply(state, transition, argument, relation)
    elif system == MH4:
        mh4.apply(state, transition, argument, relation)


@njit(cache=True, nogil=True)
def prepare(system, state, oracle, gold):
    """Make ready for a gold tree, given as heads."""
    note_children(state, gold)
    if system == ARC_EAGER:
        arc_eager.prepare(state, oracle, gold)
    elif system == COVINGTON:
        covington.prepare(state, oracle, gold)


@njit(cache=True, nogil=True)
def find_costs(system, state, oracle, gold, candidates, count):
    """Fill the costs of the first ``count`` candidates."""
    if system == ARC_STANDARD:
        arc_standard.costs(state, oracle, gold, candidates, count)
    elif system == ARC_EAGER:
        arc_eager.costs(state, oracle, gold, candidates, count)
    elif system == LR_SPINE:
        lr_spine.costs(state, oracle, gold, candidates, count)
    elif system == COVINGTON:
        covington.costs(state, oracle, gold, candidates, count)
    elif system == ARC_HYBRID:
        arc_hybrid.costs(state, oracle, gold, candidates, count)
    elif system == MH4:
        mh4.costs(state, oracle, gold, candidates, count)
