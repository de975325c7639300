"""Arc-eager parsing, compiled: Nederhof (2021), Table 6, as in `mh4.transitions.arc_eager`, with reduce_correct.

On a `State`, the arc from the root is made in the very last step, as in the experiments of Sartorio et al. (2013,
section 5), so exactly one word is below the root: a word shifted onto the root stays there, labelled L, until it
becomes a left child or the input ends. When only the root is in the stack, the next word is shifted automatically.

A right child gets its relation when it is pushed, and features see its arc from then on. The paper's reduce is split in
two: ``reduce`` removes an element labelled R, whose relation is known, and ``reduce_correct`` one labelled L, whose
relation is still to be chosen.
"""

from numba import njit

from ..arc_eager import LABELS, ArcEager
from .state import (
    DEPTH,
    FRONT,
    LEFTMOST,
    NONE,
    SECOND_LEFT,
    WORDS,
    add_arc,
    add_candidate,
    dependent_of,
    head_of,
    push_front,
    write_dependents,
)

R, L, N = range(len(LABELS))
SHIFT, LEFT_ARC, RIGHT_ARC, REDUCE, REDUCE_CORRECT = range(5)
TRANSITIONS = (*ArcEager.transitions, "reduce_correct")
TOKENS = ("s0", "n0", "n1", "n2", "s0h", "s0h2", "s0l", "s0l2", "s0r", "s0r2", "n0l", "n0l2", "s1")


@njit(cache=True, nogil=True)
def applies(transition, reduce_correct, labels, depth, front, n):
    """Whether a transition of Table 6 applies."""
    if transition == REDUCE:
        return depth > 1 and (labels[depth - 1] == R or reduce_correct)
    return front <= n and (transition != LEFT_ARC or labels[depth - 1] == L)


@njit(cache=True, nogil=True)
def move(transition, stack, labels, depth, front):
    """Take a transition of Table 6 in place; returns depth and front after it, head and dependent (`NONE`: no arc)."""
    if transition in (SHIFT, RIGHT_ARC):
        stack[depth] = front
        labels[depth] = L if transition == SHIFT else R
        return depth + 1, front + 1, NONE, NONE
    return depth - 1, front, front if transition == LEFT_ARC else stack[depth - 2], stack[depth - 1]


@njit(cache=True, nogil=True)
def _shift_unasked(state):
    """Shift the next word, if any, when only the root is in the stack."""
    if state.counters[DEPTH] == 1 and state.counters[FRONT] <= state.counters[WORDS]:
        state.labels[1] = L
        push_front(state)


@njit(cache=True, nogil=True)
def initialize(state):
    """Push the root and the first word."""
    state.counters[DEPTH] = 0
    state.counters[FRONT] = 0
    state.labels[0] = R
    push_front(state)
    _shift_unasked(state)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """List the legal transitions, in one context."""
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
    tokens[12] = state.stack[depth - 2]
    candidates.groups[0] = 0
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step, and shift automatically after it where needed."""
    counters = state.counters
    if transition == RIGHT_ARC:
        add_arc(state, state.stack[counters[DEPTH] - 1], counters[FRONT], relation)
    depth, front, head, dependent = move(transition, state.stack, state.labels, counters[DEPTH], counters[FRONT])
    counters[DEPTH], counters[FRONT] = depth, front
    if dependent != NONE:
        if transition != REDUCE:
            add_arc(state, head, dependent, relation)
        _shift_unasked(state)
