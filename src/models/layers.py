"""Layers shared by encoders and scorers: a BiLSTM without padding and with one dropout mask per sequence, and MLPs."""

import math
from typing import NamedTuple, Self

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.nn.functional import linear

from .devices import send_together
from .dropout import Dropout
from .products import WIDE_REGISTERS, Product
from .recurrence import COMPILED, Recurrence, Sequences, power_of_two
from .rows import Rearranged, take_rows

SMALL = 0.15  # learned vectors start uniform in ±SMALL, as in the published model


def room(*shape: int) -> Tensor:
    """An uninitialised float32 tensor, whatever default dtype the host program has set."""
    return torch.empty(shape, dtype=torch.float32)


class Packed(NamedTuple):
    """The order in which PyTorch's LSTM takes P rows: the first steps of all sequences, then their second steps, ….

    Attributes
    ----------
    rows, places : int64 (P,)
        The row at each place of this order, and the place of each row.
    batch_sizes : int64 (steps of the longest sequence,), on the host
        How many sequences have a first step, a second step, ….
    """

    rows: Tensor
    places: Tensor
    batch_sizes: Tensor


class Steps(NamedTuple):
    """The layout of B sequences in a matrix of P rows, one row per step; tensors are on the device of the rows.

    Attributes
    ----------
    sequences : Sequences
    sequence_of : int64 (P,)
        The sequence of each row.
    first, last : int64 (B,)
        The rows of each sequence's first and last step.
    packed : Packed or None
        None on the CPU, where it is not needed.
    """

    sequences: Sequences
    sequence_of: Tensor
    first: Tensor
    last: Tensor
    packed: Packed | None

    @classmethod
    def one_after_the_other(cls, lengths: Tensor, device: torch.device) -> Self:
        """The layout of consecutive sequences with the given ``lengths``, a tensor on the host."""
        counts = lengths.numpy()
        sequences = Sequences.one_after_the_other(counts)
        ends = np.cumsum(counts)
        arrays = [np.repeat(np.arange(len(counts)), counts), ends - counts, ends - 1]
        if device.type == "cpu":
            sequence_of, first, last = map(torch.from_numpy, arrays)
            return cls(sequences, sequence_of, first, last, None)
        rows, batch_sizes = packed_order(sequences)
        sequence_of, first, last, own_rows, places = send_together(
            [torch.from_numpy(array) for array in (*arrays, rows, np.argsort(rows))], device
        )
        return cls(sequences, sequence_of, first, last, Packed(own_rows, places, torch.from_numpy(batch_sizes)))


def packed_order(sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """``rows`` and ``batch_sizes`` of `Packed`."""
    first, lengths = sequences
    steps = np.arange(lengths[0])[:, None]
    active = steps < lengths
    return (first + steps)[active], active.sum(1)


class BiLSTMLayer(nn.Module):
    """An LSTM in both directions, with DropConnect on the recurrent matrices.

    Dropping recurrent weights (Merity et al. 2018) takes the place of a recurrent dropout mask per sequence: it
    regularises the same connections, and PyTorch's fused GPU kernels remain usable.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.dropout = Dropout(dropout)
        self.input_weight = nn.Parameter(room(2, 4 * hidden_size, input_size))
        self.recurrent_weight = nn.Parameter(room(2, 4 * hidden_size, hidden_size))
        self.bias = nn.Parameter(room(2, 4 * hidden_size).zero_())
        for weight in (self.input_weight, self.recurrent_weight):
            for gate in weight.data.view(8, hidden_size, -1):
                nn.init.xavier_uniform_(gate)

    def forward(self, x: Tensor, steps: Steps) -> Tensor:
        """(P, input_size) → (P, 2 · hidden_size), the forward direction first."""
        recurrent = self.dropout(self.recurrent_weight)
        if steps.packed is None:
            return Recurrence.apply(x, self.input_weight, recurrent, self.bias, steps.sequences)
        return packed_lstm(x, self.input_weight, recurrent, self.bias, steps.packed)


def packed_lstm(x: Tensor, input_weight: Tensor, recurrent_weight: Tensor, bias: Tensor, packed: Packed) -> Tensor:
    """Compute `Recurrence` with PyTorch's own LSTM, the faster one on a GPU.

    cuDNN copies its weights unless they are in one contiguous block: the matrices of the forward direction, the
    matrices of the backward direction, then two biases per direction, of which the second is 0 here.
    """
    matrices = zip(input_weight.unbind(), recurrent_weight.unbind(), strict=True)
    biases = ((own, torch.zeros_like(own)) for own in bias.unbind())
    weights = [weight for pairs in (matrices, biases) for pair in pairs for weight in pair]
    pieces = torch.cat([weight.flatten() for weight in weights]).split([weight.numel() for weight in weights])
    flat = [piece.view_as(weight) for piece, weight in zip(pieces, weights, strict=True)]
    by_direction = [*flat[:2], *flat[4:6], *flat[2:4], *flat[6:]]
    start = x.new_zeros(2, int(packed.batch_sizes[0]), recurrent_weight.shape[2])
    rows = Rearranged.apply(x, packed.rows, packed.places)
    states = torch.lstm(
        rows, packed.batch_sizes, [start, start], by_direction, True, 1, 0.0, torch.is_grad_enabled(), True
    )[0]
    return Rearranged.apply(states, packed.places, packed.rows)


class BiLSTM(nn.Module):
    """Stacked bidirectional LSTM over sequences whose steps are the rows of a matrix."""

    def __init__(self, input_size: int, hidden_size: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        sizes = [input_size] + [2 * hidden_size] * (layers - 1)
        self.layers = nn.ModuleList(BiLSTMLayer(size, hidden_size, dropout) for size in sizes)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[list[Tensor], Tensor]:
        """The states of every layer, and the final states of the last layer.

        ``x`` (P, input_size) holds the steps of all sequences, one sequence after the other; ``lengths``, int64 (B,),
        on the host, holds the number of steps of each, at least 1. The states of a layer are (P, 2 · hidden_size), one
        row per step. The final states, (B, 2 · hidden_size), are the states of either direction after it has read the
        whole sequence.
        """
        steps = Steps.one_after_the_other(lengths, x.device)
        x, states = x.float(), []
        with torch.autocast(x.device.type, enabled=False):  # autocast would run an LSTM in float16, not bfloat16
            for layer in self.layers:
                x = layer(self.dropout.by_sequence(x, steps.sequence_of, len(lengths)), steps)
                states.append(x)
        ahead, back = x.chunk(2, dim=1)
        return states, torch.cat([take_rows(ahead, steps.last), take_rows(back, steps.first)], dim=1)


class Linear(nn.Linear):
    """`torch.nn.Linear` with Glorot-uniform weights and a bias of 0, computed by our own kernels on the CPU."""

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__(input_size, output_size, dtype=torch.float32)
        nn.init.xavier_uniform_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_size) → (…, output_size)."""
        return affine(x, self.weight, self.bias)


def with_our_products(model: nn.Module) -> None:
    """Make the linear layers of another package's model use our own matrix products on the CPU."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear  # keeps the weights; a new module would have to be put into the parent


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`torch.nn.functional.linear`, by our own matrix products on the CPU; all tensors must be contiguous."""
    if x.device.type == "cpu" and WIDE_REGISTERS and not torch.is_autocast_enabled("cpu"):
        return Product.apply(x, weight, bias)
    return linear(x, weight, bias)


_ROUNDING = 1.5 * 2**52  # x + _ROUNDING has the integer closest to x in its lowest bits
_MOST = np.float32(20)  # for larger |x|, tanh(x) rounds to ±1


@njit(cache=True, **COMPILED)
def _tanh(values):
    for i in range(len(values)):
        y = np.float64(min(max(values[i], -_MOST), _MOST)) * (2 / math.log(2))
        rounded = y + _ROUNDING
        f = y - (rounded - _ROUNDING)  # exp(2x) = 2^(y - f) · 2^f, the latter from its Taylor series, |f| ≤ 0.5
        p = 1.0178086009239696e-7
        p = p * f + 1.3215486790144305e-6
        p = p * f + 1.5252733804059838e-5
        p = p * f + 1.540353039338161e-4
        p = p * f + 1.3333558146428443e-3
        p = p * f + 9.618129107628477e-3
        p = p * f + 5.5504108664821576e-2
        p = p * f + 2.402265069591007e-1
        p = p * f + 6.931471805599453e-1
        p = p * f + 1.0
        values[i] = 1.0 - 2.0 / (p * power_of_two(rounded) + 1.0)


def activated(x: Tensor) -> Tensor:
    """``tanh(x)``; may overwrite ``x``.

    On the CPU, without gradient, a compiled loop computes it: on AMD, MKL takes five times as long. The loop computes
    in float64 and rounds once, so its results are PyTorch's, except for one number in a thousand.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32 or torch.is_grad_enabled() or not x.is_contiguous():
        return torch.tanh(x)
    _tanh(x.view(-1).numpy())
    return x


class MLP(nn.Module):
    """Linear, tanh, dropout: the one hidden layer in front of every scorer of the published model."""

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.linear = Linear(input_size, hidden_size)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(…, input_size) → (…, hidden_size)."""
        return self.dropout(activated(self.linear(x)))


class Classifier(nn.Module):
    """MLP and a linear layer: scores of K classes for each row.

    In an ensemble of several ``members``, each has its own MLP and linear layer, which lie side by side in wider
    layers; the output bias is shared. The score of a class is the mean over the members.
    """

    def __init__(self, input_size: int, hidden_size: int, classes: int, dropout: float, members: int = 1) -> None:
        super().__init__()
        self.members = members
        self.hidden = MLP(input_size, members * hidden_size, dropout)
        self.output = Linear(members * hidden_size, classes)
        if members > 1:
            for block in (*self.hidden.linear.weight.data.chunk(members), *self.output.weight.data.chunk(members, 1)):
                nn.init.xavier_uniform_(block)

    def forward(self, x: Tensor) -> Tensor:
        """(M, input_size) → (M, classes), float32 even under autocast."""
        return self.by_member(x).mean(0) if self.members > 1 else self.output(self.hidden(x)).float()

    def by_member(self, x: Tensor) -> Tensor:
        """The scores of each member, (members, M, classes)."""
        blocks = zip(self.hidden(x).chunk(self.members, -1), self.output.weight.chunk(self.members, 1), strict=True)
        return torch.stack([affine(own, weight.contiguous(), self.output.bias).float() for own, weight in blocks])
