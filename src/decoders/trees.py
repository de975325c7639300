"""Dependency trees as arrays of heads: ``heads[d]`` is the head of word d, 0 the root, ``heads[0] == -1``.

Functions that test a property of a tree raise a ValueError if the heads are not a tree.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def all_reach_the_root(heads):
    """Whether heads, int (n + 1,), are a tree."""
    n = heads.shape[0] - 1
    if n < 0 or heads[0] != -1:
        return False
    reached_from = np.zeros(n + 1, np.int32)  # the word whose walk to the root passed here, 0 if none did
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
def crossings(heads):
    """`crossed_arcs`, unchecked."""
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


def _as_array(heads: np.ndarray) -> np.ndarray:
    """The heads as the kernels are compiled for them: signed, native byte order, writable (though they only read)."""
    heads = np.asarray(heads)
    heads = heads.astype(np.int64) if heads.dtype.kind == "u" else heads
    heads = heads if heads.dtype.isnative else heads.astype(heads.dtype.newbyteorder("="))
    return heads if heads.flags.writeable else heads.copy()


def is_tree(heads: np.ndarray, single_root: bool = False) -> bool:
    """Whether heads, int (n + 1,), are a tree and, with ``single_root``, just one word is attached to the root."""
    heads = _as_array(heads)
    if heads.ndim != 1 or heads.dtype.kind != "i" or not all_reach_the_root(heads):
        return False
    return not single_root or int((heads[1:] == 0).sum()) == 1


def mark_arcs(matrix: np.ndarray, heads: np.ndarray, value: float) -> None:
    """Write ``value`` at every arc [head, dependent] of a tree, int (n + 1,), into a matrix of n + 1 rows or more."""
    matrix[heads[1:], np.arange(1, len(heads))] = value


def arc_matrix(heads: np.ndarray) -> np.ndarray:
    """float32 (n + 2, n + 2): 1 on the arcs [head, dependent] of a tree, int (n + 1,), 0 elsewhere."""
    matrix = np.zeros((len(heads) + 1, len(heads) + 1), np.float32)
    mark_arcs(matrix, heads, 1.0)
    return matrix


def given_heads_bonus(given: Sequence[np.ndarray], size: int) -> np.ndarray:
    """float32 (B, size, size): −inf on every arc that contradicts a given head, else 0.

    Parameters
    ----------
    given : B arrays int (n + 1,)
        Given heads; −1 for words without one.
    size : int
        At least n + 2 of the longest sentence.
    """
    bonus = np.zeros((len(given), size, size), np.float32)
    for matrix, heads in zip(bonus, given, strict=True):
        known = np.flatnonzero(heads[1:] >= 0) + 1
        matrix[:, known] = -np.inf
        matrix[heads[known], known] = 0.0
    return bonus


def checked_tree(heads: np.ndarray) -> np.ndarray:
    """The heads, int (n + 1,), in native byte order; ValueError unless they are a tree, with any number of roots."""
    heads = _as_array(heads)
    if not is_tree(heads):
        raise ValueError(f"these heads are not a tree: {heads.tolist()}")
    return heads


def crossed_arcs(heads: np.ndarray) -> np.ndarray:
    """Which arcs of a tree, int (n + 1,), are crossed by another arc; O(n + the total length of the arcs).

    Arcs are chords over the positions 0…n, arcs from the root included. Two arcs cross if exactly one end of the one
    lies strictly between the ends of the other and its other end strictly outside.

    Returns
    -------
    bool (n + 1,)
        True at d if the arc heads[d] → d is crossed; False at 0.
    """
    return crossings(checked_tree(heads))


def is_projective(heads: np.ndarray) -> bool:
    """Whether no two arcs of the tree cross, arcs from the root included."""
    return not crossed_arcs(heads).any()


def is_planar(heads: np.ndarray) -> bool:
    """Whether no two arcs between words cross; arcs from the root do not count (Kuhlmann and Nivre 2006)."""
    heads = checked_tree(heads)
    without_root = np.where(heads == 0, np.arange(len(heads)), heads)  # an arc to oneself crosses nothing
    return not crossings(without_root).any()


def _yields(heads: np.ndarray) -> list[int]:
    """For each position, the positions at or below it, as the bits of a number."""
    above = checked_tree(heads).tolist()
    yields = [1 << d for d in range(len(above))]
    for d in range(1, len(above)):
        h = above[d]
        while h >= 0:
            yields[h] |= 1 << d
            h = above[h]
    return yields


def gap_degree(heads: np.ndarray) -> int:
    """The largest number of gaps in the yield of a word: the words at or below it (Kuhlmann and Nivre 2006)."""
    # A block of the yield begins at a member whose left neighbour is not in the yield.
    return max((words & ~(words << 1)).bit_count() - 1 for words in _yields(np.asarray(heads)))


def is_well_nested(heads: np.ndarray) -> bool:
    """Whether no two disjoint subtrees interleave (Kuhlmann and Nivre 2006).

    Two subtrees interleave if words i < j < k < l exist with i, k in the one and j, l in the other.
    """
    heads = np.asarray(heads)
    yields = _yields(heads)
    for a, words in enumerate(yields):
        if a == 0 or (words & ~(words << 1)).bit_count() == 1:
            continue
        # A disjoint subtree that interleaves with that of a has words on different sides of a's blocks, hence an arc
        # between two sides. Sides are numbered from left to right; before the first and after the last is the same.
        side, sides = 0, []
        blocks = (words & ~(words << 1)).bit_count()
        for d in range(len(heads)):
            if words >> d & 1 and not words >> (d - 1) & 1:
                side = (side + 1) % blocks
            sides.append(side)
        for d in range(1, len(heads)):
            h = heads[d]
            outside = not words >> d & 1 and not yields[h] >> a & 1
            if outside and sides[h] != sides[d]:
                return False
    return True
