"""Dependency trees as arrays of heads: ``heads[d]`` is the head of word d, 0 the root, ``heads[0] == -1``."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _is_tree(heads):
    n = heads.shape[0] - 1
    if n < 0 or heads[0] != -1:
        return False
    reached_from = np.zeros(n + 1, np.int32)  # the word whose walk to the root came by, 0 if none did
    for start in range(1, n + 1):
        d = start
        while d != 0 and reached_from[d] == 0:
            reached_from[d] = start
            d = heads[d]
            if d < 0 or d > n:
                return False
        if d != 0 and reached_from[d] == start:
            return False
    return True


@njit(cache=True, nogil=True)
def _crossed_arcs(heads):
    n = heads.shape[0] - 1
    # The outermost positions that each position has an arc with.
    leftmost = np.arange(n + 1)
    rightmost = np.arange(n + 1)
    for d in range(1, n + 1):
        h = heads[d]
        leftmost[d] = min(leftmost[d], h)
        rightmost[d] = max(rightmost[d], h)
        leftmost[h] = min(leftmost[h], d)
        rightmost[h] = max(rightmost[h], d)
    crossed = np.zeros(n + 1, np.bool_)
    for d in range(1, n + 1):
        left = min(heads[d], d)
        right = max(heads[d], d)
        for between in range(left + 1, right):
            if leftmost[between] < left or rightmost[between] > right:
                crossed[d] = True
                break
    return crossed


def is_tree(heads: np.ndarray, single_root: bool = False) -> bool:
    """Whether every word leads to the root; with ``single_root``, whether moreover just one word is attached to it.

    Parameters
    ----------
    heads : int (n + 1,)
    """
    heads = np.asarray(heads)
    return bool(_is_tree(heads)) and (not single_root or int((heads[1:] == 0).sum()) == 1)


def crossed_arcs(heads: np.ndarray) -> np.ndarray:
    """Which arcs are crossed by another arc; O(n + the total length of the arcs).

    Arcs are chords over the positions 0…n, arcs from the root included. Two arcs cross if exactly one end of the one
    lies strictly between the ends of the other and its other end strictly outside.

    Parameters
    ----------
    heads : int (n + 1,)
        A tree.

    Returns
    -------
    bool (n + 1,)
        True at d if the arc heads[d] → d is crossed; False at 0.

    Raises
    ------
    ValueError
        ``heads`` is not a tree.
    """
    heads = np.asarray(heads)
    if not _is_tree(heads):
        raise ValueError(f"these heads are not a tree: {heads.tolist()}")
    return _crossed_arcs(heads)


def is_projective(heads: np.ndarray) -> bool:
    """Whether no two arcs of the tree cross, arcs from the root included.

    Raises
    ------
    ValueError
        ``heads`` is not a tree.
    """
    return not crossed_arcs(heads).any()
