"""Arc-standard (shift-reduce) parsing on arrays: Nederhof (2019), Table 1, as in `mh4.transitions.shift_reduce`.

The relation of an arc is part of the reduction. Features: the templates of Zhang & Nivre (2011) as adapted by Sartorio
et al. (2013), section 5, with their names of tokens: the arc is between s1, the topmost element, and s2.

Oracles: ``static``, left-before-right, a reduction as soon as possible; ``dynamic``, every transition after which the
best tree is still in reach, by the linear-time calculation (Nederhof 2019, section 6), free of any policy. Without
exploration the latter is *easy-first* training (Sartorio et al. 2013, section 5).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..oracles.shift_reduce_projective import best_after
from ..oracles.shift_reduce_restrictions import arc_built, stack_after
from ..transitions.shift_reduce import TRANSITIONS
from .state import (
    DEPTH,
    FRONT,
    LEFTMOST,
    NONE,
    RIGHTMOST,
    SECOND_LEFT,
    SECOND_RIGHT,
    STATIC,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    dependent_of,
)
from .templates import MERGED, select

SHIFT, REDUCE_LEFT, REDUCE_RIGHT = range(3)
TOKENS = ("s1", "s2", "s3", "q1", "q2", "s1l", "s1l2", "s1r", "s1r2", "s2l", "s2l2", "s2r", "s2r2")
SYSTEM = System("arc-standard", TRANSITIONS, (False, True, True), TOKENS, select(MERGED, TOKENS), projective=True)

_LAST_CHILD = 0  # row of State.oracle


@njit(cache=True, nogil=True)
def initialize(state):
    """The root alone in the stack."""
    state.stack[0] = 0
    state.counters[DEPTH] = 1
    state.counters[FRONT] = 1


@njit(cache=True, nogil=True)
def candidates(state, candidates):
    """Legal transitions, in one context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    top = state.stack[depth - 1]
    second = state.stack[depth - 2] if depth > 1 else NONE
    count = 0
    if front <= n:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
    if depth > 1:
        count = add_candidate(candidates, count, 0, REDUCE_LEFT, 0, second, top)
    if depth > 2:
        count = add_candidate(candidates, count, 0, REDUCE_RIGHT, 0, top, second)
    tokens = candidates.tokens[0]
    tokens[0] = top
    tokens[1] = second
    tokens[2] = state.stack[depth - 3] if depth > 2 else NONE
    tokens[3] = front if front <= n else NONE
    tokens[4] = front + 1 if front < n else NONE
    for i in range(2):
        tokens[5 + 4 * i] = dependent_of(state, LEFTMOST, tokens[i])
        tokens[6 + 4 * i] = dependent_of(state, SECOND_LEFT, tokens[i])
        tokens[7 + 4 * i] = dependent_of(state, RIGHTMOST, tokens[i])
        tokens[8 + 4 * i] = dependent_of(state, SECOND_RIGHT, tokens[i])
    candidates.groups[0] = 0
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    depth = state.counters[DEPTH]
    if transition == SHIFT:
        state.stack[depth] = state.counters[FRONT]
        state.counters[DEPTH] += 1
        state.counters[FRONT] += 1
        return
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    state.counters[DEPTH] -= 1
    if transition == REDUCE_LEFT:
        add_arc(state, second, top, relation)
    else:
        state.stack[depth - 2] = top
        add_arc(state, top, second, relation)


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note the last child of every token."""
    for position in range(gold.shape[0]):
        state.oracle[_LAST_CHILD, position] = position
    for child in range(1, gold.shape[0]):
        head = gold[child]
        state.oracle[_LAST_CHILD, head] = max(state.oracle[_LAST_CHILD, head], child)


@njit(cache=True, nogil=True)
def _static_step(state, gold):
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    if depth > 1:
        top, second = state.stack[depth - 1], state.stack[depth - 2]
        if state.oracle[_LAST_CHILD, top] < front:
            if gold[second] == top:
                return REDUCE_RIGHT
            if gold[top] == second:
                return REDUCE_LEFT
    return SHIFT


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for a projective gold tree."""
    if oracle == STATIC:
        right = _static_step(state, gold)
        for c in range(count):
            candidates.costs[c] = 0 if candidates.rows[c, TRANSITION] == right else 1
        return
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    n = gold.shape[0] - 1
    stack = state.stack[:depth]
    after = np.empty(depth + 1, np.int32)
    for c in range(count):
        transition = candidates.rows[c, TRANSITION]
        depth_after = stack_after(stack, front, n, transition, after)
        front_after = front + 1 if transition == SHIFT else front
        most = best_after(after[:depth_after], front_after, gold, 0, 0, False, True)
        candidates.costs[c] = n - most - arc_built(stack, gold, transition)
