"""Reference implementation of 1-endpoint-crossing decoding: enumerate the trees, score their parts, take the best."""

from functools import cache

import naive
import numpy as np

from mh4.decoders.one_endpoint_crossing.grammar import FIRST_TERM, INDICES, RANGES

ARC, GRANDPARENT, SIBLING, CROSSED = range(4)


def is_one_endpoint_crossing(heads):
    """Whether, for every arc, all arcs that cross it share an endpoint."""
    arcs = [(h, d) for d, h in enumerate(heads) if d > 0]
    for arc in arcs:
        crossing = [set(other) for other in arcs if naive.cross(arc, other)]
        if crossing and not set.intersection(*crossing):
            return False
    return True


@cache
def all_trees(n, single_root=False):
    """The heads of all 1-endpoint-crossing trees of n words, int (count, n + 1)."""
    if single_root:
        trees = all_trees(n)
        return trees[(trees == 0).sum(axis=1) == 1]
    return np.array([tree for tree in naive.all_trees(n).tolist() if is_one_endpoint_crossing(tree)])


def parts(heads):
    """The parts (channel, row, column) of a tree.

    A crossed arc has a single part, in channel CROSSED. An uncrossed arc may lack its sibling or grandparent part
    because of crossed arcs next to it.
    """
    n = len(heads) - 1
    none = n + 1
    crossed = naive.crossed(heads)
    found = []
    for m in range(1, n + 1):
        h = heads[m]
        if crossed[m]:
            found.append((CROSSED, h, m))
            continue
        found.append((ARC, h, m))
        children = [q for q in range(1, n + 1) if heads[q] == h]
        inner = [q for q in children if min(h, m) < q < max(h, m)]
        if not inner:
            found.append((SIBLING, none, m))
        else:
            nearest = min(inner, key=lambda q: abs(q - m))
            if not crossed[nearest]:
                found.append((SIBLING, nearest, m))
        if h != 0 and crossed[h]:
            continue
        grandparent = none if h == 0 else heads[h]
        # Walk round the circle 0, …, n, none from m, in both directions. A walk yields a part if it reaches the
        # grandparent before the head and passes no child of the head on a crossed arc.
        for direction in (1, -1):
            way = []
            at = (m + direction) % (n + 2)
            while at not in (h, grandparent):
                way.append(at)
                at = (at + direction) % (n + 2)
            if at == grandparent and not any(q in children and crossed[q] for q in way):
                found.append((GRANDPARENT, grandparent, m))
    return found


@cache
def _part_numbers(n):
    """Indices of the parts of each tree in the flat scores, padded with the index of a 0 after the last score."""
    size = n + 2
    table = np.full((len(all_trees(n)), 3 * n), 4 * size * size)
    for row, tree in zip(table, all_trees(n).tolist(), strict=True):
        numbers = [np.ravel_multi_index(part, (4, size, size)) for part in parts(tree)]
        row[: len(numbers)] = numbers
    return table


def tree_scores(scores, arc_bonus):
    """The scores of all trees in the order of `all_trees`, float64 (count,)."""
    n = scores.shape[1] - 2
    flat = np.append(scores.astype(np.float64).ravel(), 0)
    arcs = arc_bonus.astype(np.float64)[all_trees(n)[:, 1:], np.arange(1, n + 1)]
    return flat[_part_numbers(n)].sum(axis=1) + arcs.sum(axis=1)


def best_score(scores, arc_bonus, single_root):
    """The score of the best tree; −inf if all are forbidden."""
    of_trees = tree_scores(scores, arc_bonus)
    if single_root:
        of_trees = of_trees[(all_trees(scores.shape[1] - 2) == 0).sum(axis=1) == 1]
    return of_trees.max()


def count_derivations(grammar, goal, n):
    """The number of derivations of the item ``goal`` for n words by the rules of a grammar."""
    kinds = grammar.kinds

    @cache
    def count(kind, a, b, x):
        if a == b:
            return int(kinds[kind] in "TD")
        if grammar.symmetric[kind] and a > b:
            a, b = b, a
        if grammar.empty[kind] and b - a == 1:
            return 1
        step = 1 if a < b else -1
        total = 0
        for rule in grammar.rules[grammar.first[kind] : grammar.first[kind + 1]].tolist():
            where = RANGES[rule[1]]
            for k in range(a if "[a" in where else a + step, b + step if "b]" in where else b, step) if where else [b]:
                for inner in range(a + step, k, step) if "l" in where else [a]:
                    at = dict(zip(INDICES, (a, b, x, k, inner, a + step, b - step, n + 1, n + 2), strict=True))
                    ways = 1
                    for t in range(FIRST_TERM, FIRST_TERM + 4 * rule[2], 4):
                        part, *positions = rule[t], *(at[INDICES[i]] for i in rule[t + 1 : t + 4])
                        if grammar.channel[part] < 0:
                            ways *= count(part, *positions)
                        elif grammar.arc[part]:
                            ways *= positions[1] != 0  # the root has no head
                        if ways == 0:
                            break
                    total += ways
        return total

    return count(*map(int, goal))
