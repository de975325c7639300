"""Covington's non-projective parsing, compiled: Gómez-Rodríguez and Fernández-González (2015), as in
`mh4.transitions.covington`.

Where λ₁ is empty the next word is read without asking, as nothing else is possible. Which words are connected by arcs
is kept in disjoint sets, each of them led by its one word without a head.

The paper attaches all words that are left without a head to the root, and there may be more of them than the treebank
has below the root: see `finish`.
"""

from __future__ import annotations

from numba import njit

from ..covington import TRANSITIONS
from .state import (
    FRONT,
    LEFTMOST,
    NEAREST_LEFT,
    NEAREST_RIGHT,
    NONE,
    OWN,
    RIGHTMOST,
    WORDS,
    add_arc,
    add_candidate,
    dependent_of,
    head_of,
)

SHIFT, NO_ARC, LEFT_ARC, RIGHT_ARC = range(len(TRANSITIONS))
TOKENS = ("L0", "R0", "L1", "R1", "R2", "L0h", "L0h2", "L0l", "L0l'", "L0r", "L0r'", "R0l", "R0l'", "CL", "CR")
LEFT_FOCUS, RIGHT_FOCUS = OWN, FRONT  # counters
LEADERS = 0  # row of State.own


@njit(cache=True, nogil=True)
def find(leaders, word):
    """The leader of the word's set: the word without head that it is at or below."""
    while leaders[word] != word:
        leaders[word] = leaders[leaders[word]]
        word = leaders[word]
    return word


@njit(cache=True, nogil=True)
def can_be_joined(leaders, head, dependent):
    """Whether an arc between focus words, both of them words, keeps to one head and makes no cycle."""
    return leaders[dependent] == dependent and find(leaders, head) != dependent


@njit(cache=True, nogil=True)
def _move_on(state):
    """Read the next word if there is nothing to the left."""
    if state.counters[LEFT_FOCUS] == 0 and state.counters[RIGHT_FOCUS] <= state.counters[WORDS]:
        state.counters[LEFT_FOCUS] = state.counters[RIGHT_FOCUS]
        state.counters[RIGHT_FOCUS] += 1


@njit(cache=True, nogil=True)
def initialize(state):
    """The first word in λ₁."""
    for position in range(state.counters[WORDS] + 1):
        state.own[LEADERS, position] = position
    state.counters[LEFT_FOCUS] = 0
    state.counters[RIGHT_FOCUS] = 1
    _move_on(state)


@njit(cache=True, nogil=True)
def _has_head_outside(state, word, left, right):
    head = state.heads[word]
    return head < left or head > right


@njit(cache=True, nogil=True)
def _fill_context(state, candidates, left, right):
    """Write the only context, the positions of `TOKENS`."""
    n = state.counters[WORDS]
    tokens = candidates.tokens[0]
    tokens[0] = left
    tokens[1] = right
    tokens[2] = left - 1 if left > 1 else NONE
    tokens[3] = right + 1 if right + 1 <= n else NONE
    tokens[4] = right + 2 if right + 2 <= n else NONE
    tokens[5] = head_of(state, left)
    tokens[6] = head_of(state, tokens[5])
    tokens[7] = dependent_of(state, LEFTMOST, left)
    tokens[8] = dependent_of(state, NEAREST_LEFT, left)
    tokens[9] = dependent_of(state, RIGHTMOST, left)
    tokens[10] = dependent_of(state, NEAREST_RIGHT, left)
    tokens[11] = dependent_of(state, LEFTMOST, right)
    tokens[12] = dependent_of(state, NEAREST_LEFT, right)
    first, last = left + 1, right - 1
    while first < right and not _has_head_outside(state, first, left, right):
        first += 1
    while last > left and not _has_head_outside(state, last, left, right):
        last -= 1
    tokens[13] = first if first < right else NONE
    tokens[14] = last if last > left else NONE
    candidates.groups[0] = 0


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    left, right = state.counters[LEFT_FOCUS], state.counters[RIGHT_FOCUS]
    if right > state.counters[WORDS]:
        return 0, 0
    leaders = state.own[LEADERS]
    count = add_candidate(candidates, 0, 0, SHIFT, 0, NONE, NONE)
    count = add_candidate(candidates, count, 0, NO_ARC, 0, NONE, NONE)
    if can_be_joined(leaders, right, left):
        count = add_candidate(candidates, count, 0, LEFT_ARC, 0, right, left)
    if can_be_joined(leaders, left, right):
        count = add_candidate(candidates, count, 0, RIGHT_ARC, 0, left, right)
    _fill_context(state, candidates, left, right)
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    left, right = state.counters[LEFT_FOCUS], state.counters[RIGHT_FOCUS]
    if transition == SHIFT:
        state.counters[LEFT_FOCUS] = right
        state.counters[RIGHT_FOCUS] += 1
        return
    if transition != NO_ARC:
        head, dependent = (right, left) if transition == LEFT_ARC else (left, right)
        add_arc(state, head, dependent, relation)
        leaders = state.own[LEADERS]
        leaders[dependent] = find(leaders, head)
    state.counters[LEFT_FOCUS] -= 1
    _move_on(state)


@njit(cache=True, nogil=True)
def finish(state, candidates):
    """Make the second of the words without a head a right child of the first; False if there is no second.

    Where a treebank has one word below the root in every sentence, the first one goes there: it is the right one more
    often than the last one or the one with most descendants.
    """
    first = 0
    for word in range(1, state.counters[WORDS] + 1):
        if state.heads[word] != NONE:
            continue
        if first > 0:
            _fill_context(state, candidates, first, word)
            add_candidate(candidates, 0, 0, RIGHT_ARC, 0, first, word)
            return True
        first = word
    return False
