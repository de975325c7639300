"""Maximum spanning trees: the best dependency tree of any shape.

Chu and Liu (1965) and Edmonds (1967), with the growing path of Gabow, Galil, Spencer and Tarjan (1986), on a dense
matrix: O(n²). A contracted cycle keeps one row of incoming arcs; the heads in that row stay single words, so that
merging a cycle is a maximum over whole rows and nothing else has to be rewritten.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .arc_factored import ArcFactored, fill_parts, sentence_of_batch
from .derivation import Solved
from .mst_sums import TreeSums
from .numbers import check_numbers, derivation_score

LARGEST_SCORE = 1e30  # small enough for n of them to sum to a float32


# Rows of a table of nodes: the words, then the contracted cycles. The arc of a node is the best one into it.
HEAD, WORD = 0, 1  # of the arc: its head, and the word that it enters
CYCLE = 2  # the cycle that swallowed the node, 0 if none did
ROW = 3  # of `into` and `word`
AROUND = 4  # the outermost node around each word
ON_PATH, ATTACHED = 5, 6  # attached: the chosen arcs lead to the node from the root
PATH = 7  # the nodes on it, in order


@njit(nogil=True)
def _weigh_arcs(scores, arc_bonus, n):
    """Weights of the best arcs from each word h into the component whose row is r, and the words where they enter."""
    into = np.empty((n + 1, n + 1))
    word = np.empty((n + 1, n + 1), np.int32)
    for d in range(1, n + 1):
        for h in range(n + 1):
            into[d, h] = -np.inf if h == d else np.float64(scores[0, h, d]) + np.float64(arc_bonus[h, d])
            word[d, h] = d
    return into, word


@njit(nogil=True)
def _best_head(row, single_root):
    head = 0
    best = -np.inf if single_root else row[0]
    for h in range(1, row.shape[0]):
        if row[h] > best:
            best = row[h]
            head = h
    return head


@njit(nogil=True)
def _contract(into, word, nodes, first, length, cycle):
    """Contract the end of the path, from the node ``first`` on; return the length of the path before it.

    An arc into the cycle loses the weight of the arc that it replaces.
    """
    n = into.shape[0] - 1
    keep = nodes[ROW, first]
    lost = into[keep, nodes[HEAD, first]]
    for h in range(n + 1):
        into[keep, h] -= lost
    while True:
        length -= 1
        member = nodes[PATH, length]
        nodes[CYCLE, member] = cycle
        if member == first:
            break
        other = nodes[ROW, member]
        lost = into[other, nodes[HEAD, member]]
        for h in range(n + 1):
            weight = into[other, h] - lost
            if weight > into[keep, h]:
                into[keep, h] = weight
                word[keep, h] = word[other, h]
    for h in range(1, n + 1):
        if nodes[CYCLE, nodes[AROUND, h]] == cycle:
            nodes[AROUND, h] = cycle
            into[keep, h] = -np.inf
    nodes[ROW, cycle] = keep
    return length


@njit(nogil=True)
def _expand(nodes, count, heads):
    """Fill heads, the last cycle first: the arc into a cycle overrules the arcs of the nodes in it around its word."""
    for node in range(count - 1, 0, -1):
        inner = nodes[WORD, node]
        if inner > 0:
            member = inner
            while member != node:
                nodes[WORD, member] = 0  # overruled
                member = nodes[CYCLE, member]
            heads[inner] = nodes[HEAD, node]


@njit(nogil=True)
def _mst(scores, arc_bonus, single_root, heads, parts):
    """Fill heads and parts with the best tree, return the number of parts; −1 if every tree is forbidden.

    One root child. Order arcs by the pair (is it a root arc?, weight): fewest root arcs first, the weight second. Such
    pairs form an ordered group, so the algorithm is as exact on them as on numbers. A cycle never holds a root arc, so
    contracting it leaves the first component of every pair as it was; all that remains of the pairs is the rule that a
    root arc is taken only where no other arc is left. If one root child is possible, the result has just one.
    """
    n = heads.shape[0] - 1
    into, word = _weigh_arcs(scores, arc_bonus, n)
    nodes = np.zeros((8, 2 * n + 1), np.int32)  # one allocation: eight would take as long as a short sentence
    for d in range(n + 1):
        nodes[ROW, d] = nodes[AROUND, d] = d
    nodes[ATTACHED, 0] = True
    count = n + 1
    root_children = 0

    for start in range(1, n + 1):
        node = nodes[AROUND, start]
        length = 0  # of the path, which begins at this node and follows its arc up
        while not nodes[ATTACHED, node]:
            nodes[PATH, length] = node
            nodes[ON_PATH, node] = True
            length += 1
            row = into[nodes[ROW, node]]
            head = _best_head(row, single_root)
            if head == 0:
                if row[0] == -np.inf:
                    return -1
                root_children += 1
            nodes[HEAD, node] = head
            nodes[WORD, node] = word[nodes[ROW, node], head]
            source = nodes[AROUND, head]
            if nodes[ATTACHED, source]:
                for p in range(length):
                    nodes[ATTACHED, nodes[PATH, p]] = True
            elif not nodes[ON_PATH, source]:
                node = source
            else:
                length = _contract(into, word, nodes, source, length, count)
                node = count
                count += 1
    if single_root and root_children != 1:
        return -1
    _expand(nodes, count, heads)
    return fill_parts(heads, parts)


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, heads, parts):
    is_high = check_numbers(scores, arc_bonus)
    count = _mst(scores, arc_bonus, single_root, heads, parts)
    return count, derivation_score(scores, arc_bonus, heads, parts, count, is_high)


@njit(cache=True, nogil=True)
def _decode_batch(scores, arc_bonus, single_root, heads, ends, parts, counts, totals):
    for b in range(ends.shape[0]):
        own, bonus, own_heads, own_parts = sentence_of_batch(scores, arc_bonus, heads, ends, parts, b)
        counts[b], totals[b] = _decode(own, bonus, single_root, own_heads, own_parts)


@njit(nogil=True)
def _best_score(scores, arc_bonus, single_root, heads, parts):
    """Score of the best tree, −inf if there is none; fills ``heads`` with the tree."""
    if _mst(scores, arc_bonus, single_root, heads, parts) < 0:
        return -np.inf
    total = 0.0
    for d in range(1, heads.shape[0]):
        total += np.float64(scores[0, heads[d], d]) + np.float64(arc_bonus[heads[d], d])
    return total


@njit(cache=True, nogil=True)
def _other_trees(scores, arc_bonus, single_root, best, every_arc, values, others, marginals):
    """Decode again for each word, with its head in ``best`` forbidden, or, if ``every_arc``, for each arc, forced.

    Fills ``values`` and ``others``, (n + 1,), with the score and the word's other head, or ``marginals``, (N, N), with
    the scores for the arcs that are not in ``best``.
    """
    check_numbers(scores, arc_bonus)
    n = best.shape[0] - 1
    bonus = arc_bonus.copy()
    heads, parts = np.empty(n + 1, np.int32), np.empty((n, 3), np.int32)
    for d in range(1, n + 1):
        if not every_arc:
            bonus[best[d], d] = -np.inf
            values[d] = _best_score(scores, bonus, single_root, heads, parts)
            others[d] = heads[d]
            bonus[best[d], d] = arc_bonus[best[d], d]
            continue
        bonus[:, d] = -np.inf
        for h in range(n + 1):
            if h != d and h != best[d] and arc_bonus[h, d] > -np.inf:
                bonus[h, d] = arc_bonus[h, d]
                marginals[h, d] = _best_score(scores, bonus, single_root, heads, parts)
                bonus[h, d] = -np.inf
        for h in range(n + 1):
            bonus[h, d] = arc_bonus[h, d]


class MST(ArcFactored):
    """Best tree of any shape for arc scores; O(n²) time and space.

    The choice among trees of equal score is deterministic but follows no simple rule. Sums are taken in float64.

    References
    ----------
    Chu and Liu (1965); Edmonds (1967); Gabow, Galil, Spencer and Tarjan (1986). On exact decoding with one root child:
    Zmigrod, Vieira and Cotterell (2020), "Please Mind the Root"; here root arcs are ordered last instead.
    """

    name = "mst"
    tree_class = "all"
    has_fast_margins = has_marginals = True
    projective = False
    kernel = staticmethod(_decode)
    kernel_of_batch = staticmethod(_decode_batch)

    def chart_bytes(self, n: int) -> int:
        return 12 * (n + 1) ** 2

    def _max_marginals(self, solved: Solved) -> np.ndarray:
        scores, arc_bonus, best, _ = solved
        marginals = np.full_like(arc_bonus, -np.inf)
        _other_trees(scores, arc_bonus, self.single_root, best.heads, True, np.empty(0), best.heads, marginals)
        marginals[best.heads[1:], np.arange(1, len(best.heads))] = best.score
        return marginals

    def _margins(self, solved: Solved) -> tuple[np.ndarray, np.ndarray]:
        scores, arc_bonus, best, _ = solved
        values, heads = np.full(len(best.heads), -np.inf), np.full(len(best.heads), -1, np.int32)
        _other_trees(scores, arc_bonus, self.single_root, best.heads, False, values, heads, arc_bonus)
        heads[values == -np.inf] = -1
        return np.maximum(best.score - values, 0.0), heads

    def sums_bytes(self, n: int) -> int:
        return 8 * 7 * (n + 1) ** 2

    def _sums(self, scores: np.ndarray, arc_bonus: np.ndarray) -> TreeSums:
        arcs = scores[0] + arc_bonus
        return TreeSums(arcs, self._heads_in_double(arcs), self.single_root)

    def _heads_in_double(self, arcs: np.ndarray) -> np.ndarray:
        """Heads of the best tree, up to rounding, for arc scores of any size, float64 (N, N)."""
        largest = np.abs(arcs, where=np.isfinite(arcs), out=np.zeros_like(arcs)).max()
        return self.decode((arcs / max(1.0, largest / LARGEST_SCORE))[None]).heads
