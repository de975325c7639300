"""The chart of `mh3`, which is also that of projective trees: O(n³) time and O(n²) space."""

# ruff: noqa: E741 (i, j, l are the heads of an item)

import numpy as np
from numba import njit

from .lanes import load, padded, splat, store, vmax

SHIFT, LA, RA = range(3)
W = 8  # lanes
NEG = np.float32(-np.inf)


@njit(nogil=True)
def fill(scores, arc_bonus, single_root, C, reduced_by_l, reduced_by_i):
    """Fill the charts: C[l, i] is the item [i, l]; the other two hold, at [j, i], the left half of items [i, j, l].

    ``reduced_by_l[j, i]`` = C[i, j] + shift(i, j), ``reduced_by_i[j, i]`` = the same + arc(i → j).
    """
    end = scores.shape[1] - 1
    C[:] = NEG
    reduced_by_l[:] = NEG
    reduced_by_i[:] = NEG
    for l in range(1, end + 1):
        C[l, l - 1] = 0
        if l == end and single_root:  # the last move: the root may take its child
            for j in range(1, end):
                reduced_by_i[j, 0] = reduced_by_l[j, 0] + arc_bonus[0, j]
        for j in range(l - 1, 0, -1):
            right = C[l, j]
            ra = splat(right + scores[RA, j, l], W)
            la = splat(right + (scores[LA, j, l] + (NEG if l == end else arc_bonus[l, j])), W)
            for i in range(0, j, W):
                best = vmax(load(reduced_by_i, (j, i), W) + ra, load(reduced_by_l, (j, i), W) + la)
                store(C, (l, i), vmax(load(C, (l, i), W), best))
        if l < end:
            for i in range(l):
                x = C[l, i] + scores[SHIFT, i, l]
                reduced_by_l[l, i] = x
                reduced_by_i[l, i] = x + arc_bonus[i, l]
            if single_root:
                reduced_by_i[l, 0] = NEG


@njit(cache=True, nogil=True)
def item_values(scores, arc_bonus, single_root):
    """The values of all items [i, l], float32 (N, N), at [i, l]."""
    N = scores.shape[1]
    charts = np.empty((3, N, padded(N)), np.float32)
    fill(scores, arc_bonus, single_root, charts[0], charts[1], charts[2])
    return charts[0, :, :N].T.copy()
