"""DyNet's coupled LSTM with peepholes, and a bidirectional stack of such layers, to replace our own BiLSTM.

After DyNet 2 (``CoupledLSTMBuilder`` and ``BiRNNBuilder``), with which Gómez-Rodríguez, Shi and Lee (2018) trained.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from mh4.models.dropout import Dropout
from mh4.models.layers import BiLSTM, Steps, affine, room
from mh4.models.products import add_products
from mh4.models.recurrence import COMPILED, Sequences, rows_of_step, sigmoid, tanh


@njit(cache=True, **COMPILED)
def _run(back, sequences, weights, masks, gates, kept):
    """Run one direction over all sequences.

    Parameters
    ----------
    weights : from the state, (H, 3H), and from the cell to the input and the output gate, (H, H) each
    masks : dropout masks of states and of cells, (P, 2H) each
    gates : (P, 6H), contributions of the input to input gate, output gate and candidate; replaced by their activations
    kept : cells, states, masked states and masked cells, (P, 2H) each, filled
    """
    lengths = sequences.lengths
    of_state, of_cell_in, of_cell_out = weights
    state_masks, cell_masks = masks
    cells, states, masked_states, masked_cells = kept
    H = len(of_state)
    column, in_column = back * H, back * 3 * H
    rows, before = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    for t in range(lengths[0]):
        active = rows_of_step(sequences, back, t, rows, before)
        if t > 0:
            add_products(masked_states, before, column, of_state, gates, rows, in_column, active)
            add_products(masked_cells, before, column, of_cell_in, gates, rows, in_column, active)
        for r in range(active):
            row = rows[r]
            for k in range(H):
                i = sigmoid(gates[row, in_column + k])
                g = tanh(gates[row, in_column + 2 * H + k])
                last = cells[before[r], column + k] if t > 0 else np.float32(0.0)
                gates[row, in_column + k], gates[row, in_column + 2 * H + k] = i, g
                cells[row, column + k] = i * g + (np.float32(1.0) - i) * last
                masked_cells[row, column + k] = cells[row, column + k] * cell_masks[row, column + k]
        add_products(masked_cells, rows, column, of_cell_out, gates, rows, in_column + H, active)
        for r in range(active):
            row = rows[r]
            for k in range(H):
                o = sigmoid(gates[row, in_column + H + k])
                gates[row, in_column + H + k] = o
                states[row, column + k] = o * tanh(cells[row, column + k])
                masked_states[row, column + k] = states[row, column + k] * state_masks[row, column + k]


@njit(cache=True, **COMPILED)
def _run_gradient(back, sequences, weights, masks, gates, kept, state_gradient, gradient, before):
    """Compute the gradient of one direction.

    Parameters
    ----------
    weights : the weights of `_run`, transposed
    gates, kept : as filled by `_run`
    state_gradient : (P, 2H)
    gradient : (P, 6H), filled with the gradient of the contributions of the input to the gates
    before : masked states and cells of the previous step, (P, 2H) each, filled
    """
    lengths = sequences.lengths
    of_state, of_cell_in, of_cell_out = weights
    state_masks, cell_masks = masks
    cells, _, masked_states, masked_cells = kept
    states_before, cells_before = before
    H = of_state.shape[1]
    column, in_column = back * H, back * 3 * H
    rows, last_rows = np.empty(len(lengths), np.int64), np.empty(len(lengths), np.int64)
    own = np.arange(len(lengths))
    later_state, later_cell = np.zeros((len(lengths), H), np.float32), np.zeros((len(lengths), H), np.float32)
    in_gates, d_states = np.zeros((len(lengths), H), np.float32), np.zeros((len(lengths), H), np.float32)
    for t in range(lengths[0] - 1, -1, -1):
        active = rows_of_step(sequences, back, t, rows, last_rows)
        for r in range(active):
            row = rows[r]
            for k in range(H):
                o = gates[row, in_column + H + k]
                d_states[r, k] = state_gradient[row, column + k] + later_state[r, k] * state_masks[row, column + k]
                gradient[row, in_column + H + k] = d_states[r, k] * tanh(cells[row, column + k]) * o * (1 - o)
        add_products(gradient, rows, in_column + H, of_cell_out, in_gates, own, 0, active)
        for r in range(active):
            row, last = rows[r], last_rows[r]
            for k in range(H):
                i, g = gates[row, in_column + k], gates[row, in_column + 2 * H + k]
                o, activation = gates[row, in_column + H + k], tanh(cells[row, column + k])
                d_cell = later_cell[r, k] + d_states[r, k] * o * (1 - activation * activation)
                d_cell += in_gates[r, k] * cell_masks[row, column + k]
                cell = cells[last, column + k] if t > 0 else np.float32(0.0)
                gradient[row, in_column + k] = d_cell * (g - cell) * i * (1 - i)
                gradient[row, in_column + 2 * H + k] = d_cell * i * (1 - g * g)
                later_cell[r, k] = d_cell * (1 - i)
                states_before[row, column + k] = masked_states[last, column + k] if t > 0 else np.float32(0.0)
                cells_before[row, column + k] = masked_cells[last, column + k] if t > 0 else np.float32(0.0)
                later_state[r, k] = in_gates[r, k] = 0.0
        if t > 0:
            add_products(gradient, rows, in_column, of_state, later_state, own, 0, active)
            add_products(gradient, rows, in_column, of_cell_in, in_gates, own, 0, active)


class CoupledRecurrence(torch.autograd.Function):
    """Both directions of a layer over rows, float32, on the CPU.

    ``CoupledRecurrence.apply(gates, of_state, of_cell_in, of_cell_out, state_mask, cell_mask, sequences)``: gates
    (P, 6H), weights (2, H, 3H), (2, H, H) and (2, H, H), masks (P, 2H), the forward direction first; returns states
    (P, 2H).
    """

    @staticmethod
    def forward(
        context: Any,
        gates: Tensor,
        of_state: Tensor,
        of_cell_in: Tensor,
        of_cell_out: Tensor,
        state_mask: Tensor,
        cell_mask: Tensor,
        sequences: Sequences,
    ) -> Tensor:
        gates = gates.clone()
        kept = gates.new_empty(4, len(gates), state_mask.shape[1])
        weights = (of_state, of_cell_in, of_cell_out)
        masks = (state_mask.numpy(), cell_mask.numpy())
        for back in range(2):
            own = tuple(weight[back].detach().numpy() for weight in weights)
            _run(back, sequences, own, masks, gates.numpy(), tuple(kept.numpy()))
        context.save_for_backward(gates, kept, state_mask, cell_mask, *weights)
        context.sequences = sequences
        return kept[1].clone()

    @staticmethod
    def backward(context: Any, state_gradient: Tensor) -> tuple[Tensor | None, ...]:
        gates, kept, state_mask, cell_mask, *weights = context.saved_tensors
        gradient, before = torch.empty_like(gates), torch.empty_like(kept[:2])
        masks = (state_mask.numpy(), cell_mask.numpy())
        size = state_mask.shape[1] // 2
        of_state, of_cell_in, of_cell_out = (torch.empty_like(weight) for weight in weights)
        for back in range(2):
            own = tuple(weight[back].t().contiguous().numpy() for weight in weights)
            arrays = (gates.numpy(), tuple(kept.numpy()), state_gradient.contiguous().numpy(), gradient.numpy())
            _run_gradient(back, context.sequences, own, masks, *arrays, tuple(before.numpy()))
            columns = slice(back * size, (back + 1) * size)
            of_gates = gradient[:, back * 3 * size : (back + 1) * 3 * size]
            of_state[back] = before[0, :, columns].t() @ of_gates
            of_cell_in[back] = before[1, :, columns].t() @ of_gates[:, :size]
            of_cell_out[back] = kept[3, :, columns].t() @ of_gates[:, size : 2 * size]
        return gradient, of_state, of_cell_in, of_cell_out, None, None, None


class CoupledLayer(nn.Module):
    """A layer of DyNet's ``BiRNNBuilder`` with ``CoupledLSTMBuilder``: gates in the order input, output, candidate."""

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.input_weight = nn.Parameter(room(2, 3 * hidden_size, input_size))
        self.state_weight = nn.Parameter(room(2, hidden_size, 3 * hidden_size))
        self.cell_weights = nn.Parameter(room(2, 2, hidden_size, hidden_size))  # to the input gate, to the output gate
        self.bias = nn.Parameter(room(2, 3 * hidden_size).zero_())
        by_gate = (
            *self.input_weight.data.view(6, hidden_size, -1),
            *(gate for way in self.state_weight.data for gate in way.chunk(3, 1)),
            *self.cell_weights.data.flatten(0, 1),
        )
        for gate in by_gate:
            nn.init.xavier_uniform_(gate)

    def forward(self, x: Tensor, steps: Steps) -> Tensor:
        """(P, input_size) → (P, 2 · hidden_size), the forward direction first."""
        hidden = self.state_weight.shape[1]
        ways = [
            affine(self._masked(x, steps), weight, bias)
            for weight, bias in zip(self.input_weight, self.bias, strict=True)
        ]
        state_mask, cell_mask = (self._masked(x.new_ones(len(x), 2 * hidden), steps) for _ in range(2))
        return CoupledRecurrence.apply(
            torch.cat(ways, 1), self.state_weight, *self.cell_weights, state_mask, cell_mask, steps.sequences
        )

    def _masked(self, x: Tensor, steps: Steps) -> Tensor:
        return self.dropout.by_sequence(x, steps.sequence_of, len(steps.first))


class CoupledBiLSTM(BiLSTM):
    """A `BiLSTM` of `CoupledLayer` layers, which apply dropout to their inputs themselves."""

    def __init__(self, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__(input_size, hidden_size, 0, 0.0)
        sizes = [input_size] + [2 * hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(CoupledLayer(size, hidden_size, dropout) for size in sizes)
