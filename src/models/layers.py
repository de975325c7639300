"""Small layers shared by encoder and scorers: masks that stay fixed over a sequence, a BiLSTM without packing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


def dropout_mask(shape: Sequence[int], p: float, like: Tensor) -> Tensor:
    """0 with probability p, else 1 / (1 − p). (`torch.nn.functional.dropout` draws 4 times slower on a CPU.)"""
    keep = 1.0 - p
    return (torch.rand(shape, dtype=like.dtype, device=like.device) < keep).to(like.dtype).div_(keep)


def reversal_index(lengths: Tensor, steps: int) -> Tensor:
    """Index (T, B) that reverses the first ``lengths[b]`` steps of each sequence and leaves padding where it is."""
    t = torch.arange(steps, device=lengths.device)[:, None]
    return torch.where(t < lengths, lengths - 1 - t, t)


class LSTMLayer(nn.Module):
    """One LSTM in one direction over time-major input, with DropConnect on the recurrent matrix.

    Dropping recurrent weights (Merity et al. 2018) stands in for a recurrent mask a sequence: it regularises the
    same connections and keeps the fused kernels of PyTorch usable.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.input_weight = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(torch.zeros(4 * hidden_size))
        self.register_buffer("_no_bias", torch.zeros(4 * hidden_size), persistent=False)
        self._no_bias: Tensor
        for gate in range(4):
            rows = slice(gate * hidden_size, (gate + 1) * hidden_size)
            nn.init.xavier_uniform_(self.input_weight.data[rows])
            nn.init.xavier_uniform_(self.recurrent_weight.data[rows])

    def forward(self, x: Tensor) -> Tensor:
        """(T, B, input_size) → (T, B, hidden_size)."""
        start = x.new_zeros(1, x.shape[1], self.hidden_size)
        recurrent: Tensor = self.recurrent_weight
        if self.training and self.dropout:
            recurrent = recurrent * dropout_mask(recurrent.shape, self.dropout, recurrent)
        weights = [self.input_weight, recurrent, self.bias, self._no_bias]
        return torch.lstm(x, [start, start], weights, True, 1, 0.0, self.training, False, False)[0]


class BiLSTM(nn.Module):
    """Stacked bidirectional LSTM over padded, time-major sequences.

    The backward direction reads each sequence reversed within its own length, so padding always comes last and
    never reaches a real step: no packing, and the fast padded kernels apply.
    """

    def __init__(self, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        sizes = [input_size] + [2 * hidden_size] * (layers - 1)
        self.ahead = nn.ModuleList(LSTMLayer(size, hidden_size, dropout) for size in sizes)
        self.back = nn.ModuleList(LSTMLayer(size, hidden_size, dropout) for size in sizes)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """States of both directions.

        Parameters
        ----------
        x : (T, B, input_size)
        lengths : int64 (B,), on the device of x

        Returns
        -------
        states : (T, B, 2 · hidden_size), one row a step
        last : (B, 2 · hidden_size), the state of either direction after it has read the whole sequence
        """
        index = reversal_index(lengths, x.shape[0])
        columns = torch.arange(x.shape[1], device=x.device)
        for ahead, back in zip(self.ahead, self.back, strict=True):
            if self.training and self.dropout:  # one mask a sequence (Gal & Ghahramani 2016)
                x = x * dropout_mask(x.shape[1:], self.dropout, x)
            left = ahead(x)
            right = back(x[index, columns])
            x = torch.cat([left, right[index, columns]], dim=-1)
        last = torch.cat([left[lengths - 1, columns], right[lengths - 1, columns]], dim=-1)
        return x, last


class MLP(nn.Module):
    """Linear, tanh, dropout: the one hidden layer in front of every scorer of the published model."""

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, hidden_size)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_size) → (…, hidden_size)."""
        hidden = torch.tanh(self.linear(x))
        if self.training and self.dropout:
            hidden = hidden * dropout_mask(hidden.shape, self.dropout, hidden)
        return hidden


class Classifier(nn.Module):
    """MLP and a linear layer: scores of K classes for each row."""

    def __init__(self, input_size: int, hidden_size: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.hidden = MLP(input_size, hidden_size, dropout)
        self.output = nn.Linear(hidden_size, classes)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(M, input_size) → (M, classes)."""
        return self.output(self.hidden(x))
