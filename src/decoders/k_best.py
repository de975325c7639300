"""The k best trees of a decoder, each once, by partition of the trees.

A tree may have several derivations, so the search partitions trees instead, into cells: a cell is an arc bonus with
−inf on the arcs that its trees must not have. Decoding finds the best tree of a cell. The second best differs from it
in the head of some word; the smallest margin (`Forest.margins`) says in which, and at what cost. When the second best
tree is taken, its cell is split in two: the trees in which this word keeps its head, and those in which it does not.

References
----------
Lawler (1972), "A procedure for computing the K best solutions to discrete optimization problems"; Camerini, Fratta and
Maffioli (1980), "The K best spanning arborescences of a network".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from .derivation import Derivation


class Next(NamedTuple):
    """The second best tree of a cell.

    Attributes
    ----------
    word
        A word whose head differs from the best tree.
    loss
        Minus the score; +inf if there is no second best tree.
    rest
        Lower bound on the loss of the trees in which that word keeps its head.
    tree
        The second best tree itself, if known already.
    """

    word: int
    loss: float
    rest: float
    tree: Derivation | None = None


class NearlyBest(Protocol):
    """The derivations that score nearly as high as the best, including every tree above some score.

    Attributes
    ----------
    are_all
        Whether these are all derivations.
    """

    are_all: bool

    def next(self, bonus: np.ndarray, best: Derivation) -> Next:
        """The second best tree under an arc bonus; its loss is +inf if other derivations might be better."""

    def decode(self, bonus: np.ndarray) -> Derivation:
        """The best derivation under an arc bonus."""


class _Cell(NamedTuple):
    """A set of trees, ordered for a heap: the cell that may hold the best tree not yet listed comes first.

    Attributes
    ----------
    loss
        Minus the score of the second best tree; a lower bound while unopened.
    unopened
        Whether the second best tree is still to be found.
    order
        Tie-breaker.
    best
        The best tree, which is listed already.
    bonus
        The arc bonus (N, N).
    next
        The second best tree, None while unopened.
    """

    loss: float
    unopened: bool
    order: int
    best: Derivation
    bonus: np.ndarray
    next: Next | None


def next_by_margins(values: np.ndarray, best: Derivation) -> Next:
    """The second best tree, from the margin of each word, float64 (n + 1,); the array is overwritten."""
    word = int(np.argmin(values))
    loss, values[word] = float(values[word]) - best.score, np.inf
    return Next(word, loss, float(values.min()) - best.score)


def k_best_trees(
    best: Derivation,
    bonus: np.ndarray,
    k: int,
    find_next: Callable[[np.ndarray, Derivation], Next],
    decode: Callable[[np.ndarray], Derivation],
) -> list[Derivation]:
    """The k best trees, or all if there are fewer.

    Parameters
    ----------
    best
        The best tree under ``bonus``, float32 (N, N), an array that is overwritten.
    find_next
        Maps an arc bonus and the best tree under it to the second best.
    decode
        Maps an arc bonus to the best tree under it.
    """
    found = [best]
    cells = [_Cell(-best.score, True, 0, best, bonus, None)]
    order = 0
    while cells and len(found) < k:
        cell = heapq.heappop(cells)
        if cell.next is None:
            following = find_next(cell.bonus, cell.best)
            if following.loss < np.inf:
                heapq.heappush(cells, cell._replace(loss=following.loss, unopened=False, next=following))
            continue
        word = cell.next.word
        old = cell.best.heads[word]
        without = cell.bonus.copy()
        without[old, word] = -np.inf
        second = cell.next.tree or decode(without)
        found.append(second)
        kept = np.full_like(cell.bonus[:, word], -np.inf)
        kept[old] = cell.bonus[old, word]
        cell.bonus[:, word] = kept  # no other cell shares this array
        # If the word keeps its head, another must change, and the trees left are no better than those before the split.
        for tree, own, loss in (
            (cell.best, cell.bonus, max(cell.next.rest, cell.loss)),
            (second, without, -second.score),
        ):
            order += 1
            if loss < np.inf:
                heapq.heappush(cells, _Cell(loss, True, order, tree, own, None))
    return found
