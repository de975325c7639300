"""The charts of crossed arcs that both 1-endpoint-crossing decoders are built on.

Source: Pitler, Kannan and Marcus (2013), "Finding Optimal 1-Endpoint-Crossing Trees"; Pitler (2014), "A
Crossing-Sensitive Third-Order Factorization for Dependency Parsing". Their left and right items are one item here: an
interval (a,b) is walked from a, and a may be the larger end.

In (a,b), and in (a,b,x) where x is a node outside, the words strictly between a and b have all their heads in the
interval or at x.

- Z(a,b): neither a nor b has its head inside. D(a,b): b has its head inside, so everything hangs below a.
- F…(a,b,x): x has at least one arc into the interval; inside the interval such arcs are crossed by arcs of a only.
  Outside they are crossed too, by the arc of the rule that takes the item up.
- N…(a,b,x): the same, but inside the interval arcs of x are crossed by nothing.
- LR…(a,b,x): the same, but crossed by arcs of a or by arcs of b.
- The rest of a name says which of a, b and x have their heads inside and, where it matters, below which of the others:
  F0, N0, LR0: none. FbX, FbA: b, below x or below a; Fb, Nb: b, below either. FxA: x, below a; Fx, LR1: x, below a
  or b. FaX: a, below x; Fa: a, below x or b. Fab: a and b, below x. Fbx, Nbx: b and x, below a.
- VX(a,b,x), VA(a,b,x): F with b finished: b and x below a; a and b below x.
- E, G, M, Q (a,b,x): a block with a crossed arc of a, to b in E and G, to x in Q. Its pencil point, the common end of
  all arcs that cross it, is the other one of b and x; 1 means that the pencil point has its head. M1 is the better of
  G1 and Q1.
- H0, H1(a,b): a crossed arc from a and all words up to b, the end of every arc that crosses it; H1: b has its head.
- X(a,b): everything up to and including b is below a, whose outermost arc is crossed.
"""

import math

import numpy as np
from numba import njit
from numba.extending import register_jitable

from ..lanes import broadcast, cut, lane_max, load, splat, store, vmax

W = 8  # lanes
NEG = np.float32(-np.inf)

# Items that kernels read one value at a time: they lie in `scalars`[x, b, a, item].
SCALARS = ("F0", "FbX", "FbA", "FxA", "FaX", "Fa", "Fx", "Fb", "Fab", "Fbx", "CbA", "CbX", "P1", "P2", "LR0", "LR1")
F0, FB_X, FB_A, FX_A, FA_X, FA, FX, FB, FAB, FBX, CB_A, CB_X, P1, P2, LR0, LR1 = range(16)
VX, VA = 16, 17  # after them in the buffer `rows`[item, x] of one interval

# Rows over x that the rules combine: `closed`[a, b, slot, x], `far`[b, a, slot, x] and `blocks`[a, b, slot, x].
CLOSED = ("F0", "VX", "VA", "Fx", "FxA", "N0")
CLOSED_F0, CLOSED_VX, CLOSED_VA, CLOSED_FX, CLOSED_FX_A, CLOSED_N0 = range(6)
FAR = ("Nb", "Nbx", "Fb", "Fbx", "Fab")
FAR_NB, FAR_NBX, FAR_FB, FAR_FBX, FAR_FAB = range(5)
BLOCKS = ("E0", "E1", "G0", "M1", "Q0")
E0, E1, G0, M1, Q0 = range(5)

# Matrices: `pairs`[matrix, row, column]; C_TO is C transposed.
PAIRS = ("c", "c_to", "Z", "D", "H0", "H1", "X")
C, C_TO, Z, D, H0, H1, X = range(7)

# All items of the rules below.
ITEMS = (*SCALARS, "VX", "VA", "N0", *FAR[:2], *BLOCKS, *PAIRS[2:])

RULES = """
H0(a,b)     k∈(a,b):  c(a,k) LR0(a,k,b) Z(k,b)
H1(a,b)     k∈(a,b):  c(a,k) LR1(a,k,b) Z(k,b)  |  c(a,k) LR0(a,k,b) D(k,b)
X(a,b)      k∈(a,b]:  H1(a,k) D(k,b)
X(a,b)      k∈(a,b) l∈(a,k):  E1(a,k,l) Nb(k,b,l)  |  E0(a,k,l) Nbx(k,b,l)  |  M1(a,k,l) Fb(k,b,l)
X(a,b)      k∈(a,b) l∈(a,k):  G0(a,k,l) Fbx(k,b,l)  |  Q0(a,k,l) Fab(k,b,l)

N0(a,b,x)   k∈(a,b):  c(x,k) Z(a,k) Z(k,b)  |  c(x,k) N0(a,k,x) Z(k,b)
Nb(a,b,x)   k∈(a,b]:  c(x,k) Z(a,k) D(k,b)  |  c(x,k) N0(a,k,x) D(k,b)
Nbx(a,b,x)  k∈(a,b]:  c(k,x) D(a,k) D(k,b)
Nbx(a,b,x)  k∈(a,b):  c(k,x) D(a,k) Nb(k,b,x)

F0(a,b,x)   k∈(a,b):  c(x,k) F0(a,k,x) Z(k,b)  |  c(a,k) F0(a,k,x) Z(k,b)
F0(a,b,x)   k∈(a,b):  c(x,k) Z(a,k) Z(k,b)  |  c(x,k) Z(a,k) F0(k,b,a)
FbX(a,b,x)  k∈(a,b):  c(x,k) F0(a,k,x) D(k,b)  |  c(x,k) Z(a,k) D(k,b)  |  c(x,k) Z(a,k) FbA(k,b,a)
FbX(a,b,x)  :  c(x,b) F0(a,b,x)
FbA(a,b,x)  k∈(a,b):  c(a,k) F0(a,k,x) D(k,b)  |  c(x,k) Z(a,k) FbX(k,b,a)
FbA(a,b,x)  :  c(a,b) F0(a,b,x)
FxA(a,b,x)  k∈(a,b):  VX(a,k,x) Z(k,b)
FxA(a,b,x)  k∈(a,b):  c(k,x) D(a,k) Z(k,b)  |  c(k,x) D(a,k) F0(k,b,a)  |  c(k,x) Z(a,k) FaX(k,b,a)
FaX(a,b,x)  k∈(a,b):  VA(a,k,x) Z(k,b)
FaX(a,b,x)  k∈(a,b):  c(x,k) D(k,a) Z(k,b)  |  c(x,k) D(k,a) F0(k,b,a)  |  c(x,k) Z(a,k) FxA(k,b,a)
Fa(a,b,x)   :  FaX(a,b,x)
Fa(a,b,x)   k∈(a,b):  c(k,a) F0(a,k,x) D(b,k)  |  c(x,k) Z(a,k) Fx(k,b,a)
Fa(a,b,x)   :  c(b,a) F0(a,b,x)
Fx(a,b,x)   :  FxA(a,b,x)
Fx(a,b,x)   k∈(a,b):  c(k,x) F0(a,k,x) D(b,k)  |  c(k,x) Z(a,k) D(b,k)  |  c(k,x) Z(a,k) Fa(k,b,a)
Fb(a,b,x)   :  FbX(a,b,x)  |  FbA(a,b,x)  |  c(x,b) Z(a,b)
VX(a,b,x)   :  c(b,x) FbA(a,b,x)  |  c(x,b) FxA(a,b,x)  |  c(a,b) Fx(a,b,x)
VA(a,b,x)   :  c(x,b) Fa(a,b,x)  |  c(a,b) FaX(a,b,x)  |  c(b,a) FbX(a,b,x)
Fab(a,b,x)  k∈(a,b):  VA(a,k,x) D(k,b)
Fab(a,b,x)  k∈(a,b):  c(x,k) D(k,a) D(k,b)  |  c(x,k) D(k,a) Fb(k,b,a)  |  c(x,k) Z(a,k) Fbx(k,b,a)
Fab(a,b,x)  :  VA(a,b,x)  |  c(x,b) D(b,a)
Fbx(a,b,x)  k∈(a,b):  VX(a,k,x) D(k,b)
Fbx(a,b,x)  k∈(a,b):  c(k,x) D(a,k) D(k,b)  |  c(k,x) D(a,k) Fb(k,b,a)  |  c(k,x) Z(a,k) Fab(k,b,a)
Fbx(a,b,x)  :  VX(a,b,x)  |  c(b,x) D(a,b)

E0(a,b,x)   :  c(a,b) Z(a,x) F0(x,b,a)
E1(a,b,x)   :  c(a,b) D(a,x) F0(x,b,a)  |  c(a,b) Z(a,x) Fa(x,b,a)
G0(a,b,x)   :  c(a,b) Z(a,x) Z(x,b)  |  c(a,b) F0(x,a,b) Z(x,b)
M1(a,b,x)   :  c(a,b) D(a,x) Z(x,b)  |  c(a,b) Fa(x,a,b) Z(x,b)
M1(a,b,x)   :  c(a,b) Z(a,x) D(b,x)  |  c(a,b) F0(x,a,b) D(b,x)
M1(a,b,x)   :  c(a,x) Fx(x,a,b) Z(x,b)  |  c(a,x) F0(x,a,b) D(x,b)
Q0(a,b,x)   :  c(a,x) F0(x,a,b) Z(x,b)
"""


@register_jitable
def pitch(n):
    """Floats in a row over x: positions 0…n, ⊥, ∅, rounded up to a whole number of vectors."""
    return (n + 3 + W - 1) // W * W


@register_jitable
def shapes(n, pairs, closed, far, top):
    """Shapes of pairs (with a first axis of 1), scalars, closed, far, blocks, and the third-order top and tops."""
    m, p = n + 1, pitch(n)
    return (
        (1, pairs, m, p),
        (m, m, m, len(SCALARS)),
        (m, m, closed, p),
        (m, m, far, p),
        (m, m, len(BLOCKS), p),
        (m, m, top, p),
        (m, m, m, min(top, 2)),
    )


@njit(nogil=True, forceinline=True)
def cut_charts(memory, n, pairs, closed, far, top):
    """The arrays of `shapes` and, with room for one interval, `rows`, `weights` and `starts`."""
    all_shapes = shapes(n, pairs, closed, far, top)
    pairs_of_one, at = cut(memory, 0, all_shapes[0])
    scalars, at = cut(memory, at, all_shapes[1])
    rows_closed, at = cut(memory, at, all_shapes[2])
    rows_far, at = cut(memory, at, all_shapes[3])
    blocks, at = cut(memory, at, all_shapes[4])
    rows_top, at = cut(memory, at, all_shapes[5])
    tops, _ = cut(memory, at, all_shapes[6])
    rows, weights = np.empty((18, pitch(n)), np.float32), np.empty((n + 1, 16), np.float32)
    starts = np.empty(pitch(n) // W + 1, np.int64)
    return pairs_of_one[0], scalars, rows_closed, rows_far, blocks, rows_top, tops, rows, weights, starts


def places_of_items(n, all_shapes, pairs, closed, far):
    """Offset and strides of the items and scores of the shared rules, by name; see `grammar.walk_back`.

    ``pairs``, ``closed`` and ``far`` name the slots of these arrays. The arrays of `shapes` follow each other in
    memory; also returns where each of them starts.
    """
    m, p = n + 1, pitch(n)
    starts = np.cumsum([0] + [math.prod(shape) for shape in all_shapes]).tolist()
    size = len(SCALARS)
    places = {name: (starts[0] + t * m * p, p, 1, 0) for t, name in enumerate(pairs)}
    places |= {name: (starts[2] + t * p, m * len(closed) * p, len(closed) * p, 1) for t, name in enumerate(closed)}
    places |= {name: (starts[3] + t * p, len(far) * p, m * len(far) * p, 1) for t, name in enumerate(far)}
    places |= {name: (starts[4] + t * p, m * len(BLOCKS) * p, len(BLOCKS) * p, 1) for t, name in enumerate(BLOCKS)}
    places |= {name: (starts[1] + t, size, size * m, size * m * m) for t, name in enumerate(SCALARS)}
    return places, starts


@njit(nogil=True)
def vectors_outside(i, j, stop, starts):
    """Fill ``starts`` with the first positions of vectors that reach below i or beyond j (up to stop); their number."""
    count = 0
    for x in range(0, i, W):
        starts[count] = x
        count += 1
    if j + 1 < stop:
        for x in range(max(count * W, (j + 1) // W * W), stop, W):
            starts[count] = x
            count += 1
    return count


@njit(nogil=True)
def fill_scores(arc, arc_bonus, penalty, c, c_to):
    """c[h, d] = arc[h, d] + arc_bonus[h, d], less the penalty if h is the root; −inf where no arc is possible."""
    n = arc.shape[0] - 2
    c[:] = NEG
    c_to[:] = NEG
    for h in range(n + 1):
        for d in range(1, n + 1):
            if d != h:
                c[h, d] = c_to[d, h] = arc[h, d] + arc_bonus[h, d] - (penalty if h == 0 else np.float32(0))


@njit(nogil=True)
def _fill_h(a, b, pairs, scalars):
    """H0(a,b) and H1(a,b)."""
    step = 1 if a < b else -1
    h0 = h1 = NEG
    for k in range(a + step, b, step):
        lr0 = pairs[C, a, k] + scalars[b, a, k, LR0]
        lr1 = pairs[C, a, k] + scalars[b, a, k, LR1]
        h0 = max(h0, lr0 + pairs[Z, k, b])
        h1 = max(h1, lr1 + pairs[Z, k, b], lr0 + pairs[D, k, b])
    pairs[H0, a, b], pairs[H1, a, b] = h0, h1


@njit(nogil=True, forceinline=True)
def fill_h(i, j, pairs, scalars):
    """H0 and H1 of (i,j) and (j,i)."""
    _fill_h(i, j, pairs, scalars)
    _fill_h(j, i, pairs, scalars)


@njit(nogil=True)
def _fill_x(a, b, pairs, far, blocks):
    """X(a,b)."""
    step = 1 if a < b else -1
    best = pairs[H1, a, b]
    lanes = splat(NEG, W)
    for k in range(a + step, b, step):
        best = max(best, pairs[H1, a, k] + pairs[D, k, b])
        for x in range((min(a, k) + 1) // W * W, max(a, k), W):
            lanes = vmax(lanes, load(blocks, (a, k, E1, x), W) + load(far, (b, k, FAR_NB, x), W))
            lanes = vmax(lanes, load(blocks, (a, k, E0, x), W) + load(far, (b, k, FAR_NBX, x), W))
            lanes = vmax(lanes, load(blocks, (a, k, M1, x), W) + load(far, (b, k, FAR_FB, x), W))
            lanes = vmax(lanes, load(blocks, (a, k, G0, x), W) + load(far, (b, k, FAR_FBX, x), W))
            lanes = vmax(lanes, load(blocks, (a, k, Q0, x), W) + load(far, (b, k, FAR_FAB, x), W))
    pairs[X, a, b] = max(best, lane_max(lanes))


@njit(nogil=True, forceinline=True)
def fill_x(i, j, pairs, far, blocks):
    """X(i,j) and X(j,i)."""
    _fill_x(i, j, pairs, far, blocks)
    _fill_x(j, i, pairs, far, blocks)


@njit(nogil=True)
def fill_n(a, b, starts, count, pairs, closed, far):
    """N0, Nb and Nbx of (a,b,x) for all x in the vectors ``starts``."""
    step = 1 if a < b else -1
    for v in range(count):
        x = starts[v]
        n0 = nb = nbx = splat(NEG, W)
        for k in range(a + step, b, step):
            c_xk = load(pairs, (C_TO, k, x), W)
            c_kx = load(pairs, (C, k, x), W)
            near = c_xk + vmax(broadcast(pairs, (Z, a, k), W), load(closed, (a, k, CLOSED_N0, x), W))
            d_kb = broadcast(pairs, (D, k, b), W)
            n0 = vmax(n0, near + broadcast(pairs, (Z, k, b), W))
            nb = vmax(nb, near + d_kb)
            nbx = vmax(nbx, c_kx + broadcast(pairs, (D, a, k), W) + vmax(d_kb, load(far, (b, k, FAR_NB, x), W)))
        store(closed, (a, b, CLOSED_N0, x), n0)
        last = load(pairs, (C_TO, b, x), W) + vmax(broadcast(pairs, (Z, a, b), W), n0)
        store(far, (b, a, FAR_NB, x), vmax(nb, last))
        store(far, (b, a, FAR_NBX, x), vmax(nbx, load(pairs, (C, b, x), W) + broadcast(pairs, (D, a, b), W)))


@njit(nogil=True)
def _weigh_splits(a, b, pairs, scalars, weights):
    """Fill ``weights``[k] with the terms of the rules of F(a,b,x) that do not depend on x."""
    step = 1 if a < b else -1
    for k in range(a + step, b, step):
        near, right = pairs[Z, a, k], pairs[Z, k, b]
        d_kb = pairs[D, k, b]
        e0 = max(right, scalars[a, b, k, F0])
        e1 = max(d_kb, scalars[a, b, k, FB])
        weights[k, 0] = right
        weights[k, 1] = d_kb
        weights[k, 2] = pairs[D, b, k]
        weights[k, 3] = pairs[C, a, k]
        weights[k, 4] = pairs[C, k, a]
        weights[k, 5] = near + e0
        weights[k, 6] = near + max(d_kb, scalars[a, b, k, FB_A])
        weights[k, 7] = near + scalars[a, b, k, FB_X]
        weights[k, 8] = max(pairs[D, a, k] + e0, near + scalars[a, b, k, FA_X])
        weights[k, 9] = max(pairs[D, k, a] + e0, near + scalars[a, b, k, FX_A])
        weights[k, 10] = near + scalars[a, b, k, FX]
        weights[k, 11] = near + max(pairs[D, b, k], scalars[a, b, k, FA])
        weights[k, 12] = max(pairs[D, k, a] + e1, near + scalars[a, b, k, FBX])
        weights[k, 13] = max(pairs[D, a, k] + e1, near + scalars[a, b, k, FAB])


@njit(nogil=True)
def _keep_f(a, b, starts, count, rows, closed, far):
    """Copy the rows that later intervals combine."""
    for v in range(count):
        x = starts[v]
        store(closed, (a, b, CLOSED_F0, x), load(rows, (F0, x), W))
        store(closed, (a, b, CLOSED_VX, x), load(rows, (VX, x), W))
        store(closed, (a, b, CLOSED_VA, x), load(rows, (VA, x), W))
        store(closed, (a, b, CLOSED_FX, x), load(rows, (FX, x), W))
        store(closed, (a, b, CLOSED_FX_A, x), load(rows, (FX_A, x), W))
        store(far, (b, a, FAR_FB, x), load(rows, (FB, x), W))
        store(far, (b, a, FAR_FBX, x), load(rows, (FBX, x), W))
        store(far, (b, a, FAR_FAB, x), load(rows, (FAB, x), W))


@njit(nogil=True)
def fill_f(a, b, starts, count, pairs, scalars, closed, far, weights, rows):
    """All F, VX and VA of (a,b,x) for all x in the vectors ``starts``, into ``rows``[item, x].

    Rows that later intervals combine are also copied to ``closed`` and ``far``. ``weights`` has room for 16 numbers per
    position.
    """
    step = 1 if a < b else -1
    _weigh_splits(a, b, pairs, scalars, weights)
    for v in range(count):
        x = starts[v]
        f0 = fb_x = fb_a = fx_a = fa_x = fa = fx = fab = fbx = splat(NEG, W)
        for k in range(a + step, b, step):
            c_xk, c_kx = load(pairs, (C_TO, k, x), W), load(pairs, (C, k, x), W)
            f = load(closed, (a, k, CLOSED_F0, x), W)
            vx, va = load(closed, (a, k, CLOSED_VX, x), W), load(closed, (a, k, CLOSED_VA, x), W)
            right, d_kb = broadcast(weights, (k, 0), W), broadcast(weights, (k, 1), W)
            d_bk = broadcast(weights, (k, 2), W)
            px = f + c_xk
            pa = f + broadcast(weights, (k, 3), W)
            f0 = vmax(f0, vmax(vmax(px, pa) + right, c_xk + broadcast(weights, (k, 5), W)))
            fb_x = vmax(fb_x, vmax(px + d_kb, c_xk + broadcast(weights, (k, 6), W)))
            fb_a = vmax(fb_a, vmax(pa + d_kb, c_xk + broadcast(weights, (k, 7), W)))
            fx_a = vmax(fx_a, vmax(vx + right, c_kx + broadcast(weights, (k, 8), W)))
            fa_x = vmax(fa_x, vmax(va + right, c_xk + broadcast(weights, (k, 9), W)))
            fa = vmax(fa, vmax(f + broadcast(weights, (k, 4), W) + d_bk, c_xk + broadcast(weights, (k, 10), W)))
            fx = vmax(fx, vmax(f + c_kx + d_bk, c_kx + broadcast(weights, (k, 11), W)))
            fab = vmax(fab, vmax(va + d_kb, c_xk + broadcast(weights, (k, 12), W)))
            fbx = vmax(fbx, vmax(vx + d_kb, c_kx + broadcast(weights, (k, 13), W)))
        c_xb, c_bx = load(pairs, (C_TO, b, x), W), load(pairs, (C, b, x), W)
        c_ab, c_ba = broadcast(pairs, (C, a, b), W), broadcast(pairs, (C, b, a), W)
        direct = c_xb + broadcast(pairs, (Z, a, b), W)
        fb_x = vmax(fb_x, f0 + c_xb)
        fa = vmax(vmax(fa, fa_x), f0 + c_ba)
        fb_a = vmax(fb_a, f0 + c_ab)
        fx = vmax(fx, fx_a)
        vx = vmax(vmax(c_bx + fb_a, c_xb + fx_a), c_ab + fx)
        va = vmax(vmax(c_xb + fa, c_ab + fa_x), c_ba + fb_x)
        store(rows, (F0, x), f0)
        store(rows, (FB_X, x), fb_x)
        store(rows, (FB_A, x), fb_a)
        store(rows, (FX_A, x), fx_a)
        store(rows, (FA_X, x), fa_x)
        store(rows, (FA, x), fa)
        store(rows, (FX, x), fx)
        store(rows, (FB, x), vmax(vmax(fb_x, fb_a), direct))
        store(rows, (FAB, x), vmax(vmax(fab, va), c_xb + broadcast(pairs, (D, b, a), W)))
        store(rows, (FBX, x), vmax(vmax(fbx, vx), c_bx + broadcast(pairs, (D, a, b), W)))
        store(rows, (VX, x), vx)
        store(rows, (VA, x), va)
    _keep_f(a, b, starts, count, rows, closed, far)


@njit(nogil=True)
def keep_row(row, kept, a, b, slot, starts, count):
    """Copy one row over x to ``kept``[a, b, slot]."""
    for v in range(count):
        store(kept, (a, b, slot, starts[v]), load(row, starts[v], W))


@njit(nogil=True)
def keep_scalars(a, b, first, stop, rows, scalars):
    """Copy the items first … stop − 1 of (a,b,x) to ``scalars``, where they are read one value at a time."""
    n = scalars.shape[0] - 1
    i, j = min(a, b), max(a, b)
    for x in range(i):
        for item in range(first, stop):
            scalars[x, b, a, item] = rows[item, x]
    for x in range(j + 1, n + 1):
        for item in range(first, stop):
            scalars[x, b, a, item] = rows[item, x]


@njit(nogil=True)
def _fill_blocks(a, b, pairs, scalars, blocks):
    """E0, E1, G0, M1 and Q0 of (a,b,x) for x inside the interval; −inf elsewhere in the vectors that reach inside."""
    i, j = min(a, b), max(a, b)
    nothing = splat(NEG, W)
    for x in range((i + 1) // W * W, j, W):
        for slot in range(5):
            store(blocks, (a, b, slot, x), nothing)
    c_ab = pairs[C, a, b]
    for x in range(i + 1, j):
        near, right = pairs[Z, a, x], pairs[Z, x, b]
        d_ax, d_bx = pairs[D, a, x], pairs[D, b, x]
        f0_xba, f0_xab = scalars[a, b, x, F0], scalars[b, a, x, F0]
        w0 = max(near, f0_xab)
        w1 = max(d_ax, scalars[b, a, x, FA])
        g1 = c_ab + max(w1 + right, w0 + d_bx)
        q1 = pairs[C, a, x] + max(scalars[b, a, x, FX] + right, f0_xab + pairs[D, x, b])
        blocks[a, b, E0, x] = c_ab + (near + f0_xba)
        blocks[a, b, E1, x] = c_ab + max(d_ax + f0_xba, near + scalars[a, b, x, FA])
        blocks[a, b, G0, x] = c_ab + (w0 + right)
        blocks[a, b, M1, x] = max(g1, q1)
        blocks[a, b, Q0, x] = pairs[C, a, x] + f0_xab + right


@njit(nogil=True, forceinline=True)
def finish(i, j, rows, pairs, scalars, blocks):
    """Copy LR0 and LR1 of (i,j,x) = (j,i,x) from ``rows`` to ``scalars``, and fill the blocks of both directions."""
    keep_scalars(i, j, LR0, LR1 + 1, rows, scalars)
    keep_scalars(j, i, LR0, LR1 + 1, rows, scalars)
    _fill_blocks(i, j, pairs, scalars, blocks)
    _fill_blocks(j, i, pairs, scalars, blocks)
