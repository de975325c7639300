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


@njit(nogil=True)
def _mst(scores, arc_bonus, single_root, heads, parts):
    """Fill heads and parts with the best tree, return the number of parts; −1 if every tree is forbidden.

    One root child. Order arcs by the pair (is it a root arc?, weight): fewest root arcs first, the weight second. Such
    pairs form an ordered group, so the algorithm is as exact on them as on numbers. A cycle never holds a root arc, so
    contracting it leaves the first component of every pair as it was; all that remains of the pairs is the rule that a
    root arc is taken only where no other arc is left. If one root child is possible, the result has just one.
    """
    n = heads.shape[0] - 1
    # into[r, h]: weight of the best arc from word h into the component whose row is r; word[r, h]: where it enters.
    into = np.empty((n + 1, n + 1))
    word = np.empty((n + 1, n + 1), np.int32)
    for d in range(1, n + 1):
        for h in range(n + 1):
            into[d, h] = -np.inf if h == d else np.float64(scores[0, h, d]) + np.float64(arc_bonus[h, d])
            word[d, h] = d

    # Nodes 1…n are the words, the others contracted cycles. A node's arc is the best one into it.
    tables = np.zeros((8, 2 * n + 1), np.int32)  # one allocation: eight would take as long as a short sentence
    arc_head, arc_word = tables[0], tables[1]
    cycle_of = tables[2]  # the cycle that swallowed a node, 0 if none did
    row_of = tables[3]
    node_of = tables[4]  # the outermost node around each word
    on_path, attached = tables[5], tables[6]  # attached: the chosen arcs lead to it from the root
    path = tables[7]
    for d in range(n + 1):
        row_of[d] = node_of[d] = d
    attached[0] = True
    nodes = n + 1
    root_children = 0

    for start in range(1, n + 1):
        if attached[node_of[start]]:
            continue
        node = node_of[start]
        path[0] = node
        on_path[node] = True
        length = 1
        while length > 0:
            row = into[row_of[node]]
            head = 0
            best = -np.inf if single_root else row[0]
            for h in range(1, n + 1):
                if row[h] > best:
                    best = row[h]
                    head = h
            if head == 0:
                if row[0] == -np.inf:
                    return -1
                root_children += 1
            arc_head[node] = head
            arc_word[node] = word[row_of[node], head]
            source = node_of[head]
            if attached[source]:
                for p in range(length):
                    attached[path[p]] = True
                length = 0
            elif not on_path[source]:
                node = source
                path[length] = node
                on_path[node] = True
                length += 1
            else:  # a cycle: the path from source to here. An arc into it loses the weight of the arc that it replaces.
                cycle = nodes
                nodes += 1
                keep = row_of[source]
                lost = into[keep, arc_head[source]]
                for h in range(n + 1):
                    into[keep, h] -= lost
                while True:
                    length -= 1
                    member = path[length]
                    cycle_of[member] = cycle
                    if member == source:
                        break
                    other = row_of[member]
                    lost = into[other, arc_head[member]]
                    for h in range(n + 1):
                        weight = into[other, h] - lost
                        if weight > into[keep, h]:
                            into[keep, h] = weight
                            word[keep, h] = word[other, h]
                for h in range(1, n + 1):
                    if cycle_of[node_of[h]] == cycle:
                        node_of[h] = cycle
                        into[keep, h] = -np.inf
                row_of[cycle] = keep
                node = cycle
                path[length] = node
                on_path[node] = True
                length += 1
    if single_root and root_children != 1:
        return -1

    # Expand the cycles, the last one first: the arc into a cycle overrules the arcs of the nodes in it around its word.
    for node in range(nodes - 1, 0, -1):
        inner = arc_word[node]
        if inner > 0:
            head = arc_head[node]
            member = inner
            while member != node:
                arc_word[member] = 0  # overruled
                member = cycle_of[member]
            heads[inner] = head
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
