"""What the candidates of arc-eager parsing cost.

``static``: shift-before-reduce. ``dynamic``, for projective gold trees: the linear-time calculation (Nederhof 2021,
section 5). ``exact``: the same for any gold tree, by the cubic one (section 4) if arcs cross. ``approximate``: the
linear one although arcs may cross (section 6.2).

The calculations keep to a policy, so that only one order of shift and reduce counts as right; here every order does:
shift, left_arc and right_arc are scored under shift-before-reduce, which does not restrict what follows them, and
reduce under reduce-before-shift, for the same reason. Under either a word that is shifted is to become a left child,
but for the one on the root, which has no choice. They let the root take words at any time; as in arc-standard parsing,
that saves no gold arcs.
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
        state.oracle[_LAST_DESCENDANT, : gold.shape[0]] = rightmost_descendants(gold)


@njit(cache=True, nogil=True)
def _scores(policy, exact, state, gold, scores):
    """For the four transitions of Table 6, the gold arcs that can be had from now on under a policy."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    if exact:
        exact_scores(_GRAMMAR, False, policy, True, state.stack, state.labels, depth, front, gold, scores)
    else:
        rightmost = state.oracle[_LAST_DESCENDANT]
        linear_scores(policy, state.stack, state.labels, depth, front, gold, rightmost, scores)


@njit(cache=True, nogil=True)
def _dynamic_scores(exact, state, gold, scores):
    """Those under no policy."""
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
