"""Optimal projectivisation: the projective trees that keep most arcs of a tree, one of them and their number.

The grammar of Nederhof (2019), Table 3, has exactly one derivation for each projective tree. With weight 1 on the arcs
of a tree, the max-plus semiring finds a closest projective tree and the counting semiring their number. The tree
keeps as many arcs as that of `closest_tree` (`closest`), but may be another one. As published, any number of words may
be attached to the root; a second grammar allows one only. When the tree itself has one root child, both keep the same
number of arcs.
"""

import math

import numpy as np

from .derivation import InfeasibleError
from .split_grammar import SplitGrammar
from .tabular import best_score, best_tree, count_best
from .trees import checked_tree, is_projective, mark_arcs

__all__ = ["PROJECTIVE", "SINGLE_ROOT", "count_optimal_trees", "projectivize"]

# Table 3.
PROJECTIVE = SplitGrammar("(S, S) → a ; S → (S, S) ; (_, S) → (_, S) S ; (S, _) → S (S, _)", start="S")
# The root r begins in a state in which it wants a child and leaves it with the first; words are as in Table 3.
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


def _stays(heads: np.ndarray, single_root: bool) -> bool:
    """Whether the tree is one that may be built itself."""
    if single_root and len(heads) == 1:
        raise InfeasibleError("no word, so none to be attached to the root")
    return is_projective(heads) and (not single_root or np.count_nonzero(heads[1:] == 0) == 1)


def projectivize(heads: np.ndarray, single_root: bool = False) -> np.ndarray:
    """A projective tree that keeps as many arcs of a tree as any does (Nederhof 2019, end of section 3); O(n³).

    Parameters
    ----------
    heads : int (n + 1,)
        A tree.
    single_root : bool
        Exactly one word is attached to the root, or at least one (the default, as published).

    Returns
    -------
    int32 (n + 1,)
        A new array; equal to ``heads`` where that is such a tree.

    Raises
    ------
    InfeasibleError
        One root child and no word.
    ValueError
        ``heads`` is not a tree.
    """
    heads = checked_tree(heads)
    if _stays(heads, single_root):
        return heads.astype(np.int32)
    return best_tree(*_prepared(heads, single_root))


def count_optimal_trees(heads: np.ndarray, single_root: bool = False) -> tuple[int, int]:
    """How many arcs of a tree the closest projective trees keep, and how many closest projective trees there are.

    Arcs from the root are counted, and the number is exact (Nederhof 2019, end of section 3 and Figure 8). For
    parameters and errors see `projectivize`.
    """
    heads = checked_tree(heads)
    n = len(heads) - 1
    if _stays(heads, single_root):
        return n, 1
    problem = _prepared(heads, single_root)
    kept = best_score(*problem)
    assert kept is not None  # every arc is allowed
    # A closest tree is given by the words that change and by the new heads of each, n − 1 to choose from.
    changed = n - kept
    _, count = count_best(*problem, bound=math.comb(n, changed) * (n - 1) ** changed)
    return kept, count
