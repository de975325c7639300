"""Scores of normalized arc-eager transitions in linear time, exact for projective gold trees.

Nederhof (2021), section 4, mentions such a calculation, a refinement of the one for shift-reduce parsing; this one is
simpler, and not from the paper. Its scores were compared with the exact ones for all configurations and projective
trees of up to 5 words, and for random ones of up to 25. The stack a_1 … a_k and the remaining input b_1 … b_m are those
*after* the candidate step; an undecided a_k counts as the first word of the remaining input.

The gold arcs that may still be made are (a_{p-1}, a_p), (a_p, b), (b, b') and, if a_p has the label L, (b, a_p). Arcs
between stack and remaining input are nested. Consider one of them and the next one further out. If the inner arc is
(a_p, b), the stack can be reduced down to the outer one. But if it is (b, a_p), b ends up on top of a_{p-1}, and there
are only two ways to remove the elements from there down to the outer arc. Either each becomes a left child of b or of a
gold ancestor of b, which requires the label L and loses the arc (a_{q-1}, a_q). Or b or such an ancestor becomes a
right child of a_{p-1} and loses its gold head, unless that is gone anyway. So the two arcs *clash* if b and its
ancestors up to the outer arc all have gold arcs to lose, and some element in between cannot become a left child for
free. A clash costs one arc; giving up an arc that takes part in two clashes saves nothing.

Three cases need more care:

- If one b has arcs to several a_p and the elements between two of these cannot be removed, only the best run of
  neighbouring arcs is kept.
- An undecided word takes the place of b from the start, without an arc that has exposed the element below it.
- A word just labelled by left_child must become a left child. If its gold head is gone or in the stack, the first word
  after its right children becomes its head; or, if these reach to the end of the input, one of them, at the cost of an
  arc.
"""

import numpy as np
from numba import njit

from mh4.transitions.arrays.arc_eager import L, N
from mh4.transitions.arrays.arc_eager_normalized import LEFT_CHILD

from ..optimal_step import UNREACHABLE
from .steps import GONE, REMAINING, step_aside, token_places


@njit(cache=True, nogil=True)
def _after_right_children(top, front, gold, rightmost):
    """The first word after the right children of the token `top`; n + 1 if they reach to the end of the input."""
    for token in range(gold.shape[0] - 1, front - 1, -1):
        if gold[token] == top:
            return rightmost[token] + 1
    return front


@njit(cache=True, nogil=True)
def _clashes(b, end, places, gold):
    """Whether gold heads in the remaining input lead from b to `end`, so that b cannot get another head for free."""
    while b != end and places[gold[b]] == REMAINING:
        b = gold[b]
    return b == end


@njit(cache=True, nogil=True)
def _best_completion(stack, labels, k, front, gold, rightmost, blocked):
    """The most gold arcs that can be made from a configuration on; ``blocked``: a_k must become a left child."""
    n = gold.shape[0] - 1
    if blocked and front > n:
        return UNREACHABLE
    first, b, below = front, 0, 0  # b: the word on top of the element `below`; 0: none
    if labels[k - 1] == N:
        k -= 1
        first = b = stack[k]
        below = k - 1
    places = token_places(stack, k, first, n)
    score = 0
    # Up to each element: how many cannot be left children, or only at a cost. Arcs (b, a_p): lists from the top down.
    fixed, unwilling = np.zeros(k, np.int32), np.zeros(k, np.int32)
    left_child, following = np.zeros(n + 1, np.int32), np.zeros(k, np.int32)
    for p in range(1, k):
        parent = gold[stack[p]]
        gains = parent == stack[p - 1] and not (blocked and p == k - 1)
        fixed[p] = fixed[p - 1] + (labels[p] != L)
        unwilling[p] = unwilling[p - 1] + (gains or labels[p] != L)
        score += gains
        if labels[p] == L and places[parent] == REMAINING:
            following[p] = left_child[parent]
            left_child[parent] = p
    # If the top of the stack must become a left child: its gold head if that is to come, or 0; the first word after its
    # right children, its substitute head; whether it has right children to come.
    head, adopts, splits = 0, 0, False
    if blocked:
        adopts = _after_right_children(stack[k - 1], front, gold, rightmost)
        splits = adopts > front
        if places[gold[stack[k - 1]]] == REMAINING:
            head = gold[stack[k - 1]]
        else:
            score -= adopts > n
    token = first
    while token <= n:
        if token == adopts and head == 0:
            b, below = token, k - 2
        parent = places[gold[token]]
        wanted = b > 0 and (parent >= 0 or left_child[token] > 0) and _clashes(b, token, places, gold)
        # The best run of the arcs to left children in the stack.
        best, run, lowest, upper = 0, -n, 0, 0
        p = left_child[token]
        while p > 0:
            # Arcs lost if the run begins at p: to expose element p, or to remove the elements above it.
            loss = int(wanted and unwilling[below] > unwilling[p])
            if token == head and upper > 0:
                loss = n if adopts == front == token else int(_clashes(adopts, token, places, gold))
            elif b == token and not splits:
                loss = n if fixed[below] > fixed[p] else unwilling[below] - unwilling[p]
            if upper > 0:
                run -= n if fixed[upper - 1] > fixed[p] else unwilling[upper - 1] - unwilling[p]
            run = 1 + max(run, -loss)
            if run >= best:
                best, lowest = run, p
            upper = p
            p = following[p]
        score += best
        if lowest > 0:
            b, below = token, lowest - 1
            wanted = True
        if parent != GONE:
            score += 1
        if parent >= 0:
            score -= b > 0 and wanted and unwilling[below] > unwilling[parent]
            b = 0
        token = token + 1 if token >= front else front
    return score


@njit(cache=True, nogil=True)
def normalized_scores(stack, labels, k, front, gold, rightmost, scores):
    """Fill `scores`, int32 (5,), for one configuration; for the arguments see `linear.linear_scores`. O(n)."""
    next_stack, next_labels = np.empty(k + 1, np.int32), np.empty(k + 1, np.int8)
    for transition in range(scores.shape[0]):
        k2, front2, gained = step_aside(True, transition, True, stack, labels, k, front, gold, next_stack, next_labels)
        scores[transition] = UNREACHABLE
        if k2 > 0:
            blocked = transition == LEFT_CHILD
            best = _best_completion(next_stack, next_labels, k2, front2, gold, rightmost, blocked)
            if best != UNREACHABLE:
                scores[transition] = best + gained
