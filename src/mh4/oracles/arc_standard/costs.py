"""Costs of the candidate transitions in arc-standard parsing.

- ``static``: reduce as soon as possible, left arcs first: a word gets its left children before it waits for its right
  ones.
- ``dynamic``: least for the transitions after which the best tree can still be reached, under no policy; in linear time
  (Nederhof 2019, section 6). Without exploration this is *easy-first* training (Sartorio et al. 2013, section 5).
- ``exact``: the same for any gold tree, in cubic time (section 4) if arcs cross.

The calculations let the root take any number of words at any time. If the gold tree has one word below the root, making
the root wait loses no more arcs: all other words that a computation attaches to the root may as well be attached to the
one that stays.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_standard import move
from mh4.transitions.arrays.state import DEPTH, FRONT, TRANSITION

from ..costs import CROSSED, EXACT, LAST_CHILD, STATIC, note_children, note_crossing, write_static_costs
from .cubic import cubic_best_after
from .projective import best_after
from .static import static_transition


@njit(cache=True, nogil=True)
def prepare(state, oracle, gold):
    """Note the children of every token, and whether arcs cross."""
    note_children(gold, state.oracle)
    if oracle == EXACT:
        note_crossing(gold, state.oracle)


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates."""
    depth, front = state.counters[DEPTH], state.counters[FRONT]
    if oracle == STATIC:
        right = static_transition(state.stack, depth, front, gold, state.oracle[LAST_CHILD], False)
        write_static_costs(candidates, count, right)
        return
    after = np.empty(depth + 1, np.int32)
    for c in range(count):
        for i in range(depth):
            after[i] = state.stack[i]
        depth_after, front_after, head, dependent = move(candidates.rows[c, TRANSITION], after, depth, front)
        if oracle == EXACT and state.oracle[CROSSED, 0]:
            most = cubic_best_after(after[:depth_after], front_after, gold, 0, 0, False, False)
        else:
            most = best_after(after[:depth_after], front_after, gold, 0, 0, False, True)
        candidates.costs[c] = gold.shape[0] - 1 - most - (dependent > 0 and gold[dependent] == head)
