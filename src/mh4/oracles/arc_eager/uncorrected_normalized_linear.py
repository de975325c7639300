"""Scores of normalized arc-eager transitions without `reduce_correct`, exact for projective gold trees.

Not from Nederhof (2021). The scores were compared with the exact ones for all configurations and projective trees of up
to 5 words, and for random ones of up to 25. They take O(n r) time, where r is the number of runs of elements with the
label L in the stack. The stack a_1 … a_k and the remaining input b_1 … b_m are those *after* the candidate step; an
undecided a_k counts as the first word of the remaining input.

The remaining input becomes a sequence of trees, the children of stack elements. Before each tree, elements with the
label R may be reduced. The tree then takes some elements with the label L, one after the other, and becomes a child of
the element below these. It cannot remove an element with the label R. So going down the stack, each tree gets past at
most one run of the label L, and only if it becomes a child of the element below that run. When the input ends, all runs
must have been removed. The *level* of a tree is the number of runs removed before it; each gold arc between stack and
remaining input allows one level, or two:

- (b, a_p), where a_p has the label L: its level is that of the run of a_p.
- (a_p, b): the number of runs above a_p. The tree of b must not remove a run itself, unless it is the one next to a_p.

Gold arcs within the remaining input give the trees. Giving up one of them divides a tree, so that one more run can be
removed; apart from that, only arcs whose levels do not fit are lost. The best sequence of levels is found by dynamic
programming over the words of the remaining input.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import L, N, R

from ..optimal_step import UNREACHABLE
from .steps import REMAINING, step_normalized, token_places


@njit(cache=True, nogil=True)
def _levels(labels, k, undecided):
    """int32 (k + 1,): of each element, the number of runs above it; after the last one, that of the first tree, 0.

    If an undecided word is on an element with the label R, no reduce can come first, and its tree becomes a child of
    that element, as if it removed an empty run above it.
    """
    levels = np.zeros(k + 1, np.int32)
    for p in range(k - 1, -1, -1):
        below_run = undecided if p == k - 1 else labels[p + 1] == L
        levels[p] = levels[p + 1] + (labels[p] == R and below_run)
    return levels


@njit(cache=True, nogil=True)
def _best_completion(stack, labels, k, front, gold):
    """The most gold arcs that can be made from a configuration on."""
    n = gold.shape[0] - 1
    undecided = labels[k - 1] == N
    if undecided:
        k, front = k - 1, stack[k - 1]
    levels = _levels(labels, k, undecided)
    runs = levels[0]
    if runs > n + 1 - front:
        return UNREACHABLE
    places = token_places(stack, k, front, n)
    score = 0
    left_child, following = np.zeros(n + 1, np.int32), np.zeros(k, np.int32)  # arcs (b, a_p): lists from the top down
    for p in range(1, k):
        head = gold[stack[p]]
        if labels[p] == R:
            score += head == stack[p - 1]
        elif places[head] == REMAINING:
            following[p] = left_child[head]
            left_child[head] = p
    spanning = np.zeros(n + 2, np.int32)  # gold arcs across the boundary before each word, as differences
    for token in range(front, n + 1):
        head = gold[token]
        if places[head] == REMAINING:
            score += 1
            spanning[min(head, token) + 1] += 1
            spanning[max(head, token) + 1] -= 1
    # The most arcs with the stack, minus arcs given up, so far: by the level of the current tree and, in `kept`, by the
    # level after the current tree, if the arc to it from the stack is kept.
    impossible = -2 * n - 2
    best, kept = np.full(runs + 1, impossible, np.int32), np.full(runs + 1, impossible, np.int32)
    best[0] = 0
    spanned = 0
    for token in range(front, n + 2):
        if token > front or token > n:
            # A new tree begins here if no arc is in the way; else the tree may be divided.
            spanned += spanning[token]
            lost = 1 if spanned > 0 else 0
            for level in range(runs, -1, -1):
                best[level] = max(best[level], kept[level] - lost)
                if level > 0:
                    best[level] = max(best[level], best[level - 1] - lost)
            if not lost:
                kept[:] = impossible
        if token > n:
            break
        p = left_child[token]
        while p > 0:
            best[levels[p]] += 1
            p = following[p]
        p = places[gold[token]]
        if p >= 0:
            level = levels[p]
            before = best[level]
            if level > levels[p + 1]:  # its tree may remove the run above a_p
                before = max(before, best[level - 1])
            kept[level] = max(kept[level], before + 1)
    return score + best[runs]


@njit(cache=True, nogil=True)
def uncorrected_normalized_scores(stack, labels, k, front, gold, scores):
    """Fill `scores`, int32 (5,), for one configuration."""
    next_stack, next_labels = np.empty(k + 1, np.int32), np.empty(k + 1, np.int8)
    for transition in range(scores.shape[0]):
        next_stack[:k], next_labels[:k] = stack[:k], labels[:k]
        k2, front2, gained = step_normalized(transition, False, next_stack, next_labels, k, front, gold)
        scores[transition] = UNREACHABLE
        if k2 > 0:
            best = _best_completion(next_stack, next_labels, k2, front2, gold)
            if best != UNREACHABLE:
                scores[transition] = best + gained
