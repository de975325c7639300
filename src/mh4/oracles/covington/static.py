"""The computations that build a given tree."""

import numpy as np
from numba import njit

from mh4.transitions.arrays.covington import LEFT_ARC, NO_ARC, RIGHT_ARC, SHIFT


@njit(cache=True, nogil=True)
def note_joined(gold, leftmost):
    """Fill leftmost, int32 (n + 1,): the first word before each word that shares a gold arc with it, or itself."""
    for word in range(gold.shape[0]):
        leftmost[word] = word
    for word in range(1, gold.shape[0]):
        first, last = min(gold[word], word), max(gold[word], word)
        if first > 0:
            leftmost[last] = min(leftmost[last], first)


@njit(cache=True, nogil=True)
def static_transition(left, right, gold, leftmost):
    """The next transition to a tree; the next word is read once all words from ``leftmost[right]`` on are passed."""
    if left < leftmost[right] or left == 0:
        return SHIFT
    if gold[left] == right:
        return LEFT_ARC
    return RIGHT_ARC if gold[right] == left else NO_ARC


@njit(cache=True, nogil=True)
def shortest_computation(gold):
    """The transitions, int64, that build a tree and read the next word as soon as all arcs to the left are made."""
    size = gold.shape[0]
    leftmost = np.empty(size, np.int32)
    note_joined(gold, leftmost)
    transitions = np.empty(size - 1 + (np.arange(size) - leftmost).sum(), np.int64)
    step = 0
    for right in range(1, size):
        for left in range(right - 1, leftmost[right] - 2, -1):
            transitions[step] = static_transition(left, right, gold, leftmost)
            step += 1
    return transitions
