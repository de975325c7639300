"""Compiled products of row-major float32 matrices on the CPU.

The products of a training step are small, and their shapes change from batch to batch. MKL, which PyTorch calls, uses
half the width of AMD's vector registers, and oneDNN sets up anew for every shape; these loops use the full width and
need no set-up. Where registers hold fewer than 16 numbers (`mh4.decoders.lanes.REGISTER`), PyTorch's products are used.
"""

from typing import Any

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from mh4.decoders.lanes import REGISTER, broadcast, load, multiply_add, splat, store

from .devices import compiled_threads

W = REGISTER
ROWS, COLUMNS = 4, 2 * W  # of a tile: enough independent sums to hide most of the latency of an addition
WIDE_REGISTERS = REGISTER == 16
TALL = 2 * ROWS if WIDE_REGISTERS else ROWS  # rows of a tall tile, which hides all of it but needs 32 registers
THREADED = 500_000  # scalar multiplications from which on a second thread pays off
LARGE = 1_500_000  # elements; our loops would read a larger matrix from slow memory again and again


@njit(nogil=True)
def _add_step(a, cells, x, y, tile):
    """``tile`` plus four cells of a, each times the vectors x and y: one step of the inner loop."""
    c0, c1, c2, c3 = cells
    p0, q0, p1, q1, p2, q2, p3, q3 = tile
    s = broadcast(a, c0, W)
    p0, q0 = multiply_add(s, x, p0), multiply_add(s, y, q0)
    s = broadcast(a, c1, W)
    p1, q1 = multiply_add(s, x, p1), multiply_add(s, y, q1)
    s = broadcast(a, c2, W)
    p2, q2 = multiply_add(s, x, p2), multiply_add(s, y, q2)
    s = broadcast(a, c3, W)
    p3, q3 = multiply_add(s, x, p3), multiply_add(s, y, q3)
    return p0, q0, p1, q1, p2, q2, p3, q3


@njit(nogil=True)
def add_tile(a, rows, a_column, b, b_column, inner, tile):
    """``tile`` plus the product of four rows of a and `COLUMNS` columns of b, from ``a_column`` and ``b_column`` on."""
    r0, r1, r2, r3 = rows
    for k in range(inner):
        x, y = load(b, (k, b_column), W), load(b, (k, b_column + W), W)
        c = a_column + k
        tile = _add_step(a, ((r0, c), (r1, c), (r2, c), (r3, c)), x, y, tile)
    return tile


@njit(nogil=True)
def add_tall_tile(a, rows, a_column, b, b_column, inner, tiles):
    """`add_tile` for two tiles in one pass over b, summed in the same order."""
    (r0, r1, r2, r3), (r4, r5, r6, r7) = rows
    upper, lower = tiles
    for k in range(inner):
        x, y = load(b, (k, b_column), W), load(b, (k, b_column + W), W)
        c = a_column + k
        upper = _add_step(a, ((r0, c), (r1, c), (r2, c), (r3, c)), x, y, upper)
        lower = _add_step(a, ((r4, c), (r5, c), (r6, c), (r7, c)), x, y, lower)
    return upper, lower


@njit(nogil=True)
def _add_transposed_tile(a, a_column, b, b_column, tile):
    """``tile`` plus the product of four columns of a, transposed, and `COLUMNS` columns of b."""
    for k in range(a.shape[0]):
        x, y = load(b, (k, b_column), W), load(b, (k, b_column + W), W)
        cells = (k, a_column), (k, a_column + 1), (k, a_column + 2), (k, a_column + 3)
        tile = _add_step(a, cells, x, y, tile)
    return tile


@njit(nogil=True)
def load_tile(out, rows, column):
    """Load the tile of ``out`` that has these four rows, from ``column`` on."""
    r0, r1, r2, r3 = rows
    return (
        load(out, (r0, column), W),
        load(out, (r0, column + W), W),
        load(out, (r1, column), W),
        load(out, (r1, column + W), W),
        load(out, (r2, column), W),
        load(out, (r2, column + W), W),
        load(out, (r3, column), W),
        load(out, (r3, column + W), W),
    )


@njit(nogil=True)
def store_tile(out, rows, column, tile):
    """Write a tile back."""
    r0, r1, r2, r3 = rows
    p0, q0, p1, q1, p2, q2, p3, q3 = tile
    store(out, (r0, column), p0)
    store(out, (r0, column + W), q0)
    store(out, (r1, column), p1)
    store(out, (r1, column + W), q1)
    store(out, (r2, column), p2)
    store(out, (r2, column + W), q2)
    store(out, (r3, column), p3)
    store(out, (r3, column + W), q3)


@njit(nogil=True)
def rows_from(r, last):
    """The indices of a tile's four rows, from r on; ``last`` stands for those beyond it."""
    return r, min(r + 1, last), min(r + 2, last), min(r + 3, last)


@njit(nogil=True)
def _picked(numbers, rows):
    r0, r1, r2, r3 = rows
    return numbers[r0], numbers[r1], numbers[r2], numbers[r3]


@njit(nogil=True)
def multiply_rows(a, a_column, b, width, bias, out, out_column, start, stop):
    """Fill rows ``start`` to ``stop`` of ``bias + a @ b``. Tiles overlap at the edges and compute these cells twice.

    Parameters
    ----------
    a : (M, ·), of which K columns are used, from ``a_column`` on
    b : (K, ·), of which the first ``width`` columns are used, at least `COLUMNS`
    bias : (``width`` or more,)
    out : (M, ·), of which ``width`` columns are filled, from ``out_column`` on
    """
    inner, last = len(b), stop - 1
    for at in range(0, width, COLUMNS):
        column = min(at, width - COLUMNS)
        x, y = load(bias, column, W), load(bias, column + W, W)
        tile = (x, y, x, y, x, y, x, y)
        for r in range(start, stop, TALL):
            rows, lower = rows_from(r, last), rows_from(r + ROWS, last)
            if WIDE_REGISTERS and r + ROWS < stop:
                first, second = add_tall_tile(a, (rows, lower), a_column, b, column, inner, (tile, tile))
                store_tile(out, lower, out_column + column, second)
            else:
                first = add_tile(a, rows, a_column, b, column, inner, tile)
            store_tile(out, rows, out_column + column, first)


@njit(nogil=True, fastmath={"contract"})  # the columns beyond the tiles use fused multiply-add, too
def add_products(a, a_rows, a_column, b, out, out_rows, out_column, count):
    """``out[out_rows[r]] += a[a_rows[r]] @ b`` for the first ``count`` rows r, from the given columns on."""
    inner, width = b.shape
    tiled = width - width % COLUMNS
    last = count - 1
    for at in range(0, tiled, COLUMNS):
        column = out_column + at
        for r in range(0, count, TALL):
            rows = rows_from(r, last)
            of_a, of_out = _picked(a_rows, rows), _picked(out_rows, rows)
            tile = load_tile(out, of_out, column)
            if WIDE_REGISTERS and r + ROWS < count:
                rows = rows_from(r + ROWS, last)
                lower = _picked(out_rows, rows)
                tiles = tile, load_tile(out, lower, column)
                tile, below = add_tall_tile(a, (of_a, _picked(a_rows, rows)), a_column, b, at, inner, tiles)
                store_tile(out, lower, column, below)
            else:
                tile = add_tile(a, of_a, a_column, b, at, inner, tile)
            store_tile(out, of_out, column, tile)
    if tiled < width:
        for r in range(count):
            x = a[a_rows[r], a_column : a_column + inner]
            p = out[out_rows[r], out_column + tiled : out_column + width]
            for k in range(inner):
                y = b[k, tiled:]
                for j in range(width - tiled):
                    p[j] += x[k] * y[j]


@njit(nogil=True)
def multiply_transposed_rows(a, a_column, b, b_column, out, start, stop):
    """Fill rows ``start`` to ``stop`` of the product of a, transposed, and b, in tiles that overlap at the edges.

    Parameters
    ----------
    a : (P, ·), of which M columns are used, from ``a_column`` on
    b : (P, ·), of which N columns are used, from ``b_column`` on
    out : (M, N), at least (`ROWS`, `COLUMNS`), filled
    """
    width = out.shape[1]
    zero = splat(np.float32(0), W)
    for r in range(start, stop, ROWS):
        first = min(r, stop - ROWS)
        rows = first, first + 1, first + 2, first + 3
        for at in range(0, width, COLUMNS):
            column = min(at, width - COLUMNS)
            tile = (zero, zero, zero, zero, zero, zero, zero, zero)
            tile = _add_transposed_tile(a, a_column + first, b, b_column + column, tile)
            store_tile(out, rows, column, tile)


@njit(cache=True, nogil=True)
def _multiply(a, b, bias, out):
    multiply_rows(a, 0, b, b.shape[1], bias, out, 0, 0, len(out))


@njit(cache=True, nogil=True)
def _multiply_transposed(a, a_column, b, b_column, out):
    multiply_transposed_rows(a, a_column, b, b_column, out, 0, len(out))


@njit(cache=True, nogil=True, parallel=True)
def _multiply_in_parallel(a, b, bias, out, threads):
    for t in prange(threads):
        multiply_rows(a, 0, b, b.shape[1], bias, out, 0, *_share(len(out), t, threads))


@njit(cache=True, nogil=True, parallel=True)
def _multiply_transposed_in_parallel(a, a_column, b, b_column, out, threads):
    for t in prange(threads):
        multiply_transposed_rows(a, a_column, b, b_column, out, *_share(len(out), t, threads))


@njit(nogil=True)
def _share(rows, thread, threads):
    """The first row of a thread's share and the row after its last, in whole tiles."""
    tiles = (rows + TALL - 1) // TALL
    return min(rows, tiles * thread // threads * TALL), min(rows, tiles * (thread + 1) // threads * TALL)


def multiply(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """``bias + a @ b`` without gradient; a (M, K), b (K, N) and bias (N,), contiguous float32 on the CPU."""
    if not WIDE_REGISTERS or b.shape[1] < COLUMNS or b.numel() > LARGE or not len(a):
        return a @ b if bias is None else torch.addmm(bias, a, b)
    out = a.new_empty(len(a), b.shape[1])
    own_bias = a.new_zeros(b.shape[1]) if bias is None else bias
    arrays = a.numpy(), b.numpy(), own_bias.numpy(), out.numpy()
    with compiled_threads() as threads:
        if threads > 1 and len(a) * b.numel() >= THREADED:
            _multiply_in_parallel(*arrays, threads)
        else:
            _multiply(*arrays)
    return out


def multiply_transposed(a: Tensor, b: Tensor, a_columns: slice = slice(None), b_columns: slice = slice(None)) -> Tensor:
    """``a[:, a_columns].T @ b[:, b_columns]`` without gradient; both (P, ·), contiguous float32 on the CPU."""
    (a_start, a_stop, _), (b_start, b_stop, _) = a_columns.indices(a.shape[1]), b_columns.indices(b.shape[1])
    rows, columns = a_stop - a_start, b_stop - b_start
    if not WIDE_REGISTERS or rows < ROWS or columns < COLUMNS or rows * columns > LARGE:
        return a[:, a_columns].t() @ b[:, b_columns]
    out = a.new_empty(rows, columns)
    arrays = a.numpy(), a_start, b.numpy(), b_start, out.numpy()
    with compiled_threads() as threads:
        if threads > 1 and len(a) * out.numel() >= THREADED:
            _multiply_transposed_in_parallel(*arrays, threads)
        else:
            _multiply_transposed(*arrays)
    return out


class Product(torch.autograd.Function):
    """`torch.nn.functional.linear` for float32 on the CPU, as ``apply(x, weight, bias)``."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = x.flatten(0, -2).contiguous()
        context.save_for_backward(rows, weight)
        own_bias = None if bias is None else bias.detach()
        product = multiply(rows, weight.t().contiguous(), own_bias)
        return product.resize_(*x.shape[:-1], len(weight))  # not a view, which others' models could not change in place

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        rows, weight = context.saved_tensors
        own = gradient.flatten(0, -2).contiguous()
        to_rows = multiply(own, weight.detach()).view(*gradient.shape[:-1], weight.shape[1])
        return to_rows, multiply_transposed(own, rows), own.sum(0) if context.needs_input_grad[2] else None
