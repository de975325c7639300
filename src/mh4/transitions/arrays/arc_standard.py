"""Arc-standard (shift-reduce) parsing, compiled: Nederhof (2019), Table 1, as in `mh4.transitions.arc_standard`.

On a `State`, the arc from the root is made in the very last step, as in the experiments of Sartorio et al. (2013,
section 5), so exactly one word is below the root. Until then, words are shifted automatically while there are fewer
than two trees above the root. A reduction also decides on the relation of its arc. Token names follow Sartorio et al.:
the arc is between s1, the topmost element, and s2, the one below it.
"""

from numba import njit

from ..arc_standard import TRANSITIONS
from .state import DEPTH, FRONT, NONE, WORDS, add_arc, add_candidate, push_front, write_dependents

SHIFT, REDUCE_LEFT, REDUCE_RIGHT = range(len(TRANSITIONS))
TOKENS = ("s1", "s2", "s3", "q1", "q2", "s1l", "s1l2", "s1r", "s1r2", "s2l", "s2l2", "s2r", "s2r2")


@njit(cache=True, nogil=True)
def applies(transition, depth, front, n):
    """Whether a transition of Table 1 applies."""
    if transition == SHIFT:
        return front <= n
    return depth > (1 if transition == REDUCE_LEFT else 2)


@njit(cache=True, nogil=True)
def move(transition, stack, depth, front):
    """Take a transition of Table 1 in place; returns depth and front after it, head and dependent (`NONE`: no arc)."""
    if transition == SHIFT:
        stack[depth] = front
        return depth + 1, front + 1, NONE, NONE
    second, top = stack[depth - 2], stack[depth - 1]
    if transition == REDUCE_LEFT:
        return depth - 1, front, second, top
    stack[depth - 2] = top
    return depth - 1, front, top, second


@njit(cache=True, nogil=True)
def shift_unasked(state):
    """Shift until there are two trees above the root or the input ends."""
    while state.counters[DEPTH] < 3 and state.counters[FRONT] <= state.counters[WORDS]:
        push_front(state)


@njit(cache=True, nogil=True)
def initialize(state):
    """Push the root and the first two words."""
    state.counters[DEPTH] = 0
    state.counters[FRONT] = 0
    shift_unasked(state)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """List the legal transitions, in one context."""
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
    """Take a step, and shift automatically after it where needed."""
    counters = state.counters
    depth, front, head, dependent = move(transition, state.stack, counters[DEPTH], counters[FRONT])
    counters[DEPTH], counters[FRONT] = depth, front
    if dependent != NONE:
        add_arc(state, head, dependent, relation)
        shift_unasked(state)
