"""Biaffine forms on the CPU, compiled: scores of all parts of a batch, and the gradient of single ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from mh4.decoders.lanes import splat

from .devices import compiled_threads
from .products import COLUMNS, ROWS, W, add_tile, multiply_rows, multiply_transposed_rows, store_tile


@njit(nogil=True)
def _turn(vectors, turned):
    """``turned[j, i] = vectors[i, j]``."""
    for i in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            turned[j, i] = vectors[i, j]


@njit(nogil=True)
def _score(item, vectors, turned, matrices, bias, row_role, column_role, products, scores):
    """All scores of one channel in one sentence, which ``item`` numbers; see `_score_all`."""
    sentence, channel = divmod(np.int64(item), len(matrices))  # parallel loops count without a sign
    size, inner = scores.shape[2], matrices.shape[1]
    first, last = sentence * size, size - 1
    multiply_rows(
        vectors, row_role[channel] * inner, matrices[channel], bias, products, channel * inner, first, first + size
    )
    columns, out = turned[sentence, column_role[channel]], scores[sentence, channel]
    zero = splat(np.float32(0), W)
    block = np.empty((ROWS, COLUMNS), np.float32)
    for at in range(0, size, COLUMNS):
        for r in range(0, size, ROWS):
            rows = r, min(r + 1, last), min(r + 2, last), min(r + 3, last)
            theirs = first + rows[0], first + rows[1], first + rows[2], first + rows[3]
            tile = (zero, zero, zero, zero, zero, zero, zero, zero)
            tile = add_tile(products, theirs, channel * inner, columns, at, inner, tile)
            if at + COLUMNS <= size:
                store_tile(out, rows, at, tile)
                continue
            store_tile(block, (0, 1, 2, 3), 0, tile)
            for k in range(min(ROWS, size - r)):
                for j in range(at, size):
                    out[r + k, j] = block[k, j - at]


@njit(cache=True, nogil=True)
def _score_all(vectors, turned, matrices, bias, row_role, column_role, products, scores):
    """All scores of a batch; D is the size of a vector.

    Parameters
    ----------
    vectors : (B, N, R, D)
    turned : (B, R, D, N or more), zeros, filled: the vectors, transposed
    matrices : (C, D, D)
    bias : (D,), zeros
    row_role, column_role : (C,)
    products : (B · N, C · D), filled
    scores : (B, C, N, N), filled
    """
    batch, roles = turned.shape[:2]
    for b in range(batch):
        for role in range(roles):
            _turn(vectors[b, :, role], turned[b, role])
    rows = vectors.reshape((scores.shape[0] * scores.shape[2], -1))
    for item in range(batch * len(matrices)):
        _score(item, rows, turned, matrices, bias, row_role, column_role, products, scores)


@njit(cache=True, nogil=True, parallel=True)
def _score_all_in_parallel(vectors, turned, matrices, bias, row_role, column_role, products, scores):
    batch, roles = turned.shape[:2]
    for item in prange(batch * roles):
        b, role = divmod(np.int64(item), roles)
        _turn(vectors[b, :, role], turned[b, role])
    rows = vectors.reshape((scores.shape[0] * scores.shape[2], -1))
    for item in prange(batch * len(matrices)):
        _score(item, rows, turned, matrices, bias, row_role, column_role, products, scores)


def score_all(vectors: Tensor, matrices: Tensor, row_role: Tensor, column_role: Tensor) -> tuple[Tensor, Tensor]:
    """Products and scores of all positions and channels (see `ChannelScorer`), without gradient, on the CPU."""
    batch, size, roles, width = vectors.shape
    padded = -(-size // COLUMNS) * COLUMNS
    products = vectors.new_empty(batch, size, len(matrices), width)
    scores = vectors.new_empty(batch, len(matrices), size, size)
    arrays = (
        vectors.contiguous().numpy(),
        np.zeros((batch, roles, width, padded), np.float32),
        matrices.detach().numpy(),
        np.zeros(width, np.float32),
        row_role.numpy(),
        column_role.numpy(),
        products.view(batch * size, -1).numpy(),
        scores.numpy(),
    )
    with compiled_threads() as threads:
        (_score_all_in_parallel if threads > 1 else _score_all)(*arrays)
    return products, scores


@njit(nogil=True)
def _channel_gradient(gradient, vectors, matrix, rows, columns, to_left, to_matrix):
    """Gradient of the P parts of one channel: ``to_left`` (P, D) of their row vectors, ``to_matrix`` of the matrix."""
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # a sum of vectors
def _score_parts(vectors, products, columns, known, scores):
    for p in range(len(scores)):
        product, vector = products[known[p]], vectors[columns[p]]
        total = np.float32(0)
        for j in range(len(vector)):
            total += product[j] * vector[j]
        scores[p] = total


@njit(cache=True, nogil=True)
def _gather(gradient, products, rows, columns, known, to_left, to_vectors):
    """Add what the parts give to the vectors of their rows and columns."""
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
    """xᵀ U_c y of P parts, sorted by channel c, where the products xᵀ U_c are known already.

    ``apply(vectors, matrices, products, rows, columns, known, ends)`` with vectors (M, D), of which x and y have the
    numbers ``rows`` and ``columns`` (P,), matrices (C, D, D), products (K, D), of which xᵀ U_c has the number ``known``
    (P,), and where the parts of each channel end, (C,).
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
