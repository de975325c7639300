"""The best score after an arc-standard step in cubic time, for any gold tree (Nederhof 2019, section 4)."""

import numpy as np
from numba import njit

from mh4.decoders.split_grammar import SplitGrammar
from mh4.decoders.tabular import FORBIDDEN, inside_score

from .projective import components

GRAMMAR = SplitGrammar(
    """
    (P, P) → p       ; (S, S) → s
    P → (P, P)       ; S → (P, S)           ; S → (S, S)
    (S, _) → P (S, _) ; (S, _) → S (S, _)   ; (S, _) → P (P, _)
    (_, S) → (_, P) S ; (_, S) → (_, S) S
    """,
    start="S",
)
"""Table 4: the trees that can be built from a stack of k + 1 elements and m words of remaining input, over pᵏ sᵐ⁺¹.

P is a stack element without dependents. S is a node with the topmost element or a word of the remaining input among its
descendants: only such nodes can become topmost, and only the topmost node can get a dependent.
"""

_PREFIX, _SUFFIX = GRAMMAR.encode("p s")
_ARRAYS = GRAMMAR.arrays


@njit(cache=True, nogil=True)
def cubic_best_after(stack, front, gold, first, last, no_right, critical):
    """The most gold arcs that any computation can build from a configuration on: W of Table 2.

    For arguments see `best_after`. With ``critical``, only the stack and the critical words of the remaining input are
    parsed and all other words keep their gold heads, which is exact for projective gold trees (section 5).
    """
    n = gold.shape[0] - 1
    k = stack.shape[0] - 1
    nodes = np.empty(n + 1, np.int32)
    for i in range(k + 1):
        nodes[i] = stack[i]
    size = k + 1
    kept = 0
    if critical:
        _, _, of_words = components(stack, front, gold)
        for b in range(front, n + 1):
            if of_words[0, b] > 0:
                nodes[size] = b
                size += 1
            else:
                kept += gold[b] >= front
    else:
        for b in range(front, n + 1):
            nodes[size] = b
            size += 1
    index = np.full(n + 1, -1, np.int32)
    for i in range(size):
        index[nodes[i]] = i
    string = np.full(size, _SUFFIX, np.int8)
    string[:k] = _PREFIX
    weights = np.zeros((size, size), np.int32)
    for j in range(1, size):
        i = index[gold[nodes[j]]]
        if i >= 0:
            weights[i, j] = 1
    for i in range(first, last):
        weights[i, :i] = FORBIDDEN
    if no_right:
        weights[k, k + 1 :] = FORBIDDEN
    return inside_score(_ARRAYS, string, weights) + kept
