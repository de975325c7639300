"""Scores of all derivations of short sentences, for every decoder: the reference for margins, marginals and k-best."""

import naive
import naive_1ec
import naive_mh
import numpy as np

FIRST_ORDER = (0, 3)  # channels of 1ec that 1ec-first-order has


def derivations(name, scores, arc_bonus, single_root):
    """Heads, int (D, n + 1), and scores, float64 (D,), of all D derivations of a decoder."""
    n = scores.shape[1] - 2
    words = np.arange(1, n + 1)
    if name in naive_mh.K:
        return naive_mh.enumerated_scores(name, scores, arc_bonus, single_root)
    if name in ("mst", "eisner"):
        heads = naive.all_trees(n, single_root, projective=name == "eisner")
        arcs = scores[0].astype(np.float64) + arc_bonus
        return heads, arcs[heads[:, 1:], words].sum(axis=1)
    if name == "1ec-first-order":
        full = np.zeros((4, n + 2, n + 2), scores.dtype)
        full[FIRST_ORDER, :, :] = scores
        scores = full
    heads, totals = naive_1ec.all_trees(n), naive_1ec.tree_scores(scores, arc_bonus)
    if single_root:
        keep = (heads == 0).sum(axis=1) == 1
        heads, totals = heads[keep], totals[keep]
    return heads, totals


def trees(name, scores, arc_bonus, single_root):
    """Heads, int (T, n + 1), of all allowed trees and the score of each one's best derivation; best trees first."""
    heads, totals = derivations(name, scores, arc_bonus, single_root)
    best = {}
    for tree, total in zip(map(tuple, heads.tolist()), totals.tolist(), strict=True):
        if total > -np.inf:
            best[tree] = max(best.get(tree, -np.inf), total)
    ordered = sorted(best, key=lambda tree: -best[tree])
    return np.array(ordered, int).reshape(-1, heads.shape[1]), np.array([best[tree] for tree in ordered])


def max_marginals(name, scores, arc_bonus, single_root):
    """Matrix with the best score of a tree with h → d at [h, d]; −inf if there is none."""
    found = np.full(arc_bonus.shape, -np.inf)
    for tree, total in zip(*trees(name, scores, arc_bonus, single_root), strict=True):
        for d in range(1, len(tree)):
            found[tree[d], d] = max(found[tree[d], d], total)
    return found
