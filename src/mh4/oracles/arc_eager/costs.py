"""Costs of the candidate transitions in arc-eager parsing.

- ``static``: the static oracle under shift-before-reduce.
- ``dynamic``: the gold arcs lost by each transition, for projective gold trees, in linear time (Nederhof 2021,
  section 5).
- ``exact``: the same for any gold tree, in cubic time (section 4) if arcs cross.
- ``approximate``: the linear-time calculation even if arcs cross (section 6.2).

The calculations follow a policy, under which only one order of shift and reduce is right. Here every order counts as
right: shift, left_arc and right_arc are scored under shift-before-reduce and reduce under reduce-before-shift, because
these policies do not restrict what follows the respective transitions. Under either policy a shifted word must become a
left child, except the word on the root, which has no choice. The calculations let the root take words at any time; as
in arc-standard parsing, that saves no gold arcs.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import REDUCE, REDUCE_CORRECT, L
from mh4.transitions.arrays.state import DEPTH, FRONT, TRANSITION

from ..costs import (
    CROSSED,
    EXACT,
    FIRST_CHILD,
    LAST_CHILD,
    OWN_NOTES,
    STATIC,
    note_children,
    note_crossing,
    write_static_costs,
)
from .grammars import UNNORMALIZED_GRAMMARS, exact_scores
from .linear import linear_scores, rightmost_descendants
from .static import static_transition
from .steps import REDUCE_BEFORE_SHIFT, SHIFT_BEFORE_REDUCE

_LAST_DESCENDANT = OWN_NOTES
_GRAMMAR = UNNORMALIZED_GRAMMARS[True].arrays


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note the children of every token, its last descendant, and whether arcs cross."""
    note_children(gold, state.oracle)
    if oracle == EXACT:
        note_crossing(gold, state.oracle)
    if oracle != STATIC:
        last = rightmost_descendants(gold)
        for h in range(gold.shape[0]):
            state.oracle[_LAST_DESCENDANT, h] = last[h]


@njit(cache=True, nogil=True)
def _scores(policy, exact, state, gold, scores):
    """Fill scores, int32 (4,): the gold arcs that each transition of Table 6 leaves possible under a policy."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    if exact:
        exact_scores(_GRAMMAR, False, policy, True, state.stack, state.labels, depth, front, gold, scores)
    else:
        rightmost = state.oracle[_LAST_DESCENDANT]
        linear_scores(policy, state.stack, state.labels, depth, front, gold, rightmost, scores)


@njit(cache=True, nogil=True)
def _dynamic_scores(exact, state, gold, scores):
    """Fill scores, int32 (4,), as `_scores` does, but under no policy."""
    _scores(SHIFT_BEFORE_REDUCE, exact, state, gold, scores)
    if 0 <= scores[REDUCE] < scores.max():
        others = np.empty(4, np.int32)
        _scores(REDUCE_BEFORE_SHIFT, exact, state, gold, others)
        scores[REDUCE] = others[REDUCE]


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    if oracle == STATIC:
        first_child, last_child = state.oracle[FIRST_CHILD], state.oracle[LAST_CHILD]
        right = static_transition(state.stack, state.labels, depth, front, gold, first_child, last_child, True)
        corrects = right == REDUCE and state.labels[depth - 1] == L
        write_static_costs(candidates, count, REDUCE_CORRECT if corrects else right)
        return
    scores = np.empty(4, np.int32)
    _dynamic_scores(oracle == EXACT and state.oracle[CROSSED, 0] > 0, state, gold, scores)
    best = scores.max()
    for c in range(count):
        candidates.costs[c] = best - scores[min(candidates.rows[c, TRANSITION], REDUCE)]
