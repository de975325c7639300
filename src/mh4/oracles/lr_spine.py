"""Which transitions of LR-spine parsing lead on to the gold tree (Sartorio et al. 2013, section 4.2).

A configuration is *correct* if the gold tree, a projective one, can be reached from it, and a transition is correct if
the configuration after it is. Lemma 1 tells correct transitions from incorrect ones where the configuration is correct:

- an arc is correct if it is a gold arc, so there is one correct arc at most;
- a shift is correct unless the topmost tree has to be attached to a node further left and is complete: no node of its
  right spine lacks a gold child. Covered by another tree, it could only be attached after something is attached to it.

Where both are correct the parser may choose: it can put the arc off until it has seen more.

The elements below the topmost one are as they were when the next one was shifted, so the test for the shift also tells
whether a configuration is correct: all its arcs are gold arcs, and so were all the shifts onto the trees of its stack.

Without spines, in arc-standard parsing, an arc is correct if moreover its dependent has all its children; a shift is if
the topmost word gets a child from the remaining input, or has all its children and its head is further right. That is
the adaptation that the paper mentions in section 5; brute force over all computations confirms both.
"""

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
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

from .costs import CHILDREN, LAST_CHILD, STATIC, children_of
from .shift_reduce.projective import is_projective_tree


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
def _shift_without_spines(word, front, gold, last_child, missing):
    return last_child[word] >= front or (missing[word] == 0 and (word == 0 or gold[word] >= front))


@njit(cache=True, nogil=True)
def _steps(spines, stack, front, gold, last_child, missing, leftmost, rightmost):
    """Whether a shift is correct, and k of the correct left arc and right arc, 0 if there is none.

    The configuration is correct; ``missing`` says how many gold children each position still lacks.
    """
    depth = stack.shape[0]
    shift = front < gold.shape[0]
    if shift and depth > 0:
        if spines:
            shift = shift_is_correct(stack[-1], front, gold, last_child, rightmost)
        else:
            shift = _shift_without_spines(stack[-1], front, gold, last_child, missing)
    if depth < 2:
        return shift, 0, 0
    top, second = stack[-1], stack[-2]
    if spines:
        left = depth_in_spine(top, gold[second], leftmost) if second > 0 else 0
        return shift, left, depth_in_spine(second, gold[top], rightmost)
    left = 1 if gold[second] == top and missing[second] == 0 else 0
    return shift, left, 1 if gold[top] == second and missing[top] == 0 else 0


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates, 0 for what is correct, for a projective gold tree; with spines.

    ``dynamic``: all correct transitions, of which training follows the one with the best score (Algorithm 2,
    *easy-first*). ``static``: every arc as soon as possible, which is the paper's *arc-standard + spine*. Lemma 1 says
    nothing about configurations that the gold tree cannot be reached from, so neither admits exploration.
    """
    stack, leftmost, rightmost = (
        state.stack[: state.counters[DEPTH]],
        state.dependents[LEFTMOST],
        state.dependents[RIGHTMOST],
    )
    children, last_child = state.oracle[CHILDREN], state.oracle[LAST_CHILD]
    shift, left, right = _steps(True, stack, state.counters[FRONT], gold, last_child, children, leftmost, rightmost)
    if oracle == STATIC and (left > 0 or right > 0):
        shift = False
    for c in range(count):
        transition, k = candidates.rows[c, TRANSITION], candidates.rows[c, ARGUMENT]
        correct = shift if transition == SHIFT else k == (left if transition == LEFT_ARC else right)
        candidates.costs[c] = 0 if correct else 1


@njit(cache=True, nogil=True)
def _correct_steps(spines, heads, front, gold):
    """As `_steps` for the configuration with the given arcs; no transition is correct if it is not."""
    size = gold.shape[0]
    children = children_of(gold)
    missing, last_child = children[CHILDREN], children[LAST_CHILD]
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
        missing[head] -= 1
        if position > head:
            rightmost[head] = position
        elif leftmost[head] == NONE:
            leftmost[head] = position
    if not spines:
        for position in range(1, front):
            if heads[position] != NONE and missing[position] > 0:
                return False, 0, 0
    for i in range(depth - 1):
        first = stack[i + 1]  # will be the first position of the tree that covers this one
        while leftmost[first] != NONE:
            first = leftmost[first]
        if spines:
            covered = shift_is_correct(stack[i], first, gold, last_child, rightmost)
        else:
            covered = _shift_without_spines(stack[i], first, gold, last_child, missing)
        if not covered:
            return False, 0, 0
    return _steps(spines, stack[:depth], front, gold, last_child, missing, leftmost, rightmost)


def correct_transitions(configuration: Configuration, gold: np.ndarray, spines: bool = True) -> tuple[Transition, ...]:
    """The transitions after which the gold tree can still be reached (Lemma 1); O(n).

    Two at most, a shift first; none if the configuration is final, or if the gold tree is out of reach already. Of the
    configuration only its arcs and its front are looked at, which determine the stack. ValueError: see `mh4.oracles`;
    the gold tree has to be projective. ``spines``: see `LRSpine`.
    """
    gold = np.ascontiguousarray(gold, np.int32)
    if not is_projective_tree(gold):
        raise ValueError(f"correct transitions need a projective gold tree, see `closest_tree`: {gold.tolist()}")
    if configuration.n != len(gold) - 1:
        raise ValueError(f"the configuration is of {configuration.n} words, the gold tree of {len(gold) - 1}")
    front = configuration.front
    if not 0 <= front <= len(gold) or not all(0 <= h < front and 0 < d < front for h, d in configuration.arcs):
        raise ValueError(f"no configuration of {configuration.n} words: {configuration!r}")
    heads = np.full(len(gold), NONE, np.int32)
    for head, dependent in configuration.arcs:
        heads[dependent] = head
    shift, left, right = _correct_steps(spines, heads, front, gold)
    steps = zip(KINDS, (0, left, right), (shift, left > 0, right > 0), strict=True)
    return tuple(Transition(kind, k) for kind, k, correct in steps if correct)


@njit(cache=True, nogil=True)
def _canonical_computation(spines, gold):
    """For each of the 2n + 1 transitions of the computation its kind and k, int32 (2n + 1, 2)."""
    size = gold.shape[0]
    children = children_of(gold)
    missing, last_child = children[CHILDREN], children[LAST_CHILD]
    leftmost, rightmost = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    stack = np.empty(size, np.int32)
    depth, front = 0, 0
    computation = np.zeros((2 * size - 1, 2), np.int32)
    for step in range(2 * size - 1):
        _, left, right = _steps(spines, stack[:depth], front, gold, last_child, missing, leftmost, rightmost)
        transition, k = (LEFT_ARC, left) if left > 0 else (RIGHT_ARC, right) if right > 0 else (SHIFT, 0)
        computation[step, 0], computation[step, 1] = transition, k
        depth, front, head, dependent = move(transition, k, stack, depth, front, leftmost, rightmost)
        if dependent != NONE:
            missing[head] -= 1
            (leftmost if dependent < head else rightmost)[head] = dependent
    return computation


def optimal_computation(gold: np.ndarray, spines: bool = True, single_root: bool = False) -> tuple[Transition, ...]:
    """The canonical computation of the closest projective tree: every arc is built as soon as it is correct.

    Sartorio et al. (2013), section 5, on arc-standard with spines; ``spines``: see `LRSpine`.
    """
    computation = _canonical_computation(spines, closest_tree(gold, "projective", single_root))
    return tuple(Transition(KINDS[kind], k) for kind, k in computation.tolist())
