"""Transition systems of greedy parsers: the properties of each, and functions that call its compiled kernels.

Numba compiles a loop once per type of its argument ``system``. So only kernels of systems in use are compiled, and the
loops need not know any system by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from numba import njit
from numba.extending import overload

from mh4.oracles import arc_hybrid as arc_hybrid_oracle
from mh4.oracles import mh4 as mh4_oracle
from mh4.oracles.arc_eager import costs as arc_eager_oracle
from mh4.oracles.arc_standard import costs as arc_standard_oracle
from mh4.oracles.costs import (
    ALL_PAIRS,
    CHART_ORDER,
    DYNAMIC,
    EXACT,
    ON_ORIGINAL_TREES,
    ORACLE_NAMES,
    STATIC,
    note_children,
)
from mh4.oracles.covington import costs as covington_oracle
from mh4.oracles.lr_spine import costs as lr_spine_oracle
from mh4.transitions.arrays import arc_eager, arc_hybrid, arc_standard, covington, lr_spine, mh4
from mh4.transitions.arrays.state import reset
from mh4.transitions.registry import TRANSITION_SYSTEMS, system_name

from . import template_sets
from .templates import Templates, compile_templates


class ArcStandard(NamedTuple):
    """Marker type of arc-standard parsing; like the types below, it is empty and only tells Numba the system."""


class ArcEager(NamedTuple):
    """Marker type of arc-eager parsing."""


class LRSpine(NamedTuple):
    """Marker type of LR-spine parsing."""


class Covington(NamedTuple):
    """Marker type of Covington parsing."""


class ArcHybrid(NamedTuple):
    """Marker type of arc-hybrid parsing."""


class MH4(NamedTuple):
    """Marker type of MH4 parsing."""


@dataclass(frozen=True)
class GreedySystem:
    """Properties of a transition system outside its kernels; ValueError: positions are missing, or not in `tokens`."""

    kernels: Any  # instance of a marker type, to pass as ``system`` to the loops and to the functions below
    name: str  # in `mh4.transitions.registry`
    tokens: tuple[str, ...]  # token names of the templates; the first two are the words whose distance is ``d``
    templates: tuple[str, ...]  # for `templates.compile_templates`
    positions: tuple[str, ...]  # tokens whose vectors a neural scorer reads by default
    form: str = "concatenated"  # how the scorer combines these vectors by default: "concatenated" or "biaffine"
    transitions: tuple[str, ...] = ()  # in the order of their numbers; by default as in the system's definition
    unlabelled: tuple[str, ...] = ("shift",)  # transitions that decide on no arc, and so have no relation
    trees: str = "projective"  # or "mh4", "all": trees that can be built; training replaces others
    single_root: bool = True  # whether only trees with exactly one word below the root can be built
    oracles: tuple[str, ...] = (ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC])  # names of its oracles

    def __post_init__(self) -> None:
        if not self.transitions:
            object.__setattr__(self, "transitions", TRANSITION_SYSTEMS[self.name].transitions)
        unknown = [name for name in self.positions if name not in self.tokens]
        if unknown or not self.positions:
            raise ValueError(
                f"{self.name}: positions {', '.join(unknown) or '(none)'} are not among the tokens: "
                f"{', '.join(self.tokens)}"
            )

    def compiled_templates(self) -> Templates:
        """`templates` as arrays."""
        return compile_templates(self.templates, self.tokens)


GREEDY_SYSTEMS = {
    system.name: system
    for system in (
        GreedySystem(
            ArcStandard(),
            "arc-standard",
            arc_standard.TOKENS,
            template_sets.select(template_sets.MERGED, arc_standard.TOKENS),
            positions=("s3", "s2", "s1", "q1"),
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC], ORACLE_NAMES[EXACT]),
        ),
        GreedySystem(
            ArcEager(),
            "arc-eager",
            arc_eager.TOKENS,
            template_sets.ZHANG_NIVRE,
            positions=("s0h", "s0", "n0", "n1"),
            transitions=arc_eager.TRANSITIONS,
            unlabelled=("shift", "reduce"),
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC], *ON_ORIGINAL_TREES),
        ),
        GreedySystem(
            LRSpine(),
            "lr-spine",
            lr_spine.TOKENS,
            template_sets.MERGED,
            positions=("s3", "s2", "s1", "q1"),
        ),
        GreedySystem(
            Covington(),
            "covington",
            covington.TOKENS,
            template_sets.COVINGTON,
            positions=("L1", "L0", "R0", "R1"),
            unlabelled=("shift", "no_arc"),
            trees="all",
            single_root=False,
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC], ORACLE_NAMES[ALL_PAIRS]),
        ),
        GreedySystem(
            ArcHybrid(),
            "arc-hybrid",
            arc_hybrid.TOKENS,
            template_sets.ARC_HYBRID,
            positions=("s0", "b0"),
            form="biaffine",
        ),
        GreedySystem(
            MH4(),
            "mh4",
            mh4.TOKENS,
            template_sets.MH4,
            positions=("s1", "s0", "b0"),
            trees="mh4",
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[CHART_ORDER]),
        ),
    )
}


def get_system(name: str) -> GreedySystem:
    """A system by its name; a ValueError for others lists the known ones."""
    return GREEDY_SYSTEMS[system_name(name, GREEDY_SYSTEMS)]


@njit(cache=True, nogil=True)
def _no_more(state, candidates):
    return False


@njit(cache=True, nogil=True)
def _note_children(state, oracle, gold):
    note_children(gold, state.oracle)


@njit(cache=True, nogil=True)
def _nothing_to_note(state, oracle, transition):
    pass


_DEFAULTS = {"finish": _no_more, "prepare": _note_children, "follow": _nothing_to_note}
_KERNELS: dict[type, dict[str, Any]] = {
    system: {**_DEFAULTS, **vars(oracle), **vars(configurations)}
    for system, configurations, oracle in (
        (ArcStandard, arc_standard, arc_standard_oracle),
        (ArcEager, arc_eager, arc_eager_oracle),
        (LRSpine, lr_spine, lr_spine_oracle),
        (Covington, covington, covington_oracle),
        (ArcHybrid, arc_hybrid, arc_hybrid_oracle),
        (MH4, mh4, mh4_oracle),
    )
}


def _kernel(name: str) -> Callable[..., Any]:
    """Make a function of a system and the arguments of its kernel ``name``, callable from Python and compiled code."""

    def call(system: Any, *arguments: Any) -> Any:
        return _KERNELS[type(system)][name](*arguments)

    @overload(call)
    def call_compiled(system, *arguments):  # Numba compares signatures: no annotations
        kernel = _KERNELS[system.instance_class][name]
        return lambda system, *arguments: kernel(*arguments)

    return call


# `mh4.transitions.arrays` specifies these kernels.
_initialize = _kernel("initialize")
list_candidates = _kernel("list_candidates")
apply = _kernel("apply")
finish = _kernel("finish")
prepare = _kernel("prepare")
find_costs = _kernel("costs")
follow = _kernel("follow")


@njit(cache=True, nogil=True)
def initialize(system, state, n):
    """Make the initial configuration of n words."""
    reset(state, n)
    _initialize(system, state)
