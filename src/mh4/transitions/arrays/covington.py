"""Covington's non-projective parsing on arrays: Gómez-Rodríguez and Fernández-González (2015), as in
`mh4.transitions.covington`.

Where λ₁ is empty the next word is read without asking, as nothing else is possible. Features: Table 1. Oracles:
``static``, which reads the next word as soon as all gold arcs to the left are made; ``dynamic``, Theorem 1, kept up to
date along the computation; ``all-pairs``, a static one that reads it when all pairs have been looked at, as Covington's
own algorithm does. The paper does not say which static oracle it compares with: the last one makes the better parser,
and the slower one.

Some words may be left without a head, more of them than the treebank has below the root: see `focus`.
"""

from __future__ import annotations

from numba import njit

from mh4.oracles.covington.incremental import advance, can_be_joined, find, start, transition_cost
from mh4.parsers.templates import written

from ..covington import Covington
from .state import (
    ALL_PAIRS,
    DYNAMIC,
    FRONT,
    LEFTMOST,
    NEAREST_LEFT,
    NEAREST_RIGHT,
    NONE,
    ORACLES,
    OWN,
    RIGHTMOST,
    TRANSITION,
    WORDS,
    System,
    add_arc,
    add_candidate,
    dependent_of,
    head_of,
    write_static_costs,
)

SHIFT, NO_ARC, LEFT_ARC, RIGHT_ARC = range(4)
TOKENS = ("L0", "R0", "L1", "R1", "R2", "L0h", "L0h2", "L0l", "L0l'", "L0r", "L0r'", "R0l", "R0l'", "CL", "CR")
TEMPLATES = written(
    """
    L0.w; L0.p; L0.w L0.p; L0.l; L0h.w; L0h.p; L0h.l; L0h2.w; L0h2.p; L0h2.l;
    L0l.w; L0l.p; L0l.l; L0l'.w; L0l'.p; L0l'.l; L0r.w; L0r.p; L0r.l; L0r'.w; L0r'.p; L0r'.l;
    L0.w d; L0.p d; L0.w L0.vr; L0.p L0.vr; L0.w L0.vl; L0.p L0.vl;
    L0.w L0.sl; L0.p L0.sl; L0.w L0.sr; L0.p L0.sr; L1.w; L1.p; L1.w L1.p;
    R0.w; R0.p; R0.w R0.p; R0l.w; R0l.p; R0l.l; R0l'.w; R0l'.p; R0l'.l;
    R0.w d; R0.p d; R0.w R0.vl; R0.p R0.vl; R0.w R0.sl; R0.p R0.sl; R1.w; R1.p; R1.w R1.p; R2.w; R2.p; R2.w R2.p;
    CL.w; CL.p; CL.w CL.p; CR.w; CR.p; CR.w CR.p;
    L0.w L0.p R0.w R0.p; L0.w L0.p R0.w; L0.w R0.w R0.p; L0.w L0.p R0.p; L0.p R0.w R0.p; L0.w R0.w; L0.p R0.p;
    R0.p R1.p; L0.w R0.w d; L0.p R0.p d;
    R0.p R1.p R2.p; L0.p R0.p R1.p; L0h.p L0.p R0.p; L0.p L0l'.p R0.p; L0.p L0r'.p R0.p; L0.p R0.p R0l'.p;
    L0.p L0l'.p L0l.p; L0.p L0r'.p L0r.p; L0.p L0h.p L0h2.p; R0.p R0l'.p R0l.p
    """
)
"""Gómez-Rodríguez and Fernández-González (2015), Table 1: L0 and R0 are the focus words; l and r stand for the farthest
dependents, l' and r' for the closest; CL and CR are the first and the last word between the focus words whose head is
not among those nor between them, words without head included. Where the printed table does not tell l from l', this
follows Zhang & Nivre (2011): word, part of speech and relation of either dependent.
"""
SYSTEM = System(
    Covington.name,
    Covington.transitions,
    (False, False, True, True),
    TOKENS,
    TEMPLATES,
    projective=False,
    positions=("L1", "L0", "R0", "R1"),
    oracles=ORACLES,
)

_LEFT, _TRACKED = OWN, OWN + 1  # counters: left focus word; whether the loss is kept up to date. The right one: FRONT
_LEADERS = 0  # row of State.own
_LEFTMOST_JOINED = 0  # row of State.oracle for the static oracles; those of the dynamic one are its own


@njit(cache=True, nogil=True)
def _move_on(state):
    """Read the next word if there is nothing to the left."""
    if state.counters[_LEFT] == 0 and state.counters[FRONT] <= state.counters[WORDS]:
        state.counters[_LEFT] = state.counters[FRONT]
        state.counters[FRONT] += 1


@njit(cache=True, nogil=True)
def initialize(state):
    """The first word in λ₁."""
    for position in range(state.counters[WORDS] + 1):
        state.own[_LEADERS, position] = position
    state.counters[_LEFT] = 0
    state.counters[FRONT] = 1
    _move_on(state)


@njit(cache=True, nogil=True)
def focus(state, left, right):
    """Make two words the focus words once the input has ended, so that they can still be joined.

    The paper attaches all words without a head to the root. Where a treebank has one word below the root in every
    sentence, the first of them goes there, and the others are made right children of it, with the relation that has the
    highest score then; the first is the right one more often than the last one or the one with most descendants.
    """
    state.counters[_LEFT] = left
    state.counters[FRONT] = right


@njit(cache=True, nogil=True)
def _has_head_outside(state, word, left, right):
    head = state.heads[word]
    return head < left or head > right


@njit(cache=True, nogil=True)
def list_candidates(state, candidates):
    """Legal transitions, in one context."""
    n, left, right = state.counters[WORDS], state.counters[_LEFT], state.counters[FRONT]
    if right > n:
        return 0, 0
    leaders = state.own[_LEADERS]
    count = add_candidate(candidates, 0, 0, SHIFT, 0, NONE, NONE)
    count = add_candidate(candidates, count, 0, NO_ARC, 0, NONE, NONE)
    if can_be_joined(leaders, right, left):
        count = add_candidate(candidates, count, 0, LEFT_ARC, 0, right, left)
    if can_be_joined(leaders, left, right):
        count = add_candidate(candidates, count, 0, RIGHT_ARC, 0, left, right)
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
    return count, 1


@njit(cache=True, nogil=True)
def apply(state, transition, argument, relation):
    """Take a step."""
    leaders, left, right = state.own[_LEADERS], state.counters[_LEFT], state.counters[FRONT]
    if state.counters[_TRACKED]:
        advance(leaders, state.oracle, left, right, transition)
    if transition == SHIFT:
        state.counters[_LEFT] = right
        state.counters[FRONT] += 1
        return
    if transition != NO_ARC:
        head, dependent = (right, left) if transition == LEFT_ARC else (left, right)
        add_arc(state, head, dependent, relation)
        leaders[dependent] = find(leaders, head)
    state.counters[_LEFT] -= 1
    _move_on(state)


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note the leftmost word that each has an arc with, or begin to keep the loss up to date."""
    if oracle == DYNAMIC:
        start(gold, state.own[_LEADERS], state.oracle)
        state.counters[_TRACKED] = 1
        return
    leftmost = state.oracle[_LEFTMOST_JOINED]
    for word in range(1, gold.shape[0]):
        head = gold[word]
        leftmost[word] = 0 if oracle == ALL_PAIRS else head if 0 < head < word else word
    for word in range(1, gold.shape[0]):
        head = gold[word]
        if head > word:
            leftmost[head] = min(leftmost[head], word)


@njit(cache=True, nogil=True)
def _static_step(state, gold):
    left, right = state.counters[_LEFT], state.counters[FRONT]
    if gold[left] == right:
        return LEFT_ARC
    if gold[right] == left:
        return RIGHT_ARC
    return NO_ARC if state.oracle[_LEFTMOST_JOINED, right] < left else SHIFT


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Costs of the candidates, for any gold tree."""
    if oracle != DYNAMIC:
        write_static_costs(candidates, count, _static_step(state, gold))
        return
    leaders, left, right = state.own[_LEADERS], state.counters[_LEFT], state.counters[FRONT]
    for c in range(count):
        transition = candidates.rows[c, TRANSITION]
        candidates.costs[c] = transition_cost(leaders, state.oracle, left, right, transition)
