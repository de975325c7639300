"""1-endpoint-crossing trees, and the parts of them that the third-order decoder scores."""

import numpy as np
from numba import njit

from ..trees import checked_tree


@njit(cache=True, nogil=True)
def _crossings(heads):
    """Which arcs are crossed, and whether all arcs that cross the same arc share an end; O(n²)."""
    n = heads.shape[0] - 1
    crossed = np.zeros(n + 1, np.bool_)
    one_endpoint = True
    for d in range(1, n + 1):
        left, right = min(heads[d], d), max(heads[d], d)
        first = second = -1  # the ends that all arcs so far share
        for e in range(1, n + 1):
            i, j = min(heads[e], e), max(heads[e], e)
            if i < left < j < right or left < i < right < j:
                if not crossed[d]:
                    crossed[d] = True
                    first, second = i, j
                first = first if first in (i, j) else -1
                second = second if second in (i, j) else -1
                one_endpoint &= first >= 0 or second >= 0
    return crossed, one_endpoint


@njit(cache=True, nogil=True)
def _parts_of_tree(heads, crossed, parts):
    n = heads.shape[0] - 1
    none = n + 1
    count = 0
    for m in range(1, n + 1):
        h = heads[m]
        parts[count, 0], parts[count, 1], parts[count, 2] = 3 if crossed[m] else 0, h, m
        count += 1
        if crossed[m]:
            continue
        step = 1 if h < m else -1
        inner = m - step
        while inner != h and heads[inner] != h:
            inner -= step
        if inner == h or not crossed[inner]:
            parts[count, 0], parts[count, 1], parts[count, 2] = 2, none if inner == h else inner, m
            count += 1
        if h > 0 and crossed[h]:
            continue
        g = none if h == 0 else heads[h]
        # On the circle 0, 1, …, n, none: from m to g without passing h.
        from_m, from_g = (m - h) % (n + 2), (g - h) % (n + 2)
        clear = True
        for q in range(1, n + 1):
            if heads[q] == h and crossed[q] and min(from_m, from_g) < (q - h) % (n + 2) < max(from_m, from_g):
                clear = False
        if clear:
            parts[count, 0], parts[count, 1], parts[count, 2] = 1, g, m
            count += 1
    return count


def is_one_endpoint_crossing(heads: np.ndarray) -> bool:
    """Whether, for each arc, all arcs that cross it have an end in common (Pitler, Kannan and Marcus 2013).

    Arcs are chords over the positions 0…n, arcs from the root included; see `trees.crossed_arcs`. ValueError if the
    heads, int (n + 1,), are not a tree.
    """
    return bool(_crossings(checked_tree(heads))[1])


def checked_one_endpoint_crossing(heads: np.ndarray) -> np.ndarray:
    """The heads as int32, if they are a 1-endpoint-crossing tree; ValueError otherwise."""
    heads = np.asarray(checked_tree(heads), np.int32)
    if not _crossings(heads)[1]:
        raise ValueError(f"these heads are not a 1-endpoint-crossing tree: {heads.tolist()}")
    return heads


def parts_of_tree(heads: np.ndarray) -> np.ndarray:
    """The parts (channel, row, column), int32 (P, 3), that `OneEndpointCrossing` scores in a tree, int (n + 1,); O(n²).

    They do not depend on a derivation. A crossed arc h → m is one part, crossed[h, m]. An uncrossed one is arc[h, m]
    and

    - sibling[u, m], u the child of h nearest to m strictly between them ("none" if there is none), unless h → u is
      crossed;
    - grandparent[g, m], g the head of h ("none" if h is the root), unless g → h is crossed, or a crossed arc from h to
      a child ends between m and g: on the circle of positions 0, …, n and "none", on the side that does not contain h.

    ValueError: ``heads`` is not a tree, or not 1-endpoint-crossing.
    """
    heads = checked_one_endpoint_crossing(heads)
    parts = np.empty((3 * (len(heads) - 1), 3), np.int32)
    return parts[: _parts_of_tree(heads, _crossings(heads)[0], parts)].copy()
