"""Third-order, crossing-sensitive parsing to 1-endpoint-crossing trees in O(n⁴) time and O(n³) space.

Source: Pitler (2014), "A Crossing-Sensitive Third-Order Factorization for Dependency Parsing"; the tree class is that
of Pitler, Kannan and Marcus (2013). A crossed arc has a score of its own and no further parts; an uncrossed arc has
a sibling and a grandparent part, each left out next to certain crossed arcs (`parts_of_tree`).

On top of the charts of `charts` (see there for the notation):

- Ch(a,b): two roots a and b whose outermost arcs inward are crossed and interlocked.
- T(a,b,g): everything up to b below a, which is below g. P(a,b,g): the same, the outermost child of a being b itself,
  by an uncrossed arc. B(a,b,g): a and b are neighbouring children of g, with all words between.
- K(a,b): between a and its outermost child b if b has no inner sibling, or one whose arc is crossed (no sibling part).
- U(a,b,g): T(a,b⁻,g), or T up to some k and a chain Ch from there.
- CbA, CbX, P1, P2: chains of arcs crossing in turn, for LR and Ch alone.
"""

import math
from functools import cache

import numpy as np
from numba import njit

from ..lanes import broadcast, lane_max, load, splat, store, vmax
from ..numbers import parts_score
from ..tree_batch import TreeBatch
from ..trees import is_tree
from . import charts
from .charts import E0, F0, G0, H0, NEG, Q0, C, D, W, X, Z
from .decoder import CrossingDecoder
from .grammar import Grammar, parse_grammar
from .trees import parts_of_tree

CLOSED = (*charts.CLOSED, "CbA", "CbX")
CLOSED_CB_A, CLOSED_CB_X = 6, 7
FAR = (*charts.FAR, "P1")
FAR_P1 = 5
PAIRS = (*charts.PAIRS, "Ch", "K", "a", "g", "s")
CH, K, A, G, S = range(7, 12)  # scores A[h, d], but G[d, g] and S[d, s] by dependent
TOP = ("T", "P", "U")  # rows over g: `top`[a, b, slot, g]
T, P, U = range(3)
T1, B1 = range(2)  # T and B again, for reading one value at a time: `tops`[g, b, a, item]

CHANNELS = {"a": 0, "g": 1, "s": 2, "c": 3}
KINDS = (*charts.ITEMS, "Ch", "K", *TOP, "B", *CHANNELS)
SYMMETRIC = {"Z", "N0", "LR0", "LR1", "Ch", "B"}

RULES = """
Ch(a,b)     :  H0(a,b)
Ch(a,b)     k∈(a,b) l∈(a,k):  E0(a,k,l) c(b,l) N0(k,b,l)  |  G0(a,k,l) c(b,l) F0(k,b,l)  |  Q0(a,k,l) P1(k,b,l)

U(a,b,x)    :  T(a,b⁻,x)
U(a,b,x)    k∈[a,b):  T(a,k,x) Ch(k,b)
K(a,b)      :  s(⊥,b) T(b,a⁺,a)
K(a,b)      k∈(a,b]:  Ch(a,k) T(b,k,a)
K(a,b)      k∈(a,b):  X(a,k) U(b,k,a)
P(a,b,x)    :  a(a,b) g(x,b) K(a,b)
P(a,b,x)    k∈(a,b):  a(a,b) g(x,b) s(k,b) P(a,k,x) B(k,b,a)
T(a,b,x)    :  X(a,b)
T(a,b,x)    k∈(a,b]:  P(a,k,x) T(k,b,a)
B(a,b,x)    k∈[a,b):  T(a,k,x) U(b,k,x)
Z(a,b)      k∈[a,b):  T(a,k,∅) U(b,k,∅)
D(a,b)      :  T(a,b,∅)

CbA(a,b,x)  :  c(a,b) F0(a,b,x)
CbA(a,b,x)  k∈(a,b):  c(x,k) Z(a,k) CbX(k,b,a)
CbX(a,b,x)  k∈(a,b):  c(x,k) Z(a,k) CbA(k,b,a)
P1(a,b,x)   :  c(b,a) F0(a,b,x)
P1(a,b,x)   k∈(a,b):  c(x,k) Z(a,k) P2(k,b,a)
P2(a,b,x)   k∈(a,b):  c(k,x) Z(a,k) P1(k,b,a)
LR0(a,b,x)  :  F0(a,b,x)  |  F0(b,a,x)
LR0(a,b,x)  k∈(a,b):  CbA(a,k,x) F0(b,k,x)  |  CbX(a,k,x) F0(b,k,x)
LR0(a,b,x)  k∈(a,b):  CbA(b,k,x) F0(a,k,x)  |  CbX(b,k,x) F0(a,k,x)
LR1(a,b,x)  :  Fx(a,b,x)  |  Fx(b,a,x)
LR1(a,b,x)  k∈(a,b):  CbA(a,k,x) Fx(b,k,x)  |  CbX(a,k,x) FxA(b,k,x)
LR1(a,b,x)  k∈(a,b):  CbA(b,k,x) Fx(a,k,x)  |  CbX(b,k,x) FxA(a,k,x)
"""


@cache
def grammar() -> Grammar:
    """The rules of the third-order decoder."""
    return parse_grammar(charts.RULES + RULES, KINDS, CHANNELS, arcs={"a", "c"}, symmetric=SYMMETRIC, empty={"Z", "B"})


@njit(nogil=True)
def _fill_chain(i, j, pairs, closed, far, blocks):
    """Ch(i,j), i < j."""
    lanes = splat(NEG, W)
    for k in range(i + 1, j):
        for x in range((i + 1) // W * W, k, W):
            c_jx = load(pairs, (C, j, x), W)
            n = load(blocks, (i, k, E0, x), W) + (c_jx + load(closed, (k, j, charts.CLOSED_N0, x), W))
            f = load(blocks, (i, k, G0, x), W) + (c_jx + load(closed, (k, j, charts.CLOSED_F0, x), W))
            p = load(blocks, (i, k, Q0, x), W) + load(far, (j, k, FAR_P1, x), W)
            lanes = vmax(lanes, vmax(n, vmax(f, p)))
    pairs[CH, i, j] = pairs[CH, j, i] = max(pairs[H0, i, j], lane_max(lanes))


@njit(nogil=True)
def _fill_k(a, b, pairs, top):
    """K(a,b)."""
    step = 1 if a < b else -1
    none = pairs.shape[1]
    best = max(pairs[S, b, none] + top[b, a + step, T, a], pairs[CH, a, b])
    for k in range(a + step, b, step):
        best = max(best, pairs[CH, a, k] + top[b, k, T, a])
        best = max(best, pairs[X, a, k] + top[b, k, U, a])
    pairs[K, a, b] = best


@njit(nogil=True)
def _fill_top(a, b, starts, count, pairs, top, tops, weights):
    """T, P and U of (a,b,g) for all g in the vectors ``starts``; D(a,b)."""
    step = 1 if a < b else -1
    for k in range(a + step, b, step):
        weights[k, 0] = tops[a, b, k, T1]
        weights[k, 1] = pairs[S, b, k] + tops[a, b, k, B1]
        weights[k, 2] = pairs[CH, k, b]
    k_ab, x_ab = splat(pairs[K, a, b], W), splat(pairs[X, a, b], W)
    arc, ch_ab = splat(pairs[A, a, b], W), splat(pairs[CH, a, b], W)
    for v in range(count):
        g = starts[v]
        t, p = x_ab, k_ab
        u = vmax(load(top, (a, b - step, T, g), W), ch_ab)
        for k in range(a + step, b, step):
            p_ak = load(top, (a, k, P, g), W)
            t = vmax(t, p_ak + broadcast(weights, (k, 0), W))
            p = vmax(p, p_ak + broadcast(weights, (k, 1), W))
            u = vmax(u, load(top, (a, k, T, g), W) + broadcast(weights, (k, 2), W))
        p = arc + load(pairs, (G, b, g), W) + p
        store(top, (a, b, T, g), vmax(t, p))
        store(top, (a, b, P, g), p)
        store(top, (a, b, U, g), u)
    n = pairs.shape[1] - 1
    pairs[D, a, b] = top[a, b, T, n + 2]
    for g in range(min(a, b)):
        tops[g, b, a, T1] = top[a, b, T, g]
    for g in range(max(a, b) + 1, n + 1):
        tops[g, b, a, T1] = top[a, b, T, g]


@njit(nogil=True)
def _fill_b(i, j, starts, count, pairs, top, tops, row):
    """B(i,j,g) for all g, and Z(i,j)."""
    for v in range(count):
        g = starts[v]
        best = load(top, (j, i, U, g), W)
        for k in range(i + 1, j):
            best = vmax(best, load(top, (i, k, T, g), W) + load(top, (j, k, U, g), W))
        store(row, g, best)
    n = pairs.shape[1] - 1
    pairs[Z, i, j] = pairs[Z, j, i] = row[n + 2]
    for g in range(i):
        tops[g, i, j, B1] = tops[g, j, i, B1] = row[g]
    for g in range(j + 1, n + 1):
        tops[g, i, j, B1] = tops[g, j, i, B1] = row[g]


@njit(nogil=True)
def _fill_chains(a, b, starts, count, pairs, scalars, weights, rows):
    """CbA, CbX, P1 and P2 of (a,b,x) for all x, into ``rows``."""
    step = 1 if a < b else -1
    for k in range(a + step, b, step):
        near = pairs[Z, a, k]
        weights[k, 0] = near + scalars[a, b, k, charts.CB_X]
        weights[k, 1] = near + scalars[a, b, k, charts.CB_A]
        weights[k, 2] = near + scalars[a, b, k, charts.P2]
        weights[k, 3] = near + scalars[a, b, k, charts.P1]
    for v in range(count):
        x = starts[v]
        f0 = load(rows, (F0, x), W)
        cb_a, p1 = f0 + broadcast(pairs, (C, a, b), W), f0 + broadcast(pairs, (C, b, a), W)
        cb_x = p2 = splat(NEG, W)
        for k in range(a + step, b, step):
            c_xk = load(pairs, (charts.C_TO, k, x), W)
            cb_a = vmax(cb_a, c_xk + broadcast(weights, (k, 0), W))
            cb_x = vmax(cb_x, c_xk + broadcast(weights, (k, 1), W))
            p1 = vmax(p1, c_xk + broadcast(weights, (k, 2), W))
            p2 = vmax(p2, load(pairs, (C, k, x), W) + broadcast(weights, (k, 3), W))
        store(rows, (charts.CB_A, x), cb_a)
        store(rows, (charts.CB_X, x), cb_x)
        store(rows, (charts.P1, x), p1)
        store(rows, (charts.P2, x), p2)


@njit(nogil=True, forceinline=True)
def _closed(closed, a, k, slot, x):
    return load(closed, (a, k, slot, x), W)


@njit(nogil=True)
def _fill_lr(i, j, starts, count, closed, rows):
    """LR0 and LR1 of (i,j,x) for all x, into ``rows``."""
    for v in range(count):
        x = starts[v]
        lr0 = vmax(_closed(closed, i, j, charts.CLOSED_F0, x), _closed(closed, j, i, charts.CLOSED_F0, x))
        lr1 = vmax(_closed(closed, i, j, charts.CLOSED_FX, x), _closed(closed, j, i, charts.CLOSED_FX, x))
        for k in range(i + 1, j):
            a_left, x_left = _closed(closed, i, k, CLOSED_CB_A, x), _closed(closed, i, k, CLOSED_CB_X, x)
            a_right, x_right = _closed(closed, j, k, CLOSED_CB_A, x), _closed(closed, j, k, CLOSED_CB_X, x)
            lr0 = vmax(lr0, vmax(a_left, x_left) + _closed(closed, j, k, charts.CLOSED_F0, x))
            lr0 = vmax(lr0, vmax(a_right, x_right) + _closed(closed, i, k, charts.CLOSED_F0, x))
            lr1 = vmax(lr1, a_left + _closed(closed, j, k, charts.CLOSED_FX, x))
            lr1 = vmax(lr1, x_left + _closed(closed, j, k, charts.CLOSED_FX_A, x))
            lr1 = vmax(lr1, a_right + _closed(closed, i, k, charts.CLOSED_FX, x))
            lr1 = vmax(lr1, x_right + _closed(closed, i, k, charts.CLOSED_FX_A, x))
        store(rows, (charts.LR0, x), lr0)
        store(rows, (charts.LR1, x), lr1)


@njit(nogil=True)
def _fill_scores(scores, arc_bonus, penalty, pairs):
    """Copy the scores to ``pairs``; all other matrices are −inf, except D(a,a) = 0."""
    n = scores.shape[1] - 2
    pairs[:] = NEG
    charts.fill_scores(scores[3], arc_bonus, penalty, pairs[C], pairs[charts.C_TO])
    for h in range(n + 1):
        pairs[D, h, h] = 0
        for d in range(1, n + 1):
            if h != d:
                pairs[A, h, d] = scores[0, h, d] + arc_bonus[h, d] - (penalty if h == 0 else np.float32(0))
    for d in range(1, n + 1):
        for u in range(n + 2):
            pairs[G, d, u] = scores[1, u, d]
            pairs[S, d, u] = scores[2, u, d]
        pairs[G, d, n + 2] = 0


@njit(cache=True, nogil=True)
def _fill(scores, arc_bonus, penalty, memory):
    """Fill the charts, i descending and j ascending: all smaller intervals come before (i,j)."""
    n = scores.shape[1] - 2
    arrays = charts.cut_charts(memory, n, len(PAIRS), len(CLOSED), len(FAR), len(TOP))
    pairs, scalars, closed, far, blocks, top, tops, rows, weights, starts = arrays
    _fill_scores(scores, arc_bonus, penalty, pairs)
    for i in range(n, -1, -1):
        top[i, i, T] = 0
        for j in range(i + 1, n + 1):
            charts.fill_h(i, j, pairs, scalars)
            _fill_chain(i, j, pairs, closed, far, blocks)
            charts.fill_x(i, j, pairs, far, blocks)

            count = charts.vectors_outside(i, j, n + 3, starts)
            for turn in range(2):
                a, b = (i, j) if turn == 0 else (j, i)
                _fill_k(a, b, pairs, top)
                _fill_top(a, b, starts, count, pairs, top, tops, weights)
            _fill_b(i, j, starts, count, pairs, top, tops, rows[0])

            count = charts.vectors_outside(i, j, n + 1, starts)
            for turn in range(2):
                a, b = (i, j) if turn == 0 else (j, i)
                charts.fill_n(a, b, starts, count, pairs, closed, far)
                charts.fill_f(a, b, starts, count, pairs, scalars, closed, far, weights, rows)
                _fill_chains(a, b, starts, count, pairs, scalars, weights, rows)
                charts.keep_row(rows[charts.CB_A], closed, a, b, CLOSED_CB_A, starts, count)
                charts.keep_row(rows[charts.CB_X], closed, a, b, CLOSED_CB_X, starts, count)
                charts.keep_row(rows[charts.P1], far, b, a, FAR_P1, starts, count)
                charts.keep_scalars(a, b, 0, charts.LR0, rows, scalars)
            _fill_lr(i, j, starts, count, closed, rows)
            charts.finish(i, j, rows, pairs, scalars, blocks)


@cache
def _places(n: int) -> np.ndarray:
    all_shapes = charts.shapes(n, len(PAIRS), len(CLOSED), len(FAR), len(TOP))
    places, starts = charts.places_of_items(n, all_shapes, PAIRS, CLOSED, FAR)
    m, p = n + 1, charts.pitch(n)
    for name in ("g", "s"):  # these two lie by dependent
        places[name] = (places[name][0], 1, p, 0)
    for t, name in enumerate(TOP):
        places[name] = (starts[5] + t * p, m * len(TOP) * p, len(TOP) * p, 1)
    places["B"] = (starts[6] + B1, 2, 2 * m, 2 * m * m)
    return np.array([places[kind] for kind in grammar().kinds], np.int64)


class OneEndpointCrossing(CrossingDecoder):
    """Best 1-endpoint-crossing tree, third order and crossing-sensitive; O(n⁴) time, O(n³) space.

    Channels: arc[h, d] of an uncrossed arc, grandparent[g, d], sibling[s, d], crossed[h, d] of a crossed arc; row n + 1
    stands for "none". `parts_of_tree` says which of them a tree collects. Sums are taken in float32.

    References
    ----------
    Pitler (2014), "A Crossing-Sensitive Third-Order Factorization for Dependency Parsing".
    """

    name = "1ec"
    channels = ("arc", "grandparent", "sibling", "crossed")
    roles = (("head", "dependent"), ("grandparent", "dependent"), ("sibling", "dependent"), ("head", "dependent"))
    shared = ((("arc", "column"), ("crossed", "column")),)

    def chart_bytes(self, n: int) -> int:
        return 4 * sum(map(math.prod, charts.shapes(n, len(PAIRS), len(CLOSED), len(FAR), len(TOP))))

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        for b, (heads, parts) in enumerate(given.each()):
            found = parts_of_tree(heads)
            parts[: len(found)] = found
            given.counts[b] = len(found) if is_tree(heads, self.single_root) else -1
            given.totals[b] = parts_score(scores[b], parts, given.counts[b])

    def _walk(self, n: int) -> tuple[Grammar, np.ndarray, np.ndarray]:
        return grammar(), _places(n), np.array([KINDS.index("T"), 0, n, n + 1])

    def _fill(self, scores: np.ndarray, arc_bonus: np.ndarray, penalty: np.float32, memory: np.ndarray) -> None:
        _fill(scores, arc_bonus, penalty, memory)
