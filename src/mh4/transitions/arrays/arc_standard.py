"""Arc-standard (shift-reduce) parsing on arrays: Nederhof (2019), Table 1, as in `mh4.transitions.shift_reduce`.

The root is attached to at the end, in the very last step, as in the experiments of Sartorio et al. (2013, section 5),
so exactly one word is below it. Until then there is nothing to choose with fewer than two trees above the root, and the
next words are shifted without being asked for.

The relation of an arc is part of the reduction. Features: the templates of Zhang & Nivre (2011) as adapted by Sartorio
et al., with their names of tokens: the arc is between s1, the topmost element, and s2.

Oracles: ``static``, a reduction as soon as possible, left arcs first: a word gets its left children before it waits for
its right ones; ``dynamic``, every transition after which the best tree is still in reach, by the linear-time
calculation (Nederhof 2019, section 6), free of any policy. That calculation lets the root take several words at any
time; a gold tree with one word below the root loses no more arcs where it must wait, as the other words that a
computation attaches to the root may as well be attached to the one that stays. Without exploration this is
*easy-first* training (Sartorio et al. 2013, section 5).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.oracles.shift_reduce.projective import best_after
from mh4.oracles.shift_reduce.restrictions import arc_built, stack_after
from mh4.parsers.templates import MERGED, select

from ..shift_reduce import TRANSITIONS
from .state import (
    DEPTH,
    FRONT,
    LAST_CHILD,
    NONE,
    STATIC,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    push_front,
    write_dependents,
    write_static_costs,
)

SHIFT, REDUCE_LEFT, REDUCE_RIGHT = range(3)
TOKENS = ("s1", "s2", "s3", "q1", "q2", "s1l", "s1l2", "s1r", "s1r2", "s2l", "s2l2", "s2r", "s2r2")
SYSTEM = System(
    "arc-standard",
    TRANSITIONS,
    (False, True, True),
    TOKENS,
    select(MERGED, TOKENS),
    projective=True,
    positions=("s3", "s2", "s1", "q1"),
    single_root=True,
)


@njit(cache=True, nogil=True)
def shift_unasked(state):
    """Shift until there are two trees above the root; with fewer there is nothing else to do."""
    while state.counters[DEPTH] < 3 and state.counters[FRONT] <= state.counters[WORDS]:
        push_front(state)


@njit(cache=True, nogil=True)
def initialize(state):
    """The root and the first two words in the stack."""
    state.counters[DEPTH] = 0
    state.counters[FRONT] = 0
    shift_unasked(state)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    if depth < 2:
        return 0, 0
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    count = 0
    if front <= n:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
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
        write_dependents(state, tokens[i], tokens, 5 + 4 * i)
    candidates.groups[0] = 0
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step, and shift what has to be shifted after it."""
    depth = state.counters[DEPTH]
    if transition == SHIFT:
        push_front(state)
        return
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    state.counters[DEPTH] -= 1
    if transition == REDUCE_LEFT:
        add_arc(state, second, top, relation)
    else:
        state.stack[depth - 2] = top
        add_arc(state, top, second, relation)
    shift_unasked(state)


@njit(cache=True, nogil=True)
def _static_step(state, gold):
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    if gold[second] == top:
        return REDUCE_RIGHT
    if gold[top] == second and state.oracle[LAST_CHILD, top] < front:
        return REDUCE_LEFT
    return SHIFT


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for a projective gold tree."""
    if oracle == STATIC:
        write_static_costs(candidates, count, _static_step(state, gold))
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
