"""The computations that build a given projective tree."""

from __future__ import annotations

import numpy as np

from mh4.transitions.arc_eager import (
    LEFT_ARC,
    LEFT_CHILD,
    REDUCE,
    REDUCE_LEFT,
    REDUCE_RIGHT,
    RIGHT_ARC,
    RIGHT_CHILD,
    SHIFT,
    ArcEager,
    NormalizedArcEager,
)


def _outermost_children(heads: np.ndarray) -> tuple[list[int], list[int]]:
    """The first and the last child of every token; itself where it has none on that side."""
    first, last = list(range(len(heads))), list(range(len(heads)))
    for child in range(1, len(heads)):
        head = int(heads[child])
        first[head], last[head] = min(first[head], child), max(last[head], child)
    return first, last


def projective_computation(heads: np.ndarray, policy: str) -> tuple[str, ...]:
    """The one computation of the unnormalized system that builds a projective tree and follows a policy. O(n).

    It makes no use of reduce_correct, and is the same under the two reduce-before-shift policies.

    Parameters
    ----------
    heads : int (n + 1,)
        A projective tree.
    policy : str
        One of `mh4.transitions.arc_eager.POLICIES`.
    """
    first, last = _outermost_children(heads)
    reduce_late = policy == "shift-before-reduce"
    system, n = ArcEager(reduce_correct=False), len(heads) - 1
    configuration = system.initial(n)
    computation = []
    while not system.is_final(configuration):
        top, front = configuration.stack[-1], configuration.front
        complete = configuration.labels[-1] == "R" and last[top] < front and top > 0
        if front > n:
            transition = REDUCE
        elif heads[top] == front:
            transition = LEFT_ARC
        elif heads[front] == top:
            transition = RIGHT_ARC
        elif complete and not (reduce_late and heads[front] > front and first[front] > top):
            transition = REDUCE
        else:
            transition = SHIFT
        computation.append(transition)
        configuration = system.apply(configuration, transition)
    return tuple(computation)


def normalized_computation(heads: np.ndarray) -> tuple[str, ...]:
    """The one computation of the normalized system that builds a projective tree. O(n).

    Parameters
    ----------
    heads : int (n + 1,)
        A projective tree.
    """
    _, last = _outermost_children(heads)
    system, n = NormalizedArcEager(reduce_correct=False), len(heads) - 1
    configuration = system.initial(n)
    computation = []
    while not system.is_final(configuration):
        top, front = configuration.stack[-1], configuration.front
        if configuration.labels[-1] == "N":
            if heads[configuration.stack[-2]] == top:
                transition = REDUCE_RIGHT
            else:
                transition = LEFT_CHILD if heads[top] > top else RIGHT_CHILD
        elif configuration.labels[-1] == "R" and last[top] < front and top > 0:
            transition = REDUCE_LEFT
        else:
            transition = SHIFT
        computation.append(transition)
        configuration = system.apply(configuration, transition)
    return tuple(computation)
