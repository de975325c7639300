"""Arc-eager transitions on arrays, for kernels: the configuration after a candidate step.

Nederhof (2021), Table 6 (unnormalized) and Table 8 (normalized). Transitions and labels are numbered as in
`mh4.transitions.arc_eager`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import LABELS, POLICIES

R, L, N = range(3)
SHIFT, LEFT_ARC, RIGHT_ARC, REDUCE = range(4)
LEFT_CHILD, RIGHT_CHILD, REDUCE_LEFT, REDUCE_RIGHT = range(1, 5)

SHIFT_BEFORE_REDUCE, REDUCE_BEFORE_SHIFT, STRICT_REDUCE_BEFORE_SHIFT = range(len(POLICIES))

_LABEL_CODES = {ord(label): code for code, label in enumerate(LABELS)}


def encode_labels(labels: str) -> np.ndarray:
    """int8 codes of a configuration's labels."""
    return np.frombuffer(labels.translate(_LABEL_CODES).encode("ascii"), np.int8)


@njit(cache=True, nogil=True, inline="always")
def is_gold(gold, head, dependent):
    """1 if the arc is in the gold tree, else 0."""
    return 1 if gold[dependent] == head else 0


@njit(cache=True, nogil=True)
def step(transition, reduce_correct, stack, labels, k, front, gold):
    """Take a step of the unnormalized system in place.

    The first k elements of `stack` and `labels` are the stack; there is room for one more.

    Returns
    -------
    (k, front, gained)
        Of the next configuration; k = 0 if the transition does not apply. `gained`: gold arcs the step makes, 0 or 1.
    """
    top = stack[k - 1]
    remaining = front < gold.shape[0]
    if transition in (SHIFT, RIGHT_ARC):
        if not remaining:
            return 0, front, 0
        stack[k] = front
        labels[k] = L if transition == SHIFT else R
        return k + 1, front + 1, 0
    if transition == LEFT_ARC:
        if not remaining or labels[k - 1] != L:
            return 0, front, 0
        return k - 1, front, is_gold(gold, front, top)
    if k < 2 or (labels[k - 1] != R and not reduce_correct):
        return 0, front, 0
    return k - 1, front, is_gold(gold, stack[k - 2], top)


@njit(cache=True, nogil=True)
def step_normalized(transition, reduce_correct, stack, labels, k, front, gold):
    """`step` of the normalized system."""
    top = stack[k - 1]
    undecided = labels[k - 1] == N
    if transition == SHIFT:
        if undecided or front >= gold.shape[0]:
            return 0, front, 0
        stack[k] = front
        labels[k] = N
        return k + 1, front + 1, 0
    if transition in (LEFT_CHILD, RIGHT_CHILD):
        if not undecided:
            return 0, front, 0
        labels[k - 1] = L if transition == LEFT_CHILD else R
        return k, front, 0
    if transition == REDUCE_LEFT:
        if k < 2 or undecided or (labels[k - 1] == L and not reduce_correct):
            return 0, front, 0
        return k - 1, front, is_gold(gold, stack[k - 2], top)
    if not undecided or labels[k - 2] != L:
        return 0, front, 0
    gained = is_gold(gold, top, stack[k - 2])
    stack[k - 2] = top
    labels[k - 2] = N
    return k - 1, front, gained
