"""What the candidates of arc-standard parsing cost.

``static``: a reduction as soon as possible, left arcs first: a word gets its left children before it waits for its
right ones. ``dynamic``: every transition after which the best tree is still in reach, by the linear-time calculation
(Nederhof 2019, section 6), free of any policy. ``exact``: the same for any gold tree, by the cubic one (section 4) if
arcs cross. That calculation lets the root take several words at any time; a gold
tree with one word below the root loses no more arcs where it must wait, as the other words that a computation attaches
to the root may as well be attached to the one that stays. Without exploration this is *easy-first* training (Sartorio
et al. 2013, section 5).
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
        after[:depth] = state.stack[:depth]
        depth_after, front_after, head, dependent = move(candidates.rows[c, TRANSITION], after, depth, front)
        if oracle == EXACT and state.oracle[CROSSED, 0]:
            most = cubic_best_after(after[:depth_after], front_after, gold, 0, 0, False, False)
        else:
            most = best_after(after[:depth_after], front_after, gold, 0, 0, False, True)
        candidates.costs[c] = gold.shape[0] - 1 - most - (dependent > 0 and gold[dependent] == head)
