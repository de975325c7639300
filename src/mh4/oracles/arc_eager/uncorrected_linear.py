"""Scores of arc-eager transitions without `reduce_correct` in linear time, exact for projective gold trees.

Nederhof (2021), section 5, counts with `reduce_correct`. Without it, every stack element with the label L must become a
left child, which changes what can be lost; this calculation is not from the paper. Its scores were compared with the
exact ones for all configurations and projective trees of up to 5 words, and for random ones of up to 25. The stack
a_1 … a_k (a_1 the root) and the remaining input b_1 … b_m are those *after* the candidate step; in the arrays a_p is
``stack[p - 1]`` and the b are the tokens from `front` on.

The gold arcs that may still be made are (a_{p-1}, a_p) if a_p has the label R, (b, a_p) if it has the label L, (a_p, b)
and (b, b'). Arcs between stack and remaining input are nested. Whatever is between two of them can be removed for free:
the inner arc leaves a word of the remaining input above the elements in between, or the outer arc brings one, and this
word takes those that have the label L. So arcs are lost in three cases only:

- *The end of the input.* Let b be the gold ancestor of b_m in the remaining input whose head is not there. If its head
  is a_r, elements up to a_r with the label L can only get a head if b or a word below it, on the way to b_m, gives up
  its own. That costs one arc. If the input is empty, no tree can be reached.
- *Reduce under shift-before-reduce.* b_1 must become a right child or take a left child from the stack; otherwise, it
  should have been shifted first. If its gold head is in the remaining input, either b_1 loses it, or b_1 takes the
  topmost element with the label L, which loses its gold head, and all elements from there up lose their right children.
- *Shift under non-strict reduce-before-shift.* If a_{k-1} has the label R and is not the root, it must take a right
  child, since it was not reduced before. Each b_p could be that child: it loses its head, and the arcs that cross
  (a_{k-1}, b_p) are lost; so is that to a_k if its head is further right, since a_k becomes a child of b_p. The best
  b_p counts.

In the last two cases, which arcs are lost decides whether the end of the input costs one more.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import REDUCE, SHIFT, L

from ..optimal_step import UNREACHABLE
from .steps import GONE, REDUCE_BEFORE_SHIFT, SHIFT_BEFORE_REDUCE, step, token_places


@njit(cache=True, nogil=True)
def _head_of_the_end(front, gold, places):
    """The place of the first gold ancestor of the last word that is not in the remaining input."""
    token = gold.shape[0] - 1
    while token >= front:
        token = gold[token]
    return places[token]


@njit(cache=True, nogil=True)
def _loss_at_the_end(lowest, place):
    """1 if elements with the label L, of which `lowest` is the lowest (0: none), are not above `place`, else 0."""
    return 1 if 0 < lowest <= place else 0


@njit(cache=True, nogil=True)
def _reduce_loss(stack, labels, k, front, gold, places, lowest):
    """Shift-before-reduce: gold arcs lost after a reduce."""
    above_end = _head_of_the_end(front, gold, places)
    at_the_end = _loss_at_the_end(lowest, above_end)
    if gold[front] < front:
        return at_the_end
    # b_1 loses its head.
    fewest = 1 + at_the_end
    topmost = k - 1
    while topmost > 0 and labels[topmost] != L:
        topmost -= 1
    if topmost > 0:
        # b_1 takes the topmost left child.
        lost = 1 if gold[stack[topmost]] > front else 0
        for token in range(front + 1, gold.shape[0]):
            if places[gold[token]] >= topmost:
                lost += 1
        if above_end < topmost:
            lost += at_the_end
        fewest = min(fewest, lost)
    return fewest


@njit(cache=True, nogil=True)
def _losses_at_the_end(k, front, gold, places, lowest):
    """`_loss_at_the_end` if a_{k-1} takes a right child b, for each b; int32 (n + 1,)."""
    losses = np.zeros(gold.shape[0], np.int32)
    token = gold.shape[0] - 1
    first = token  # the leftmost of the ancestors so far
    while True:
        losses[token] = _loss_at_the_end(lowest, k - 2)
        first = min(first, token)
        if gold[token] < front:
            break
        token = gold[token]
    place = places[gold[token]]
    if place < k - 1:  # else the arc from a_k is lost
        losses[front:first] = _loss_at_the_end(lowest, place)
    return losses


@njit(cache=True, nogil=True)
def _postponed_reduce_loss(stack, labels, k, front, gold, places, lowest):
    """Non-strict reduce-before-shift: gold arcs lost after a shift, since a_{k-1} must take a right child.

    At least n if that is impossible.
    """
    n = gold.shape[0] - 1
    at_the_end = _losses_at_the_end(k, front, gold, places, lowest)
    # Lost arcs other than that of b itself: those at first, and what changes at each b.
    lost, change = 0, np.zeros(n + 2, np.int32)
    for p in range(1, k):
        head = gold[stack[p]]
        if head >= front and p == k - 1:
            lost += 1
            change[head] -= 1
        elif head >= front and labels[p] == L:
            change[head] += 1
    for token in range(front, n + 1):
        head = gold[token]
        if head >= front:
            change[min(head, token) + 1] += 1
            change[max(head, token)] -= 1
        elif places[head] == k - 1:
            lost += 1
            change[token] -= 1
        elif 0 <= places[head] < k - 2:
            change[token + 1] += 1
    fewest = n
    for token in range(front, n + 1):
        lost += change[token]
        if token == n and 0 < lowest < k - 2:
            break  # no word is left for the elements below a_{k-1}
        place = places[gold[token]]
        own = 1 if place != GONE and place != k - 2 else 0
        fewest = min(fewest, lost + own + at_the_end[token])
    return fewest


@njit(cache=True, nogil=True)
def uncorrected_scores(policy, stack, labels, k, front, gold, scores):
    """Fill `scores`, int32 (4,), for one configuration; `stack` and `labels` stay as they are. O(n) time and space."""
    n = gold.shape[0] - 1
    next_stack, next_labels = np.empty(k + 1, np.int32), np.empty(k + 1, np.int8)
    for transition in range(scores.shape[0]):
        scores[transition] = UNREACHABLE
        next_stack[:k], next_labels[:k] = stack[:k], labels[:k]
        k2, front2, gained = step(transition, False, next_stack, next_labels, k, front, gold)
        if k2 == 0:
            continue
        places = token_places(next_stack, k2, front2, n)
        lowest = 0
        for p in range(k2 - 1, 0, -1):
            if next_labels[p] == L:
                lowest = p
        if front2 > n and lowest > 0:
            continue
        score = gained
        for p in range(1, k2):
            parent = gold[next_stack[p]]
            score += parent >= front2 if next_labels[p] == L else parent == next_stack[p - 1]
        for token in range(front2, n + 1):
            score += places[gold[token]] != GONE
        if front2 <= n:
            if transition == REDUCE and policy == SHIFT_BEFORE_REDUCE:
                loss = _reduce_loss(next_stack, next_labels, k2, front2, gold, places, lowest)
            elif transition == SHIFT and policy == REDUCE_BEFORE_SHIFT and k2 > 2 and next_labels[k2 - 2] != L:
                loss = _postponed_reduce_loss(next_stack, next_labels, k2, front2, gold, places, lowest)
            else:
                loss = _loss_at_the_end(lowest, _head_of_the_end(front2, gold, places))
            if loss >= n:
                continue
            score -= loss
        scores[transition] = score
