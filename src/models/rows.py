"""Rows of matrices, selected in any order and perhaps repeatedly; their gradients are summed in a fixed order.

On the CPU, PyTorch sums the gradients of indexing in the order in which its threads happen to run, and so rounds
differently each time: under load, equal seeds would not give equal models.
"""

from typing import Any

import torch
from numba import njit
from torch import Tensor


@njit(cache=True, nogil=True)
def _add_rows(rows, index, out):
    for p in range(len(index)):
        row, to = rows[p], out[index[p]]
        for j in range(len(to)):
            to[j] += row[j]


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, index: Tensor) -> Tensor:
        context.save_for_backward(index)
        context.shape = x.shape
        return x.index_select(0, index)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (index,) = context.saved_tensors
        total = gradient.new_zeros(context.shape)
        _add_rows(gradient.contiguous().numpy(), index.numpy(), total.numpy())
        return total, None


def take_rows(x: Tensor, index: Tensor) -> Tensor:
    """The rows of x (P, C) with indices ``index``, int64 (Q,), which may repeat: (Q, C)."""
    if x.device.type != "cpu" or not (x.requires_grad and torch.is_grad_enabled()):
        return x.index_select(0, index)
    return _Taken.apply(x, index)


def take_cells(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """``x[rows, columns]`` of a contiguous tensor: (Q,) or, if its cells are vectors, (Q, C)."""
    flat = x.flatten(0, 1)
    index = rows * x.shape[1] + columns
    return take_rows(flat, index) if x.dim() == 3 else take_rows(flat[:, None], index).squeeze(1)


class Rearranged(torch.autograd.Function):
    """``apply(x, index, back)``: the rows of x (P, C) in another order, (Q, C), some left out or rows of zeros added.

    ``index`` (Q,) is the row of x for each row of the result, P for a row of zeros; ``back`` (P,) is the row of the
    result for each row of x, Q for one that is left out. So the gradient is a selection of rows, too: nothing is
    summed, which a GPU can do in a fixed order only after sorting.
    """

    @staticmethod
    def forward(context: Any, x: Tensor, index: Tensor, back: Tensor) -> Tensor:
        context.save_for_backward(back)
        return _rows(x, index)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _rows(gradient, *context.saved_tensors), None, None


def _rows(x: Tensor, index: Tensor) -> Tensor:
    if len(index) > len(x):
        x = torch.cat([x, x.new_zeros(1, x.shape[1])])
    return x.index_select(0, index)
