"""Max-marginals of MH3 and of projective trees: one outside pass over the filled chart of `mh3_chart`.

O[i, l] is the outside value of the item [i, l], O[0, n + 1] = 0. With X[i, j] = C[i, j] + shift(i, j), each way to make
[i, l] from [i, j] and [j, l] passes down

- to [j, l]: O[i, l] + max(X[i, j] + la + arc(l → j), X[i, j] + arc(i → j) + ra)
- to [i, j]: O[i, l] + C[j, l] + shift(i, j) + max(la + arc(l → j), arc(i → j) + ra).

Each of its two links, ra and la, is worth its term in such a maximum plus the value of the item below. Maxima over l
are kept separately for ra and la, so that the arc i → j is added, and its value read off, only once.
"""

# ruff: noqa: E741 (i, j, l are the heads of an item)

from __future__ import annotations

import numpy as np
from numba import njit

from .lanes import lane_max, load, padded, scratch, splat, store, vmax
from .mh3_chart import LA, NEG, RA, SHIFT, W, fill


@njit(nogil=True, forceinline=True)
def _close_root(scores, arc_bonus, X_arc, around, around_ra, marginals):
    """With one root child: read off the last move, then forbid all other arcs from the root."""
    for j in range(1, X_arc.shape[0] - 1):
        marginals[0, j] = around_ra[j, 0] + X_arc[j, 0]
        around[j, 0] = around_ra[j, 0] + (scores[SHIFT, 0, j] + arc_bonus[0, j])
        around_ra[j, 0] = X_arc[j, 0] = NEG


@njit(nogil=True)
def _go_back(scores, arc_bonus, single_root, C, X, X_arc, around, around_la, around_ra, marginals):
    """Fill ``marginals`` (N, N); charts are [l, i] as in `mh3_chart`, the last three still empty.

    ``around_la[j, i]`` and ``around_ra[j, i]`` are the maxima over l of O[i, l] + C[j, l] plus the score of the link.
    """
    end = scores.shape[1] - 1
    around[:] = NEG
    around_la[:] = NEG
    around_ra[:] = NEG
    around[end, 0] = 0
    for l in range(end, 1, -1):
        if l < end:
            for i in range(l):
                best = around_la[l, i]
                if i > 0 or not single_root:
                    best = max(best, around_ra[l, i] + arc_bonus[i, l])
                around[l, i] = max(around[l, i], best + scores[SHIFT, i, l])
        for j in range(1, l):
            la = scores[LA, j, l] + (NEG if l == end else arc_bonus[l, j])
            ra = scores[RA, j, l]
            right = C[l, j]
            la_and_right, ra_and_right = splat(right + la, W), splat(right + ra, W)
            by_la = by_ra = splat(NEG, W)
            for i in range(0, j, W):
                o = load(around, (l, i), W)
                by_la = vmax(by_la, o + load(X, (j, i), W))
                by_ra = vmax(by_ra, o + load(X_arc, (j, i), W))
                store(around_la, (j, i), vmax(load(around_la, (j, i), W), o + la_and_right))
                store(around_ra, (j, i), vmax(load(around_ra, (j, i), W), o + ra_and_right))
            best_la = lane_max(by_la) + la
            around[l, j] = max(around[l, j], max(best_la, lane_max(by_ra) + ra))
            marginals[l, j] = max(marginals[l, j], best_la + right)
        if l == end and single_root:
            _close_root(scores, arc_bonus, X_arc, around, around_ra, marginals)
    for j in range(1, end):
        for i in range(j):
            marginals[i, j] = max(marginals[i, j], around_ra[j, i] + X_arc[j, i])


@njit(cache=True, nogil=True)
def _max_marginals(scores, arc_bonus, single_root, filled, memory, marginals):
    N = scores.shape[1]
    charts = memory.reshape(6, N, padded(N))
    marginals[:] = NEG
    if not filled:
        fill(scores, arc_bonus, single_root, charts[0], charts[1], charts[2])
    if charts[0, N - 1, 0] > NEG:
        _go_back(
            scores, arc_bonus, single_root, charts[0], charts[1], charts[2], charts[3], charts[4], charts[5], marginals
        )


def outside_floats(n: int) -> int:
    """Number of floats in all charts of `max_marginals`."""
    return 6 * (n + 2) * padded(n + 2)


def max_marginals(
    scores: np.ndarray, arc_bonus: np.ndarray, single_root: bool, chart: np.ndarray | None = None
) -> np.ndarray:
    """Max-marginals, float32 (N, N), for scores (3, N, N) and an arc bonus (N, N) of MH3.

    ``chart`` is memory that begins with the filled chart; it can be used only once, since the pass overwrites it.
    """
    marginals, size = np.empty_like(arc_bonus), outside_floats(len(arc_bonus) - 2)
    filled = chart is not None and chart.size == size
    memory = chart if chart is not None and filled else scratch(size)
    _max_marginals(scores, arc_bonus, single_root, filled, memory, marginals)
    return marginals
