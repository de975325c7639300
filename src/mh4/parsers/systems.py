"""The systems of greedy parsers: what is to know of each outside its kernels, and the kernels by the code of a system.

One compiled loop serves every system; `initialize` and the other functions below pass each call on to the system's
kernels, which `mh4.transitions.arrays` describes. So the loops are compiled once, and know no system by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from numba import njit

from mh4.oracles import arc_hybrid as arc_hybrid_oracle
from mh4.oracles import lr_spine as lr_spine_oracle
from mh4.oracles import mh4 as mh4_oracle
from mh4.oracles.arc_eager import costs as arc_eager_oracle
from mh4.oracles.arc_standard import costs as arc_standard_oracle
from mh4.oracles.costs import (
    ALL_PAIRS,
    DYNAMIC,
    EXACT,
    ON_ORIGINAL_TREES,
    ORACLE_NAMES,
    STATIC,
    note_children,
    note_crossing,
)
from mh4.oracles.covington import costs as covington_oracle
from mh4.transitions.arrays import arc_eager, arc_hybrid, arc_standard, covington, lr_spine, mh4
from mh4.transitions.arrays.state import reset
from mh4.transitions.registry import TRANSITION_SYSTEMS, system_name

from . import template_sets
from .templates import Templates, compile_templates

ARC_STANDARD, ARC_EAGER, LR_SPINE, COVINGTON, ARC_HYBRID, MH4 = range(6)


@dataclass(frozen=True)
class GreedySystem:
    """What is to know of a system outside its kernels; ValueError: positions that are no tokens, or none at all."""

    code: int  # for the functions of this module
    name: str  # in `mh4.transitions.registry`
    tokens: tuple[str, ...]  # token names of the templates; the first two are the words whose distance is ``d``
    templates: tuple[str, ...]  # as of `templates.compile_templates`
    positions: tuple[str, ...]  # those of `tokens` whose vectors a neural scorer reads by default
    form: str = "concatenated"  # how its scores depend on these by default: "concatenated" or "biaffine"
    transitions: tuple[str, ...] = ()  # in the order of their numbers; by default those of the system as it is defined
    unlabelled: tuple[str, ...] = ("shift",)  # the transitions that decide on no arc, and so on no relation
    trees: str = "projective"  # that can be built, others being replaced for training; or "mh4", "all"
    single_root: bool = True  # whether only trees with exactly one word below the root can be built
    oracles: tuple[str, ...] = (ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC])  # those that the system has
    # Whether the dynamic oracle knows about configurations from which the gold tree is out of reach, so that training
    # may follow wrong predictions.
    explores: bool = True

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
        """The arrays of the templates."""
        return compile_templates(self.templates, self.tokens)


GREEDY_SYSTEMS = {
    system.name: system
    for system in (
        GreedySystem(
            ARC_STANDARD,
            "arc-standard",
            arc_standard.TOKENS,
            template_sets.select(template_sets.MERGED, arc_standard.TOKENS),
            positions=("s3", "s2", "s1", "q1"),
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC], ORACLE_NAMES[EXACT]),
        ),
        GreedySystem(
            ARC_EAGER,
            "arc-eager",
            arc_eager.TOKENS,
            template_sets.ZHANG_NIVRE,
            positions=("s0h", "s0", "n0", "n1"),
            transitions=arc_eager.TRANSITIONS,
            unlabelled=("shift", "reduce"),
            oracles=(ORACLE_NAMES[STATIC], ORACLE_NAMES[DYNAMIC], *ON_ORIGINAL_TREES),
        ),
        GreedySystem(
            LR_SPINE,
            "lr-spine",
            lr_spine.TOKENS,
            template_sets.MERGED,
            positions=("s3", "s2", "s1", "q1"),
            explores=False,
        ),
        GreedySystem(
            COVINGTON,
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
            ARC_HYBRID,
            "arc-hybrid",
            arc_hybrid.TOKENS,
            template_sets.ARC_HYBRID,
            positions=("s0", "b0"),
            form="biaffine",
        ),
        GreedySystem(
            MH4,
            "mh4",
            mh4.TOKENS,
            template_sets.MH4,
            positions=("s1", "s0", "b0"),
            trees="mh4",
            oracles=(ORACLE_NAMES[STATIC],),
            explores=False,
        ),
    )
}


def get_system(name: str) -> GreedySystem:
    """A system by its name; a ValueError for others lists the known ones."""
    return GREEDY_SYSTEMS[system_name(name, GREEDY_SYSTEMS)]


@njit(cache=True, nogil=True)
def initialize(system, state, n):
    """Make the initial configuration of n words."""
    reset(state, n)
    if system in (ARC_STANDARD, LR_SPINE):
        arc_standard.initialize(state)
    elif system == ARC_EAGER:
        arc_eager.initialize(state)
    elif system == COVINGTON:
        covington.initialize(state)
    else:
        arc_hybrid.initialize(state)


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
    return mh4.list_candidates(state, candidates)


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
    else:
        mh4.apply(state, transition, argument, relation)


@njit(cache=True, nogil=True)
def finish(system, state, candidates):
    """After the last step, name an arc that one word below the root takes besides; False if there is none."""
    return system == COVINGTON and covington.finish(state, candidates)


@njit(cache=True, nogil=True)
def prepare(system, state, oracle, gold):
    """Make the oracle ready for a gold tree, given as heads; before the first step."""
    if oracle == EXACT:
        note_crossing(gold, state.oracle)
    if system == ARC_EAGER:
        arc_eager_oracle.prepare(state, oracle, gold)
    elif system == COVINGTON:
        covington_oracle.prepare(state, oracle, gold)
    else:
        note_children(gold, state.oracle)


@njit(cache=True, nogil=True)
def find_costs(system, state, oracle, gold, candidates, count):
    """Fill the costs of the first ``count`` candidates."""
    if system == ARC_STANDARD:
        arc_standard_oracle.costs(state, oracle, gold, candidates, count)
    elif system == ARC_EAGER:
        arc_eager_oracle.costs(state, oracle, gold, candidates, count)
    elif system == LR_SPINE:
        lr_spine_oracle.costs(state, oracle, gold, candidates, count)
    elif system == COVINGTON:
        covington_oracle.costs(state, oracle, gold, candidates, count)
    elif system == ARC_HYBRID:
        arc_hybrid_oracle.costs(state, oracle, gold, candidates, count)
    else:
        mh4_oracle.costs(state, oracle, gold, candidates, count)


@njit(cache=True, nogil=True)
def follow(system, state, oracle, transition):
    """Tell the oracle of a step that is about to be taken."""
    if system == COVINGTON:
        covington_oracle.follow(state, oracle, transition)
