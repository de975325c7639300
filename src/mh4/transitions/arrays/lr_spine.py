"""LR-spine parsing on arrays: Sartorio et al. (2013), as in `mh4.transitions.lr_spine`.

As in the paper's experiments the root is attached to at the end, so one word is below it. Until then the parser works
on the trees above the root, and as in Algorithm 1 there is nothing to choose with fewer than two of them: the next
words are shifted without being asked for, also after an arc that leaves one tree. Spines take no room of their own;
they are the outermost dependents, step by step.

Each candidate has its own context, relative to the arc that it makes (Table 1), and each type of transition has its own
weights. Templates: the merged ones of section 4.3, with all their tokens.

Oracles: ``static``, every arc as soon as possible, which is the paper's *arc-standard + spine*; ``dynamic``, all
correct transitions (Lemma 1), of which training follows the one with the best score (Algorithm 2, *easy-first*). Lemma
1 says nothing about configurations that the gold tree cannot be reached from, so neither oracle admits exploration.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.oracles.lr_spine import depth_in_spine, shift_is_correct
from mh4.parsers.templates import MERGED, select

from ..lr_spine import KINDS, LRSpine
from .arc_standard import initialize, shift_unasked
from .state import (
    ARGUMENT,
    DEPTH,
    FRONT,
    LAST_CHILD,
    LEFTMOST,
    NONE,
    RIGHTMOST,
    STATIC,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    push_front,
    write_dependents,
)

__all__ = ["SYSTEM", "TOKENS", "apply", "costs", "initialize", "list_candidates"]

SHIFT, LEFT_ARC, RIGHT_ARC = range(3)
_PLACEHOLDERS = ("s1", "s2", "s3", "q1", "q2", "gp", "gg")
TOKENS = (*_PLACEHOLDERS, *(f"{token}{side}" for token in ("s1", "s2") for side in ("l", "l2", "r", "r2")))
SYSTEM = System(
    LRSpine.name,
    KINDS,
    (False, True, True),
    TOKENS,
    select(MERGED, TOKENS),
    projective=True,
    positions=("s3", "s2", "s1", "q1"),
    explores=False,
    single_root=True,
)


@njit(cache=True, nogil=True)
def _context(state, candidates, i, transition, s1, s2, s3, q1, q2, gp, gg):
    tokens = candidates.tokens[i]
    tokens[0], tokens[1], tokens[2] = s1, s2, s3
    tokens[3], tokens[4], tokens[5], tokens[6] = q1, q2, gp, gg
    for j in range(2):
        write_dependents(state, tokens[j], tokens, 7 + 4 * j)
    candidates.groups[i] = transition


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, the shift first, each in its context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    count = 0
    if depth < 2:
        return 0, 0
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    third = state.stack[depth - 3] if depth > 2 else NONE
    b1 = front if front <= n else NONE
    b2 = front + 1 if front < n else NONE
    if front <= n:
        _context(state, candidates, count, SHIFT, top, second, third, b1, b2, NONE, NONE)
        count = add_candidate(candidates, count, count, SHIFT, 0, NONE, NONE)
    if second > 0:
        # Going down the spine, the nodes above are also what comes next on the right.
        head, above, above2 = top, NONE, NONE
        q1, q2 = b1, b2
        k = 1
        while head != NONE:
            _context(state, candidates, count, LEFT_ARC, head, second, third, q1, q2, above, above2)
            count = add_candidate(candidates, count, count, LEFT_ARC, k, head, second)
            above, above2 = head, above
            q1, q2 = head, q1
            head = state.dependents[LEFTMOST, head]
            k += 1
    head, above, above2 = second, NONE, NONE
    k = 1
    while head != NONE:
        s3 = third if k == 1 else above
        _context(state, candidates, count, RIGHT_ARC, top, head, s3, b1, b2, above, above2)
        count = add_candidate(candidates, count, count, RIGHT_ARC, k, head, top)
        above, above2 = head, above
        head = state.dependents[RIGHTMOST, head]
        k += 1
    return count, count


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step, and shift what has to be shifted after it."""
    depth = state.counters[DEPTH]
    if transition == SHIFT:
        push_front(state)
        return
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    state.counters[DEPTH] -= 1
    row, head = (LEFTMOST, top) if transition == LEFT_ARC else (RIGHTMOST, second)
    for _ in range(argument - 1):
        head = state.dependents[row, head]
    if transition == LEFT_ARC:
        state.stack[depth - 2] = top
        add_arc(state, head, second, relation)
    else:
        add_arc(state, head, top, relation)
    shift_unasked(state)


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """0 for what is correct, or canonical, and 1 for the rest, for a gold tree that is projective."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    top, second = state.stack[depth - 1], state.stack[depth - 2]
    left = depth_in_spine(top, gold[second], state.dependents[LEFTMOST]) if second > 0 else 0
    right = depth_in_spine(second, gold[top], state.dependents[RIGHTMOST])
    shift = front < gold.shape[0] and shift_is_correct(
        top, front, gold, state.oracle[LAST_CHILD], state.dependents[RIGHTMOST]
    )
    if oracle == STATIC and (left > 0 or right > 0):
        shift = False
    for c in range(count):
        transition, k = candidates.rows[c, TRANSITION], candidates.rows[c, ARGUMENT]
        correct = (
            (transition == SHIFT and shift)
            or (transition == LEFT_ARC and k == left)
            or (transition == RIGHT_ARC and k == right)
        )
        candidates.costs[c] = np.int32(0) if correct else np.int32(1)
