"""The k best trees of a decoder, each once, by partition of the trees.

A tree may have several derivations, so not derivations are listed but cells of trees: a cell is an arc bonus, with −inf
on the arcs that its trees do not have. The best tree of a cell comes from decoding; the next best one differs from it
in the head of some word, and of the word where that costs least it is known what it costs (`Certainty._margins`). When
it is taken, its cell is split in two: the trees in which this word keeps its old head, and those in which it does not.

References
----------
Lawler (1972), "A procedure for computing the K best solutions to discrete optimization problems"; Camerini, Fratta and
Maffioli (1980), "The K best spanning arborescences of a network".
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .derivation import Derivation


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
    word
        In whose head the second best tree differs; 0 if unopened.
    rest
        What ``loss`` would be if no tree differed in that word; +inf if unopened.
    """

    loss: float
    unopened: bool
    order: int
    best: Derivation
    bonus: np.ndarray
    word: int
    rest: float


def k_best_trees(
    best: Derivation,
    bonus: np.ndarray,
    k: int,
    margins: Callable[[np.ndarray, Derivation], np.ndarray],
    decode: Callable[[np.ndarray], Derivation],
) -> list[Derivation]:
    """The k best trees, or all if there are fewer.

    Parameters
    ----------
    best
        Of all trees that ``bonus``, float32 (N, N), allows; the array is used up.
    margins
        From an arc bonus and the best tree under it to what another head of each word costs, float64 (n + 1,).
    decode
        From an arc bonus to the best tree under it.
    """
    found = [best]
    cells = [_Cell(-best.score, True, 0, best, bonus, 0, np.inf)]
    order = 0
    while cells and len(found) < k:
        cell = heapq.heappop(cells)
        if cell.unopened:
            values = margins(cell.bonus, cell.best)
            word = int(np.argmin(values))
            if values[word] < np.inf:
                loss, values[word] = float(values[word]) - cell.best.score, np.inf
                rest = float(values.min()) - cell.best.score
                heapq.heappush(cells, cell._replace(loss=loss, unopened=False, word=word, rest=rest))
            continue
        word = cell.word
        old = cell.best.heads[word]
        without = cell.bonus.copy()
        without[old, word] = -np.inf
        second = decode(without)
        found.append(second)
        kept = np.full_like(cell.bonus[:, word], -np.inf)
        kept[old] = cell.bonus[old, word]
        cell.bonus[:, word] = kept  # nobody else looks at it
        # With its head kept, another word must change, and trees were not worth more when this one was free.
        for tree, own, loss in ((cell.best, cell.bonus, max(cell.rest, cell.loss)), (second, without, -second.score)):
            order += 1
            if loss < np.inf:
                heapq.heappush(cells, _Cell(loss, True, order, tree, own, 0, np.inf))
    return found
