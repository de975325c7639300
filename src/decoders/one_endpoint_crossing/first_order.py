"""First-order parsing to 1-endpoint-crossing trees in O(n⁴) time and O(n³) space.

Source: Pitler, Kannan and Marcus (2013), "Finding Optimal 1-Endpoint-Crossing Trees". Uses the charts of `charts` (see
there for the notation), and on top of them only Z and D. A tree may have several derivations, and an uncrossed arc may
be built as if it were crossed. That is harmless, since both have the same score.

- Nx(a,b,x): N with the head of x below a or b.
"""

import math
from functools import cache

import numpy as np
from numba import njit

from ..arc_factored import derive_arcs
from ..lanes import broadcast, lane_max, load, splat, store, vmax
from ..tree_batch import TreeBatch
from . import charts
from .charts import E0, E1, G0, H0, H1, M1, NEG, Q0, C, D, W, X, Z
from .decoder import CrossingDecoder
from .grammar import Grammar, parse_grammar
from .trees import checked_one_endpoint_crossing

CLOSED = (*charts.CLOSED, "FbA", "FbX", "Fb", "Fbx")
CLOSED_FB_A, CLOSED_FB_X, CLOSED_FB, CLOSED_FBX = 6, 7, 8, 9
FAR = (*charts.FAR, "Nx", "Fa")
FAR_NX, FAR_FA = 5, 6
PAIRS = charts.PAIRS

CHANNELS = {"c": 0}
KINDS = (*charts.ITEMS, "Nx", *CHANNELS)
SYMMETRIC = {"Z", "N0", "LR0", "LR1", "Nx"}

RULES = """
D(a,b)      :  c(a,b) Z(a,b)  |  X(a,b)
D(a,b)      k∈(a,b):  D(a,k) D(k,b)
Z(a,b)      :  D(b,a⁺)  |  H0(a,b)
Z(a,b)      k∈(a,b):  D(a,k) Z(k,b)  |  H1(a,k) Z(k,b)  |  H0(a,k) D(b,k)
Z(a,b)      k∈(a,b) l∈(a,k):  E1(a,k,l) N0(k,b,l)  |  E0(a,k,l) Nx(k,b,l)
Z(a,b)      k∈(a,b) l∈(a,k):  E0(a,k,l) c(b,l) Z(k,b)  |  E0(a,k,l) c(b,l) N0(k,b,l)
Z(a,b)      k∈(a,b) l∈(a,k):  M1(a,k,l) F0(k,b,l)  |  G0(a,k,l) Fx(k,b,l)
Z(a,b)      k∈(a,b) l∈(a,k):  G0(a,k,l) c(b,l) Z(k,b)  |  G0(a,k,l) c(b,l) F0(k,b,l)
Z(a,b)      k∈(a,b) l∈(a,k):  Q0(a,k,l) Fa(k,b,l)

Nx(a,b,x)   k∈(a,b):  c(k,x) D(a,k) Z(k,b)  |  c(k,x) D(a,k) N0(k,b,x)
Nx(a,b,x)   k∈(a,b):  c(k,x) D(b,k) Z(k,a)  |  c(k,x) D(b,k) N0(k,a,x)
LR0(a,b,x)  :  F0(a,b,x)  |  F0(b,a,x)
LR0(a,b,x)  k∈(a,b):  Fb(a,k,x) F0(b,k,x)  |  Fb(b,k,x) F0(a,k,x)
LR1(a,b,x)  :  Fx(a,b,x)  |  Fx(b,a,x)
LR1(a,b,x)  k∈(a,b):  FbA(a,k,x) Fx(b,k,x)  |  FbX(a,k,x) FxA(b,k,x)  |  Fbx(a,k,x) F0(b,k,x)
LR1(a,b,x)  k∈(a,b):  FbA(b,k,x) Fx(a,k,x)  |  FbX(b,k,x) FxA(a,k,x)  |  Fbx(b,k,x) F0(a,k,x)
"""


@cache
def grammar() -> Grammar:
    """The rules of the first-order decoder."""
    text = charts.RULES + RULES
    return parse_grammar(text, KINDS, CHANNELS, arcs={"c"}, symmetric=SYMMETRIC, empty={"Z"})


@njit(nogil=True)
def _fill_z(i, j, pairs, closed, far, blocks):
    """Z(i,j), i < j."""
    best = max(pairs[D, j, i + 1], pairs[H0, i, j])
    lanes = splat(NEG, W)
    for k in range(i + 1, j):
        best = max(best, max(pairs[D, i, k], pairs[H1, i, k]) + pairs[Z, k, j], pairs[H0, i, k] + pairs[D, j, k])
        z_kj = broadcast(pairs, (Z, k, j), W)
        for x in range((i + 1) // W * W, k, W):
            c_jx = load(pairs, (C, j, x), W)
            n0, f0 = load(closed, (k, j, charts.CLOSED_N0, x), W), load(closed, (k, j, charts.CLOSED_F0, x), W)
            after_e0 = vmax(load(far, (j, k, FAR_NX, x), W), c_jx + vmax(z_kj, n0))
            after_g0 = vmax(load(closed, (k, j, charts.CLOSED_FX, x), W), c_jx + vmax(z_kj, f0))
            lanes = vmax(lanes, load(blocks, (i, k, E1, x), W) + n0)
            lanes = vmax(lanes, load(blocks, (i, k, E0, x), W) + after_e0)
            lanes = vmax(lanes, load(blocks, (i, k, M1, x), W) + f0)
            lanes = vmax(lanes, load(blocks, (i, k, G0, x), W) + after_g0)
            lanes = vmax(lanes, load(blocks, (i, k, Q0, x), W) + load(far, (j, k, FAR_FA, x), W))
    pairs[Z, i, j] = pairs[Z, j, i] = max(best, lane_max(lanes))


@njit(nogil=True)
def _fill_d(a, b, pairs):
    """D(a,b)."""
    step = 1 if a < b else -1
    best = max(pairs[C, a, b] + pairs[Z, a, b], pairs[X, a, b])
    for k in range(a + step, b, step):
        best = max(best, pairs[D, a, k] + pairs[D, k, b])
    pairs[D, a, b] = best


@njit(nogil=True)
def _fill_nx(i, j, starts, count, pairs, closed, far):
    """Nx(i,j,x) for all x in the vectors ``starts``, i < j."""
    for v in range(count):
        x = starts[v]
        best = splat(NEG, W)
        for k in range(i + 1, j):
            left = broadcast(pairs, (D, i, k), W) + vmax(
                broadcast(pairs, (Z, k, j), W), load(closed, (j, k, charts.CLOSED_N0, x), W)
            )
            right = broadcast(pairs, (D, j, k), W) + vmax(
                broadcast(pairs, (Z, i, k), W), load(closed, (i, k, charts.CLOSED_N0, x), W)
            )
            best = vmax(best, load(pairs, (C, k, x), W) + vmax(left, right))
        store(far, (j, i, FAR_NX, x), best)


@njit(nogil=True)
def _fill_lr(i, j, starts, count, closed, rows):
    """LR0 and LR1 of (i,j,x) for all x, into ``rows``."""
    for v in range(count):
        x = starts[v]
        lr0 = vmax(load(closed, (i, j, charts.CLOSED_F0, x), W), load(closed, (j, i, charts.CLOSED_F0, x), W))
        lr1 = vmax(load(closed, (i, j, charts.CLOSED_FX, x), W), load(closed, (j, i, charts.CLOSED_FX, x), W))
        for k in range(i + 1, j):
            for turn in range(2):
                a, b = (i, j) if turn == 0 else (j, i)
                f0 = load(closed, (b, k, charts.CLOSED_F0, x), W)
                lr0 = vmax(lr0, load(closed, (a, k, CLOSED_FB, x), W) + f0)
                lr1 = vmax(lr1, load(closed, (a, k, CLOSED_FBX, x), W) + f0)
                fx, fx_a = load(closed, (b, k, charts.CLOSED_FX, x), W), load(closed, (b, k, charts.CLOSED_FX_A, x), W)
                lr1 = vmax(lr1, load(closed, (a, k, CLOSED_FB_A, x), W) + fx)
                lr1 = vmax(lr1, load(closed, (a, k, CLOSED_FB_X, x), W) + fx_a)
        store(rows, (charts.LR0, x), lr0)
        store(rows, (charts.LR1, x), lr1)


@njit(cache=True, nogil=True)
def _fill(scores, arc_bonus, penalty, memory):
    """Fill the charts, i descending and j ascending: all smaller intervals come before (i,j)."""
    n = scores.shape[1] - 2
    arrays = charts.cut_charts(memory, n, len(PAIRS), len(CLOSED), len(FAR), 0)
    pairs, scalars, closed, far, blocks, _, _, rows, weights, starts = arrays
    pairs[:] = NEG
    charts.fill_scores(scores[0], arc_bonus, penalty, pairs[C], pairs[charts.C_TO])
    for i in range(n, -1, -1):
        pairs[D, i, i] = 0
        for j in range(i + 1, n + 1):
            charts.fill_h(i, j, pairs, scalars)
            _fill_z(i, j, pairs, closed, far, blocks)
            charts.fill_x(i, j, pairs, far, blocks)
            _fill_d(i, j, pairs)
            _fill_d(j, i, pairs)
            count = charts.vectors_outside(i, j, n + 1, starts)
            for turn in range(2):
                a, b = (i, j) if turn == 0 else (j, i)
                charts.fill_n(a, b, starts, count, pairs, closed, far)
                charts.fill_f(a, b, starts, count, pairs, scalars, closed, far, weights, rows)
                charts.keep_row(rows[charts.FB_A], closed, a, b, CLOSED_FB_A, starts, count)
                charts.keep_row(rows[charts.FB_X], closed, a, b, CLOSED_FB_X, starts, count)
                charts.keep_row(rows[charts.FB], closed, a, b, CLOSED_FB, starts, count)
                charts.keep_row(rows[charts.FBX], closed, a, b, CLOSED_FBX, starts, count)
                charts.keep_row(rows[charts.FA], far, b, a, FAR_FA, starts, count)
                charts.keep_scalars(a, b, 0, charts.FBX + 1, rows, scalars)
            _fill_nx(i, j, starts, count, pairs, closed, far)
            _fill_lr(i, j, starts, count, closed, rows)
            charts.finish(i, j, rows, pairs, scalars, blocks)


@cache
def _places(n: int) -> np.ndarray:
    all_shapes = charts.shapes(n, len(PAIRS), len(CLOSED), len(FAR), 0)
    places, _ = charts.places_of_items(n, all_shapes, PAIRS, CLOSED, FAR)
    return np.array([places[kind] for kind in grammar().kinds], np.int64)


class OneEndpointCrossingFirstOrder(CrossingDecoder):
    """Best 1-endpoint-crossing tree for arc scores; O(n⁴) time, O(n³) space.

    Channel: arc[h, d]; the end position, column 0 and the diagonal have no effect. Sums are taken in float32.

    References
    ----------
    Pitler, Kannan and Marcus (2013), "Finding Optimal 1-Endpoint-Crossing Trees".
    """

    name = "1ec-first-order"
    channels = ("arc",)
    roles = (("head", "dependent"),)
    shared = ((("arc", "column"),),)

    def chart_bytes(self, n: int) -> int:
        return 4 * sum(map(math.prod, charts.shapes(n, len(PAIRS), len(CLOSED), len(FAR), 0)))

    def _derive(self, scores: np.ndarray, given: TreeBatch) -> None:
        for heads, _ in given.each():
            checked_one_endpoint_crossing(heads)
        derive_arcs(scores, given, self.single_root, False)

    def _walk(self, n: int) -> tuple[Grammar, np.ndarray, np.ndarray]:
        return grammar(), _places(n), np.array([KINDS.index("D"), 0, n, 0])

    def _fill(self, scores: np.ndarray, arc_bonus: np.ndarray, penalty: np.float32, memory: np.ndarray) -> None:
        _fill(scores, arc_bonus, penalty, memory)
