"""Arc-hybrid parsing, compiled, as in `mh4.transitions.arc_hybrid`; its kernels serve `mh4` parsing as well.

Both systems consist of a shift and a table of reductions: transition 1 + r makes the arc in row r of the table, head
and dependent as indices into the `window`, and removes the dependent from the stack.

On a `State`, exactly one word is below the root: an arc from the root is a candidate only in the very last step, and
nothing gets stuck. Tokens: s0, s1 and s2 from the top of the stack down, b0, b1 and b2 from the front of the input; and
of s0, s1 and b0, the two outermost dependents on each side on which they can have any.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..arc_hybrid import ArcHybrid
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
    write_dependents,
)

SHIFT, LA, RA = range(len(ArcHybrid.transitions))
REDUCES = np.array(list(ArcHybrid.reduces.values()))
_DEPENDENTS = tuple(f"{token}{side}" for token in ("s0", "s1") for side in ("l", "l2", "r", "r2"))
TOKENS = ("s0", "b0", "s1", "s2", "b1", "b2", *_DEPENDENTS, "b0l", "b0l2")


@njit(cache=True, nogil=True)
def window(stack, depth, front, n):
    """s2, s1, s0, b0: the three topmost elements of the stack and the next word, `NONE` where there is none."""
    s2 = np.int64(stack[depth - 3]) if depth > 2 else NONE
    s1 = np.int64(stack[depth - 2]) if depth > 1 else NONE
    return s2, s1, np.int64(stack[depth - 1]), np.int64(front) if front <= n else NONE


@njit(cache=True, nogil=True)
def move(reduces, transition, stack, depth, front, n):
    """Take a transition in place; returns depth and front after it, head and dependent (`NONE`: no arc)."""
    if transition == SHIFT:
        stack[depth] = front
        return depth + 1, front + 1, NONE, NONE
    around = window(stack, depth, front, n)
    head, dependent = around[reduces[transition - 1, 0]], around[reduces[transition - 1, 1]]
    if dependent != stack[depth - 1]:
        stack[depth - 2] = stack[depth - 1]
    return depth - 1, front, head, dependent


@njit(cache=True, nogil=True)
def initialize(state):
    """Push the root."""
    state.stack[0] = 0
    state.counters[DEPTH] = 1
    state.counters[FRONT] = 1


@njit(cache=True, nogil=True)
def _fill_context(state, candidates, s2, s1, s0, b0):
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
def list_reduces(reduces, state, candidates):
    """List the shift and the legal reductions of a table, in one context."""
    n, depth, front = state.counters[WORDS], state.counters[DEPTH], state.counters[FRONT]
    around = window(state.stack, depth, front, n)
    count = 0
    if front <= n:
        count = add_candidate(candidates, count, 0, SHIFT, 0, NONE, NONE)
    least = 0 if depth == 2 and front > n else 1  # the lowest legal head: the root only takes the last word
    for r in range(reduces.shape[0]):
        head, dependent = around[reduces[r, 0]], around[reduces[r, 1]]
        if head >= least and dependent > 0:
            count = add_candidate(candidates, count, 0, 1 + r, 0, head, dependent)
    s2, s1, s0, b0 = around
    _fill_context(state, candidates, s2, s1, s0, b0)
    return count, 1


@njit(cache=True, nogil=True)
def take(reduces, state, transition, relation):
    """Take a step of the system with this table."""
    counters = state.counters
    depth, front, head, dependent = move(
        reduces, transition, state.stack, counters[DEPTH], counters[FRONT], counters[WORDS]
    )
    counters[DEPTH], counters[FRONT] = depth, front
    if dependent != NONE:
        add_arc(state, head, dependent, relation)


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """List the legal transitions, in one context."""
    return list_reduces(REDUCES, state, candidates)


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    take(REDUCES, state, transition, relation)
