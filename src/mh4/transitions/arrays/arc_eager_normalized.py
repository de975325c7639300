"""Normalized arc-eager parsing, compiled: Nederhof (2021), Table 8, as in `mh4.transitions.arc_eager`; for oracles."""

from numba import njit

from ..arc_eager import NormalizedArcEager
from .arc_eager import L, N, R
from .state import NONE

SHIFT, LEFT_CHILD, RIGHT_CHILD, REDUCE_LEFT, REDUCE_RIGHT = range(len(NormalizedArcEager.transitions))


@njit(cache=True, nogil=True)
def applies(transition, reduce_correct, labels, depth, front, n):
    """Whether a transition applies."""
    undecided = labels[depth - 1] == N
    if transition == SHIFT:
        return front <= n and not undecided
    if transition == REDUCE_LEFT:
        return depth > 1 and not undecided and (labels[depth - 1] == R or reduce_correct)
    return undecided and (transition != REDUCE_RIGHT or labels[depth - 2] == L)


@njit(cache=True, nogil=True)
def move(transition, stack, labels, depth, front):
    """Take a transition in place; returns depth and front after it, head and dependent (`NONE`: no arc)."""
    if transition == SHIFT:
        stack[depth] = front
        labels[depth] = N
        return depth + 1, front + 1, NONE, NONE
    if transition in (LEFT_CHILD, RIGHT_CHILD):
        labels[depth - 1] = L if transition == LEFT_CHILD else R
        return depth, front, NONE, NONE
    second, top = stack[depth - 2], stack[depth - 1]
    if transition == REDUCE_LEFT:
        return depth - 1, front, second, top
    stack[depth - 2] = top
    labels[depth - 2] = N
    return depth - 1, front, top, second
