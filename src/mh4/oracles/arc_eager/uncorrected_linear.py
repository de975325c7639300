"""Scores of arc-eager transitions without `reduce_correct`, exact for projective gold trees.

Nederhof (2021), section 5, counts with `reduce_correct`. Without it, every stack element with the label L must become a
left child, which changes what can be lost; this calculation is not from the paper. Its scores were compared with the
exact ones for all configurations and projective trees of up to 5 words, and for random ones of up to 25. It takes
O(n b) time for b barriers (below): at most two in unnormalized parsing, except under the strict policy, and in
normalized parsing as many as there are runs of the label L in the stack.

The stack a_1 … a_k and the remaining input b_1 … b_m are those *after* the candidate step; an undecided a_k counts as
the first word of the remaining input. That input becomes a sequence of trees. Each becomes a child of a stack element
and takes all elements above that have the label L. A *barrier* is an element that a tree can reach, as a child of that
element, but that only the next trees can pass:

- In normalized parsing, an element with the label R below one with the label L, or below an undecided word. The word
  that takes the elements above stays on top of it until it, or a word that takes it, becomes its child.
- In unnormalized parsing, an element with the label R that must take a right child to comply with the policy: r_p in
  Table 10. If the element above it has the label R, that is its right child.
- In unnormalized parsing, all elements below the lowest one with the label L together, since one of them must be
  reached before the input ends.

The *level* of a tree is the number of barriers that are reached before it. Each gold arc between stack and remaining
input allows one level or two:

- (b, a_p), where a_p has the label L: the number of barriers above a_p.
- (a_p, b): the number of barriers that must be reached for a_p to be the head; if a_p is the last of these, the tree of
  b may also reach it itself.

Gold arcs within the remaining input give the trees. Giving up one of them divides a tree, so that the level can rise
once more; apart from that, only arcs whose levels do not fit are lost. The best sequence of levels is found by dynamic
programming over the words of the remaining input.

After a reduce under shift-before-reduce, b_1 must become a right child or take a left child from the stack: else, it
should have been shifted before. If its gold head is in the remaining input and it has no gold child in the stack, it
either loses that head, or takes the topmost element with the label L.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import L, N, R

from ..optimal_step import UNREACHABLE
from .grammars import NP, RP, unnormalized_string
from .steps import REMAINING, step_aside, token_places


@njit(cache=True, nogil=True)
def _normalized_levels(labels, k, undecided, levels, barriers):
    """Fill ``levels``, int32 (k + 1,), the barriers from the top to each element and 0, and ``barriers``, bool (k,)."""
    levels[k] = 0
    for p in range(k - 1, -1, -1):
        barriers[p] = labels[p] == R and (undecided if p == k - 1 else labels[p + 1] == L)
        levels[p] = levels[p + 1] + barriers[p]


@njit(cache=True, nogil=True)
def _unnormalized_levels(string, labels, k, levels, barriers):
    """`_normalized_levels` in unnormalized parsing; ``string``: see `unnormalized_string`."""
    levels[k] = 0
    below = 0  # elements below the lowest one with the label L, unless they begin with a barrier
    for p in range(k - 1, -1, -1):
        barriers[p] = string[p] == RP and (p == k - 1 or labels[p + 1] == L)
        levels[p] = levels[p + 1] + barriers[p]
        if barriers[p]:
            below = 0
        elif labels[p] == L:
            below = p
    barriers[:below] = True
    levels[:below] += 1


@njit(cache=True, nogil=True)
def _best_completion(stack, labels, k, front, gold, levels, barriers, divided):
    """The most gold arcs with words of the remaining input; ``divided``: without the one from there to the first."""
    n = gold.shape[0] - 1
    highest = levels[0]
    if highest > n + 1 - front:
        return UNREACHABLE
    places = token_places(stack, k, front, n)
    left_child, following = np.zeros(n + 1, np.int32), np.zeros(k, np.int32)  # arcs (b, a_p): lists from the top down
    for p in range(1, k):
        head = gold[stack[p]]
        if labels[p] == L and places[head] == REMAINING:
            following[p] = left_child[head]
            left_child[head] = p
    score = 0
    spanning = np.zeros(n + 2, np.int32)  # gold arcs across the boundary before each word, as differences
    for token in range(front + divided, n + 1):
        head = gold[token]
        if places[head] == REMAINING:
            score += 1
            spanning[min(head, token) + 1] += 1
            spanning[max(head, token) + 1] -= 1
    # The most arcs with the stack, minus arcs given up, so far: by the level of the current tree and, in `kept`, by the
    # level after the current tree, if the arc to it from the stack is kept.
    impossible = -2 * n - 2
    best, kept = np.full(highest + 1, impossible, np.int32), np.full(highest + 1, impossible, np.int32)
    kept[0] = 0
    spanned = 0
    for token in range(front, n + 2):
        # A new tree begins here if no arc is in the way; else the tree may be divided.
        spanned += spanning[token]
        lost = 1 if spanned > 0 else 0
        for level in range(highest, -1, -1):
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
            if barriers[p]:
                before = max(before, best[level - 1])
            kept[level] = max(kept[level], before + 1)
    return score + best[highest]


@njit(cache=True, nogil=True)
def _best_after_reduce(string, stack, labels, k, front, gold, levels, barriers):
    """`_best_completion` where b_1 must become a right child or take one from the stack; overwrites the levels."""
    if gold[front] < front:
        return _best_completion(stack, labels, k, front, gold, levels, barriers, False)
    topmost = 0
    for p in range(1, k):
        if labels[p] == L:
            topmost = p
            if gold[stack[p]] == front:
                return _best_completion(stack, labels, k, front, gold, levels, barriers, False)
    best = _best_completion(stack, labels, k, front, gold, levels, barriers, True)
    if topmost > 0:
        _unnormalized_levels(string, labels, topmost, levels, barriers)
        taken = _best_completion(stack, labels, topmost, front, gold, levels, barriers, False)
        best = max(best, taken)
    return best


@njit(cache=True, nogil=True)
def uncorrected_scores(normalized, policy, stack, labels, k, front, gold, scores):
    """Fill `scores` for one configuration: int32 (4,), or (5,) for the normalized system, which ignores `policy`.

    `stack` and `labels`, of k elements, stay as they are. O(n b) time for b barriers, O(n) space.
    """
    next_stack, next_labels = np.empty(k + 1, np.int32), np.empty(k + 1, np.int8)
    levels, barriers = np.empty(k + 2, np.int32), np.empty(k + 1, np.bool_)
    for transition in range(scores.shape[0]):
        scores[transition] = UNREACHABLE
        k2, front2, gained = step_aside(
            normalized, transition, False, stack, labels, k, front, gold, next_stack, next_labels
        )
        if k2 == 0:
            continue
        for p in range(1, k2):
            if next_labels[p] == R and gold[next_stack[p]] == next_stack[p - 1]:
                gained += 1
        if normalized:
            undecided = next_labels[k2 - 1] == N
            if undecided:
                k2, front2 = k2 - 1, next_stack[k2 - 1]
            _normalized_levels(next_labels, k2, undecided, levels, barriers)
            best = _best_completion(next_stack, next_labels, k2, front2, gold, levels, barriers, False)
        else:
            string = unnormalized_string(policy, transition, next_labels, k2, gold.shape[0] - front2)
            _unnormalized_levels(string, next_labels, k2, levels, barriers)
            if string.shape[0] > k2 and string[k2] == NP:
                best = _best_after_reduce(string, next_stack, next_labels, k2, front2, gold, levels, barriers)
            else:
                best = _best_completion(next_stack, next_labels, k2, front2, gold, levels, barriers, False)
        if best != UNREACHABLE:
            scores[transition] = best + gained
