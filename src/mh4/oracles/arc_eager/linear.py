"""Scores of arc-eager transitions in linear time: exact for projective gold trees, an approximation for others.

Nederhof (2021), section 5; unnormalized system with `reduce_correct`, policies shift-before-reduce and non-strict
reduce-before-shift. The stack is a_1 … a_k (a_1 the root), the remaining input b_1 … b_m, both *after* the candidate
step; in the arrays a_p is ``stack[p - 1]`` and the b are the tokens from `front` on.

What the paper leaves open:

- The requirement on a_{k-1} under reduce-before-shift does not concern the root (k = 2): it is never reduced.
- Option (A) detaches b_p from its gold parent even if that is a_k. If its two cases both apply (a_k has both
  descendants and a parent in the remaining input), the first is taken, as the text suggests.
- If the rightmost descendant of a_k is b_m and m = 1, there is no b_{m-1}, and option (A) does not apply.
- Descendants of a right child b_p of the shifted token are followed within the remaining input only. In a
  non-projective tree they may also lead to b_m through the stack; taken literally, the paper then discounts one more
  arc. This is no more accurate: over all configurations and non-projective trees of 5 words, 174 of 590,271 scores
  differ under either policy; in 100 of them our score is closer to the exact one, in 74 the paper's.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import REDUCE, SHIFT, L

from ..optimal_step import UNREACHABLE
from .steps import REDUCE_BEFORE_SHIFT, SHIFT_BEFORE_REDUCE, is_gold, step


@njit(cache=True, nogil=True)
def rightmost_descendants(gold):
    """The rightmost gold descendant of each token, possibly itself; O(n)."""
    rightmost = np.full(gold.shape[0], -1, np.int32)
    for token in range(gold.shape[0] - 1, -1, -1):
        ancestor = token
        # The ancestors of a visited token have been visited too, all from tokens further right.
        while rightmost[ancestor] < 0:
            rightmost[ancestor] = token
            if ancestor > 0:
                ancestor = gold[ancestor]
    return rightmost


@njit(cache=True, nogil=True)
def _shift_discount(stack, k, front, gold):
    """Gold arcs lost because the token just shifted must become a left child."""
    top = stack[k - 1]
    discount = is_gold(gold, stack[k - 2], top)
    # A right child of the top whose descendants reach the end of the input would leave no room for a parent.
    token = gold.shape[0] - 1
    while token >= front and gold[token] != top:
        token = gold[token]
    if token >= front:
        discount += 1
    return discount


@njit(cache=True, nogil=True)
def _reduce_discount(stack, labels, k, front, gold, stacked):
    """Shift-before-reduce: gold arcs lost, 0 or 1, because b_1, a left child, was not shifted before the reduce."""
    n = gold.shape[0] - 1
    if front > n or gold[front] < front:
        return 0
    # In the stack, b_1 can only take left children above a_r.
    r = stack[0]
    for token in range(front + 1, n + 1):
        if gold[token] < front and stacked[gold[token]]:
            r = max(r, gold[token])
    for p in range(k - 1, 0, -1):
        if stack[p] <= r:
            break
        if labels[p] == L:
            if gold[stack[p]] > front:
                break
            if gold[stack[p]] != stack[p - 1]:
                return 0
    return 1


@njit(cache=True, nogil=True)
def _postponed_reduce_discount(stack, labels, k, front, gold, rightmost):
    """Non-strict reduce-before-shift, candidate shift: fewest arcs lost by keeping a_{k-1} busy.

    a_{k-1} was not reduced before the shift, so it must become a child of some b_p or take some b_p as child.
    """
    n = gold.shape[0] - 1
    top, below = stack[k - 1], stack[k - 2]
    for token in range(front, n + 1):
        if gold[token] == below:
            return 0
    fewest = n
    if labels[k - 2] == L:
        fewest = is_gold(gold, stack[k - 3], below)
    # The number of gold arcs from each b to left children among a_1 … a_{k-2}; whether a token is one of the latter.
    left_children = np.zeros(n + 1, np.int32)
    deep = np.zeros(n + 1, np.bool_)
    deep[0] = True
    for p in range(1, k - 2):
        deep[stack[p]] = True
        if labels[p] == L:
            left_children[gold[stack[p]]] += 1

    has_parent = gold[top] >= front
    last = rightmost[top]
    # (A): below → b_p → top.
    if last >= front:
        p = last if last < n else n - 1
    elif gold[top] > front:
        p = front
    else:
        p = 0
    if p >= front:
        lost = 1 if has_parent else 0
        if gold[p] >= front or gold[p] == top:
            lost += 1
        fewest = min(fewest, lost)
    # (B1), (B2): below → b_q, the gold parent of top or the token after its descendants.
    q = gold[top] if has_parent else min(max(last + 1, front), n)
    lost = left_children[q]
    fewest = min(fewest, lost + (1 if gold[q] >= front or deep[gold[q]] else 0))
    # (C1), (C2): below → the highest ancestor of b_q in the remaining input.
    while gold[q] >= front:
        q = gold[q]
        lost += left_children[q]
    return min(fewest, lost + (1 if deep[gold[q]] else 0))


@njit(cache=True, nogil=True)
def linear_scores(policy, stack, labels, k, front, gold, rightmost, scores):
    """Fill `scores`, int32 (4,), for one configuration.

    `stack` and `labels` have room for one more element, which is overwritten; `rightmost` is the result of
    `rightmost_descendants`. O(n) time and space.
    """
    n = gold.shape[0] - 1
    stacked = np.zeros(n + 1, np.bool_)
    for p in range(k):
        stacked[stack[p]] = True
    for transition in range(4):
        k2, front2, gained = step(transition, True, stack, labels, k, front, gold)
        scores[transition] = UNREACHABLE
        if k2 == 0 or (transition == SHIFT and front2 > n):
            continue
        score = gained
        stacked[stack[k - 1]] = k2 > k
        for p in range(1, k2):
            parent = gold[stack[p]]
            if parent == stack[p - 1] or (parent >= front2 and labels[p] == L):
                score += 1
        for token in range(front2, n + 1):
            parent = gold[token]
            if parent >= front or stacked[parent]:
                score += 1
        if transition == SHIFT:
            score -= _shift_discount(stack, k2, front2, gold)
            if policy == REDUCE_BEFORE_SHIFT and k2 > 2:
                score -= _postponed_reduce_discount(stack, labels, k2, front2, gold, rightmost)
        elif transition == REDUCE and policy == SHIFT_BEFORE_REDUCE:
            score -= _reduce_discount(stack, labels, k2, front2, gold, stacked)
        scores[transition] = score
