"""The k best trees of a decoder, each once, by partition of the trees.

A tree may have several derivations, so not derivations are listed but cells of trees: a cell is an arc bonus, with −inf
on the arcs that its trees do not have. The best tree of a cell comes from decoding; the next best one differs from it
in the head of some word, and of the word where that costs least it is known what it costs (`Forest.margins`). When
it is taken, its cell is split in two: the trees in which this word keeps its old head, and those in which it does not.

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
        In whose head it differs from the best.
    loss
        Minus its score; +inf if there is none.
    rest
        What the loss would be if no tree differed in that word, at least.
    tree
        It, if that is known.
    """

    word: int
    loss: float
    rest: float
    tree: Derivation | None = None


class NearlyBest(Protocol):
    """Derivations that score hardly less than the best, with all trees of at least some score.

    Attributes
    ----------
    are_all
        Whether there are no others.
    """

    are_all: bool

    def next(self, bonus: np.ndarray, best: Derivation) -> Next:
        """The second best tree under an arc bonus; no loss but +inf if others may be better than that one."""

    def decode(self, bonus: np.ndarray) -> Derivation:
        """The best derivation under an arc bonus."""


class _Cell(NamedTuple):
    """Trees to choose from, in a heap: the one that may hold the best tree not yet listed comes first.

    Attributes
    ----------
    loss
        Minus the score of the second best tree; of an unopened cell minus what it cannot exceed.
    unopened
        Whether that second best tree is yet to be looked for.
    order
        Decides between equals.
    best
        The best tree, which is listed already.
    bonus
        The arc bonus (N, N).
    next
        What is known of the second best tree, None if unopened.
    """

    loss: float
    unopened: bool
    order: int
    best: Derivation
    bonus: np.ndarray
    next: Next | None


def next_by_margins(values: np.ndarray, best: Derivation) -> Next:
    """The second best tree, from what another head of each word costs, float64 (n + 1,); the array is used up."""
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
        Of all trees that ``bonus``, float32 (N, N), allows; the array is used up.
    find_next
        From an arc bonus and the best tree under it to the second best.
    decode
        From an arc bonus to the best tree under it.
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
        cell.bonus[:, word] = kept  # nobody else looks at it
        # With its head kept, another word must change, and trees were not worth more when this one was free.
        for tree, own, loss in (
            (cell.best, cell.bonus, max(cell.next.rest, cell.loss)),
            (second, without, -second.score),
        ):
            order += 1
            if loss < np.inf:
                heapq.heappush(cells, _Cell(loss, True, order, tree, own, None))
    return found
