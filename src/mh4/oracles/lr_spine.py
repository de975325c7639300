"""Which transitions of LR-spine parsing lead on to the gold tree (Sartorio et al. 2013, section 4.2).

A configuration is *correct* if the gold tree, a projective one, can be reached from it, and a transition is correct if
the configuration after it is. Lemma 1 tells correct transitions from incorrect ones where the configuration is correct:

- an arc is correct if it is a gold arc, so there is one correct arc at most;
- a shift is correct unless the topmost tree has to be attached to a node further left and is complete: no node of its
  right spine lacks a gold child. Covered by another tree, it could only be attached after something is attached to it.

Where both are correct the parser may choose: it can put the arc off until it has seen more.

The elements below the topmost one are as they were when the next one was shifted, so the test for the shift also tells
whether a configuration is correct: all its arcs are gold arcs, and so were all the shifts onto the trees of its stack.
"""

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.transitions.arrays.lr_spine import LEFT_ARC, RIGHT_ARC, SHIFT, move
from mh4.transitions.arrays.state import (
    ARGUMENT,
    DEPTH,
    FRONT,
    LEFTMOST,
    NONE,
    RIGHTMOST,
    TRANSITION,
)
from mh4.transitions.lr_spine import KINDS, Configuration, Transition

from .costs import LAST_CHILD, STATIC, children_of


@njit(cache=True, nogil=True)
def shift_is_correct(root, front, gold, last_child, rightmost):
    """Lemma 1 (ii): whether the tree of a root may be covered by ``front``, a position, in a correct configuration.

    ``last_child``, int32, is the last gold child of each position, or itself; ``rightmost``, int32, the rightmost right
    child in the arcs built so far, −1 if there is none.
    """
    if root == 0 or gold[root] >= front:
        return True
    position = root
    while position != NONE:
        if last_child[position] >= front:
            return True
        position = rightmost[position]
    return False


@njit(cache=True, nogil=True)
def depth_in_spine(root, position, children):
    """At which depth, from 1, a position is in the spine that begins at a root; 0 if it is not.

    ``children``, int32, leads from each position of the spine to the next one, and to −1 at its end.
    """
    k, at = 1, root
    while at != NONE and at != position:
        at = children[at]
        k += 1
    return 0 if at == NONE else k


@njit(cache=True, nogil=True)
def _steps(stack, front, gold, last_child, leftmost, rightmost):
    """Whether a shift is correct, and k of the correct left arc and right arc, 0 if there is none.

    The configuration is correct.
    """
    depth = stack.shape[0]
    shift = front < gold.shape[0]
    if shift and depth > 0:
        shift = shift_is_correct(stack[-1], front, gold, last_child, rightmost)
    if depth < 2:
        return shift, 0, 0
    top, second = stack[-1], stack[-2]
    left = depth_in_spine(top, gold[second], leftmost) if second > 0 else 0
    return shift, left, depth_in_spine(second, gold[top], rightmost)


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates, 0 for what is correct, for a projective gold tree.

    ``dynamic``: all correct transitions, of which training follows the one with the best score (Algorithm 2,
    *easy-first*). ``static``: every arc as soon as possible, which is the paper's *arc-standard + spine*. Lemma 1 says
    nothing about configurations that the gold tree cannot be reached from, so neither admits exploration.
    """
    stack, leftmost, rightmost = (
        state.stack[: state.counters[DEPTH]],
        state.dependents[LEFTMOST],
        state.dependents[RIGHTMOST],
    )
    shift, left, right = _steps(stack, state.counters[FRONT], gold, state.oracle[LAST_CHILD], leftmost, rightmost)
    if oracle == STATIC and (left > 0 or right > 0):
        shift = False
    for c in range(count):
        transition, k = candidates.rows[c, TRANSITION], candidates.rows[c, ARGUMENT]
        correct = shift if transition == SHIFT else k == (left if transition == LEFT_ARC else right)
        candidates.costs[c] = 0 if correct else 1


@njit(cache=True, nogil=True)
def _correct_steps(heads, front, gold):
    """As `_steps` for the configuration with the given arcs; no transition is correct if it is not."""
    size = gold.shape[0]
    last_child = children_of(gold)[LAST_CHILD]
    leftmost, rightmost = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    stack = np.empty(front, np.int32)
    depth = 0
    for position in range(front):
        head = heads[position]
        if head == NONE:
            stack[depth] = position
            depth += 1
            continue
        if head != gold[position]:
            return False, 0, 0
        if position > head:
            rightmost[head] = position
        elif leftmost[head] == NONE:
            leftmost[head] = position
    for i in range(depth - 1):
        first = stack[i + 1]  # will be the first position of the tree that covers this one
        while leftmost[first] != NONE:
            first = leftmost[first]
        if not shift_is_correct(stack[i], first, gold, last_child, rightmost):
            return False, 0, 0
    return _steps(stack[:depth], front, gold, last_child, leftmost, rightmost)


def correct_transitions(configuration: Configuration, gold: np.ndarray) -> tuple[Transition, ...]:
    """The transitions after which the gold tree can still be reached (Lemma 1); O(n).

    Two at most, a shift first; none if the configuration is final, or if the gold tree is out of reach already. Of the
    configuration only its arcs and its front are looked at, which determine the stack. ValueError: see `mh4.oracles`;
    the gold tree has to be projective.
    """
    gold = np.ascontiguousarray(gold, np.int32)
    if not is_projective(gold):
        raise ValueError(f"correct transitions need a projective gold tree, see `closest_tree`: {gold.tolist()}")
    if configuration.n != len(gold) - 1:
        raise ValueError(f"the configuration has {configuration.n} words, but the gold tree has {len(gold) - 1}")
    front = configuration.front
    if not 0 <= front <= len(gold) or not all(0 <= h < front and 0 < d < front for h, d in configuration.arcs):
        raise ValueError(f"not a configuration of {configuration.n} words: {configuration!r}")
    heads = np.full(len(gold), NONE, np.int32)
    for head, dependent in configuration.arcs:
        heads[dependent] = head
    shift, left, right = _correct_steps(heads, front, gold)
    steps = zip(KINDS, (0, left, right), (shift, left > 0, right > 0), strict=True)
    return tuple(Transition(kind, k) for kind, k, correct in steps if correct)


@njit(cache=True, nogil=True)
def _canonical_computation(gold):
    """For each of the 2n + 1 transitions of the computation its kind and k, int32 (2n + 1, 2)."""
    size = gold.shape[0]
    last_child = children_of(gold)[LAST_CHILD]
    leftmost, rightmost = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    stack = np.empty(size, np.int32)
    depth, front = 0, 0
    computation = np.zeros((2 * size - 1, 2), np.int32)
    for step in range(2 * size - 1):
        _, left, right = _steps(stack[:depth], front, gold, last_child, leftmost, rightmost)
        transition, k = (LEFT_ARC, left) if left > 0 else (RIGHT_ARC, right) if right > 0 else (SHIFT, 0)
        computation[step, 0], computation[step, 1] = transition, k
        depth, front, head, dependent = move(transition, k, stack, depth, front, leftmost, rightmost)
        if dependent != NONE:
            (leftmost if dependent < head else rightmost)[head] = dependent
    return computation


def optimal_computation(gold: np.ndarray, single_root: bool = False) -> tuple[Transition, ...]:
    """The canonical computation of the closest projective tree: every arc is built as soon as it is correct.

    Sartorio et al. (2013), section 5, on arc-standard with spines.
    """
    computation = _canonical_computation(closest_tree(gold, "projective", single_root))
    return tuple(Transition(KINDS[kind], k) for kind, k in computation.tolist())
