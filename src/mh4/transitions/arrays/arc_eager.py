"""Arc-eager parsing on arrays: Nederhof (2021), Table 6, as in `mh4.transitions.arc_eager`, with reduce_correct.

The root is attached to at the end, in the very last step, as in the experiments of Sartorio et al. (2013, section 5),
so exactly one word is below it: whatever is shifted onto the root stays there, labelled L, until it becomes a left
child or the input ends. With nothing else in the stack the next word is shifted without being asked for.

A right child gets its relation when it is pushed, and its arc is seen by the features from then on. What the paper
calls reduce is two transitions here: ``reduce`` of an element labelled R, whose relation is known, and
``reduce_correct`` of one labelled L, which has a relation still to be chosen.

Features: Zhang & Nivre (2011). Oracles: ``static``, shift-before-reduce; ``dynamic``, the linear-time calculation
(Nederhof 2021, section 5) for projective gold trees. The calculation keeps to a policy, so that only one order of
shift and reduce counts as right; here every order does: shift, left_arc and right_arc are scored under
shift-before-reduce, which does not restrict what follows them, and reduce under reduce-before-shift, for the same
reason. Under either a word that is shifted is to become a left child, but for the one on the root, which has no choice.
The calculation lets the root take words at any time; as in `arc_standard`, that saves no gold arcs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.oracles.arc_eager import steps
from mh4.oracles.arc_eager.linear import linear_scores, rightmost_descendants
from mh4.oracles.arc_eager.steps import L, R
from mh4.parsers.templates import ZHANG_NIVRE

from ..arc_eager import ArcEager
from .state import (
    DEPTH,
    FIRST_CHILD,
    FRONT,
    LAST_CHILD,
    LEFTMOST,
    NONE,
    OWN_ORACLE,
    SECOND_LEFT,
    STATIC,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    dependent_of,
    head_of,
    push_front,
    write_dependents,
    write_static_costs,
)

SHIFT, LEFT_ARC, RIGHT_ARC, REDUCE, REDUCE_CORRECT = range(5)
TRANSITIONS = (*ArcEager.transitions, "reduce_correct")
TOKENS = ("s0", "n0", "n1", "n2", "s0h", "s0h2", "s0l", "s0l2", "s0r", "s0r2", "n0l", "n0l2")
SYSTEM = System(
    ArcEager.name,
    TRANSITIONS,
    (False, True, True, False, True),
    TOKENS,
    ZHANG_NIVRE,
    projective=True,
    positions=("s0h", "s0", "n0", "n1"),
    single_root=True,
)

_LAST_DESCENDANT = OWN_ORACLE  # row of State.oracle


@njit(cache=True, nogil=True)
def _push(state, label):
    state.labels[state.counters[DEPTH]] = label
    push_front(state)


@njit(cache=True, nogil=True)
def _shift_unasked(state):
    """Shift onto the root."""
    if state.counters[DEPTH] == 1 and state.counters[FRONT] <= state.counters[WORDS]:
        _push(state, L)


@njit(cache=True, nogil=True)
def initialize(state):
    """The root and the first word in the stack."""
    state.counters[DEPTH] = 0
    state.counters[FRONT] = 0
    _push(state, R)
    _shift_unasked(state)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    if depth < 2:
        return 0, 0
    top = state.stack[depth - 1]
    count = 0
    if front <= n:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
        if state.labels[depth - 1] == L:
            count = add_candidate(candidates, count, 0, LEFT_ARC, 0, front, top)
        count = add_candidate(candidates, count, 0, RIGHT_ARC, 0, top, front)
    if state.labels[depth - 1] == R:
        count = add_candidate(candidates, count, 0, REDUCE, 0, NONE, NONE)
    elif depth > 2 or front > n:
        count = add_candidate(candidates, count, 0, REDUCE_CORRECT, 0, state.stack[depth - 2], top)
    tokens = candidates.tokens[0]
    front_word = front if front <= n else NONE
    tokens[0] = top
    tokens[1] = front_word
    tokens[2] = front + 1 if front + 1 <= n else NONE
    tokens[3] = front + 2 if front + 2 <= n else NONE
    tokens[4] = head_of(state, top)
    tokens[5] = head_of(state, tokens[4])
    write_dependents(state, top, tokens, 6)
    tokens[10] = dependent_of(state, LEFTMOST, front_word)
    tokens[11] = dependent_of(state, SECOND_LEFT, front_word)
    candidates.groups[0] = 0
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step, and shift what has to be shifted after it."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    top = state.stack[depth - 1]
    if transition in (SHIFT, RIGHT_ARC):
        _push(state, L if transition == SHIFT else R)
        if transition == RIGHT_ARC:
            add_arc(state, top, front, relation)
        return
    state.counters[DEPTH] -= 1
    if transition == LEFT_ARC:
        add_arc(state, front, top, relation)
    elif transition == REDUCE_CORRECT:
        add_arc(state, state.stack[depth - 2], top, relation)
    _shift_unasked(state)


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note the last descendant of every token."""
    if oracle != STATIC:
        state.oracle[_LAST_DESCENDANT, : gold.shape[0]] = rightmost_descendants(gold)


@njit(cache=True, nogil=True)
def _static_step(state, gold):
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    top = state.stack[depth - 1]
    if front >= gold.shape[0]:
        return REDUCE if state.labels[depth - 1] == R else REDUCE_CORRECT
    if gold[top] == front:
        return LEFT_ARC
    if gold[front] == top:
        return RIGHT_ARC
    complete = state.labels[depth - 1] == R and state.oracle[LAST_CHILD, top] < front
    if complete and not (gold[front] > front and state.oracle[FIRST_CHILD, front] > top):
        return REDUCE
    return SHIFT


@njit(cache=True, nogil=True)
def _dynamic_scores(state, gold, scores):
    """For the four transitions of Table 6, the gold arcs that can be had from now on."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    rightmost = state.oracle[_LAST_DESCENDANT]
    linear_scores(steps.SHIFT_BEFORE_REDUCE, state.stack, state.labels, depth, front, gold, rightmost, scores)
    if 0 <= scores[steps.REDUCE] < scores.max():
        others = np.empty(4, np.int32)
        linear_scores(steps.REDUCE_BEFORE_SHIFT, state.stack, state.labels, depth, front, gold, rightmost, others)
        scores[steps.REDUCE] = others[steps.REDUCE]


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for a projective gold tree."""
    if oracle == STATIC:
        write_static_costs(candidates, count, _static_step(state, gold))
        return
    scores = np.empty(4, np.int32)
    _dynamic_scores(state, gold, scores)
    best = scores.max()
    for c in range(count):
        candidates.costs[c] = best - scores[min(candidates.rows[c, TRANSITION], REDUCE)]
