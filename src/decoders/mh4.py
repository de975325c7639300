"""Exact decoding for the MH4 transition system: mildly non-projective trees in O(n⁴) time and O(n³) space.

Source: Gómez-Rodríguez, Shi and Lee (2018), "Global Transition-based Non-projective Dependency Parsing", sections 3
and 4, after the MH_k parsers of Gómez-Rodríguez, Carroll and Weir (2011).

An item [h1 … hm] is a stretch of the stack h1 … h(m−1) whose next buffer word is hm; the words between are attached
already. Below i < j < k < l; C2, C3 and v are the best values of the items of two, three and four heads.

- axiom: C2[i, i+1] = 0
- combine: C3[i, j, l] = C2[i, j] + shift(i, j) + C2[j, l]
- combine: v[i, j, k, l] = max(C3[i, j, k] + shift(j, k) + C2[k, l], C2[i, j] + shift(i, j) + C3[j, k, l])
- link: C2[i, l] = max over j of C3[i, j, l] + the best of ra and la, which remove j
- link: C3[i, j, l] = max over k of v[i, j, k, l] + the best of ra2, ra and la, which remove k
- link: C3[i, k, l] = max over j of v[i, j, k, l] + the best of ra', la' and la2, which remove j
- goal: C2[0, n + 1]

Each reduce scores A[s1, s0] + B[s0, b0] and its arc. Only n³ values are stored: an item of four heads lives in a
register, between the two smaller items it is combined from and the two smaller items it is linked to.

One root child. The end position heads nothing, so the last move is always ra on [0, j, n + 1]: the root has exactly one
child if and only if no earlier move took an arc from the root. That needs no further items.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numba import njit

from .decoder import Decoder
from .lanes import broadcast, gather, lane_max, load, scratch, splat, store, vmax

REDUCES = ("ra2", "ra", "la", "ra'", "la'", "la2")
RA2, RA, LA, RA1, LA1, LA2 = range(6)  # RA1 and LA1 are ra' and la'

SHIFT = 6  # in A, behind the six reduces

# What a pair (j, l) needs to know about each k, in `links`.
OPEN, CLOSED, TO_S0, KEEP_S0, TO_S1, KEEP_S1 = range(6)

W = 8  # lanes
SLOTS = 7
NEG = np.float32(-np.inf)

# Layouts. What depends on (k, i) lies in panels of eight i: element (k, i) at [i // 8, 8 k + i % 8]; C3 has such panels
# for each j, those of j = 1 first. Moves lie in groups of eight s0: A[s1, 8 (7 (s0 // 8) + move) + s0 % 8], B alike.


@njit(nogil=True, forceinline=True)
def _panels_before(j):
    """Panels of C3 that belong to smaller j: ⌈1/8⌉ + … + ⌈(j − 1)/8⌉."""
    full, rest = divmod(j - 1, W)
    return (full + 1) * (full * W // 2 + rest)


@njit(nogil=True, forceinline=True)
def _slot(move, s0):
    """Column of a move that removes s0 or s1, or of a shift onto s0 (then ``s0`` is the word shifted)."""
    return (s0 // W * SLOTS + move) * W + s0 % W


@njit(nogil=True)
def _prepare(scores, arc_bonus, single_root, A, B, arc_to):
    """Lay the scores out and fold the arc bonuses in: A[s1, move of s0], B[b0, move of s0], arc_to: panels (d, h).

    Row n + 1 of ra in A, meaningless otherwise as the end is never on the stack, is the root's row at the last move.
    """
    N = scores.shape[1]
    end = N - 1
    hybrid = scores.shape[0] == 13
    second = 7 if hybrid else 1
    A[:] = 0
    B[:] = 0
    arc_to[:] = NEG
    for j in range(N):
        for k in range(N):
            A[j, _slot(SHIFT, k)] = scores[0, j, k]
    for t in range(6):
        for s0 in range(N):
            for b0 in range(N):
                B[b0, _slot(t, s0)] = scores[second + t, s0, b0]
        if hybrid:
            for s1 in range(N):
                for s0 in range(N):
                    A[s1, _slot(t, s0)] = scores[1 + t, s1, s0]
    for d in range(1, end):
        A[end, _slot(RA, d)] = A[0, _slot(RA, d)] + arc_bonus[0, d]
        A[0, _slot(RA, d)] += NEG if single_root else arc_bonus[0, d]
        arc_to[0, d * W] = NEG if single_root else arc_bonus[0, d]
        B[end, _slot(LA, d)] = NEG
    for h in range(1, end):
        for d in range(1, end):
            bonus = arc_bonus[h, d]
            arc_to[h // W, d * W + h % W] = bonus
            A[h, _slot(RA, d)] += bonus
            A[d, _slot(LA1, h)] += bonus
            B[h, _slot(LA, d)] += bonus


@njit(nogil=True, forceinline=True)
def _prepare_links(j, l, A, B, arc_to, C2, C3l, links):
    """Everything about a pair (j, l) that depends on k alone; returns C2[j, l].

    Lanes with k outside j + 1 … l − 1 hold numbers that nobody reads, and −inf where C3l is read.
    """
    end = A.shape[0] - 1
    last = end if j == 0 and l == end else j
    la2_arc = broadcast(arc_to, (l // W, j * W + l % W), W)
    best = splat(NEG, W)
    for k in range((j + 1) // W * W, l, W):
        at = k * SLOTS
        ra = load(A, (last, at + RA * W), W) + load(B, (l, at + RA * W), W)
        la = load(A, (j, at + LA * W), W) + load(B, (l, at + LA * W), W)
        la1 = load(A, (j, at + LA1 * W), W) + load(B, (l, at + LA1 * W), W)
        la2 = load(A, (j, at + LA2 * W), W) + load(B, (l, at + LA2 * W), W)
        item = gather(C3l, (j // W, k * W + j % W), W, W)
        best = vmax(best, item + vmax(ra, la))
        store(links, at + OPEN * W, load(A, (j, at + SHIFT * W), W) + load(C2, (l, k), W))
        store(links, at + CLOSED * W, item)
        store(links, at + TO_S0 * W, load(A, (j, at + RA2 * W), W) + load(B, (l, at + RA2 * W), W))
        store(links, at + KEEP_S0 * W, vmax(ra, la))
        store(links, at + TO_S1 * W, load(A, (j, at + RA1 * W), W) + load(B, (l, at + RA1 * W), W))
        store(links, at + KEEP_S1 * W, vmax(la1, la2 + la2_arc))
    return np.float32(0) if l == j + 1 else lane_max(best)


@njit(nogil=True, forceinline=True)
def _link(v, arc_j, arc_k, to_s0, keep_s0, to_s1, keep_s1):
    """Remove k, remove j: what the items v = [i, j, k, l] make of [i, j, l] and of [i, k, l]."""
    return v + vmax(arc_k + to_s0, keep_s0), v + vmax(arc_j + to_s1, keep_s1)


@njit(nogil=True, forceinline=True)
def _push(j, l, arc_to, C2, E, C3, C3l, links):
    """Combine to every [i, j, k, l] and link it at once, eight or sixteen i at a time."""
    first = _panels_before(j)
    panels = (j + W - 1) // W
    two_heads = broadcast(C2, (l, j), W)
    row = j * W
    p = 0
    while p + 1 < panels:
        q = p + 1
        e_p = load(E, (p, row), W)
        e_q = load(E, (q, row), W)
        arc_p = load(arc_to, (p, row), W)
        arc_q = load(arc_to, (q, row), W)
        best_p = e_p + two_heads
        best_q = e_q + two_heads
        for k in range(j + 1, l):
            at = k // W * (W * SLOTS) + k % W
            x = k * W
            open_ = broadcast(links, at + OPEN * W, W)
            closed = broadcast(links, at + CLOSED * W, W)
            to_s0 = broadcast(links, at + TO_S0 * W, W)
            keep_s0 = broadcast(links, at + KEEP_S0 * W, W)
            to_s1 = broadcast(links, at + TO_S1 * W, W)
            keep_s1 = broadcast(links, at + KEEP_S1 * W, W)
            v_p = vmax(load(C3, (first + p, x), W) + open_, e_p + closed)
            v_q = vmax(load(C3, (first + q, x), W) + open_, e_q + closed)
            to_j_p, to_k_p = _link(v_p, arc_p, load(arc_to, (p, x), W), to_s0, keep_s0, to_s1, keep_s1)
            to_j_q, to_k_q = _link(v_q, arc_q, load(arc_to, (q, x), W), to_s0, keep_s0, to_s1, keep_s1)
            best_p = vmax(best_p, to_j_p)
            best_q = vmax(best_q, to_j_q)
            to_k_p = vmax(load(C3l, (p, x), W), to_k_p)
            to_k_q = vmax(load(C3l, (q, x), W), to_k_q)
            store(C3l, (p, x), to_k_p)
            store(C3l, (q, x), to_k_q)
        store(C3l, (p, row), best_p)
        store(C3l, (q, row), best_q)
        p += 2
    if p < panels:
        e_p = load(E, (p, row), W)
        arc_p = load(arc_to, (p, row), W)
        best_p = e_p + two_heads
        for k in range(j + 1, l):
            at = k // W * (W * SLOTS) + k % W
            x = k * W
            open_ = broadcast(links, at + OPEN * W, W)
            closed = broadcast(links, at + CLOSED * W, W)
            to_s0 = broadcast(links, at + TO_S0 * W, W)
            keep_s0 = broadcast(links, at + KEEP_S0 * W, W)
            to_s1 = broadcast(links, at + TO_S1 * W, W)
            keep_s1 = broadcast(links, at + KEEP_S1 * W, W)
            v_p = vmax(load(C3, (first + p, x), W) + open_, e_p + closed)
            to_j_p, to_k_p = _link(v_p, arc_p, load(arc_to, (p, x), W), to_s0, keep_s0, to_s1, keep_s1)
            best_p = vmax(best_p, to_j_p)
            store(C3l, (p, x), vmax(load(C3l, (p, x), W), to_k_p))
        store(C3l, (p, row), best_p)


@njit(nogil=True)
def _fill(shift, A, B, arc_to, C2, E, C3, C3l, links):
    """C2[l, i] is item [i, l]; E, panels (l, i), the same with shift(i, l); C3l, panels (j, i), the items [i, j, l] of
    the present l; C3, panels (k, i) for each j, the finished [i, j, k]."""
    end = A.shape[0] - 1
    E[:] = NEG
    C3l[:] = NEG
    for l in range(1, end + 1):
        for j in range(l - 1, -1, -1):
            C2[l, j] = _prepare_links(j, l, A, B, arc_to, C2, C3l, links)
            _push(j, l, arc_to, C2, E, C3, C3l, links)
        for j in range(1, l):
            first = _panels_before(j)
            for p in range((j + W - 1) // W):
                store(C3, (first + p, l * W), load(C3l, (p, j * W), W))
        for i in range(l):
            E[i // W, l * W + i % W] = C2[l, i] + shift[i, l]


@njit(nogil=True)
def _emit_shift(parts, count, s0, b0):
    parts[count, 0] = 0
    parts[count, 1] = s0
    parts[count, 2] = b0
    return count + 1


@njit(nogil=True)
def _emit_reduce(parts, count, hybrid, t, s1, s0, b0):
    if hybrid:
        parts[count, 0] = 1 + t
        parts[count, 1] = s1
        parts[count, 2] = s0
        count += 1
    parts[count, 0] = (7 if hybrid else 1) + t
    parts[count, 1] = s0
    parts[count, 2] = b0
    return count + 1


@njit(nogil=True, forceinline=True)
def _panel_item(panels, first, k, i):
    return panels[first + i // W, k * W + i % W]


@njit(nogil=True, forceinline=True)
def _reduce(A, B, t, s1, s0, b0):
    return A[s1, _slot(t, s0)] + B[b0, _slot(t, s0)]


@njit(nogil=True)
def _walk_back(shift, A, B, arc_to, C2, E, C3, hybrid, heads, parts):
    """Follow the best derivation from the goal, recomputing which rule gave each value; returns the number of parts."""
    end = A.shape[0] - 1
    stack = np.empty((3 * end + 3, 3), np.int64)  # items (i, j, l); j = 0 marks [i, l]
    stack[0] = (0, 0, end)
    size = 1
    count = 0
    while size > 0:
        size -= 1
        i, j, l = stack[size]
        if j == 0:
            if l == i + 1:
                continue
            s1 = end if i == 0 and l == end else i
            best = NEG
            t = -1
            for s0 in range(i + 1, l):
                item = _panel_item(C3, _panels_before(s0), l, i)
                ra = item + _reduce(A, B, RA, s1, s0, l)
                la = item + _reduce(A, B, LA, i, s0, l)
                if ra > best:
                    best, j, t = ra, s0, RA
                if la > best:
                    best, j, t = la, s0, LA
            if t < 0:
                return -1
            heads[j] = i if t == RA else l
            count = _emit_reduce(parts, count, hybrid, t, i, j, l)
            stack[size] = (i, j, l)
            size += 1
            continue
        best = _panel_item(E, 0, j, i) + C2[l, j]
        t = -1
        gone = 0
        left = False
        for k in range(j + 1, l):
            v1 = _panel_item(C3, _panels_before(j), k, i) + (shift[j, k] + C2[l, k])
            v2 = _panel_item(E, 0, j, i) + _panel_item(C3, _panels_before(k), l, j)
            v = max(v1, v2)
            ra2 = v + (_panel_item(arc_to, 0, k, i) + _reduce(A, B, RA2, j, k, l))
            ra = v + _reduce(A, B, RA, j, k, l)
            la = v + _reduce(A, B, LA, j, k, l)
            if ra2 > best:
                best, t, gone, left = ra2, RA2, k, v1 >= v2
            if ra > best:
                best, t, gone, left = ra, RA, k, v1 >= v2
            if la > best:
                best, t, gone, left = la, LA, k, v1 >= v2
        for y in range(i + 1, j):
            v1 = _panel_item(C3, _panels_before(y), j, i) + (shift[y, j] + C2[l, j])
            v2 = _panel_item(E, 0, y, i) + _panel_item(C3, _panels_before(j), l, y)
            v = max(v1, v2)
            ra_ = v + (_panel_item(arc_to, 0, y, i) + _reduce(A, B, RA1, y, j, l))
            la_ = v + _reduce(A, B, LA1, y, j, l)
            la2 = v + (_reduce(A, B, LA2, y, j, l) + _panel_item(arc_to, 0, y, l))
            if ra_ > best:
                best, t, gone, left = ra_, RA1, y, v1 >= v2
            if la_ > best:
                best, t, gone, left = la_, LA1, y, v1 >= v2
            if la2 > best:
                best, t, gone, left = la2, LA2, y, v1 >= v2
        if t < 0:
            stack[size] = (i, 0, j)
            stack[size + 1] = (j, 0, l)
            size += 2
            count = _emit_shift(parts, count, i, j)
            continue
        s1, s0 = min(gone, j), max(gone, j)
        if t == RA2 or t == RA1:
            heads[gone] = i
        elif t == RA:
            heads[gone] = s1
        elif t == LA1:
            heads[gone] = s0
        else:
            heads[gone] = l
        count = _emit_reduce(parts, count, hybrid, t, s1, s0, l)
        if left:
            stack[size] = (i, s1, s0)
            stack[size + 1] = (s0, 0, l)
            count = _emit_shift(parts, count, s1, s0)
        else:
            stack[size] = (i, 0, s1)
            stack[size + 1] = (s1, s0, l)
            count = _emit_shift(parts, count, i, s1)
        size += 2
    return count


@njit(nogil=True)
def _sizes(n):
    """(rows, columns) of A and B, arc_to and E, C2, C3l, links and C3."""
    N = n + 2
    groups = (N + W - 1) // W
    odd = (N | 1) * W
    return (
        (N, groups * W * SLOTS),
        (N, groups * W * SLOTS),
        (groups, odd),
        (groups, odd),
        (N, groups * W),
        (groups, groups * W * W),
        (1, groups * W * SLOTS),
        (_panels_before(N), odd),
    )


@njit(nogil=True, forceinline=True)
def _cut(memory, at, size):
    end = at + size[0] * size[1]
    return memory[at:end].reshape(size), end


@njit(cache=True, nogil=True)
def _decode(scores, arc_bonus, single_root, memory, heads, parts):
    sizes = _sizes(scores.shape[1] - 2)
    A, at = _cut(memory, 0, sizes[0])
    B, at = _cut(memory, at, sizes[1])
    arc_to, at = _cut(memory, at, sizes[2])
    E, at = _cut(memory, at, sizes[3])
    C2, at = _cut(memory, at, sizes[4])
    C3l, at = _cut(memory, at, sizes[5])
    links, at = _cut(memory, at, sizes[6])
    C3, at = _cut(memory, at, sizes[7])
    _prepare(scores, arc_bonus, single_root, A, B, arc_to)
    _fill(scores[0], A, B, arc_to, C2, E, C3, C3l, links.reshape(-1))
    if C2[-1, 0] == NEG:
        return -1
    return _walk_back(scores[0], A, B, arc_to, C2, E, C3, scores.shape[0] == 13, heads, parts)


def _floats(n: int) -> int:
    return sum(rows * columns for rows, columns in _sizes.py_func(n))


class MH4(Decoder):
    """What the two MH4 decoders share."""

    def chart_bytes(self, n: int) -> int:
        return 4 * _floats(n)

    def _run(self, scores: np.ndarray, arc_bonus: np.ndarray, heads: np.ndarray, parts: np.ndarray) -> int:
        return _decode(scores, arc_bonus, self.single_root, scratch(_floats(scores.shape[1] - 2)), heads, parts)


class MH4Two(MH4):
    """MH4 with every move scored by (s0, b0): the paper's two-feature model."""

    name: ClassVar[str] = "mh4-two"
    channels: ClassVar[tuple[str, ...]] = ("shift", *REDUCES)
    roles: ClassVar[tuple[tuple[str, str], ...]] = (("s0", "b0"),) * 7


class MH4Hybrid(MH4):
    """MH4 with shifts scored by (s0, b0) and each reduce by the sum of an (s1, s0) and an (s0, b0) score."""

    name: ClassVar[str] = "mh4-hybrid"
    channels: ClassVar[tuple[str, ...]] = (
        "shift",
        *(f"{t}[s1,s0]" for t in REDUCES),
        *(f"{t}[s0,b0]" for t in REDUCES),
    )
    roles: ClassVar[tuple[tuple[str, str], ...]] = (("s0", "b0"), *(("s1", "s0"),) * 6, *(("s0", "b0"),) * 6)
