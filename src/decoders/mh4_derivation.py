"""Derivations of MH4: following them back from the goal, and the best one of a given tree.

See `mh4` for the items and rules.
"""

# ruff: noqa: E741 (i, j, k, l are the heads of an item)

import numpy as np
from numba import njit

from .gold_items import items_of_tree, without_root_arcs
from .mh4_transitions import LA, LA1, LA2, RA, RA1, RA2, REDUCES
from .numbers import parts_score
from .trees import all_reach_the_root

NEG = np.float32(-np.inf)


@njit(nogil=True, forceinline=True)
def _add(rows, count, first, second, third):
    """Append a row; return the new number of rows."""
    rows[count, 0] = first
    rows[count, 1] = second
    rows[count, 2] = third
    return count + 1


@njit(nogil=True, forceinline=True)
def follow(i, j, l, move, gone, left, hybrid, stack, size, heads, parts, count):
    """Undo the last move of [i, j, l], or of [i, l] if j = 0: push the items it was made from, record arc and parts.

    ``move`` and ``gone`` are the reduce and the head it removed; ``move`` is −1 for [i, j] + [j, l]. ``left`` says
    whether four heads were [s2, s1, s0] + [s0, b0] rather than [s2, s1] + [s1, s0, b0]. ``stack``, int64 rows, holds
    the items still to be followed. Returns the new numbers of these items and of parts.
    """
    if move < 0:
        size = _add(stack, size, i, 0, j)
        return _add(stack, size, j, 0, l), _add(parts, count, 0, i, j)
    if j == 0:
        s2, s1, s0 = -1, i, gone
        size = _add(stack, size, i, gone, l)
    else:
        s2, s1, s0 = i, min(j, gone), max(j, gone)
        if left:
            count = _add(parts, count, 0, s1, s0)
            size = _add(stack, size, s2, s1, s0)
            size = _add(stack, size, s0, 0, l)
        else:
            count = _add(parts, count, 0, s2, s1)
            size = _add(stack, size, s2, 0, s1)
            size = _add(stack, size, s1, s0, l)
    heads[gone] = (s2, s1, s0, l)[REDUCES[move, 0]]
    if hybrid:
        count = _add(parts, count, 1 + move, s1, s0)
    return size, _add(parts, count, (7 if hybrid else 1) + move, s0, l)


@njit(nogil=True, forceinline=True)
def _item3(kept, first, three, i, j, l):
    only, at = kept[l, i], first[l, i] + j
    return three[at if only == 0 or only == j else 0]


@njit(nogil=True, forceinline=True)
def _reduce(scores, hybrid, move, s1, s0, b0):
    if hybrid:
        return scores[1 + move, s1, s0] + scores[7 + move, s0, b0]
    return scores[1 + move, s0, b0]


@njit(nogil=True)
def _places(kept, pairs):
    """Return ``first``, with ``first[l, i] + j`` the index of [i, j, l], and the number of indices; 0 is invalid."""
    first = np.empty(kept.shape, np.int64)
    room = 1
    for p in range(pairs.shape[0]):
        i, l = pairs[p, 0], pairs[p, 1]
        first[l, i] = room - (kept[l, i] if kept[l, i] > 0 else i)
        room += 1 if kept[l, i] > 0 else l - i
    return first, room


@njit(nogil=True)
def _fill(scores, hybrid, heads, kept, pairs, first, two, three, last_two, last_three):
    """Fill the items of a tree, those of smaller intervals first, and record the last move of each.

    Sums and tie-breaking are those of `mh4`: j, k and y in ascending order. ``two`` and ``last_two``, (n + 2, n + 2),
    are [i, l], −inf at first, and the j that a reduce removed; ``three`` (items,) and ``last_three`` (items, 3) are
    [i, j, l], −inf at first, and the move, gone and left that `follow` takes.
    """
    end = heads.shape[0]
    for p in range(pairs.shape[0]):
        i, l = pairs[p, 0], pairs[p, 1]
        only = kept[l, i]
        if l == i + 1:
            two[l, i] = 0
        for j in range(only, only + 1) if only > 0 else range(i + 1, l):
            if only == 0 and heads[j] != i and heads[j] != l:
                continue
            e = two[j, i] + scores[0, i, j]
            best, move, gone, left = e + two[l, j], -1, 0, False
            for k in range(j + 1, l):
                h = heads[k]
                if h == i or h == j or h == l:  # noqa: SIM109 (their types differ)
                    reduce = RA2 if h == i else RA if h == j else LA
                    v_left = _item3(kept, first, three, i, j, k) + (scores[0, j, k] + two[l, k])
                    v_right = e + _item3(kept, first, three, j, k, l)
                    x = max(v_left, v_right) + _reduce(scores, hybrid, reduce, j, k, l)
                    if x > best:
                        best, move, gone, left = x, reduce, k, v_left >= v_right
            for y in range(i + 1, j):
                h = heads[y]
                if h == i or h == j or h == l:  # noqa: SIM109
                    reduce = RA1 if h == i else LA1 if h == j else LA2
                    v_left = _item3(kept, first, three, i, y, j) + (scores[0, y, j] + two[l, j])
                    v_right = two[y, i] + scores[0, i, y] + _item3(kept, first, three, y, j, l)
                    x = max(v_left, v_right) + _reduce(scores, hybrid, reduce, y, j, l)
                    if x > best:
                        best, move, gone, left = x, reduce, y, v_left >= v_right
            at = first[l, i] + j
            three[at] = best
            last_three[at, 0], last_three[at, 1], last_three[at, 2] = move, gone, left
            if only == 0 or (l == end and i == 0 and heads[j] == 0):
                x = best + _reduce(scores, hybrid, RA if heads[j] == i else LA, i, j, l)
                if x > two[l, i]:
                    two[l, i] = x
                    last_two[l, i] = j


@njit(nogil=True)
def _derive_tree(scores, hybrid, heads, single_root, parts):
    """Number of parts of the best derivation of a tree, or −1."""
    end = heads.shape[0]
    above, children = without_root_arcs(heads)
    if single_root and children > 1:
        return -1
    kept, pairs = items_of_tree(above if single_root else heads)
    first, room = _places(kept, pairs)
    two, last_two = np.full(kept.shape, NEG), np.empty(kept.shape, np.int64)
    three, last_three = np.full(room, NEG), np.empty((room, 3), np.int64)
    _fill(scores, hybrid, heads, kept, pairs, first, two, three, last_two, last_three)
    if two[end, 0] == NEG:
        return -1
    stack = np.empty((end + 2, 3), np.int64)
    size, count = _add(stack, 0, 0, 0, end), 0
    while size > 0:
        size -= 1
        i, j, l = stack[size, 0], stack[size, 1], stack[size, 2]
        if j > 0:
            at = first[l, i] + j
            move, gone, left = last_three[at, 0], last_three[at, 1], last_three[at, 2] > 0
        elif l > i + 1:
            gone = last_two[l, i]
            move, left = RA if heads[gone] == i else LA, False
        else:
            continue
        size, count = follow(i, j, l, move, gone, left, hybrid, stack, size, heads, parts, count)
    return count


@njit(cache=True, nogil=True)
def derive_trees(scores, hybrid, given, single_root):
    """See `Decoder._derive`."""
    start = 0
    for b in range(given.ends.shape[0]):
        heads, parts = given.heads[start : given.ends[b]], given.parts[3 * start :]
        count = _derive_tree(scores[b], hybrid, heads, single_root, parts) if all_reach_the_root(heads) else -1
        given.counts[b], given.totals[b] = count, parts_score(scores[b], parts, count)
        start = given.ends[b]
