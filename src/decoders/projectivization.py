"""Counting the projective trees that keep the most arcs of a tree; `closest_tree` finds one of them.

The grammar of Nederhof (2019), Table 3, has exactly one derivation for each projective tree. With weight 1 on the arcs
of a tree, the max-plus semiring says how many arcs can be kept and the counting semiring in how many trees. As
published, any number of words may be attached to the root; a second grammar allows only one. If the tree itself has one
root child, both keep the same number of arcs.
"""

import math

import numpy as np

from .derivation import InfeasibleError
from .split_grammar import SplitGrammar
from .tabular import best_score, count_best
from .trees import checked_tree, is_projective, mark_arcs

# Table 3.
PROJECTIVE = SplitGrammar("(S, S) → a ; S → (S, S) ; (_, S) → (_, S) S ; (S, _) → S (S, _)", start="S")
# The root r begins in state W (wants a child), and its first child takes it to D (done); words are as in Table 3.
SINGLE_ROOT = SplitGrammar(
    """
    (S, S) → a ; S → (S, S) ; (_, S) → (_, S) S ; (S, _) → S (S, _)
    (W, W) → r ; Root → (W, D) ; (_, D) → (_, W) S
    """,
    start="Root",
)


def _prepared(heads: np.ndarray, single_root: bool) -> tuple[SplitGrammar, np.ndarray, np.ndarray]:
    n = len(heads) - 1
    grammar = SINGLE_ROOT if single_root else PROJECTIVE
    string = np.full(n + 1, grammar.code("a"), np.int8)
    if single_root:
        string[0] = grammar.code("r")
    weights = np.zeros((n + 1, n + 1), np.int32)
    mark_arcs(weights, heads, 1)
    return grammar, string, weights


def count_optimal_trees(heads: np.ndarray, single_root: bool = False) -> tuple[int, int]:
    """Return how many arcs of a tree the closest projective trees keep, and how many such trees there are.

    Arcs from the root count. The number of trees is exact (Nederhof 2019, end of section 3 and Figure 8).

    Parameters
    ----------
    heads : int (n + 1,)
        A tree.
    single_root : bool
        Exactly one word is attached to the root, or at least one (the default, as published).

    Raises
    ------
    InfeasibleError
        ``single_root``, but the sentence has no words.
    ValueError
        ``heads`` is not a tree.
    """
    heads = checked_tree(heads)
    n = len(heads) - 1
    if single_root and n == 0:
        raise InfeasibleError("a sentence without words has no tree")
    if is_projective(heads) and (not single_root or np.count_nonzero(heads[1:] == 0) == 1):
        return n, 1
    problem = _prepared(heads, single_root)
    kept = best_score(*problem)
    assert kept is not None  # every arc is allowed
    # A closest tree is determined by the words that change and by the new head of each, one of n − 1.
    changed = n - kept
    _, count = count_best(*problem, bound=math.comb(n, changed) * (n - 1) ** changed)
    return kept, count
