"""Walking back through a filled MH4 chart, which has no backpointers: all ways to make an item are tried again."""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

import numpy as np
from numba import njit

from .mh4_chart import NEG, item3, panel_item, reduce, row_of_root_move
from .mh4_derivation import follow
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2

WAYS = 12  # bound on the ways to make an item, per position


@njit(nogil=True, forceinline=True)
def _offer(value, move, gone, left, every, found, values, ways):
    """Record a way: if ``every``, any whose value reaches the threshold; else the first best, which raises it.

    ``found`` is a tuple of the number of ways, the threshold and the way last recorded. So the first best stays in
    registers, without a branch.
    """
    count, least = found[0], found[1]
    if every:
        if value >= least and value != NEG:
            values[count] = value
            ways[count, 0], ways[count, 1], ways[count, 2] = move, gone, left
            found = count + 1, least, move, gone, left
    elif value > least:
        found = 1, value, move, gone, left
    return found


@njit(nogil=True, forceinline=True)
def ways_of_two(i, l, charts, every, least, values, ways):
    """The ways to make [i, l] from some [i, j, l]; returns ``found``, see `_offer`.

    A way consists of a move and the head j that it removes.
    """
    A, B, C3 = charts.A, charts.B, charts.C3
    ra_row = row_of_root_move(A, i, l)
    found = 0, least, -1, 0, 0
    for j in range(i + 1, l):
        item = item3(C3, i, j, l)
        ra = item + reduce(A, B, RA, ra_row, j, l)
        la = item + reduce(A, B, LA, i, j, l)
        found = _offer(ra, RA, j, 0, every, found, values, ways)
        found = _offer(la, LA, j, 0, every, found, values, ways)
    return found


@njit(nogil=True, forceinline=True)
def ways_of_three(i, j, l, shift, charts, every, least, values, ways):
    """The ways to make [i, j, l]; returns ``found``, see `_offer`.

    A way consists of a move, the head it removes, and whether the four heads before it are [i, s1, s0] + [s0, l]
    rather than [i, s1] + [s1, s0, l]; the move is −1 for [i, j] + [j, l].
    """
    A, B, arc, C2, E, C3 = charts.A, charts.B, charts.arc, charts.C2, charts.E, charts.C3
    e = panel_item(E, j, i)
    found = 0, least, -1, 0, 0
    found = _offer(e + C2[l, j], -1, 0, 0, every, found, values, ways)
    for k in range(j + 1, l):
        v_left = item3(C3, i, j, k) + (shift[j, k] + C2[l, k])
        v_right = e + item3(C3, j, k, l)
        ra2 = arc[i, k] + reduce(A, B, RA2, j, k, l)
        ra = reduce(A, B, RA, j, k, l)
        la = reduce(A, B, LA, j, k, l)
        for left in range(2):
            v = (v_left if left else v_right) if every else max(v_left, v_right)
            side = left if every else int(v_left >= v_right)
            found = _offer(v + ra2, RA2, k, side, every, found, values, ways)
            found = _offer(v + ra, RA, k, side, every, found, values, ways)
            found = _offer(v + la, LA, k, side, every, found, values, ways)
            if not every:
                break
    for y in range(i + 1, j):
        v_left = item3(C3, i, y, j) + (shift[y, j] + C2[l, j])
        v_right = panel_item(E, y, i) + item3(C3, y, j, l)
        ra1 = arc[i, y] + reduce(A, B, RA1, y, j, l)
        la1 = reduce(A, B, LA1, y, j, l)
        la2 = reduce(A, B, LA2, y, j, l) + arc[l, y]
        for left in range(2):
            v = (v_left if left else v_right) if every else max(v_left, v_right)
            side = left if every else int(v_left >= v_right)
            found = _offer(v + ra1, RA1, y, side, every, found, values, ways)
            found = _offer(v + la1, LA1, y, side, every, found, values, ways)
            found = _offer(v + la2, LA2, y, side, every, found, values, ways)
            if not every:
                break
    return found


@njit(nogil=True, forceinline=True)
def walk_back(shift, charts, hybrid, heads, parts):
    """Follow the best derivation from the goal; fill heads and parts, return the number of parts, −1 if none."""
    end = charts.A.shape[0] - 1
    stack = np.empty((end + 2, 3), np.int64)  # items (i, j, l), or (i, 0, l) for [i, l]
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, end
    values, ways = np.empty(0, np.float32), np.empty((0, 3), np.int64)  # unused: a single way is in ``found``
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i, j, l = stack[size, 0], stack[size, 1], stack[size, 2]
        if j == 0 and l == i + 1:
            continue
        if j == 0:
            found, _, move, gone, left = ways_of_two(i, l, charts, False, NEG, values, ways)
        else:
            found, _, move, gone, left = ways_of_three(i, j, l, shift, charts, False, NEG, values, ways)
        if found == 0:
            return -1
        size, count = follow(i, j, l, move, gone, left > 0, hybrid, stack, size, heads, parts, count)
    return count
