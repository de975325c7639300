"""Exact scores of arc-eager transitions in cubic time, for any gold tree, by split grammars.

Nederhof (2021), section 4, Tables 9 and 10. The configuration after the candidate step is encoded as a string: a symbol
for each stack element, depending on its label, and n for each token of the remaining input. The grammar assigns to this
string exactly the trees that computations can still build over these tokens, each with one derivation. The score of the
step is the weight of the heaviest tree, with weight 1 for gold arcs and 0 for others, plus 1 if the step makes a gold
arc.
"""

import numpy as np
from numba import njit

from mh4.decoders.split_grammar import SplitGrammar
from mh4.decoders.tabular import FORBIDDEN, inside_score
from mh4.transitions.arrays.arc_eager import LEFT_ARC, REDUCE, SHIFT, L, R
from mh4.transitions.arrays.arc_eager_normalized import LEFT_CHILD

from ..optimal_step import UNREACHABLE
from .steps import SHIFT_BEFORE_REDUCE, STRICT_REDUCE_BEFORE_SHIFT, step_aside

# Rules in the order of the tables, with their two columns side by side.

NORMALIZED = """
(R, R) → r                ;  (L, L) → l
(R_t, R_t) → r_t          ;  (L_t, L_t) → l_t
(_, R_t) → (_, R) R_t     ;  (_, L_t) → (_, L) R_t
(_, R_t) → (_, R) N       ;  (_, L_t) → (_, L) N
(_, R_t) → (_, R_t) N     ;  (_, L_t) → (_, L_t) N
R → (R, R)                ;  L → (L, L)
R_t → (R, R_t)            ;  L_t → (L, L_t)
R_t → (R_t, R_t)          ;  L_t → (L_t, L_t)

(N, N) → n                ;  (N, _) → L_b (N, _)
(_, N) → (_, N) N         ;  N → (N, N)
(N, _) → N (N, _)         ;  (L_b, L_b) → l_b
(N, _) → L (N, _)         ;  (_, L_b) → (_, L_b) N
(N, _) → L_t (N, _)       ;  L_b → (L_b, L_b)
"""
"""Table 9 without the rules by which a token labelled L becomes a right child."""

NORMALIZED_CORRECTION = """
(_, R_t) → (_, R) L_t     ;  (_, L_t) → (_, L) L_t
"""
"""Rules 4 and 13 of Table 9."""

UNNORMALIZED = """
(R, R) → r                ;  (L, L) → l
(R_p, R_p) → r_p          ;  (L_p, L_p) → l_p
(_, R) → (_, R) N         ;  (_, L) → (_, L) N
(_, R) → (_, R) N_p       ;  (_, L) → (_, L) N_p
(_, R_1) → (_, R) R       ;  (_, L_1) → (_, L) R
(_, R) → (_, R_p) N       ;  (_, L) → (_, L_p) N
(_, R_1) → (_, R_p) R     ;  (_, L_1) → (_, L_p) R
(_, R_1) → (_, R_1) N     ;  (_, L_1) → (_, L_1) N
(_, R_1) → (_, R_1) N_p   ;  (_, L_1) → (_, L_1) N_p
R → (R, R)                ;  L → (L, L)
R → (R, R_1)              ;  L → (L, L_1)
R → (R_p, R)              ;  L → (L_p, L)
R → (R_p, R_1)            ;  L → (L_p, L_1)
R_p → (R_p, R_p)          ;  L_p → (L_p, L_p)

(N, N) → n                ;  (N, _) → L_b (N, _)
(N_p, N_p) → n_p          ;  N → (N, N)
(_, N) → (_, N) N         ;  N → (N, N_p)
(_, N_p) → (_, N_p) N     ;  N_p → (N_p, N_p)
(N, _) → N (N, _)         ;  (L_b, L_b) → l_b
(N, _) → L (N, _)         ;  (_, L_b) → (_, L_b) N
(N, _) → L (N_p, _)       ;  L_b → (L_b, L_b)
(N, _) → L_p (N, _)
"""
"""Table 10 without the rules by which a token labelled L becomes a right child."""

UNNORMALIZED_CORRECTION = """
(_, R_1) → (_, R) L       ;  (_, L_1) → (_, L) L
(_, R_1) → (_, R_p) L     ;  (_, L_1) → (_, L_p) L
"""
"""Rules 6, 9, 22 and 25 of Table 10."""

# Indexed by whether reduce_correct is allowed. The start symbol is for the root, the only element left at the end.
NORMALIZED_GRAMMARS = (
    SplitGrammar(NORMALIZED, start="R_t"),
    SplitGrammar(NORMALIZED + NORMALIZED_CORRECTION, start="R_t"),
)
UNNORMALIZED_GRAMMARS = (
    SplitGrammar(UNNORMALIZED, start="R"),
    SplitGrammar(UNNORMALIZED + UNNORMALIZED_CORRECTION, start="R"),
)

# Codes of terminals, for the kernels; the same with and without the correction rules.
_N9, _R9, _L9, _RT, _LT, _LB9 = NORMALIZED_GRAMMARS[0].encode("n r l r_t l_t l_b").tolist()
_N10, NP, _R10, _L10, RP, _LP, _LB10 = UNNORMALIZED_GRAMMARS[0].encode("n n_p r l r_p l_p l_b").tolist()


@njit(nogil=True)
def normalized_string(transition, labels, k, m):
    """The string of a configuration after ``transition``, as in the caption of Table 9; m words remain."""
    string = np.full(k + m, _N9, np.int8)
    for p in range(k - 1):
        string[p] = _L9 if labels[p] == L else _R9
    top = labels[k - 1]
    if top == R:
        string[k - 1] = _RT
    elif top == L:
        string[k - 1] = _LB9 if transition == LEFT_CHILD else _LT
    return string


@njit(nogil=True)
def unnormalized_string(policy, transition, labels, k, m):
    """The string of a configuration after ``transition``, as in the caption of Table 10; m words remain."""
    string = np.full(k + m, _N10, np.int8)
    for p in range(k):
        string[p] = _L10 if labels[p] == L else _R10
    if policy == SHIFT_BEFORE_REDUCE:
        if transition == REDUCE and m > 0:
            string[k] = NP
    else:
        # Stack indices first … last: elements that must take right children before they may be reduced.
        first, last = 1, 0
        if policy == STRICT_REDUCE_BEFORE_SHIFT:
            last = k - 3
            if transition == LEFT_ARC:
                last = k - 1
            elif transition in (REDUCE, SHIFT):
                last = k - 2
        elif transition == SHIFT:
            first, last = max(k - 2, 1), k - 2
        for p in range(first, last + 1):
            string[p] = _LP if labels[p] == L else RP
    if transition == SHIFT:
        string[k - 1] = _LB10
    return string


@njit(nogil=True)
def _best_completion(grammar, string, stack, k, front, gold):
    """The most gold arcs in any tree that the grammar derives over the stack and the remaining input."""
    n = gold.shape[0] - 1
    position = np.full(n + 1, -1, np.int32)
    for p in range(k):
        position[stack[p]] = p
    for token in range(front, n + 1):
        position[token] = k + token - front
    weights = np.zeros((string.shape[0], string.shape[0]), np.int32)
    for token in range(1, n + 1):
        if position[token] >= 0 and position[gold[token]] >= 0:
            weights[position[gold[token]], position[token]] = 1
    return inside_score(grammar, string, weights)


@njit(cache=True, nogil=True)
def exact_scores(grammar, normalized, policy, reduce_correct, stack, labels, k, front, gold, scores):
    """Fill `scores` for one configuration: int32 (4,), or (5,) for the normalized system, which ignores `policy`.

    `grammar` is ``UNNORMALIZED_GRAMMARS[reduce_correct].arrays`` or ``NORMALIZED_GRAMMARS[reduce_correct].arrays``.
    O((k + m)³) time, O((k + m)²) space, where m words remain.
    """
    next_stack, next_labels = np.empty(k + 1, np.int32), np.empty(k + 1, np.int8)
    for transition in range(scores.shape[0]):
        scores[transition] = UNREACHABLE
        k2, front2, gained = step_aside(
            normalized, transition, reduce_correct, stack, labels, k, front, gold, next_stack, next_labels
        )
        if k2 == 0:
            continue
        m = gold.shape[0] - front2
        if normalized:
            string = normalized_string(transition, next_labels, k2, m)
        else:
            string = unnormalized_string(policy, transition, next_labels, k2, m)
        best = _best_completion(grammar, string, next_stack, k2, front2, gold)
        if best != FORBIDDEN:
            scores[transition] = best + gained
