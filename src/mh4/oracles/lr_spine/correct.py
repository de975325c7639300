"""Which transitions of LR-spine parsing lead on to the gold tree (Sartorio et al. 2013, section 4.2).

A configuration is *correct* if the gold tree, a projective one, can be reached from it, and a transition is correct if
the configuration after it is. By Lemma 1, in a correct configuration

- an arc is correct if it is a gold arc, so at most one arc is correct;
- a shift is correct unless the topmost tree has its gold head further left and is complete: no node of its right spine
  lacks a gold child. Once covered by another tree, it could be attached only after something is attached to it.

If both are correct, the parser may choose to postpone the arc until it has seen more.

An element of the stack has not changed since the next one was shifted onto it, so the test for shifts also tells
whether a configuration is correct: all its arcs must be gold, and all shifts onto trees of its stack must have been
correct.
"""

from numba import njit

from mh4.transitions.arrays.state import NONE


@njit(cache=True, nogil=True)
def shift_is_correct(root, front, gold, last_child, rightmost):
    """Lemma 1 (ii): whether position ``front`` may be shifted onto the tree of ``root`` in a correct configuration.

    ``last_child``, int32, is the last of each position and its gold children; ``rightmost``, int32, the rightmost right
    child by the arcs built so far, −1 if there is none.
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
    """The depth of a position, from 1, in the spine that begins at ``root``; 0 if the spine does not contain it.

    ``children``, int32, has the next position after each one of the spine, and −1 at its end.
    """
    k, at = 1, root
    while at != NONE and at != position:
        at = children[at]
        k += 1
    return 0 if at == NONE else k


@njit(cache=True, nogil=True)
def first_word(root, leftmost):
    """The first position of the tree of ``root``: the end of its left spine."""
    while leftmost[root] != NONE:
        root = leftmost[root]
    return root


@njit(cache=True, nogil=True)
def is_correct(stack, front, heads, gold, last_child, leftmost, rightmost):
    """Whether the gold tree can be reached from the configuration with these ``heads``, int32 (n + 1,)."""
    for position in range(front):
        if heads[position] != NONE and heads[position] != gold[position]:
            return False
    for i in range(stack.shape[0] - 1):
        if not shift_is_correct(stack[i], first_word(stack[i + 1], leftmost), gold, last_child, rightmost):
            return False
    return True


@njit(cache=True, nogil=True)
def correct_steps(stack, front, gold, last_child, leftmost, rightmost):
    """Whether a shift is correct, and the k of the correct left arc and right arc, 0 if there is none.

    The configuration must be correct.
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
