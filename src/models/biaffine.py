"""Compiled biaffine forms for the CPU: the scores of all parts of a batch, and the gradient of single parts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from mh4.decoders.lanes import broadcast, load, multiply_add, splat, store

from .devices import compiled_threads
from .products import (
    COLUMNS,
    ROWS,
    TALL,
    WIDE_REGISTERS,
    W,
    add_tall_tile,
    add_tile,
    multiply_rows,
    multiply_transposed_rows,
    rows_from,
    store_tile,
)

POSITIONS = 256  # multiplied by a matrix in one go, so that their products stay in the cache


@njit(nogil=True)
def _turn(vectors, turned):
    """``turned[j, i] = vectors[i, j]``."""
    for i in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            turned[j, i] = vectors[i, j]


@njit(nogil=True)
def _multiply_last(turned, row, matrix, products, column, first, size):
    """Fill the last column of the product of a sentence's vectors, given transposed in ``turned``, and a matrix.

    The order of summation is that of `add_tile`.
    """
    last = matrix.shape[1] - 1
    block = np.empty(COLUMNS, np.float32)
    for at in range(0, size, COLUMNS):
        x = y = splat(np.float32(0), W)
        for k in range(len(matrix)):
            s = broadcast(matrix, (k, last), W)
            x = multiply_add(load(turned, (row, k, at), W), s, x)
            y = multiply_add(load(turned, (row, k, at + W), W), s, y)
        store(block, 0, x)
        store(block, W, y)
        for i in range(at, min(at + COLUMNS, size)):
            products[first + i, column + last] = block[i - at]


@njit(nogil=True)
def _multiply_columns(products, column, first, turned, scores):
    """Fill all scores of one channel in one sentence from the sentence's rows of ``products``."""
    size, inner = len(scores), len(turned)
    last = first + size - 1
    zero = splat(np.float32(0), W)
    tile = (zero, zero, zero, zero, zero, zero, zero, zero)
    block = np.empty((TALL, COLUMNS), np.float32)
    for at in range(0, size, COLUMNS):
        for r in range(0, size, TALL):
            rows = rows_from(first + r, last)
            if WIDE_REGISTERS and r + ROWS < size:
                both = rows, rows_from(first + r + ROWS, last)
                upper, lower = add_tall_tile(products, both, column, turned, at, inner, (tile, tile))
                store_tile(block, (ROWS, ROWS + 1, ROWS + 2, ROWS + 3), 0, lower)
            else:
                upper = add_tile(products, rows, column, turned, at, inner, tile)
            store_tile(block, (0, 1, 2, 3), 0, upper)
            for k in range(min(TALL, size - r)):
                for j in range(at, min(at + COLUMNS, size)):
                    scores[r + k, j] = block[k, j - at]


@njit(nogil=True)
def _score(channel, vectors, turned, matrix, bias, row_role, column_role, products, column, scores):
    """Fill all scores of one channel in G sentences; for the other parameters see `_score_in_parallel`.

    Parameters
    ----------
    vectors : (G · N, R · D)
    matrix : (D, D)
    row_role, column_role : int
    products : (G · N, ·), of which D columns are filled, from ``column`` on
    scores : (G, C, N, N), of which one channel is filled
    """
    inner, size = len(matrix), scores.shape[2]
    width = inner - (inner % COLUMNS == 1)  # without the column of the constant 1, which would need a tile of its own
    multiply_rows(vectors, row_role * inner, matrix, width, bias, products, column, 0, len(vectors))
    for sentence in range(len(scores)):
        first = sentence * size
        if width < inner:
            _multiply_last(turned[sentence], row_role, matrix, products, column, first, size)
        _multiply_columns(products, column, first, turned[sentence, column_role], scores[sentence, channel])


@njit(cache=True, nogil=True)
def _score_all(vectors, turned, matrices, bias, row_role, column_role, products, scores):
    """`_score_in_parallel` in one thread, by groups of sentences, so that intermediate results stay in the cache.

    ``turned`` needs room for one group only, ``products`` for one channel of one group only.
    """
    batch, _, size = scores.shape[:3]
    inner, together = matrices.shape[1], len(turned)
    keeps = products.size == batch * size * len(matrices) * inner
    for start in range(0, batch, together):
        stop = min(start + together, batch)
        for b in range(start, stop):
            for role in range(turned.shape[1]):
                _turn(vectors[b, :, role], turned[b - start, role])
        rows = vectors[start:stop].reshape(((stop - start) * size, -1))
        own = products[start * size : stop * size] if keeps else products
        for channel in range(len(matrices)):
            roles = row_role[channel], column_role[channel]
            column = channel * inner if keeps else 0
            _score(channel, rows, turned, matrices[channel], bias, *roles, own, column, scores[start:stop])


@njit(cache=True, nogil=True, parallel=True)
def _score_in_parallel(vectors, turned, matrices, bias, row_role, column_role, products, scores):
    """Fill all scores of a batch; D is the size of a vector.

    Parameters
    ----------
    vectors : (B, N, R, D)
    turned : (B, R, D, N or more), zeros, filled with the transposed vectors
    matrices : (C, D, D)
    bias : (D,), zeros
    row_role, column_role : (C,)
    products : (B · N, C · D), filled
    scores : (B, C, N, N), filled
    """
    batch, channels, size = scores.shape[:3]
    roles, inner = turned.shape[1], matrices.shape[1]
    for item in prange(batch * roles):
        b, role = divmod(np.int64(item), roles)  # indices of parallel loops are unsigned
        _turn(vectors[b, :, role], turned[b, role])
    together = max(1, POSITIONS // size)
    groups = (batch + together - 1) // together
    for item in prange(groups * channels):
        group, channel = divmod(np.int64(item), channels)
        start, stop = group * together, min((group + 1) * together, batch)
        _score(
            channel,
            vectors[start:stop].reshape(((stop - start) * size, -1)),
            turned[start:stop],
            matrices[channel],
            bias,
            row_role[channel],
            column_role[channel],
            products[start * size : stop * size],
            channel * inner,
            scores[start:stop],
        )


def score_all(
    vectors: Tensor, matrices: Tensor, row_role: Tensor, column_role: Tensor, keep_products: bool = True
) -> tuple[Tensor, Tensor]:
    """`ChannelScorer.products_and_scores`, without gradient, on the CPU.

    Unless ``keep_products`` is set, the first result is mere scratch space.
    """
    batch, size, roles, width = vectors.shape
    channels = len(matrices)
    with compiled_threads() as threads:
        together = batch if threads > 1 else min(batch, max(1, POSITIONS // size))
        shape = (batch, size, channels, width) if keep_products or threads > 1 else (together, size, 1, width)
        products = vectors.new_empty(shape)
        scores = vectors.new_empty(batch, channels, size, size)
        (_score_in_parallel if threads > 1 else _score_all)(
            vectors.contiguous().numpy(),
            np.zeros((together, roles, width, -(-size // COLUMNS) * COLUMNS), np.float32),
            matrices.detach().numpy(),
            np.zeros(width, np.float32),
            row_role.numpy(),
            column_role.numpy(),
            products.view(shape[0] * size, -1).numpy(),
            scores.numpy(),
        )
    return products, scores


@njit(nogil=True)
def _channel_gradient(gradient, vectors, matrix, rows, columns, to_left, to_matrix):
    """Fill the gradients of P parts of one channel: ``to_left`` (P, D) for the row vectors, ``to_matrix`` (D, D)."""
    size = matrix.shape[0]
    count = len(rows)
    padded = (count + COLUMNS - 1) // COLUMNS * COLUMNS
    left, right = np.empty((count, size), np.float32), np.empty((count, size), np.float32)
    turned = np.zeros((size, padded), np.float32)  # right, transposed
    for p in range(count):
        for j in range(size):
            left[p, j] = vectors[rows[p], j]
            right[p, j] = turned[j, p] = vectors[columns[p], j] * gradient[p]
    multiply_transposed_rows(left, 0, right, 0, to_matrix, 0, size)
    zero = splat(np.float32(0), W)
    block = np.empty((ROWS, COLUMNS), np.float32)
    for at in range(0, padded, COLUMNS):
        for r in range(0, size, ROWS):
            first = min(r, size - ROWS)
            tile = (zero, zero, zero, zero, zero, zero, zero, zero)
            tile = add_tile(matrix, (first, first + 1, first + 2, first + 3), 0, turned, at, size, tile)
            store_tile(block, (0, 1, 2, 3), 0, tile)
            for p in range(at, min(at + COLUMNS, count)):
                for k in range(ROWS):
                    to_left[p, first + k] = block[k, p - at]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # lets the dot product be vectorised
def _score_parts(vectors, products, columns, known, scores):
    for p in range(len(scores)):
        product, vector = products[known[p]], vectors[columns[p]]
        total = np.float32(0)
        for j in range(len(vector)):
            total += product[j] * vector[j]
        scores[p] = total


@njit(cache=True, nogil=True)
def _gather(gradient, products, rows, columns, known, to_left, to_vectors):
    """Add the gradient of each part to its row vector and its column vector."""
    for p in range(len(rows)):
        product, of_row, of_column = products[known[p]], to_vectors[rows[p]], to_vectors[columns[p]]
        for j in range(to_vectors.shape[1]):
            of_row[j] += to_left[p, j]
        for j in range(to_vectors.shape[1]):
            of_column[j] += product[j] * gradient[p]


@njit(cache=True, nogil=True)
def _gradient(gradient, vectors, matrices, rows, columns, ends, to_left, to_matrices):
    for c in range(len(ends)):
        parts = slice(ends[c - 1] if c else 0, ends[c])
        _channel_gradient(
            gradient[parts], vectors, matrices[c], rows[parts], columns[parts], to_left[parts], to_matrices[c]
        )


@njit(cache=True, nogil=True, parallel=True)
def _gradient_in_parallel(gradient, vectors, matrices, rows, columns, ends, to_left, to_matrices):
    for c in prange(len(ends)):
        parts = slice(ends[c - 1] if c else 0, ends[c])
        _channel_gradient(
            gradient[parts], vectors, matrices[c], rows[parts], columns[parts], to_left[parts], to_matrices[c]
        )


class PartScores(torch.autograd.Function):
    """Scores xᵀ U_c y of P parts, sorted by channel c, from known products xᵀ U_c.

    ``apply(vectors, matrices, products, rows, columns, known, ends)`` takes vectors (M, D), matrices (C, D, D) and
    products (K, D). ``rows`` and ``columns`` (P,) are the indices of x and y in the vectors, ``known`` (P,) those of xᵀ
    U_c in the products, and ``ends`` (C,) says where the parts of each channel end.
    """

    @staticmethod
    def forward(
        context: Any,
        vectors: Tensor,
        matrices: Tensor,
        products: Tensor,
        rows: Tensor,
        columns: Tensor,
        known: Tensor,
        ends: Sequence[int],
    ) -> Tensor:
        context.save_for_backward(vectors, matrices, products, rows, columns, known)
        context.ends = ends
        if vectors.device.type == "cpu":
            scores = vectors.new_empty(len(rows))
            _score_parts(*(array.numpy() for array in (vectors, products, columns, known, scores)))
            return scores
        return (products.index_select(0, known) * vectors.index_select(0, columns)).sum(1)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        vectors, matrices, products, rows, columns, known = context.saved_tensors
        to_vectors, to_matrices = torch.zeros_like(vectors), torch.empty_like(matrices)
        to_left = vectors.new_empty(len(rows), vectors.shape[1])
        if vectors.device.type == "cpu" and matrices.shape[1] >= COLUMNS:
            own_gradient = gradient.contiguous().numpy()
            own_rows, own_columns, own_to_left = rows.numpy(), columns.numpy(), to_left.numpy()
            with compiled_threads() as threads:
                (_gradient_in_parallel if threads > 1 else _gradient)(
                    own_gradient,
                    vectors.numpy(),
                    matrices.numpy(),
                    own_rows,
                    own_columns,
                    np.array(context.ends),
                    own_to_left,
                    to_matrices.numpy(),
                )
            _gather(
                own_gradient, products.numpy(), own_rows, own_columns, known.numpy(), own_to_left, to_vectors.numpy()
            )
        else:
            left = vectors.index_select(0, rows)
            right = vectors.index_select(0, columns) * gradient[:, None]
            start = 0
            for matrix, to_matrix, end in zip(matrices, to_matrices, context.ends, strict=True):
                torch.mm(right[start:end], matrix.t(), out=to_left[start:end])
                torch.mm(left[start:end].t(), right[start:end], out=to_matrix)
                start = end
            to_vectors.index_add_(0, rows, to_left)
            to_vectors.index_add_(0, columns, products.index_select(0, known) * gradient[:, None])
        return to_vectors, to_matrices, None, None, None, None, None
