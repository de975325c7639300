"""A BiLSTM over the atoms of a text that says where tokens and sentences end; trained by PyTorch, run compiled.

Each feature of an atom (see `atoms`) has a vector, and the BiLSTM reads their sum. It has three outputs for each atom:
whether a token ends with it, whether a sentence does, and whether that token holds several words. In training the
network also learns the columns of the treebank, as auxiliary tasks; these tell it where a sentence ends in text without
punctuation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from .layers import BiLSTM, Linear, room
from .products import COLUMNS, add_products
from .recurrence import COMPILED, Sequences, sigmoid, tanh

TOKEN_END, SENTENCE_END, SEVERAL_WORDS = range(3)  # columns of the output
WINDOW, CONTEXT = 320, 32  # atoms in a window, and atoms of context on either side that are read with them
TOGETHER = 32  # windows: enough to fill the registers, few enough for the cache

_SPREAD = 0.1  # initial standard deviation of the vectors
_MULTIPLE = 32  # divides the number of columns of the gates: whole tiles on every machine


_Layer = tuple[np.ndarray, np.ndarray, np.ndarray]


@njit(cache=True, nogil=True)
def _sum_vectors(table, ids, out):
    for a in range(ids.shape[0]):
        row = out[a]
        row[:] = np.float32(0.0)
        for k in range(ids.shape[1]):
            vector = table[ids[a, k]]
            for j in range(len(row)):
                row[j] += vector[j]


@njit(cache=True, nogil=True)
def _add_to_vectors(gradient, ids, out):
    for a in range(ids.shape[0]):
        row = gradient[a]
        for k in range(ids.shape[1]):
            vector = out[ids[a, k]]
            for j in range(len(row)):
                vector[j] += row[j]


class _Summed(torch.autograd.Function):
    """``apply(table, ids)``: for each row of ids, int32 (A, F), the sum of the rows of table (V, E) that it names."""

    @staticmethod
    def forward(context: Any, table: Tensor, ids: Tensor) -> Tensor:
        context.save_for_backward(ids)
        context.shape = table.shape
        out = table.new_empty(len(ids), table.shape[1])
        _sum_vectors(table.detach().numpy(), ids.numpy(), out.numpy())
        return out

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (ids,) = context.saved_tensors
        total = gradient.new_zeros(context.shape)
        _add_to_vectors(gradient.contiguous().numpy(), ids.numpy(), total.numpy())
        return total, None


class SegmenterNetwork(nn.Module):
    """The network for training, on the CPU.

    Parameters
    ----------
    vectors : int
        Rows of the table: one for each known feature, and one for the unknown features of each kind.
    size, hidden, layers : int
        Size of a vector and of the states of one direction, multiples of 8; number of layers of the BiLSTM.
    dropout : float
    classes : sequence of int
        The number of values of each column of the treebank that is an auxiliary task.
    """

    def __init__(
        self, vectors: int, size: int, hidden: int, layers: int, dropout: float, classes: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.normal_(room(vectors, size), std=_SPREAD))
        self.bilstm = BiLSTM(size, hidden, layers, dropout)
        self.output = Linear(size + 2 * hidden, 3)
        self.columns = nn.ModuleList(Linear(2 * hidden, count) for count in classes)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The log-odds of the three outputs, (A, 3), and for each column the scores of its values.

        ``ids``, int32 (A, F), has the atoms of B windows, one window after the other; ``lengths``, int64 (B,), says how
        many each window has.
        """
        x = _Summed.apply(self.table, ids)
        states = self.bilstm.dropout(self.bilstm(x, lengths)[0][-1])
        together = torch.cat([states, self.bilstm.dropout(x)], dim=1)
        return self.output(together), [column(states) for column in self.columns]

    def weights(self) -> dict[str, np.ndarray]:
        """Copies of the weights that a `Tagger` needs, by name."""
        return {
            name: parameter.detach().numpy().copy()
            for name, parameter in self.named_parameters()
            if not name.startswith("columns.")
        }


@njit(cache=True, **COMPILED)
def _run(back, first, lengths, x, input_weight, recurrent_weight, bias, states):
    """Run one direction of an LSTM over windows at once, the longest first; fill its half of ``states`` (A, 2H)."""
    hidden = len(recurrent_weight)
    count = len(lengths)
    gates = np.empty((count, 4 * hidden), np.float32)
    cells, last = np.zeros((count, hidden), np.float32), np.zeros((count, hidden), np.float32)
    rows, own = np.empty(count, np.int64), np.arange(count)
    bi, bf, bg, bo = bias[:hidden], bias[hidden : 2 * hidden], bias[2 * hidden : 3 * hidden], bias[3 * hidden :]
    active = count
    for t in range(lengths[0]):
        while lengths[active - 1] <= t:
            active -= 1
        for r in range(active):
            rows[r] = first[r] + (lengths[r] - 1 - t if back else t)
        gates[:active] = np.float32(0)
        add_products(x, rows, 0, input_weight, gates, own, 0, active)
        add_products(last, own, 0, recurrent_weight, gates, own, 0, active)
        for r in range(active):
            i, f = gates[r, :hidden], gates[r, hidden : 2 * hidden]
            g, o = gates[r, 2 * hidden : 3 * hidden], gates[r, 3 * hidden :]
            cell, state = cells[r], last[r]
            for k in range(hidden):
                cell[k] = sigmoid(f[k] + bf[k]) * cell[k] + sigmoid(i[k] + bi[k]) * tanh(g[k] + bg[k])
            for k in range(hidden):
                state[k] = sigmoid(o[k] + bo[k]) * tanh(cell[k])
                states[rows[r], back * hidden + k] = state[k]


@njit(cache=True, nogil=True)
def _tag(first, lengths, ids, table, layers, output_weight, output_bias, out):
    """Fill ``out`` (A, 3) with log-odds; for the weights see `Tagger`."""
    count, size = len(ids), table.shape[1]
    x = np.empty((count, size), np.float32)
    _sum_vectors(table, ids, x)
    below = x
    for input_weight, recurrent_weight, bias in layers:
        states = np.empty((count, 2 * recurrent_weight.shape[1]), np.float32)
        for back in range(2):
            _run(back, first, lengths, below, input_weight[back], recurrent_weight[back], bias[back], states)
        below = states
    width = below.shape[1]
    padded, own = np.zeros((count, COLUMNS), np.float32), np.arange(count)
    add_products(below, own, 0, output_weight[:width], padded, own, 0, count)
    add_products(x, own, 0, output_weight[width:], padded, own, 0, count)
    for a in range(count):
        for k in range(out.shape[1]):
            out[a, k] = padded[a, k] + output_bias[k]


@dataclass(frozen=True)
class Tagger:
    """The network for inference; several threads may share it.

    Attributes
    ----------
    table : float32 (V, E)
    layers : tuple of triples of arrays
        Input weights (2, I, 4H), recurrent weights (2, H, 4H) and bias (2, 4H) of each layer.
    output_weight, output_bias : float32 (2H + E, `COLUMNS`), zeros beyond the third column, and (3,)
    """

    table: np.ndarray
    layers: tuple[_Layer, ...]
    output_weight: np.ndarray
    output_bias: np.ndarray

    @classmethod
    def of(cls, weights: Mapping[str, np.ndarray], vectors: int) -> Tagger:
        """Make a tagger from the weights of a network whose table has ``vectors`` rows.

        ValueError: Weights are missing, or do not fit together.
        """
        table, output, bias = (_array(weights, name, None) for name in ("table", "output.weight", "output.bias"))
        if table.ndim != 2 or len(table) != vectors:
            raise ValueError(f"table has {len(table)} rows where {vectors} are expected")
        layers: list[_Layer] = []
        inputs = table.shape[1]
        while (name := f"bilstm.layers.{len(layers)}.") + "bias" in weights:
            own_bias = _array(weights, name + "bias", None)
            hidden = own_bias.shape[-1] // 4
            if not hidden or 4 * hidden % _MULTIPLE:
                raise ValueError(f"{name}bias has {own_bias.shape[-1]} columns, which is not a multiple of {_MULTIPLE}")
            own = [
                _array(weights, name + "input_weight", (2, 4 * hidden, inputs)),
                _array(weights, name + "recurrent_weight", (2, 4 * hidden, hidden)),
            ]
            inner, recurrent = map(_transposed, own)
            layers.append((inner, recurrent, _array(weights, name + "bias", (2, 4 * hidden))))
            inputs = 2 * hidden
        if not layers:
            raise ValueError("bilstm.layers.0.bias is missing")
        _array(weights, "output.weight", (3, inputs + table.shape[1]))
        _array(weights, "output.bias", (3,))
        padded = np.zeros((output.shape[1], COLUMNS), np.float32)
        padded[:, : len(output)] = output.T
        return cls(table, tuple(layers), padded, bias)

    def tag(self, ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The log-odds of the A atoms of P paragraphs, float32 (A, 3); ``lengths`` (P,) are the paragraphs' atoms."""
        out = np.empty((len(ids), 3), np.float32)
        for group in _groups(windows_of(lengths.tolist())):
            starts, stops, read_from, read_to = group.T
            sizes = read_to - read_from
            rows = np.concatenate([np.arange(first, last) for first, last in zip(read_from, read_to, strict=True)])
            found = np.empty((len(rows), 3), np.float32)
            weights = self.table, self.layers, self.output_weight, self.output_bias
            _tag(*Sequences.one_after_the_other(sizes), ids[rows], *weights, found)
            kept = (rows >= np.repeat(starts, sizes)) & (rows < np.repeat(stops, sizes))
            out[rows[kept]] = found[kept]
        return out


def windows_of(lengths: Sequence[int]) -> np.ndarray:
    """Windows that together cover paragraphs, int64 (W, 4): start and stop, then start and stop with the context."""
    windows = []
    begin = 0
    for length in lengths:
        end = begin + length
        for start in range(begin, end, WINDOW):
            stop = min(start + WINDOW, end)
            windows.append((start, stop, max(begin, start - CONTEXT), min(end, stop + CONTEXT)))
        begin = end
    return np.array(windows, np.int64).reshape(-1, 4)


def _groups(windows: np.ndarray) -> list[np.ndarray]:
    """Groups of up to `TOGETHER` windows of similar length."""
    order = np.argsort(windows[:, 2] - windows[:, 3], kind="stable")
    return [windows[order[i : i + TOGETHER]] for i in range(0, len(order), TOGETHER)]


def _transposed(weight: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weight.transpose(0, 2, 1))


def _array(weights: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...] | None) -> np.ndarray:
    """The array ``name``, contiguous; ValueError if it is missing, not float32 of the given shape, or not finite."""
    array = weights.get(name)
    if array is None:
        raise ValueError(f"{name} is missing")
    if array.dtype != np.float32 or (shape is not None and array.shape != shape):
        raise ValueError(f"{name} is {array.dtype} {array.shape} where float32 {shape or ''} is expected")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return np.ascontiguousarray(array)
