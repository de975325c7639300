"""MH_k for any number of heads: the deduction system as it is printed, and how many heads a tree needs.

`best_tree` fills the chart of Gómez-Rodríguez, Shi and Lee (2018), Figure 2, item by item: a reference for small
sentences. `heads_needed` tells in O(n³) the smallest k whose class a tree belongs to, from a definition of the class
that mentions no derivation (MH4_CLASS.md has the proof, the tests compare the two on all small trees).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numba import njit

from mh4.decoders import InfeasibleError
from mh4.decoders.trees import checked_tree

LEAST = 3  # smallest k: with two heads, no word could be attached
Item = tuple[int, ...]


@dataclass(frozen=True)
class Best:
    """The result of filling a chart.

    Attributes
    ----------
    heads : int (n + 1,)
        A tree with the highest score, with any number of words below the root.
    score : float
    items, steps : int
        Numbers of items of the chart, and of instances of COMBINE and LINK considered.
    """

    heads: np.ndarray
    score: float
    items: int
    steps: int


def items_of(n: int, k: int) -> Iterator[Item]:
    """Every item (h1, …, hp) over n words with 2 ≤ p ≤ k, each after the items it can be derived from."""
    for length in range(1, n + 2):
        for left in range(n + 2 - length):
            for heads in range(min(k, length + 1), 1, -1):
                for inner in combinations(range(left + 1, left + length), heads - 2):
                    yield (left, *inner, left + length)


def antecedents(item: Item, n: int, k: int) -> Iterator[tuple[tuple[Item, ...], tuple[int, int] | None]]:
    """Every step to an item: its antecedent items, and the arc (head, dependent) if it is a LINK."""
    for cut in range(1, len(item) - 1):
        yield (item[: cut + 1], item[cut:]), None
    if len(item) < k:
        for word in range(item[0] + 1, item[-1]):
            if word not in item:
                before = tuple(sorted((*item, word)))
                for head in item:
                    if head <= n:  # the end of the sentence cannot be a head
                        yield (before,), (head, word)


def best_tree(arcs: np.ndarray, k: int) -> Best:
    """The best tree of MH_k by arc scores, with the deduction system as printed: O(n^k), in plain Python.

    Parameters
    ----------
    arcs : float (n + 1, n + 1)
        [head, dependent]; −inf forbids an arc.
    k : int
        Largest number of heads in an item, 3 or more.

    Raises
    ------
    InfeasibleError
        No tree of the class has a score above −inf.
    ValueError
        ``k`` is less than 3.
    """
    if k < LEAST:
        raise ValueError(f"an item has 3 heads or more at its largest: {k}")
    n = len(arcs) - 1
    best: dict[Item, float] = {}
    back: dict[Item, tuple[tuple[Item, ...], tuple[int, int] | None]] = {}
    steps = 0
    for item in items_of(n, k):
        best[item] = 0.0 if item[1] == item[0] + 1 and len(item) == 2 else -np.inf
        for before, arc in antecedents(item, n, k):
            steps += 1
            score = sum(best[one] for one in before) + (arcs[arc] if arc else 0.0)
            if score > best[item]:
                best[item], back[item] = score, (before, arc)
    goal = (0, n + 1)
    if best[goal] == -np.inf:
        raise InfeasibleError(f"no tree of MH{k} is allowed")
    heads, agenda = np.full(n + 1, -1), [goal]
    while agenda:
        before, arc = back.get(agenda.pop(), ((), None))
        agenda += before
        if arc:
            heads[arc[1]] = arc[0]
    return Best(heads, float(best[goal]), len(best), steps)


def chart_size(n: int, k: int) -> tuple[int, int]:
    """The numbers of items and steps of `best_tree` for n words."""
    sizes = range(2, k + 1)
    items = sum(comb(n + 2, p) for p in sizes)
    combine = sum((p - 2) * comb(n + 2, p) for p in sizes)
    link = sum((p - 2) * ((p - 1) * comb(n + 2, p) - comb(n + 1, p - 1)) for p in sizes)
    return items, combine + link


@njit(cache=True, nogil=True)
def head_counts(heads):
    """int32 (n + 2, n + 2): at [i, j], the fewest heads of an item from i to j for a tree, int (n + 1,).

    These are the two ends and the open words between them: words whose head lies outside, or that have a descendant
    outside or at an end.
    """
    n = heads.shape[0] - 1
    first, last = np.arange(n + 1), np.arange(n + 1)  # first and last descendant of each word, or itself
    for d in range(1, n + 1):
        above = d
        while above > 0:
            first[above] = min(first[above], d)
            last[above] = max(last[above], d)
            above = heads[above]
    counts = np.zeros((n + 2, n + 2), np.int32)
    for i in range(n + 1):
        for j in range(i + 1, n + 2):
            counts[i, j] = 2
            for word in range(i + 1, j):
                attached = i <= heads[word] <= j
                counts[i, j] += not (attached and first[word] > i and last[word] < j)
    return counts


@njit(cache=True, nogil=True)
def least_heads(heads):
    """`heads_needed` without the check that ``heads`` is a tree."""
    counts = head_counts(heads)
    size = counts.shape[0]
    needed = np.full((size, size), 2, np.int32)
    for length in range(2, size):
        for i in range(size - length):
            j = i + length
            least = size + 1
            for m in range(i + 1, j):
                here = max(needed[i, m], needed[m, j], counts[i, m] + counts[m, j] - 1)
                least = min(least, here)
            needed[i, j] = least
    return max(needed[0, size - 1], 3)


def heads_needed(heads: np.ndarray) -> int:
    """The smallest k for which a tree, int (n + 1,), is in MH_k, with any number of words below the root; O(n³).

    It is 3 for projective trees, and at most n + 2. ValueError: ``heads`` is not a tree.
    """
    return int(least_heads(np.ascontiguousarray(checked_tree(heads), np.int64)))
