"""The correct transitions of LR-spine parsing, the scores of all transitions, and an optimal computation.

`correct_transitions` is for projective gold trees that are still in reach (Sartorio et al. 2013, section 4.2) and takes
O(n). `optimal_step` handles any gold tree and configuration, in O(n³); the paper leaves this to future work.
"""

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import checked_tree, is_projective, is_tree
from mh4.transitions.arrays.lr_spine import LEFT_ARC, RIGHT_ARC, SHIFT, move
from mh4.transitions.arrays.state import NONE
from mh4.transitions.lr_spine import KINDS, Configuration, Transition

from ..costs import LAST_CHILD, children_of
from ..optimal_step import OptimalStep
from .correct import correct_steps, is_correct
from .cubic import best_after


@njit(cache=True, nogil=True)
def _elements(heads, front):
    """The roots in the stack, int32 (k,), and the leftmost left and rightmost right children, int32 (n + 1,), or −1."""
    size = heads.shape[0]
    leftmost, rightmost = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    stack = np.empty(front, np.int32)
    depth = 0
    for position in range(front):
        head = heads[position]
        if head == NONE:
            stack[depth] = position
            depth += 1
        elif position > head:
            rightmost[head] = position
        elif leftmost[head] == NONE:
            leftmost[head] = position
    return stack[:depth], leftmost, rightmost


@njit(cache=True, nogil=True)
def _correct_steps(heads, front, gold):
    """`correct_steps` for the configuration with these heads; no step is correct if the configuration is not."""
    last_child = children_of(gold)[LAST_CHILD]
    stack, leftmost, rightmost = _elements(heads, front)
    if not is_correct(stack, front, heads, gold, last_child, leftmost, rightmost):
        return False, 0, 0
    return correct_steps(stack, front, gold, last_child, leftmost, rightmost)


def _are_trees_side_by_side(heads: np.ndarray, front: int) -> bool:
    """Whether the arcs in ``heads``, −1 where there is none, form projective trees side by side before ``front``."""
    roots, below_root = 1 + np.flatnonzero(heads[1:front] == NONE), np.flatnonzero(heads == 0)
    if len(roots) and len(below_root) and below_root[-1] > roots[0]:
        return False
    joined = np.where(heads == NONE, 0, heads)
    joined[0] = NONE
    return is_tree(joined) and is_projective(joined)


def _heads(configuration: Configuration, gold: np.ndarray) -> np.ndarray:
    """The heads by the arcs built so far, int32 (n + 1,); ValueError unless the configuration is one of n words."""
    if configuration.n != len(gold) - 1:
        raise ValueError(f"the configuration has {configuration.n} words, but the gold tree has {len(gold) - 1}")
    front, arcs = configuration.front, {dependent: head for head, dependent in configuration.arcs}
    heads = np.full(len(gold), NONE, np.int32)
    known = 0 <= front <= len(gold) and all(0 <= head < front and 0 < word < front for word, head in arcs.items())
    if known and len(arcs) == len(configuration.arcs):
        for word, head in arcs.items():
            heads[word] = head
        if _are_trees_side_by_side(heads, front):
            return heads
    raise ValueError(f"not a configuration of {configuration.n} words: {configuration!r}")


def correct_transitions(configuration: Configuration, gold: np.ndarray) -> tuple[Transition, ...]:
    """The transitions after which the gold tree can still be reached (Lemma 1); O(n).

    At most two, a shift first; none if the configuration is final or the gold tree is already out of reach. Only the
    arcs and the front of the configuration are used; they determine the stack. ValueError: see `mh4.oracles`; the gold
    tree must be projective.
    """
    gold = np.ascontiguousarray(checked_tree(gold), np.int32)
    if not is_projective(gold):
        raise ValueError(f"correct transitions need a projective gold tree, see `closest_tree`: {gold.tolist()}")
    shift, left, right = _correct_steps(_heads(configuration, gold), configuration.front, gold)
    steps = zip(KINDS, (0, left, right), (shift, left > 0, right > 0), strict=True)
    return tuple(Transition(kind, k) for kind, k, correct in steps if correct)


def optimal_step(configuration: Configuration, gold: np.ndarray) -> OptimalStep[Transition]:
    """The legal transitions with the score of the best tree that each can still lead to; O(n³).

    Only the arcs and the front of the configuration are used; they determine the stack.
    """
    tree = np.ascontiguousarray(checked_tree(gold), np.int32)
    heads = _heads(configuration, tree)
    stack, leftmost, rightmost = _elements(heads, configuration.front)
    projective = is_projective(tree)
    shift, worth = best_after(stack, configuration.front, heads, tree, projective, leftmost, rightmost)
    scores: dict[Transition, int | None] = {}  # no configuration gets stuck, so every transition has a score
    if configuration.front <= configuration.n:
        scores[Transition(KINDS[SHIFT])] = int(shift)
    if len(stack) > 1:
        for kind, row, root, children in ((LEFT_ARC, 0, stack[-1], leftmost), (RIGHT_ARC, 1, stack[-2], rightmost)):
            k, head = 1, root
            while head != NONE and (kind == RIGHT_ARC or stack[-2] > 0):
                scores[Transition(KINDS[kind], k)] = int(worth[row, head])
                k, head = k + 1, children[head]
    largest = max((score for score in scores.values() if score is not None), default=None)
    return OptimalStep(scores, tuple(t for t, score in scores.items() if score == largest), configuration.n)


@njit(cache=True, nogil=True)
def _canonical_computation(gold):
    """The kind and k of each transition, int32 (2n + 1, 2), for a projective gold tree."""
    size = gold.shape[0]
    last_child = children_of(gold)[LAST_CHILD]
    leftmost, rightmost = np.full(size, NONE, np.int32), np.full(size, NONE, np.int32)
    stack = np.empty(size, np.int32)
    depth, front = 0, 0
    computation = np.zeros((2 * size - 1, 2), np.int32)
    for step in range(2 * size - 1):
        _, left, right = correct_steps(stack[:depth], front, gold, last_child, leftmost, rightmost)
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
