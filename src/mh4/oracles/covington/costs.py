"""Costs of the candidate transitions in Covington parsing, for any gold tree.

- ``static`` reads the next word as soon as all gold arcs to the left are made.
- ``all-pairs``, also static, reads it when all pairs have been considered, as Covington's own algorithm does.
- ``dynamic``: the loss of Theorem 1, kept up to date along the computation.

The paper does not say which static oracle it compares with: ``all-pairs`` makes the better and slower parser.
"""

from numba import njit

from mh4.transitions.arrays.covington import LEADERS, LEFT_FOCUS, RIGHT_FOCUS
from mh4.transitions.arrays.state import TRANSITION

from ..costs import ALL_PAIRS, DYNAMIC, write_static_costs
from .incremental import advance, start, transition_cost
from .static import note_joined, static_transition

_LEFTMOST = 0  # row of State.oracle for the static oracles; for those of the dynamic one see `incremental`


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Start to track the loss (dynamic), or note how far to the left each word must look (static)."""
    if oracle == DYNAMIC:
        start(gold, state.own[LEADERS], state.oracle)
    elif oracle == ALL_PAIRS:
        state.oracle[_LEFTMOST] = 0
    else:
        note_joined(gold, state.oracle[_LEFTMOST])


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates."""
    left, right = state.counters[LEFT_FOCUS], state.counters[RIGHT_FOCUS]
    if oracle != DYNAMIC:
        write_static_costs(candidates, count, static_transition(left, right, gold, state.oracle[_LEFTMOST]))
        return
    for c in range(count):
        transition = candidates.rows[c, TRANSITION]
        candidates.costs[c] = transition_cost(state.own[LEADERS], state.oracle, left, right, transition)


@njit(cache=True, nogil=True)
def follow(state, oracle, transition):
    """Update the loss for a transition that is about to be taken."""
    if oracle == DYNAMIC:
        left, right = state.counters[LEFT_FOCUS], state.counters[RIGHT_FOCUS]
        advance(state.own[LEADERS], state.oracle, left, right, transition)
