"""Reference implementations of the transition-based chart decoders, written from the deduction system alone.

An item is a tuple of heads (h1, …, hm), 2 ≤ m ≤ k: k = 3 gives MH3 (arc-hybrid), k = 4 gives MH4. A move is a tuple
(name, s1, s0, b0); the s1 of a shift is −1, as no score depends on it.
"""

from __future__ import annotations

from functools import cache

import numpy as np

K = {"mh3": 3, "mh4-two": 4, "mh4-hybrid": 4}
REDUCES = ("ra2", "ra", "la", "ra'", "la'", "la2")


def shift(left):
    """The shift that COMBINE performs between the item ``left`` and its right neighbour."""
    return ("shift", -1, left[-2], left[-1])


def links(item):
    """(move, head, dependent) of each LINK of an item, which attaches an inner head to another head of the item.

    The end of the sentence cannot have dependents, but is not known here: the caller drops its arcs.
    """
    s2, s1, s0, b0 = (-1,) * (4 - len(item)) + tuple(item)
    found = [("ra", s1, s0), ("la", b0, s0)]
    if len(item) == 4:
        found += [("ra2", s2, s0), ("ra'", s2, s1), ("la'", s0, s1), ("la2", b0, s1)]
    return [((name, s1, s0, b0), head, dependent) for name, head, dependent in found]


def parts_of(decoder, move):
    """The parts (channel, row, column) of a move."""
    name, s1, s0, b0 = move
    if decoder == "mh3":
        return [(("shift", "la", "ra").index(name), s0, b0)]
    if name == "shift":
        return [(0, s0, b0)]
    t = REDUCES.index(name)
    return [(1 + t, s0, b0)] if decoder == "mh4-two" else [(1 + t, s1, s0), (7 + t, s0, b0)]


@cache
def _sequences(item, k, end):
    """The set of all (moves, arcs) that derive an item."""
    found = set()
    if len(item) == 2 and item[1] == item[0] + 1:
        found.add(((), ()))
    for cut in range(1, len(item) - 1):
        left, right = item[: cut + 1], item[cut:]
        for moves, arcs in _sequences(left, k, end):
            for more_moves, more_arcs in _sequences(right, k, end):
                found.add(((*moves, shift(left), *more_moves), arcs + more_arcs))
    if len(item) < k:
        for at in range(1, len(item)):
            for word in range(item[at - 1] + 1, item[at]):
                larger = (*item[:at], word, *item[at:])
                for move, head, dependent in links(larger):
                    if dependent == word and head != end:
                        for moves, arcs in _sequences(larger, k, end):
                            found.add(((*moves, move), (*arcs, (head, dependent))))
    return found


@cache
def derivations(decoder, n):
    """Heads, int (D, n + 1), and parts, int (D, P, 3), of all D derivations of n words."""
    sequences = sorted(_sequences((0, n + 1), K[decoder], n + 1))
    heads = np.full((len(sequences), n + 1), -1)
    for row, (_, arcs) in zip(heads, sequences, strict=True):
        for head, dependent in arcs:
            row[dependent] = head
    parts = np.array([[part for move in moves for part in parts_of(decoder, move)] for moves, _ in sequences])
    return heads, parts


def enumerated_scores(decoder, scores, arc_bonus, single_root):
    """Heads, int (D, n + 1), and scores, float64 (D,), of all D derivations."""
    n = scores.shape[1] - 2
    heads, parts = derivations(decoder, n)
    if single_root:
        keep = (heads == 0).sum(axis=1) == 1
        heads, parts = heads[keep], parts[keep]
    total = scores.astype(np.float64)[tuple(np.moveaxis(parts, 2, 0))].sum(axis=1)
    return heads, total + arc_bonus.astype(np.float64)[heads[:, 1:], np.arange(1, n + 1)].sum(axis=1)


def best_score(decoder, scores, arc_bonus, single_root):
    """The best score, by memoised recursion over items with their number of root children (0, 1, or 2 for more)."""
    k, end = K[decoder], scores.shape[1] - 1
    scores, arc_bonus = scores.astype(np.float64), arc_bonus.astype(np.float64)

    def value(move):
        return sum(scores[part] for part in parts_of(decoder, move))

    @cache
    def best(item, children):
        if item[0] != 0 and children != 0:
            return -np.inf
        found = 0.0 if len(item) == 2 and item[1] == item[0] + 1 and children == 0 else -np.inf
        for cut in range(1, len(item) - 1):
            left, right = item[: cut + 1], item[cut:]
            found = max(found, best(left, children) + value(shift(left)) + best(right, 0))
        if len(item) == k:
            return found
        for at in range(1, len(item)):
            for word in range(item[at - 1] + 1, item[at]):
                larger = (*item[:at], word, *item[at:])
                for move, head, dependent in links(larger):
                    if dependent != word or head == end:
                        continue
                    before = {0: (), 1: (0,), 2: (1, 2)}[children] if head == 0 else (children,)
                    for earlier in before:
                        found = max(found, best(larger, earlier) + value(move) + arc_bonus[head, dependent])
        return found

    goal = (0, end)
    return best(goal, 1) if single_root else max(best(goal, 1), best(goal, 2))


def run_transitions(n, names):
    """Heads after the MH4 transitions ``names``, from stack [] and buffer [0, …, n + 1]."""
    stack, buffer, heads = [], list(range(n + 2)), [-1] * (n + 1)
    for name in names:
        if name == "shift":
            stack.append(buffer.pop(0))
            continue
        item = (*stack[-3:], buffer[0])
        [(head, dependent)] = [(h, d) for move, h, d in links(item) if move[0] == name]
        heads[dependent] = head
        stack.remove(dependent)
    assert stack == [0]
    assert buffer == [n + 1]
    return heads
