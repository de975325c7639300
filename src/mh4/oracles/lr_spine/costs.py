"""Costs of the candidate transitions in LR-spine parsing, for a projective gold tree with one word below the root.

- ``static``: each arc as soon as it is correct; *arc-standard + spine* in Sartorio et al. (2013).
- ``dynamic``: all correct transitions cost 0; training follows the one with the best score (Algorithm 2 there,
  *easy-first*). If the gold tree is out of reach, which Lemma 1 does not cover: the loss after each transition, in
  cubic time.

The cubic calculation lets the root take any number of words at any time. As the gold tree has one word below the root,
making the root wait loses no more arcs: all other words that a computation attaches to the root may as well be attached
to the one that stays.
"""

from numba import njit

from mh4.transitions.arrays.lr_spine import LEFT_ARC, RIGHT_ARC, SHIFT
from mh4.transitions.arrays.state import ARGUMENT, DEPTH, FRONT, HEAD, LEFTMOST, RIGHTMOST, TRANSITION

from ..costs import LAST_CHILD, STATIC
from .correct import correct_steps, is_correct
from .cubic import best_after


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates: if the gold tree is in reach, 0 for correct ones and 1 for the others."""
    stack, front = state.stack[: state.counters[DEPTH]], state.counters[FRONT]
    leftmost, rightmost = state.dependents[LEFTMOST], state.dependents[RIGHTMOST]
    last_child = state.oracle[LAST_CHILD]
    if oracle != STATIC and not is_correct(stack, front, state.heads, gold, last_child, leftmost, rightmost):
        worth_of_shift, worth = best_after(stack, front, state.heads, gold, True, leftmost, rightmost)
        for c in range(count):
            row = candidates.rows[c]
            arc = worth[1 if row[TRANSITION] == RIGHT_ARC else 0, row[HEAD]]
            candidates.costs[c] = gold.shape[0] - 1 - (worth_of_shift if row[TRANSITION] == SHIFT else arc)
        return
    shift, left, right = correct_steps(stack, front, gold, last_child, leftmost, rightmost)
    if oracle == STATIC and (left > 0 or right > 0):
        shift = False
    for c in range(count):
        transition, k = candidates.rows[c, TRANSITION], candidates.rows[c, ARGUMENT]
        correct = shift if transition == SHIFT else k == (left if transition == LEFT_ARC else right)
        candidates.costs[c] = 0 if correct else 1
