"""The computations that build a given projective tree."""

import numpy as np
from numba import njit

from mh4.transitions.arrays import arc_eager_normalized as normalized
from mh4.transitions.arrays.arc_eager import LEFT_ARC, REDUCE, RIGHT_ARC, SHIFT, N, R, move

from ..costs import FIRST_CHILD, LAST_CHILD, children_of


@njit(cache=True, nogil=True)
def static_transition(stack, labels, depth, front, gold, first_child, last_child, reduce_late):
    """The next transition of the unnormalized system to a projective tree.

    ``first_child`` and ``last_child``, int32, are the first and the last of each token and its gold children;
    ``reduce_late``: whether to shift left children before reducing, as under shift-before-reduce.
    """
    top = stack[depth - 1]
    if front == gold.shape[0]:
        return REDUCE
    if gold[top] == front:
        return LEFT_ARC
    if gold[front] == top:
        return RIGHT_ARC
    complete = top > 0 and labels[depth - 1] == R and last_child[top] < front
    if complete and not (reduce_late and gold[front] > front and first_child[front] > top):
        return REDUCE
    return SHIFT


@njit(cache=True, nogil=True)
def projective_computation(gold, reduce_late):
    """The transitions, int64 (2n,), by which the unnormalized system builds a projective tree; O(n).

    They make no use of reduce_correct, and are the same under the two reduce-before-shift policies.
    """
    children = children_of(gold)
    first_child, last_child = children[FIRST_CHILD], children[LAST_CHILD]
    transitions = np.empty(2 * (gold.shape[0] - 1), np.int64)
    stack, labels = np.zeros(gold.shape[0], np.int32), np.full(gold.shape[0], R, np.int8)
    depth, front = 1, 1
    for step in range(transitions.shape[0]):
        transition = static_transition(stack, labels, depth, front, gold, first_child, last_child, reduce_late)
        transitions[step] = transition
        depth, front, _, _ = move(transition, stack, labels, depth, front)
    return transitions


@njit(cache=True, nogil=True)
def normalized_computation(gold):
    """The transitions, int64 (3n,), by which the normalized system builds a projective tree; O(n)."""
    last_child = children_of(gold)[LAST_CHILD]
    transitions = np.empty(3 * (gold.shape[0] - 1), np.int64)
    stack, labels = np.zeros(gold.shape[0], np.int32), np.full(gold.shape[0], R, np.int8)
    depth, front = 1, 1
    for step in range(transitions.shape[0]):
        top = stack[depth - 1]
        if labels[depth - 1] == N:
            if gold[stack[depth - 2]] == top:
                transition = normalized.REDUCE_RIGHT
            else:
                transition = normalized.LEFT_CHILD if gold[top] > top else normalized.RIGHT_CHILD
        elif labels[depth - 1] == R and last_child[top] < front and top > 0:
            transition = normalized.REDUCE_LEFT
        else:
            transition = normalized.SHIFT
        transitions[step] = transition
        depth, front, _, _ = normalized.move(transition, stack, labels, depth, front)
    return transitions
