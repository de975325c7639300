"""Exact decoding for the arc-hybrid transition system (MH3): projective trees in O(n³) time and O(n²) space.

Sources: Gómez-Rodríguez, Shi and Lee (2018), "Global Transition-based Non-projective Dependency Parsing", section 3;
Shi, Huang and Lee (2017), "Fast(er) Exact Decoding and Global Training for Transition-Based Dependency Parsing via a
Minimal Feature Set", for the (s0, b0) scores.

An item [i, l] means that i is on the stack, l is first in the buffer, and all words in between have their heads. With
i < j < l and C[i, l] the best value of the item:

- axiom: C[i, i+1] = 0
- combine, then link: C[i, l] = max over j of C[i, j] + shift(i, j) + C[j, l] + max(ra(j, l) + arc(i → j),
  la(j, l) + arc(l → j))
- goal: C[0, n + 1]

One root child. The end position heads nothing, so the last move is always ra on [0, j, n + 1]: the root has exactly one
child if and only if no earlier move took an arc from the root.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

import numpy as np
from numba import njit

from .decoder import Decoder
from .derivation import Solved
from .gold_items import items_of_tree, without_root_arcs
from .lanes import padded, scratch
from .mh3_chart import LA, NEG, RA, SHIFT, fill, item_values
from .mh3_outside import max_marginals, outside_floats
from .mh3_sums import ProjectiveSums, projective_sums_bytes
from .numbers import check_numbers, derivation_score, parts_score
from .tree_batch import TreeBatch
from .trees import all_reach_the_root


@njit(nogil=True, forceinline=True)
def _follow(i, j, l, move, stack, size, parts, count):
    """Split [i, l] at j: push [i, j] and [j, l], record two parts; return the new numbers of items and of parts."""
    stack[size, 0], stack[size, 1] = i, j
    stack[size + 1, 0], stack[size + 1, 1] = j, l
    parts[count, 0], parts[count, 1], parts[count, 2] = SHIFT, i, j
    parts[count + 1, 0], parts[count + 1, 1], parts[count + 1, 2] = move, j, l
    return size + 2, count + 2


@njit(nogil=True)
def walk_back(scores, arc_bonus, single_root, C, reduced_by_l, reduced_by_i, heads, parts):
    """Follow the best derivation from the goal, recomputing which rule gave each value; return the number of parts."""
    end = scores.shape[1] - 1
    stack = np.empty((end + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, end
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i, l = stack[size, 0], stack[size, 1]
        if l == i + 1:
            continue
        best, split, move = NEG, 0, 0
        for j in range(i + 1, l):
            right = C[l, j]
            x = reduced_by_l[j, i] + (right + (scores[LA, j, l] + (NEG if l == end else arc_bonus[l, j])))
            if x > best:
                best, split, move = x, j, LA
            if i == 0 and single_root and l < end:
                continue
            x = reduced_by_i[j, i] + (right + scores[RA, j, l])
            if x > best:
                best, split, move = x, j, RA
        if split == 0:
            return -1
        heads[split] = l if move == LA else i
        size, count = _follow(i, split, l, move, stack, size, parts, count)
    return count


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, memory, heads, parts):
    is_high = check_numbers(scores, arc_bonus)
    N = scores.shape[1]
    P = padded(N)
    charts = memory[: 3 * N * P].reshape(3, N, P)
    C, reduced_by_l, reduced_by_i = charts[0], charts[1], charts[2]
    fill(scores, arc_bonus, single_root, C, reduced_by_l, reduced_by_i)
    if C[N - 1, 0] == NEG:
        return -1, -np.inf
    count = walk_back(scores, arc_bonus, single_root, C, reduced_by_l, reduced_by_i, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)


@njit(nogil=True)
def _best_split(scores, heads, C, i, l):
    """Return the value of [i, l] for a given tree and its split point j, as in `fill` and `walk_back`; 0 if none.

    C is −inf wherever there is no item.
    """
    best, split = NEG, 0
    for j in range(i + 1, l):
        if heads[j] == i or heads[j] == l:
            x = C[j, i] + scores[SHIFT, i, j] + (C[l, j] + scores[LA if heads[j] == l else RA, j, l])
            if x > best:
                best, split = x, j
    return best, split


@njit(nogil=True)
def _derive_tree(scores, heads, single_root, parts):
    """Number of parts of the best derivation of a tree, or −1."""
    end = heads.shape[0]
    above, children = without_root_arcs(heads)
    if single_root and children > 1:
        return -1
    kept, pairs = items_of_tree(above if single_root else heads)
    C = np.full((end + 1, end + 1), NEG)
    for p in range(pairs.shape[0]):
        i, l = pairs[p, 0], pairs[p, 1]
        if l == i + 1:
            C[l, i] = 0
        elif kept[l, i] == 0:
            C[l, i] = _best_split(scores, heads, C, i, l)[0]
    stack = np.empty((end + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, end
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i, l = stack[size, 0], stack[size, 1]
        if l == i + 1:
            continue
        split = _best_split(scores, heads, C, i, l)[1]
        if split == 0:
            return -1
        size, count = _follow(i, split, l, LA if heads[split] == l else RA, stack, size, parts, count)
    return count


@njit(cache=True, nogil=True)
def _derive(scores, given, single_root):
    start = 0
    for b in range(given.ends.shape[0]):
        heads, parts = given.heads[start : given.ends[b]], given.parts[3 * start :]
        count = _derive_tree(scores[b], heads, single_root, parts) if all_reach_the_root(heads) else -1
        given.counts[b], given.totals[b] = count, parts_score(scores[b], parts, count)
        start = given.ends[b]


class MH3(Decoder):
    """The arc-hybrid decoder: every move scored by (s0, b0)."""

    name = "mh3"
    tree_class = "projective"
    has_outside_pass = has_fast_margins = has_marginals = True
    channels = ("shift", "la", "ra")
    roles = (("s0", "b0"),) * 3
    shared = ((("shift", "column"),), (("la", "row"), ("ra", "row")))

    def chart_bytes(self, n: int) -> int:
        return 4 * 3 * (n + 2) * padded(n + 2)

    def _run(
        self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray
    ) -> tuple[int, float]:
        floats = self.chart_bytes(scores.shape[1] - 2) // 4
        memory = scratch(floats, floats)  # the outside pass takes as much again
        return _decode(scores, arc_bonus, self.single_root, memory, heads, parts)

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        _derive(scores, given, self.single_root)

    def outside_bytes(self, n: int) -> int:
        return 4 * outside_floats(n)

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        return max_marginals(solved.scores, solved.arc_bonus, self.single_root, solved.chart)

    def _spans(self, solved: Solved) -> np.ndarray:
        return item_values(solved.scores, solved.arc_bonus, self.single_root)

    def sums_bytes(self, n: int) -> int:
        return projective_sums_bytes(n)

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> ProjectiveSums:
        return ProjectiveSums(scores, arc_bonus, self.single_root)
