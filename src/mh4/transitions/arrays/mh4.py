"""MH4 parsing on arrays, as in `mh4.transitions.mh4` with one word below the root.

An arc from the root is a candidate in the very last step alone, as in arc-hybrid parsing, whose tokens and templates
this system takes over. To them come Zhang & Nivre's (2011) templates for two more pairs, s1 with b0 and s2 with s0, and
conjunctions with s2 for the pair of s2 and s1.

The only oracle is ``static``: every word is removed as soon as possible, the topmost one first.
"""

from __future__ import annotations

from numba import njit

from mh4.oracles.mh4 import reduction
from mh4.parsers.templates import distinct, written

from ..mh4 import MH4
from .arc_hybrid import TEMPLATES as ARC_HYBRID_TEMPLATES
from .arc_hybrid import TOKENS, fill_context, initialize, pair, root_is_last, window
from .state import (
    CHILDREN,
    DEPTH,
    LEFT,
    NONE,
    ORACLES,
    RIGHT,
    STATIC,
    System,
    add_arc,
    add_candidate,
    push_front,
    write_static_costs,
)

__all__ = ["SYSTEM", "TOKENS", "apply", "costs", "initialize", "list_candidates"]

SHIFT, RA2, RA, LA, RA1, LA1, LA2 = range(len(MH4.transitions))
TEMPLATES = distinct(
    (
        *ARC_HYBRID_TEMPLATES,
        *pair("s1", "b0", "b1", "b2"),
        *pair("s2", "s0", "b0", "b1"),
        *written("s2.w s1.w; s2.w s1.p; s2.p s1.w; s2.p s1.p; s2.p s1.p s0.p b0.p"),
    )
)
SYSTEM = System(
    MH4.name,
    MH4.transitions,
    (False, True, True, True, True, True, True),
    TOKENS,
    TEMPLATES,
    projective=False,
    positions=("s1", "s0", "b0"),
    oracles=(ORACLES[STATIC],),
    explores=False,
    single_root=True,
)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    s2, s1, s0, b0 = window(state)
    count = 0
    if b0 != NONE:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
    if s2 > 0:
        count = add_candidate(candidates, count, 0, RA2, 0, s2, s0)
    if s1 > 0 or root_is_last(state):
        count = add_candidate(candidates, count, 0, RA, 0, s1, s0)
    if b0 != NONE and s0 > 0:
        count = add_candidate(candidates, count, 0, LA, 0, b0, s0)
    if s2 > 0:
        count = add_candidate(candidates, count, 0, RA1, 0, s2, s1)
    if s1 > 0:
        count = add_candidate(candidates, count, 0, LA1, 0, s0, s1)
        if b0 != NONE:
            count = add_candidate(candidates, count, 0, LA2, 0, b0, s1)
    fill_context(state, candidates, s2, s1, s0, b0)
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    if transition == SHIFT:
        push_front(state)
        return
    s2, s1, s0, b0 = window(state)
    state.counters[DEPTH] -= 1
    dependent = s0 if transition <= LA else s1
    if dependent == s1:
        state.stack[state.counters[DEPTH] - 1] = s0
    if transition in (RA2, RA1):
        head = s2
    elif transition in (LA, LA2):
        head = b0
    else:
        head = s1 if transition == RA else s0
    add_arc(state, head, dependent, relation)


@njit(cache=True, nogil=True)
def _is_complete(state, token):
    dependents = state.valencies[LEFT, token] + state.valencies[RIGHT, token]
    return dependents == state.oracle[CHILDREN, token]


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for a gold tree that the system can build, with one word below the root."""
    s2, s1, s0, b0 = window(state)
    front = b0 if b0 != NONE else gold.shape[0]
    right = reduction(gold, s2, s1, s0, front, _is_complete(state, s0), s1 != NONE and _is_complete(state, s1))
    write_static_costs(candidates, count, right)
