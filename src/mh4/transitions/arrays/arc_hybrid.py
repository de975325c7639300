"""Arc-hybrid parsing on arrays, as in `mh4.transitions.arc_hybrid` with one word below the root.

An arc from the root is a candidate in the very last step alone, so exactly one word is below the root and nothing gets
stuck. Tokens: s0, s1 and s2 from the top of the stack down, b0 and b1 from the front of the input; two outermost
dependents on a side, as far as there can be any.

Features: Zhang & Nivre (2011) for either pair of words that can be joined. The pair of s0 and b0 is as in arc-eager
parsing; words in the stack have no head yet, so what asks for one is left out. The pair of s1 and s0 takes the same
templates moved on by one token, distances left out; those of s2 are made like Sartorio et al.'s (2013) of s3.

Oracles: ``static``, every word removed as soon as possible; ``dynamic``, exact costs for projective gold trees
(Goldberg & Nivre 2013).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.oracles.arc_hybrid import transition_costs
from mh4.parsers.templates import ZHANG_NIVRE, distinct, renamed, select, written

from ..arc_hybrid import ArcHybrid
from .state import (
    DEPTH,
    FRONT,
    LAST_CHILD,
    LEFTMOST,
    NONE,
    SECOND_LEFT,
    STATIC,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    dependent_of,
    push_front,
    write_dependents,
    write_static_costs,
)

SHIFT, LA, RA = range(3)
_DEPENDENTS = tuple(f"{token}{side}" for token in ("s0", "s1") for side in ("l", "l2", "r", "r2"))
TOKENS = ("s0", "b0", "s1", "s2", "b1", "b2", *_DEPENDENTS, "b0l", "b0l2")


def pair(first: str, second: str, third: str, fourth: str) -> tuple[str, ...]:
    """Zhang & Nivre's templates of two words of `TOKENS`, of which the second is followed by the other two."""
    moved = renamed(ZHANG_NIVRE, {"s0": first, "n0": second, "n1": third, "n2": fourth, "s0h": "h", "s0h2": "h"})
    known = (template for template in select(moved, TOKENS) if f"{first}.l" not in template.split())
    return tuple(template for template in known if (first, second) == TOKENS[:2] or "d" not in template.split())


TEMPLATES = distinct(
    (
        *pair("s0", "b0", "b1", "b2"),
        *pair("s1", "s0", "b0", "b1"),
        *written("s2.w; s2.p; s2.w s2.p; s2.p s1.p s0.p; s1.p s0.p b0.p"),
    )
)
SYSTEM = System(
    ArcHybrid.name,
    ArcHybrid.transitions,
    (False, True, True),
    TOKENS,
    TEMPLATES,
    projective=True,
    positions=("s0", "b0"),
    form="biaffine",
    single_root=True,
)


@njit(cache=True, nogil=True)
def initialize(state):
    """The root alone in the stack."""
    state.stack[0] = 0
    state.counters[DEPTH] = 1
    state.counters[FRONT] = 1


@njit(cache=True, nogil=True)
def window(state):
    """s2, s1, s0, b0: the three topmost elements of the stack and the next word, `NONE` where there is none."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    s2 = state.stack[depth - 3] if depth > 2 else NONE
    s1 = state.stack[depth - 2] if depth > 1 else NONE
    return s2, s1, state.stack[depth - 1], front if front <= state.counters[WORDS] else NONE


@njit(cache=True, nogil=True)
def root_is_last(state):
    """Whether the root may get its dependent: one word is left, in the stack."""
    return state.counters[DEPTH] == 2 and state.counters[FRONT] > state.counters[WORDS]


@njit(cache=True, nogil=True)
def fill_context(state, candidates, s2, s1, s0, b0):
    """Write the only context, the positions of `TOKENS`."""
    n = state.counters[WORDS]
    tokens = candidates.tokens[0]
    tokens[0], tokens[1], tokens[2], tokens[3] = s0, b0, s1, s2
    for i in range(1, 3):
        tokens[3 + i] = b0 + i if b0 != NONE and b0 + i <= n else NONE
    for i in range(2):
        write_dependents(state, tokens[2 * i], tokens, 6 + 4 * i)
    tokens[14] = dependent_of(state, LEFTMOST, b0)
    tokens[15] = dependent_of(state, SECOND_LEFT, b0)
    candidates.groups[0] = 0


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    s2, s1, s0, b0 = window(state)
    count = 0
    if b0 != NONE:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
        if s0 > 0:
            count = add_candidate(candidates, count, 0, LA, 0, b0, s0)
    if s1 > 0 or root_is_last(state):
        count = add_candidate(candidates, count, 0, RA, 0, s1, s0)
    fill_context(state, candidates, s2, s1, s0, b0)
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    if transition == SHIFT:
        push_front(state)
        return
    _, s1, s0, b0 = window(state)
    state.counters[DEPTH] -= 1
    add_arc(state, b0 if transition == LA else s1, s0, relation)


@njit(cache=True, nogil=True)
def _static_step(state, gold):
    _, s1, s0, b0 = window(state)
    if s0 > 0 and gold[s0] == b0:
        return LA
    if s0 > 0 and gold[s0] == s1 and state.oracle[LAST_CHILD, s0] < state.counters[FRONT]:
        return RA
    return SHIFT


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for a projective gold tree with one word below the root."""
    if oracle == STATIC:
        write_static_costs(candidates, count, _static_step(state, gold))
        return
    lost = np.empty(3, np.int32)
    transition_costs(state.stack[: state.counters[DEPTH]], state.counters[FRONT], gold, lost)
    for c in range(count):
        candidates.costs[c] = lost[candidates.rows[c, TRANSITION]]
