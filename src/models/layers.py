"""Small layers shared by encoder and scorers: a BiLSTM without padding, with masks a sequence; linear layers; MLPs."""

import numpy as np
import torch
from torch import Tensor, nn

from .dropout import Dropout
from .products import WIDE_REGISTERS, Product
from .recurrence import Recurrence, Sequences

SMALL = 0.15  # learned vectors start uniform in ±SMALL, as in the published model


class BiLSTMLayer(nn.Module):
    """An LSTM in both directions, with DropConnect on the recurrent matrices.

    Dropping recurrent weights (Merity et al. 2018) stands in for a recurrent mask a sequence: it regularises the same
    connections, and on a GPU PyTorch's fused kernels remain usable.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.dropout = Dropout(dropout)
        self.input_weight = nn.Parameter(torch.empty(2, 4 * hidden_size, input_size))
        self.recurrent_weight = nn.Parameter(torch.empty(2, 4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(2, 4 * hidden_size))
        for weight in (self.input_weight, self.recurrent_weight):
            for gate in weight.data.view(8, hidden_size, -1):
                nn.init.xavier_uniform_(gate)

    def forward(self, x: Tensor, sequences: Sequences) -> Tensor:
        """(P, input_size) → (P, 2 · hidden_size), the direction ahead first."""
        recurrent = self.dropout(self.recurrent_weight)
        if x.device.type == "cpu":
            return Recurrence.apply(x, self.input_weight, recurrent, self.bias, sequences)
        return packed_lstm(x, self.input_weight, recurrent, self.bias, sequences)


def packed_lstm(
    x: Tensor, input_weight: Tensor, recurrent_weight: Tensor, bias: Tensor, sequences: Sequences
) -> Tensor:
    """What `Recurrence` computes, by PyTorch's own LSTM, which is the fast one on other devices than the CPU."""
    first, lengths = sequences
    steps = np.arange(lengths[0])[:, None]
    active = steps < lengths
    index = torch.from_numpy((first + steps)[active]).to(x.device)
    start = x.new_zeros(2, len(lengths), recurrent_weight.shape[2])
    no_bias = torch.zeros_like(bias[0])
    weights = [
        weight
        for direction in range(2)
        for weight in (input_weight[direction], recurrent_weight[direction], bias[direction], no_bias)
    ]
    batch_sizes = torch.from_numpy(active.sum(1))
    states = torch.lstm(x[index], batch_sizes, [start, start], weights, True, 1, 0.0, torch.is_grad_enabled(), True)[0]
    return torch.empty_like(states).index_copy(0, index, states)


class BiLSTM(nn.Module):
    """Stacked bidirectional LSTM over sequences whose steps are the rows of a matrix."""

    def __init__(self, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        sizes = [input_size] + [2 * hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(BiLSTMLayer(size, hidden_size, dropout) for size in sizes)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[list[Tensor], Tensor]:
        """States of both directions, of every layer.

        Parameters
        ----------
        x : (P, input_size)
            The steps of all sequences, one sequence after the other.
        lengths : int64 (B,), of sum P, each at least 1

        Returns
        -------
        states : a (P, 2 · hidden_size) for every layer, one row per step
        last : (B, 2 · hidden_size), the state of the last layer, either direction, after it has read the whole sequence
        """
        sequences = Sequences.one_after_the_other(lengths.cpu().numpy())
        states = []
        for layer in self.layers:
            x = layer(self.dropout.by_sequence(x, lengths), sequences)
            states.append(x)
        ends = lengths.cumsum(0)
        ahead, back = x.chunk(2, dim=1)
        return states, torch.cat([ahead[ends - 1], back[ends - lengths]], dim=1)


class Linear(nn.Linear):
    """`torch.nn.Linear`, Glorot-uniform with a bias of 0, by our own products on the CPU."""

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__(input_size, output_size)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_size) → (…, output_size)."""
        if x.device.type == "cpu" and WIDE_REGISTERS:
            return Product.apply(x, self.weight, self.bias)
        return super().forward(x)


class MLP(nn.Module):
    """Linear, tanh, dropout: the one hidden layer in front of every scorer of the published model."""

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = Linear(input_size, hidden_size)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_size) → (…, hidden_size)."""
        return self.dropout(torch.tanh(self.linear(x)))


class Classifier(nn.Module):
    """MLP and a linear layer: scores of K classes for each row."""

    def __init__(self, input_size: int, hidden_size: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.hidden = MLP(input_size, hidden_size, dropout)
        self.output = Linear(hidden_size, classes)

    def forward(self, x: Tensor) -> Tensor:
        """(M, input_size) → (M, classes)."""
        return self.output(self.hidden(x))
