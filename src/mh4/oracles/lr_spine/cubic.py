"""Exact scores of LR-spine transitions in cubic time, for any configuration and gold tree.

The score of a transition is the largest number of gold arcs in any tree that can be reached after it. By Lemma 1 of
Sartorio et al. (2013), these are the projective trees that contain the arcs built so far and in which each covered tree
of the stack (one below another) that gets its head on the left ends further right than now. The algorithm of Eisner
(1996) finds the best of them in O(n³): words that have a head allow no other, and a covered tree may be joined with a
head on the left only if its right half has become longer.

An arc between the two topmost trees excludes exactly the trees without this arc, so its score is that of the best tree
with the arc; outside scores give it for all such arcs at once. A shift covers the topmost tree.

Most positions make no difference and are left out first: nodes of trees in the stack, except roots and those nodes of
spines that may still be the head of a gold arc; and, for a projective gold tree, words of the remaining input that no
gold arc links to the stack (see `_linked`). In training, about ten positions are left, whatever the sentence length.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.state import NONE

from ..optimal_step import UNREACHABLE

_OUT = -(2**20)  # lower than any score; sums are clipped to it, so nothing overflows


@njit(cache=True, nogil=True)
def _fill(arcs, ends, right, left, right_arc, left_arc):
    """Fill the inside scores of the spans (i, j), each int32 (m, m); return the score of the best tree.

    ``right`` is for spans headed by i, ``left`` by j; ``right_arc`` for spans with an arc i → j, ``left_arc`` j → i.
    ``ends[d]`` is the position at which the right half of d must not end if its head is on the left, or −1.
    """
    size = arcs.shape[0]
    for width in range(1, size):
        for i in range(size - width):
            j = i + width
            most = _OUT
            for k in range(i, j):
                most = max(most, right[i, k] + left[k + 1, j])
            right_arc[i, j] = max(_OUT, most + arcs[i, j])
            left_arc[i, j] = max(_OUT, most + arcs[j, i])
            most = _OUT
            for d in range(i + 1, j + 1):
                if ends[d] != j:
                    most = max(most, right_arc[i, d] + right[d, j])
            right[i, j] = most
            most = _OUT
            for d in range(i, j):
                most = max(most, left[i, d] + left_arc[d, j])
            left[i, j] = most
    return right[0, size - 1]


@njit(cache=True, nogil=True)
def _fill_outside(arcs, ends, right, left, right_arc, left_arc, outer):
    """Fill ``outer``, int32 (4, m, m), with the outside scores of right, left, right_arc and left_arc spans."""
    size = arcs.shape[0]
    outer[:] = _OUT
    outer[0, 0, size - 1] = 0
    for width in range(size - 1, 0, -1):
        for i in range(size - width):
            j = i + width
            score = outer[0, i, j]
            if score > _OUT:
                for d in range(i + 1, j + 1):
                    if ends[d] != j:
                        outer[2, i, d] = max(outer[2, i, d], score + right[d, j])
                        outer[0, d, j] = max(outer[0, d, j], score + right_arc[i, d])
            score = outer[1, i, j]
            if score > _OUT:
                for d in range(i, j):
                    outer[3, d, j] = max(outer[3, d, j], score + left[i, d])
                    outer[1, i, d] = max(outer[1, i, d], score + left_arc[d, j])
            score = max(outer[2, i, j] + arcs[i, j], outer[3, i, j] + arcs[j, i])
            if score > _OUT:
                for k in range(i, j):
                    outer[0, i, k] = max(outer[0, i, k], score + left[k + 1, j])
                    outer[1, k + 1, j] = max(outer[1, k + 1, j], score + right[i, k])


@njit(cache=True, nogil=True)
def _linked(front, heads, gold):
    """bool (n + 1,): words of the remaining input whose gold subtree contains the first one or a link to the stack.

    A link is a gold arc, in either direction, whose dependent has no head yet. If the gold tree is projective, all
    other words can get their gold heads whatever happens. Only to cover a complete tree, a word may have to be attached
    to it instead, and then the first word is as good as any.
    """
    linked = np.zeros(gold.shape[0], np.bool_)
    linked[0] = front == 0  # all words are below it
    for position in range(1, gold.shape[0]):
        word = position if position >= front else gold[position]
        if position == front or (heads[position] == NONE and (position < front or gold[position] < front)):
            while word >= front and not linked[word]:
                linked[word] = True
                word = gold[word]
    return linked


@njit(cache=True, nogil=True)
def _keep_spine(root, children, all_of_it, wanted, nodes, count, parents):
    """Append the nodes of a spine below ``root`` that matter, and set their parents; return the new number of nodes.

    Unless ``all_of_it`` is set, nodes that are not ``wanted`` as gold head by any word without a head are left out: a
    tree attached to such a node may as well be attached to the next node that is kept, further down or else further up.
    """
    parent, position = root, children[root]
    while position != NONE:
        if all_of_it or wanted[position]:
            nodes[count] = position
            parents[position] = parent
            parent = position
            count += 1
        position = children[position]
    return count


@njit(cache=True, nogil=True)
def _nodes_that_matter(stack, front, heads, gold, projective, leftmost, rightmost, parents):
    """The positions that matter, int32 (m,), in order, and the index of the last one in each stack tree, int32 (k,).

    Fills ``parents``, int32 (n + 1,), with the next kept node above each kept one in its tree, −1 if there is none.
    """
    size, depth = gold.shape[0], stack.shape[0]
    nodes, last = np.empty(size, np.int32), np.empty(depth, np.int32)
    wanted = np.zeros(size, np.bool_)
    for position in range(1, size):
        if heads[position] == NONE:
            wanted[gold[position]] = True
    parents[:] = NONE
    count = 0
    for i in range(depth):
        root = stack[i]
        first = count
        count = _keep_spine(root, leftmost, i == depth - 1, wanted, nodes, count, parents)
        for k in range((count - first) // 2):
            nodes[first + k], nodes[count - 1 - k] = nodes[count - 1 - k], nodes[first + k]
        nodes[count] = root
        count = _keep_spine(root, rightmost, i == depth - 2, wanted, nodes, count + 1, parents)
        last[i] = count - 1
    linked = _linked(front, heads, gold)
    for position in range(front, size):
        if linked[position] or not projective:
            nodes[count] = position
            count += 1
    return nodes[:count], last


@njit(cache=True, nogil=True)
def best_after(stack, front, heads, gold, projective, leftmost, rightmost):
    """The score of a shift, and the scores of arcs by their heads, int32 (2, n + 1); `UNREACHABLE` if not legal.

    Row 0 is for arcs to the root of the second topmost tree, row 1 for arcs to that of the topmost one. Scores include
    the gold arcs built so far, given by ``heads``, int32 (n + 1,). ``projective``: whether the gold tree is projective.
    """
    parents = np.empty(gold.shape[0], np.int32)
    nodes, last = _nodes_that_matter(stack, front, heads, gold, projective, leftmost, rightmost, parents)
    size, depth = nodes.shape[0], stack.shape[0]
    arcs = np.zeros((size, size), np.int32)
    given = 0  # gold arcs built already, plus one for each word of the remaining input that is left out
    for position in range(1, gold.shape[0]):
        given += heads[position] == gold[position] or (position >= front)
    for d in range(size):
        dependent = nodes[d]
        given -= dependent >= max(front, 1)
        for h in range(size):
            if parents[dependent] == NONE:
                arcs[h, d] = nodes[h] == gold[dependent]
            elif parents[dependent] != nodes[h]:
                arcs[h, d] = _OUT
    ends = np.full(size, NONE, np.int32)
    roots = np.searchsorted(nodes, stack)
    for i in range(depth - 1):
        if stack[i] > 0:
            ends[roots[i]] = last[i]
    right, left, right_arc, left_arc = np.zeros((4, size, size), np.int32)
    shift, worth = UNREACHABLE, np.full((2, gold.shape[0]), UNREACHABLE, np.int32)
    if front < gold.shape[0]:
        if depth > 0 and stack[-1] > 0:
            ends[roots[-1]] = last[-1]
        shift = given + _fill(arcs, ends, right, left, right_arc, left_arc)
    if depth < 2:
        return shift, worth
    ends[roots[-1]] = NONE
    _fill(arcs, ends, right, left, right_arc, left_arc)
    outer = np.empty((4, size, size), np.int32)
    _fill_outside(arcs, ends, right, left, right_arc, left_arc, outer)
    for row in range(2):
        dependent = roots[-2 + row]
        for head in range(size):
            if head < dependent:
                score = right_arc[head, dependent] + outer[2, head, dependent]
            elif head > dependent:
                score = left_arc[dependent, head] + outer[3, dependent, head]
            else:
                continue
            if score >= 0:
                worth[row, nodes[head]] = given + score
    return shift, worth
