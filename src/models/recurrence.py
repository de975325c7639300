"""A compiled bidirectional LSTM layer for the CPU, over consecutive sequences of different lengths.

PyTorch's fast kernels for the CPU compute padding along with the words, and words differ in length so much that most of
the work would be padding. Here only real steps are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import njit, prange, types
from torch import Tensor

from mh4.decoders.lanes import intrinsic

from .devices import compiled_threads
from .products import add_products, multiply, multiply_transposed

# As fast as full fastmath, but sums are not reordered: `sigmoid` rounds by adding and subtracting a large number.
_FLAGS = frozenset({"contract", "nsz", "nnan", "ninf", "arcp"})
COMPILED: dict[str, Any] = {"nogil": True, "fastmath": set(_FLAGS), "error_model": "numpy"}
_ROUNDING = np.float32(1.5 * 2**23)  # x + _ROUNDING has the integer closest to x in its lowest bits
_ONE, _TWO = np.float32(1.0), np.float32(2.0)


class Sequences(NamedTuple):
    """Where B sequences lie among P rows, one row per step; the longest sequence comes first."""

    first: np.ndarray  # int64 (B,): the row of the first step
    lengths: np.ndarray  # int64 (B,): steps, descending

    @classmethod
    def one_after_the_other(cls, lengths: np.ndarray) -> Sequences:
        """The layout of consecutive sequences with the given ``lengths``, each at least 1."""
        order = np.argsort(-lengths, kind="stable")
        return cls((np.cumsum(lengths) - lengths)[order], lengths[order])


@intrinsic
def power_of_two(typing_context, rounded):
    """2ⁿ for a float to which 1.5 · 2²³ (float64: 1.5 · 2⁵²) was added, so that its lowest bits hold the integer n."""
    bits, bias, fraction = (32, 127, 23) if rounded == types.float32 else (64, 1023, 52)

    def generate(context, builder, signature, arguments):
        integer, number = ir.IntType(bits), ir.FloatType() if bits == 32 else ir.DoubleType()
        exponent = builder.add(builder.bitcast(arguments[0], integer), ir.Constant(integer, bias))
        return builder.bitcast(builder.shl(exponent, ir.Constant(integer, fraction)), number)

    return rounded(rounded), generate


@njit(inline="always", **COMPILED)
def sigmoid(x):
    """The logistic function, within 2e-7; unlike with the exp of the C library, loops can be vectorised."""
    y = min(max(x * np.float32(-1.4426950408889634), np.float32(-126.0)), np.float32(126.0))
    rounded = y + _ROUNDING
    f = y - (rounded - _ROUNDING)  # exp(-x) = 2^(y - f) · 2^f, the latter from a polynomial, |f| ≤ 0.5
    p = np.float32(1.5403530e-4)
    p = p * f + np.float32(1.3333558e-3)
    p = p * f + np.float32(9.6181291e-3)
    p = p * f + np.float32(5.5504109e-2)
    p = p * f + np.float32(2.4022651e-1)
    p = p * f + np.float32(6.9314718e-1)
    p = p * f + _ONE
    return _ONE / (_ONE + p * power_of_two(rounded))


@njit(inline="always", **COMPILED)
def tanh(x):
    """The hyperbolic tangent, within 4e-7."""
    return _TWO * sigmoid(_TWO * x) - _ONE


@njit(**COMPILED)
def rows_of_step(sequences, back, t, rows, before):
    """Return the number of sequences that have a step ``t`` in one direction.

    Fill its ``rows``, int64 (B,), and the rows of the steps ``before`` it.
    """
    first, lengths = sequences
    active = 0
    while active < len(lengths) and lengths[active] > t:
        rows[active] = first[active] + (lengths[active] - 1 - t if back else t)
        before[active] = rows[active] + (1 if back else -1)
        active += 1
    return active


@njit(cache=True, **COMPILED)
def _run(back, sequences, weight, gates, cells, states):
    """Run one direction over all sequences; ``weight`` is (H, 4H).

    Parameters
    ----------
    gates : (P, 8H), the input's contributions to the gates; replaced by the activations
    cells, states : (P, 2H), filled; the first halves are of the forward direction
    """
    lengths = sequences.lengths
    H = weight.shape[0]
    column, gate_column = back * H, back * 4 * H
    rows, before = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    for t in range(lengths[0]):
        active = rows_of_step(sequences, back, t, rows, before)
        if t > 0:
            add_products(states, before, column, weight, gates, rows, gate_column, active)
        for r in range(active):
            all_gates = gates[rows[r], gate_column : gate_column + 4 * H]
            i, f, g, o = all_gates[:H], all_gates[H : 2 * H], all_gates[2 * H : 3 * H], all_gates[3 * H :]
            cell = cells[rows[r], column : column + H]
            state = states[rows[r], column : column + H]
            for k in range(2 * H):
                all_gates[k] = sigmoid(all_gates[k])
            for k in range(H):
                g[k] = tanh(g[k])
            for k in range(H):
                o[k] = sigmoid(o[k])
            for k in range(H):
                cell[k] = i[k] * g[k]
            if t > 0:
                last = cells[before[r], column : column + H]
                for k in range(H):
                    cell[k] += f[k] * last[k]
            for k in range(H):
                state[k] = o[k] * tanh(cell[k])


@njit(cache=True, **COMPILED)
def _run_gradient(back, sequences, weight, gates, cells, states, state_gradient, gate_gradient, before):
    """Fill the gradient of one direction; ``weight`` is (4H, H).

    Parameters
    ----------
    gates, cells, states : as `_run` leaves them
    state_gradient : (P, 2H)
    gate_gradient : (P, 8H), filled: the gradient of the input's contributions to the gates
    before : (P, 2H), filled: the state before each step
    """
    lengths = sequences.lengths
    H = weight.shape[1]
    column, gate_column = back * H, back * 4 * H
    rows, last_rows = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    own = np.arange(len(lengths))
    later_state, later_cell = np.zeros((len(lengths), H), np.float32), np.zeros((len(lengths), H), np.float32)
    nothing = np.zeros(H, np.float32)
    for t in range(lengths[0] - 1, -1, -1):
        active = rows_of_step(sequences, back, t, rows, last_rows)
        for r in range(active):
            row = rows[r]
            all_gates = gates[row, gate_column : gate_column + 4 * H]
            i, f, g, o = all_gates[:H], all_gates[H : 2 * H], all_gates[2 * H : 3 * H], all_gates[3 * H :]
            gradient = gate_gradient[row, gate_column : gate_column + 4 * H]
            di, df, dg, do = gradient[:H], gradient[H : 2 * H], gradient[2 * H : 3 * H], gradient[3 * H :]
            cell = cells[row, column : column + H]
            last, start = nothing, nothing
            if t > 0:
                last = cells[last_rows[r], column : column + H]
                start = states[last_rows[r], column : column + H]
            for k in range(H):
                before[row, column + k] = start[k]
            direct = state_gradient[row, column : column + H]
            from_state, from_cell = later_state[r], later_cell[r]
            for k in range(H):
                activation = tanh(cell[k])
                d_state = direct[k] + from_state[k]
                d_cell = from_cell[k] + d_state * o[k] * (_ONE - activation * activation)
                di[k] = d_cell * g[k] * i[k] * (_ONE - i[k])
                df[k] = d_cell * last[k] * f[k] * (_ONE - f[k])
                dg[k] = d_cell * i[k] * (_ONE - g[k] * g[k])
                do[k] = d_state * activation * o[k] * (_ONE - o[k])
                from_cell[k] = d_cell * f[k]
                from_state[k] = np.float32(0.0)
        if t > 0:
            add_products(gate_gradient, rows, gate_column, weight, later_state, own, 0, active)


@njit(cache=True, parallel=True, **COMPILED)
def _run_both(sequences, weights, gates, cells, states):
    """`_run` in both directions at once."""
    for back in prange(2):
        _run(back, sequences, weights[back], gates, cells, states)


@njit(cache=True, parallel=True, **COMPILED)
def _run_both_gradients(sequences, weights, gates, cells, states, state_gradient, gate_gradient, before):
    """`_run_gradient` in both directions at once."""
    for back in prange(2):
        _run_gradient(back, sequences, weights[back], gates, cells, states, state_gradient, gate_gradient, before)


def _both(one: Callable[..., None], both: Callable[..., None], sequences: Sequences, *arrays: Tensor) -> None:
    """Run both directions, in parallel if there are threads for it; the first of the arrays has their weights."""
    weights, *others = (array.numpy() for array in arrays)
    with compiled_threads() as threads:
        if threads > 1:
            both(sequences, weights, *others)
        else:
            for back, weight in enumerate(weights):
                one(back, sequences, weight, *others)


class Recurrence(torch.autograd.Function):
    """A bidirectional LSTM layer over rows on the CPU, float32.

    ``Recurrence.apply(x, input_weight, recurrent_weight, bias, sequences)`` with x (P, I), weights (2, 4H, I) and
    (2, 4H, H), bias (2, 4H), the forward direction first, gates in the order of PyTorch; returns the states, (P, 2H).
    """

    @staticmethod
    def forward(
        context: Any, x: Tensor, input_weight: Tensor, recurrent_weight: Tensor, bias: Tensor, sequences: Sequences
    ) -> Tensor:
        size = recurrent_weight.shape[2]
        x = x.contiguous()
        gates = multiply(x, input_weight.flatten(0, 1).t().contiguous(), bias.flatten())
        cells, states = x.new_empty(2, len(x), 2 * size)
        weights = recurrent_weight.transpose(1, 2).contiguous()
        _both(_run, _run_both, sequences, weights, gates, cells, states)
        context.save_for_backward(x, input_weight, recurrent_weight, gates, cells, states)
        context.sequences = sequences
        return states

    @staticmethod
    def backward(context: Any, state_gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, recurrent_weight, gates, cells, states = context.saved_tensors
        gradient, before = torch.empty_like(gates), torch.empty_like(states)
        _both(
            _run_gradient,
            _run_both_gradients,
            context.sequences,
            recurrent_weight.contiguous(),
            gates,
            cells,
            states,
            state_gradient.contiguous(),
            gradient,
            before,
        )
        _, gate_size, size = recurrent_weight.shape
        ahead = multiply_transposed(gradient, before, slice(gate_size), slice(size))
        back = multiply_transposed(gradient, before, slice(gate_size, None), slice(size, None))
        return (
            multiply(gradient, input_weight.flatten(0, 1)) if context.needs_input_grad[0] else None,
            multiply_transposed(gradient, x).view_as(input_weight),
            torch.stack([ahead, back]),
            gradient.sum(0).view(2, -1),
            None,
        )
