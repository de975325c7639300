"""Covington's non-projective parsing, compiled: Gómez-Rodríguez and Fernández-González (2015), as in
`mh4.transitions.covington`.

When λ₁ is empty, the next word is read automatically, as nothing else is possible. Disjoint sets record which words are
connected by arcs; the *leader* of a set is its only word without a head.

The paper attaches all words without a head to the root at the end, possibly more of them than the treebank allows: see
`finish`.
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
    """The leader of a word's set: its topmost ancestor, or the word itself if it has no head."""
    while leaders[word] != word:
        leaders[word] = leaders[leaders[word]]
        word = leaders[word]
    return word


@njit(cache=True, nogil=True)
def can_be_joined(leaders, head, dependent):
    """Whether an arc between the focus words, neither of them 0, leaves one head per word and no cycle."""
    return leaders[dependent] == dependent and find(leaders, head) != dependent


@njit(cache=True, nogil=True)
def _move_on(state):
    """Read the next word if there is nothing to the left."""
    if state.counters[LEFT_FOCUS] == 0 and state.counters[RIGHT_FOCUS] <= state.counters[WORDS]:
        state.counters[LEFT_FOCUS] = state.counters[RIGHT_FOCUS]
        state.counters[RIGHT_FOCUS] += 1


@njit(cache=True, nogil=True)
def initialize(state):
    """Put the first word into λ₁."""
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
    """List the legal transitions, in one context."""
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
    """List the arc from the first to the second word without a head as only candidate; False if there is no second.

    For treebanks with one word below the root in every sentence: the first word without a head stays below the root,
    as it is the right one more often than the last one or the one with most descendants.
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
