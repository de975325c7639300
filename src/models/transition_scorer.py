"""Scores of transitions from the context vectors of a few tokens of a configuration."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .devices import HostCopy
from .dropout import Dropout
from .layers import SMALL, Linear, room
from .rows import take_rows
from .scorer import ChannelScorer, append_end

FORMS = ("concatenated", "biaffine")  # how a score depends on the vectors of the tokens


class ScorerArrays(NamedTuple):
    """A `TransitionScorer` and the vectors of B sentences as float32 arrays, for compiled loops."""

    vectors: np.ndarray  # (B, N, R, H), see `TransitionScorer.role_vectors`
    bias: np.ndarray  # (H,)
    output: np.ndarray  # (H, T)
    output_bias: np.ndarray  # (T,)


class BiaffineArrays(NamedTuple):
    """A `BiaffineTransitionScorer` and the vectors of B sentences as float32 arrays, for compiled loops.

    x and y are the vectors of a position in the first and in the second role.
    """

    products: np.ndarray  # (B, N, T, H + 1): [x; 1]ᵀ U_t
    vectors: np.ndarray  # (B, N, H + 1): [y; 1]


class TransitionScorer(nn.Module):
    """Scores T transitions by one hidden layer over the concatenated vectors of R tokens.

    The hidden layer is a sum of R linear maps, one for each role that a token can have (s1, s0, b0, …). The vector of a
    token in a role is the same in all configurations, so each is mapped once, and a configuration costs R additions of
    vectors, the tanh and the output layer (Gómez-Rodríguez, Shi & Lee 2018, section 3.1, give the feature sets).
    ``size`` is the size of the context vectors; ``hidden`` and ``dropout`` are the size and dropout rate of the hidden
    layer.
    """

    def __init__(self, size: int, roles: int, transitions: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.roles, self.hidden = roles, hidden
        self.dropout = Dropout(dropout)
        self.end = nn.Parameter(room(size).uniform_(-SMALL, SMALL))
        together = nn.init.xavier_uniform_(room(hidden, roles * size))  # as for one layer over the concatenation
        self.input = nn.Parameter(together.view(hidden, roles, size).transpose(0, 1).reshape(roles * hidden, size))
        self.bias = nn.Parameter(room(hidden).zero_())
        self.output = Linear(hidden, transitions)

    def role_vectors(self, states: Tensor, lengths: Tensor) -> Tensor:
        """The contribution of every position to the hidden layer in every role, (B, N, R, hidden).

        Arguments are those of `ChannelScorer.role_vectors`; position ``lengths[b] + 1``, a learned vector, stands for
        "no such token".
        """
        padded = append_end(states, lengths, self.end)
        return (padded @ self.input.t()).float().view(*padded.shape[:2], self.roles, self.hidden)

    def forward(self, vectors: Tensor, sentences: Tensor, positions: Tensor) -> Tensor:
        """Scores (M, T) of the transitions in M configurations, from `role_vectors`.

        ``positions``, int64 (M, R), has the token in each role, ``sentences``, int64 (M,), the sentence.
        """
        batch, size = vectors.shape[:2]
        flat = vectors.reshape(batch * size, self.roles, self.hidden)
        rows = sentences[:, None] * size + positions
        hidden = self.bias + sum(take_rows(flat[:, role], rows[:, role]) for role in range(self.roles))
        return self.output(self.dropout(torch.tanh(hidden)))

    @torch.no_grad()
    def arrays(self, vectors: Tensor) -> ScorerArrays:
        """The arrays for compiled loops, which score like `forward` without dropout."""
        return ScorerArrays(*_on_host(vectors, self.bias, self.output.weight.t(), self.output.bias))


class BiaffineTransitionScorer(nn.Module):
    """Scores each of T transitions by a biaffine form of the vectors of two tokens.

    It is a `ChannelScorer` whose channels are the transitions. The published toolkit scores arc-hybrid parsing this
    way, whereas the paper (Gómez-Rodríguez, Shi & Lee 2018) describes concatenated vectors. For the parameters see
    `ChannelScorer`.
    """

    def __init__(self, size: int, transitions: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.channels = ChannelScorer(size, [("first", "second")] * transitions, hidden, dropout)
        self.dropout = self.channels.mlp.dropout

    def role_vectors(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Vectors (B, N, 2, hidden + 1) of every position in both roles; see `ChannelScorer.role_vectors`."""
        return self.channels.role_vectors(states, lengths)

    def _products(self, vectors: Tensor) -> Tensor:
        """[x; 1]ᵀ U_t, (…, T, hidden + 1), of vectors in the first role, (…, hidden + 1)."""
        matrices = self.channels.matrices
        return (vectors @ matrices.transpose(0, 1).flatten(1)).unflatten(-1, (len(matrices), -1))

    def forward(self, vectors: Tensor, sentences: Tensor, positions: Tensor) -> Tensor:
        """As `TransitionScorer.forward`, for vectors (B, N, 2, hidden + 1) and positions (M, 2)."""
        rows = sentences[:, None] * vectors.shape[1] + positions
        first, second = (take_rows(vectors[:, :, role].flatten(0, 1), rows[:, role]) for role in range(2))
        return (self._products(first) @ second[:, :, None]).squeeze(2)

    @torch.no_grad()
    def arrays(self, vectors: Tensor) -> BiaffineArrays:
        """The arrays for compiled loops, which score like `forward`."""
        first, second = vectors.unbind(2)
        return BiaffineArrays(*_on_host(self._products(first), second))


def _on_host(*tensors: Tensor) -> list[np.ndarray]:
    """Contiguous arrays of the tensors; waits for a GPU only once."""
    return [np.ascontiguousarray(tensor.numpy()) for tensor in HostCopy(*tensors).tensors()]


def step_hinge(scores: Tensor, steps: Tensor, optimal: Tensor, count: int) -> Tensor:
    """Sum over steps of max(0, 1 + score of the best non-optimal candidate − score of the best optimal candidate).

    There are K candidates in ``count`` steps: ``scores`` (K,), ``steps``, int64 (K,), the step of each candidate, and
    ``optimal``, bool (K,). Each step has an optimal candidate; where all candidates are optimal, the loss is 0.
    """
    lowest = scores.new_full((2, count), float("-inf")).flatten()
    best = lowest.scatter_reduce(0, steps + count * optimal, scores, "amax").view(2, count)
    return torch.relu(1.0 + best[0] - best[1]).sum()
