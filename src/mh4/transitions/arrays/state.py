"""Configurations and candidate transitions in flat arrays, and the arc bookkeeping that all systems share.

Positions are 0 (the root) to n. The arrays are allocated once, for the longest sentence, and reused for all.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

NONE = -1  # no token, no head, no relation

# State.counters
WORDS, DEPTH, FRONT, OWN = range(4)
COUNTERS = 12
# State.dependents: for each side, the outermost and second outermost dependents and the one nearest to the head.
LEFTMOST, SECOND_LEFT, NEAREST_LEFT, RIGHTMOST, SECOND_RIGHT, NEAREST_RIGHT = range(6)
LEFT, RIGHT = range(2)
# Candidates.rows
CONTEXT, TRANSITION, ARGUMENT, HEAD, DEPENDENT = range(5)

OWN_ROWS, ORACLE_ROWS = 8, 8
_RELATION_BITS = 63
_MOST_TRANSITIONS = 8  # upper bound on transitions without an argument


class State(NamedTuple):
    """A configuration; N is at least n + 2. `reset` does not clear ``own`` and ``oracle``."""

    # int32 (COUNTERS,): n, depth of the stack, first word of the remaining input (n + 1: empty), the system's own
    counters: np.ndarray
    stack: np.ndarray  # int32 (N,), from the bottom
    labels: np.ndarray  # int32 (N,), of the stack's elements, in systems with labels
    heads: np.ndarray  # int32 (N,): the head of each word, `NONE` while it has none
    relations: np.ndarray  # int32 (N,): the relation of each word to its head, likewise
    dependents: np.ndarray  # int32 (6, N): rows `LEFTMOST` … `NEAREST_RIGHT` for each position, or `NONE`
    valencies: np.ndarray  # int32 (2, N): the number of dependents on either side
    relation_sets: np.ndarray  # int64 (2, N): bit sets of their relations; beyond 63 relations, some share bits
    own: np.ndarray  # int32 (OWN_ROWS, N), for the system
    oracle: np.ndarray  # int32 (ORACLE_ROWS, N), the oracle's notes on the gold tree


class Candidates(NamedTuple):
    """The legal transitions of a configuration, and the tokens of their features; C is at least 2N."""

    rows: np.ndarray  # int32 (C, 5): context, transition, argument, head and dependent of each
    costs: np.ndarray  # int32 (C,)
    tokens: np.ndarray  # int32 (C, S): for each context, the position of each of the system's `TOKENS`, or `NONE`
    groups: np.ndarray  # int32 (C,): the group of each context; weights are shared within a group only


def new_state(longest: int) -> State:
    """Buffers for sentences of up to this many words."""
    size = longest + 2
    return State(
        np.zeros(COUNTERS, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros(size, np.int32),
        np.zeros((6, size), np.int32),
        np.zeros((2, size), np.int32),
        np.zeros((2, size), np.int64),
        np.zeros((OWN_ROWS, size), np.int32),
        np.zeros((ORACLE_ROWS, size), np.int32),
    )


def new_candidates(tokens: int, longest: int) -> Candidates:
    """Buffers for the candidates of sentences of up to this many words, with this many tokens in a context."""
    count = 2 * (longest + 2) + _MOST_TRANSITIONS
    return Candidates(
        np.zeros((count, 5), np.int32),
        np.zeros(count, np.int32),
        np.zeros((count, tokens), np.int32),
        np.zeros(count, np.int32),
    )


@njit(cache=True, nogil=True)
def reset(state, n):
    """Remove all arcs, for the next sentence, of n words."""
    state.counters[:] = 0
    state.counters[WORDS] = n
    for position in range(n + 1):
        state.heads[position] = NONE
        state.relations[position] = NONE
        for row in range(6):
            state.dependents[row, position] = NONE
        for side in range(2):
            state.valencies[side, position] = 0
            state.relation_sets[side, position] = 0


@njit(cache=True, nogil=True)
def add_arc(state, head, dependent, relation):
    """Add an arc."""
    state.heads[dependent] = head
    state.relations[dependent] = relation
    side, first, sign = (LEFT, LEFTMOST, 1) if dependent < head else (RIGHT, RIGHTMOST, -1)
    outermost = state.dependents[first, head]
    nearest = state.dependents[first + 2, head]
    if outermost == NONE or sign * dependent < sign * outermost:
        state.dependents[first + 1, head] = outermost
        state.dependents[first, head] = dependent
    else:
        second = state.dependents[first + 1, head]
        if second == NONE or sign * dependent < sign * second:
            state.dependents[first + 1, head] = dependent
    if nearest == NONE or sign * dependent > sign * nearest:
        state.dependents[first + 2, head] = dependent
    state.valencies[side, head] += 1
    state.relation_sets[side, head] |= np.int64(1) << np.int64(relation % _RELATION_BITS)
    return


@njit(cache=True, nogil=True, inline="always")
def add_candidate(candidates, count, context, transition, argument, head, dependent):
    """Write row ``count``; returns count + 1."""
    row = candidates.rows[count]
    row[CONTEXT] = context
    row[TRANSITION] = transition
    row[ARGUMENT] = argument
    row[HEAD] = head
    row[DEPENDENT] = dependent
    return count + 1


@njit(cache=True, nogil=True, inline="always")
def dependent_of(state, row, position):
    """A dependent of a position; `NONE` if there is none, or if the position is `NONE`."""
    return state.dependents[row, position] if position >= 0 else NONE


@njit(cache=True, nogil=True, inline="always")
def head_of(state, position):
    """The head of a position; `NONE` if there is none, or if the position is `NONE`."""
    return state.heads[position] if position >= 0 else NONE


@njit(cache=True, nogil=True, inline="always")
def write_dependents(state, position, tokens, first):
    """Fill ``tokens[first : first + 4]``: the two outermost dependents on the left, then those on the right."""
    tokens[first] = dependent_of(state, LEFTMOST, position)
    tokens[first + 1] = dependent_of(state, SECOND_LEFT, position)
    tokens[first + 2] = dependent_of(state, RIGHTMOST, position)
    tokens[first + 3] = dependent_of(state, SECOND_RIGHT, position)


@njit(cache=True, nogil=True)
def push_front(state):
    """Move the next word to the stack."""
    state.stack[state.counters[DEPTH]] = state.counters[FRONT]
    state.counters[DEPTH] += 1
    state.counters[FRONT] += 1
