"""The nearly best derivations of MH4 as a hypergraph, and the best and second best trees in it.

A filled chart holds the value of each item. On the way down from the goal, this tells how much each way to make an item
loses against the best derivation. The ways that lose at most some bound are the edges of the hypergraph: all
derivations within the bound consist of them. They are few if the scores tell trees apart, and searching them takes a
fraction of the time of filling a chart (Huang and Chiang 2005, "Better k-best parsing"; Pauls and Klein 2009, "K-best
A* parsing": inside values are an exact heuristic).
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

from __future__ import annotations

from typing import Self

import numpy as np
from numba import njit

from .derivation import Derivation, InfeasibleError, Solved
from .k_best import Next, next_by_margins
from .mh4_back import WAYS, ways_of_three, ways_of_two
from .mh4_chart import NEG, cut_charts, item3
from .mh4_derivation import follow
from .numbers import parts_score
from .shared import holds_large

MOST_EDGES = 20_000  # with more edges, charts are faster
ROUNDING = 1e-5  # more than the rounding error of a float32 sum, relative to the sizes of its numbers
PARENT, FIRST, SECOND, HEAD, DEPENDENT, MOVE, LEFT = range(7)
AXIOM = 0  # the number of all items [i, i + 1], whose value is 0


@njit(nogil=True)
def _reach(item, loss, numbers, items, losses, following, waiting, count):
    """Register an item of a derivation with this loss; return the number of the item and the next free number."""
    i, j, l = item[0], item[1], item[2]
    if j == 0 and l == i + 1:
        return AXIOM, count
    number = numbers[i, j, l]
    if number == 0:
        number = count
        count += 1
        numbers[i, j, l] = number
        items[number, 0], items[number, 1], items[number, 2] = i, j, l
        losses[number] = loss
        order = 2 * (l - i) + (j == 0)  # items are made of items of lower order
        following[number] = waiting[order]
        waiting[order] = number
    losses[number] = min(losses[number], loss)
    return number, count


@njit(cache=True, nogil=True)
def find_edges(scores, hybrid, memory, bound, collect, numbers, items, edges, weights, of_arcs):
    """Find the edges that lose at most ``bound``, those of longer items first.

    Returns the number of edges, −1 if there is no room for them, and the number of items, `AXIOM` included.

    Parameters
    ----------
    memory
        The filled charts.
    collect
        Whether to look at all ways to make the items, for ``of_arcs``, and not just at those within the bound.
    numbers : int32 (N, N, N), zeros
        Receives the number of each item [i, j, l], j = 0 for [i, l].
    items : int64 (M, 3)
        Receives the items by number; the goal is 1.
    edges : int64 (E, 7)
        Receives parent and children, head (−1 if no arc is made), dependent, and the move and side that `follow` takes.
    weights : float64 (E,)
        Receives the scores of the moves, without the arc bonus.
    of_arcs : float32 (N, N)
        Receives the smallest loss found for each arc, an upper bound; +inf at first.
    """
    N = scores.shape[1]
    charts = cut_charts(memory, N - 2)
    losses, following = np.empty(items.shape[0], np.float32), np.empty(items.shape[0], np.int32)
    waiting = np.zeros(2 * N, np.int32)
    values, ways = np.empty(WAYS * N, np.float32), np.empty((WAYS * N, 3), np.int64)
    made_from, heads, parts = np.empty((2, 3), np.int64), np.empty(N - 1, np.int64), np.empty((3, 3), np.int64)
    made_from[0, 0], made_from[0, 1], made_from[0, 2] = 0, 0, N - 1
    _, number = _reach(made_from[0], np.float32(0), numbers, items, losses, following, waiting, 1)
    size = 0
    for order in range(2 * N - 1, 3, -1):
        parent = waiting[order]
        while parent > 0:
            i, j, l = items[parent, 0], items[parent, 1], items[parent, 2]
            value = charts.C2[l, i] if j == 0 else item3(charts.C3, i, j, l)
            least = NEG if collect else value - (bound - losses[parent])
            if j == 0:
                found = ways_of_two(i, l, charts, True, least, values, ways)[0]
            else:
                found = ways_of_three(i, j, l, scores[0], charts, True, least, values, ways)[0]
            for way in range(found):
                loss = losses[parent] + max(value - values[way], np.float32(0))
                move, gone, left = ways[way, 0], ways[way, 1], ways[way, 2]
                _, count = follow(i, j, l, move, gone, left > 0, hybrid, made_from, 0, heads, parts, 0)
                head = heads[gone] if move >= 0 else -1
                if move >= 0:
                    of_arcs[head, gone] = min(of_arcs[head, gone], loss)
                if not loss <= bound:
                    continue
                if size == edges.shape[0]:
                    return -1, number
                weight = parts_score(scores, parts, count)
                first, number = _reach(made_from[0], loss, numbers, items, losses, following, waiting, number)
                second = AXIOM
                if j > 0:
                    second, number = _reach(made_from[1], loss, numbers, items, losses, following, waiting, number)
                edge = edges[size]
                edge[PARENT], edge[FIRST], edge[SECOND] = parent, first, second
                edge[HEAD], edge[DEPENDENT], edge[MOVE], edge[LEFT] = head, gone, move, left
                weights[size] = weight
                size += 1
            parent = following[parent]
    return size, number


@njit(nogil=True)
def _weight(edge, weight, bonus):
    return weight if edge[HEAD] < 0 else weight + bonus[edge[HEAD], edge[DEPENDENT]]


@njit(nogil=True)
def _inside(edges, weights, bonus, items):
    """The inside value of each item."""
    inside = np.full(items, -np.inf)
    inside[AXIOM] = 0.0
    for e in range(edges.shape[0] - 1, -1, -1):
        edge = edges[e]
        value = _weight(edge, weights[e], bonus) + inside[edge[FIRST]] + inside[edge[SECOND]]
        inside[edge[PARENT]] = max(inside[edge[PARENT]], value)
    return inside


@njit(cache=True, nogil=True)
def margins(edges, weights, bonus, items, best, values):
    """Fill ``values``, float64 (n + 1,), with the smallest loss, among the edges, of another head for each word."""
    inside = _inside(edges, weights, bonus, items)
    outside = np.full(items, -np.inf)
    outside[1] = 0.0
    values[:] = np.inf
    for e in range(edges.shape[0]):
        edge = edges[e]
        first, second, d = edge[FIRST], edge[SECOND], edge[DEPENDENT]
        around = outside[edge[PARENT]] + _weight(edge, weights[e], bonus)
        outside[first] = max(outside[first], around + inside[second])
        outside[second] = max(outside[second], around + inside[first])
        if edge[HEAD] >= 0 and edge[HEAD] != best[d]:
            values[d] = min(values[d], inside[1] - (around + inside[first] + inside[second]))


@njit(cache=True, nogil=True)
def best_tree(edges, weights, bonus, items, hybrid, heads, parts):
    """Fill heads and parts with the best derivation; return the number of parts, −1 if there is none, and its score."""
    inside = _inside(edges, weights, bonus, items.shape[0])
    if inside[1] == -np.inf:
        return -1, -np.inf
    best = np.full(items.shape[0], -1, np.int64)
    for e in range(edges.shape[0]):
        edge = edges[e]
        value = _weight(edge, weights[e], bonus) + inside[edge[FIRST]] + inside[edge[SECOND]]
        if value > -np.inf and value == inside[edge[PARENT]] and best[edge[PARENT]] < 0:
            best[edge[PARENT]] = e
    stack, unused = np.empty(heads.shape[0] + 2, np.int64), np.empty((2, 3), np.int64)
    stack[0] = 1
    size, count = 1, 0
    while size > 0:
        size -= 1
        if stack[size] == AXIOM:
            continue
        edge = edges[best[stack[size]]]
        i, j, l = items[stack[size], 0], items[stack[size], 1], items[stack[size], 2]
        stack[size], stack[size + 1] = edge[FIRST], edge[SECOND]
        size += 2
        _, count = follow(i, j, l, edge[MOVE], edge[DEPENDENT], edge[LEFT] > 0, hybrid, unused, 0, heads, parts, count)
    return count, inside[1]


class MH4NearlyBest:
    """See `NearlyBest`."""

    def __init__(self, hybrid: bool, items: np.ndarray, edges: np.ndarray, weights: np.ndarray, least: float) -> None:
        self._hybrid, self._items, self._edges, self._weights = hybrid, items, edges, weights
        self._least = least
        self.are_all = least == -np.inf

    @classmethod
    def find(cls, solved: Solved, memory: np.ndarray, hybrid: bool, rank: int) -> Self | None:
        """Find the derivations that lose no more than the ``rank``-th cheapest arc that is not in the best tree.

        The loss of an arc is estimated from the best derivation that departs from ``solved.best`` in one item to make
        it. Returns None if there are too many derivations or if they contain large numbers.
        """
        scores, arc_bonus, best, _ = solved
        size = len(arc_bonus)
        of_arcs = np.full((size, size), np.inf, np.float32)
        room = np.empty((2 * MOST_EDGES + 2, 3), np.int64), np.empty((MOST_EDGES, 7), np.int64), np.empty(MOST_EDGES)
        added = np.abs(scores[tuple(best.parts.T)]).sum() + np.abs(best.score)
        rounding = ROUNDING * (1 + float(added))

        def edges_within(bound: float, collect: bool) -> tuple[int, int]:
            numbers = np.zeros((size, size, size), np.int32)
            return find_edges(scores, hybrid, memory, np.float32(bound), collect, numbers, *room, of_arcs)

        if edges_within(rounding, True)[0] < 0:
            return None
        of_arcs[best.heads[1:], np.arange(1, size - 1)] = np.inf
        lost = np.sort(of_arcs[of_arcs < np.inf])
        bound = float(lost[rank - 1]) if rank <= len(lost) else np.inf
        count, items = edges_within(bound + rounding, False)
        if count < 0:
            return None
        edges, weights = room[1][:count].copy(), room[2][:count].copy()
        with_arc = edges[edges[:, HEAD] >= 0]
        if holds_large(weights) or holds_large(arc_bonus[with_arc[:, HEAD], with_arc[:, DEPENDENT]]):
            return None  # next to large numbers, a float32 chart cannot tell derivations apart
        return cls(hybrid, room[0][:items].copy(), edges, weights, best.score - bound)

    def next(self, bonus: np.ndarray, best: Derivation) -> Next:
        """See `NearlyBest`."""
        values = np.empty(len(best.heads))
        margins(self._edges, self._weights, bonus, len(self._items), best.heads, values)
        found = next_by_margins(values, best)
        return found if -found.loss >= self._least else found._replace(loss=np.inf)

    def decode(self, bonus: np.ndarray) -> Derivation:
        """See `NearlyBest`."""
        n = len(bonus) - 2
        heads, parts = np.full(n + 1, -1, np.int32), np.empty((3 * n, 3), np.int32)
        count, score = best_tree(self._edges, self._weights, bonus, self._items, self._hybrid, heads, parts)
        if count < 0:
            raise InfeasibleError("no derivation is left among the nearly best ones")
        return Derivation(heads, parts[:count], score)
