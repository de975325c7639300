"""Arc-eager steps for oracles to try out: the configuration after a candidate step, and the gold arc it makes."""

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import LABELS, POLICIES
from mh4.transitions.arrays import arc_eager, arc_eager_normalized

SHIFT_BEFORE_REDUCE, REDUCE_BEFORE_SHIFT, STRICT_REDUCE_BEFORE_SHIFT = range(len(POLICIES))

GONE, REMAINING = -2, -1  # places of tokens that are not in the stack

_LABEL_CODES = {ord(label): code for code, label in enumerate(LABELS)}


def encode_labels(labels: str) -> np.ndarray:
    """int8 codes of a configuration's labels."""
    return np.frombuffer(labels.translate(_LABEL_CODES).encode("ascii"), np.int8)


@njit(cache=True, nogil=True, inline="always")
def is_gold(gold, head, dependent):
    """1 if the arc is in the gold tree, else 0."""
    return 1 if gold[dependent] == head else 0


@njit(cache=True, nogil=True)
def token_places(stack, depth, front, n):
    """int32 (n + 1,): the index of each token in the stack, `REMAINING` from ``front`` on, and `GONE` elsewhere."""
    places = np.full(n + 1, GONE, np.int32)
    places[front:] = REMAINING
    for p in range(depth):
        places[stack[p]] = p
    return places


@njit(cache=True, nogil=True)
def step(transition, reduce_correct, stack, labels, depth, front, gold):
    """Take a step of the unnormalized system in place; return the new depth and front, and the gold arcs made, 0 or 1.

    The first ``depth`` elements of `stack` and `labels` are the stack; there is room for one more. The new depth is 0
    if the transition does not apply.
    """
    if not arc_eager.applies(transition, reduce_correct, labels, depth, front, gold.shape[0] - 1):
        return 0, front, 0
    depth, front, head, dependent = arc_eager.move(transition, stack, labels, depth, front)
    return depth, front, 1 if dependent > 0 and gold[dependent] == head else 0


@njit(cache=True, nogil=True)
def step_normalized(transition, reduce_correct, stack, labels, depth, front, gold):
    """`step` for the normalized system."""
    if not arc_eager_normalized.applies(transition, reduce_correct, labels, depth, front, gold.shape[0] - 1):
        return 0, front, 0
    depth, front, head, dependent = arc_eager_normalized.move(transition, stack, labels, depth, front)
    return depth, front, 1 if dependent > 0 and gold[dependent] == head else 0


@njit(cache=True, nogil=True)
def step_aside(normalized, transition, reduce_correct, stack, labels, depth, front, gold, next_stack, next_labels):
    """`step` or `step_normalized` on a copy: fill ``next_stack`` and ``next_labels``, which have room for one more."""
    next_stack[:depth], next_labels[:depth] = stack[:depth], labels[:depth]
    if normalized:
        return step_normalized(transition, reduce_correct, next_stack, next_labels, depth, front, gold)
    return step(transition, reduce_correct, next_stack, next_labels, depth, front, gold)
