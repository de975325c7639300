"""The computations that build a given projective tree."""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_standard import REDUCE_LEFT, REDUCE_RIGHT, SHIFT, move

from ..costs import LAST_CHILD, children_of


@njit(cache=True, nogil=True)
def static_transition(stack, depth, front, gold, last_child, right_first):
    """The next transition to a projective tree: each arc as soon as possible, left or right arcs first.

    ``last_child``, int32, is the last of each token and its gold children; ``right_first``: whether a word gets all its
    right children before its left ones.
    """
    if depth < 2:
        return SHIFT
    second, top = stack[depth - 2], stack[depth - 1]
    complete = last_child[top] < front
    if gold[second] == top and (complete or not right_first):
        return REDUCE_RIGHT
    if gold[top] == second and complete:
        return REDUCE_LEFT
    return SHIFT


@njit(cache=True, nogil=True)
def projective_computation(gold, right_first):
    """The transitions, int64 (2n,), that build a projective tree; O(n)."""
    last_child = children_of(gold)[LAST_CHILD]
    transitions = np.empty(2 * (gold.shape[0] - 1), np.int64)
    stack = np.zeros(gold.shape[0], np.int32)
    depth, front = 1, 1
    for step in range(transitions.shape[0]):
        transitions[step] = static_transition(stack, depth, front, gold, last_child, right_first)
        depth, front, _, _ = move(transitions[step], stack, depth, front)
    return transitions
