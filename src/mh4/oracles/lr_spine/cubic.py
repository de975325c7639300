"""The most gold arcs of any tree after each transition of LR-spine parsing, for any configuration and gold tree.

Lemma 1 of Sartorio et al. (2013) tells which trees can be reached: the projective ones that have the arcs built so far
and in which no tree of the stack that is covered by another one has its head on the left and ends where it ends now.
The best of them are found by the algorithm of Eisner (1996) in O(n³): the arcs built so far are the only ones to their
dependents, and a covered tree may not be joined with a head on the left unless its right half is longer.

An arc between the two topmost trees excludes just the trees without this arc; so what it is worth is the score of the
best tree that has it, which outside scores give for all such arcs at once. A shift covers the topmost tree.

Most positions make no difference and are left out first: of the trees in the stack all but their roots and the nodes of
their spines that gold arcs may still come from, and of the remaining input, for a projective gold tree, the words that
have nothing to do with the stack. In training, some ten positions are left, whatever the length of the sentence.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.state import NONE

from ..optimal_step import UNREACHABLE

_OUT = -(2**20)  # less than any score; sums of two are cut off here, so nothing overflows


@njit(cache=True, nogil=True)
def _fill(arcs, ends, right, left, right_arc, left_arc):
    """Inside scores of spans (i, j), int32 (n + 1, n + 1): headed by i or j, and of an arc between them.

    ``ends`` has the last positions that right halves may not have, or −1. Returns the score of the best tree.
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
    """Outside scores, int32 (4, n + 1, n + 1), of the spans in the order of the arguments."""
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
    """Words of the remaining input in whose gold subtrees there is a gold arc to the stack or the first word, bool.

    Shape (n + 1,). Gold arcs of which the dependent has a head already do not count. If the gold tree is projective,
    all other words can get their gold heads whatever happens: only to cover a complete tree, something may have to be
    attached to it instead, and then the first word is as good as any.
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
    """Add the nodes of a spine that matter, below the root of a tree, with their parents; returns how many there are.

    Those that no word without a head has as its gold head can be left out: what is attached to them may as well be
    attached to the next one that is kept, further down or else further up.
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
    """Positions, int32 (m,), in order; fills their parents, int32 (n + 1,), −1 where there is none yet.

    And for the trees of the stack, int32 (k,): the index of their last node among them.
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
        nodes[first:count] = nodes[first:count][::-1].copy()
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
    """What a shift is worth, and what arcs are worth, int32 (2, n + 1), by their heads; `UNREACHABLE` if not legal.

    Row 0 is of arcs to the second topmost tree, row 1 of those to the topmost one. Gold arcs among those built so far,
    int32 (n + 1,) heads, count. ``projective`` says whether the gold tree is.
    """
    parents = np.empty(gold.shape[0], np.int32)
    nodes, last = _nodes_that_matter(stack, front, heads, gold, projective, leftmost, rightmost, parents)
    size, depth = nodes.shape[0], stack.shape[0]
    arcs = np.zeros((size, size), np.int32)
    given = 0  # gold arcs that are built, or those of words that were left out
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
