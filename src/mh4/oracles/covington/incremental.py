"""The loss of Covington configurations, kept up to date along a computation, and the costs of transitions.

*Leaders* represent disjoint sets of words connected by arcs; the leader of a set is its only word without head.
*Pending* gold arcs are those not yet made whose words can still come into focus together and whose dependent has no
head. A word with a pending gold arc points to the set of its gold head. Where such pointers form a cycle, one of the
arcs must be given up; *cyclic* marks the words on cycles. A gold arc within a set, which Theorem 1 calls unreachable,
is a cycle of one pointer here and counts the same. So the loss is the number of gold arcs neither made nor pending,
plus the number of cycles.

A transition changes this only locally: no_arc loses at most the gold arc between the focus words, a shift those between
the word read and λ₁, an arc the pending gold arc of its dependent. The set enlarged by an arc may close a cycle, which
is found by following the pointers from it.

In a whole computation, each gold arc is lost at most once and each word gets at most one head. So a step takes
amortised constant time, apart from the disjoint sets (path halving) and from following pointers to make an arc that is
not gold or to compute its cost. Pointers end at the first word without a pending arc: after two or three steps on
average in the Hungarian treebank of UD 2.0, after n at worst.

Source: Gómez-Rodríguez and Fernández-González (2015), section 3, where incremental calculation is suggested.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.covington import LEFT_ARC, NO_ARC, RIGHT_ARC, SHIFT, find

# Rows of the array `track`: int32 (TRACK_ROWS, n + 1 or more)
GOLD, PENDING, CYCLIC, FIRST_CHILD, NEXT_CHILD = range(5)
TRACK_ROWS = 5
_NO_CHILD = 0


@njit(cache=True, nogil=True)
def start(gold, leaders, track):
    """Prepare for a computation from the initial configuration, whose loss is 0; the gold tree is int32 (n + 1,).

    ``leaders`` is int32 (N,), ``track`` int32 (TRACK_ROWS, N), where N is n + 1 or more.
    """
    for word in range(gold.shape[0]):
        leaders[word] = word
        track[GOLD, word] = gold[word]
        track[PENDING, word] = word > 0
        track[CYCLIC, word] = 0
        track[FIRST_CHILD, word] = _NO_CHILD
    for word in range(gold.shape[0] - 1, 0, -1):
        track[NEXT_CHILD, word] = track[FIRST_CHILD, gold[word]]
        track[FIRST_CHILD, gold[word]] = word


@njit(cache=True, nogil=True)
def _leads_to(leaders, track, word, goal):
    """Whether pointers lead from the leader ``word`` to the leader ``goal``."""
    entered = np.int64(_NO_CHILD)
    while word != goal:
        if track[CYCLIC, word]:
            if word == entered:
                return False
            if entered == _NO_CHILD:
                entered = np.int64(word)
        if not track[PENDING, word]:
            return False
        word = find(leaders, track[GOLD, word])
    return True


@njit(cache=True, nogil=True)
def transition_cost(leaders, track, left, right, transition):
    """The cost of a legal transition: the increase in loss."""
    if transition == SHIFT:
        lost, breaks = 0, 0
        child = track[FIRST_CHILD, right]
        while child != _NO_CHILD and child <= left:
            lost += track[PENDING, child]
            breaks |= track[CYCLIC, child] & track[PENDING, child]
            child = track[NEXT_CHILD, child]
        if track[PENDING, right] and 0 < track[GOLD, right] <= left:
            lost += 1
            breaks |= track[CYCLIC, right]
        return lost - breaks  # all lost arcs meet in one word, which is on one cycle at most
    if transition == NO_ARC:
        dependent = left if track[GOLD, left] == right else right
        if track[GOLD, dependent] != left + right - dependent:
            return 0
        return track[PENDING, dependent] - track[CYCLIC, dependent]
    head, dependent = (right, left) if transition == LEFT_ARC else (left, right)
    if track[GOLD, dependent] == head:
        return 0
    closes = _leads_to(leaders, track, find(leaders, head), dependent)
    return track[PENDING, dependent] - track[CYCLIC, dependent] + (1 if closes else 0)


@njit(cache=True, nogil=True)
def _lose(leaders, track, word):
    """Give up the pending arc of a word; return the increase in loss."""
    track[PENDING, word] = 0
    if not track[CYCLIC, word]:
        return 1
    while track[CYCLIC, word]:
        track[CYCLIC, word] = 0
        word = find(leaders, track[GOLD, word])
    return 0


@njit(cache=True, nogil=True)
def _join(leaders, track, head, dependent):
    """Make an arc; return the increase in loss."""
    lost = 0
    top = find(leaders, head)
    if track[GOLD, dependent] == head:  # the pointer becomes an arc; a cycle through it gets shorter by one
        track[PENDING, dependent] = 0
        track[CYCLIC, dependent] = 0
    else:
        if track[PENDING, dependent]:
            lost += _lose(leaders, track, dependent)
        if _leads_to(leaders, track, top, dependent):
            lost += 1
            word = top
            while word != dependent:
                track[CYCLIC, word] = 1
                word = find(leaders, track[GOLD, word])
    leaders[dependent] = top
    return lost


@njit(cache=True, nogil=True)
def advance(leaders, track, left, right, transition):
    """Take a legal transition, with ``left`` and ``right`` in focus; return the increase in loss."""
    if transition == LEFT_ARC:
        return _join(leaders, track, right, left)
    if transition == RIGHT_ARC:
        return _join(leaders, track, left, right)
    lost = 0
    if transition == NO_ARC:
        dependent = left if track[GOLD, left] == right else right
        if track[GOLD, dependent] == left + right - dependent and track[PENDING, dependent]:
            lost = _lose(leaders, track, dependent)
        return lost
    child = track[FIRST_CHILD, right]
    while child != _NO_CHILD and child <= left:
        if track[PENDING, child]:
            lost += _lose(leaders, track, child)
        child = track[NEXT_CHILD, child]
    if track[PENDING, right] and 0 < track[GOLD, right] <= left:
        lost += _lose(leaders, track, right)
    return lost
