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

from numba import njit

from mh4.transitions.arrays.state import NONE


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
def first_word(root, leftmost):
    """The first position of the tree of a root: the end of its left spine."""
    while leftmost[root] != NONE:
        root = leftmost[root]
    return root


@njit(cache=True, nogil=True)
def is_correct(stack, front, heads, gold, last_child, leftmost, rightmost):
    """Whether the gold tree can be reached from the configuration with the given arcs, int32 (n + 1,) heads."""
    for position in range(front):
        if heads[position] != NONE and heads[position] != gold[position]:
            return False
    for i in range(stack.shape[0] - 1):
        if not shift_is_correct(stack[i], first_word(stack[i + 1], leftmost), gold, last_child, rightmost):
            return False
    return True


@njit(cache=True, nogil=True)
def correct_steps(stack, front, gold, last_child, leftmost, rightmost):
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
