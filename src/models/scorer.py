"""One biaffine form a channel: context vectors in, a stack of square score matrices out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .layers import MLP


def append_end(states: Tensor, lengths: Tensor, end: Tensor) -> Tensor:
    """(B, T + 1, size) → (B, T + 2, size): position ``lengths[b] + 1`` becomes ``end``, what follows is padding."""
    batch, positions, size = states.shape
    padded = torch.cat([states, states.new_zeros(batch, 1, size)], dim=1)
    is_end = torch.arange(positions + 1, device=states.device) == (lengths + 1)[:, None]
    return torch.where(is_end[..., None], end, padded)


class ChannelScorer(nn.Module):
    """Scores of every channel of a decoder.

    Each role (head, dependent, s0, b0, …) has its MLP, each channel a matrix U, and part (c, i, j) scores
    [xᵢ; 1]ᵀ U_c [yⱼ; 1] with x and y the vectors of i and j in the roles of the channel's rows and columns.

    Parameters
    ----------
    size : int
        Size of the context vectors.
    roles : sequence of (row role, column role)
        One pair a channel: `mh4.decoders.Decoder.roles`.
    hidden, dropout
        Size and dropout of the role MLPs.
    """

    def __init__(self, size: int, roles: Sequence[tuple[str, str]], hidden: int, dropout: float) -> None:
        super().__init__()
        names = list(dict.fromkeys(role for pair in roles for role in pair))
        self.hidden = hidden
        pairs = [(names.index(row), names.index(column)) for row, column in roles]
        self.register_buffer("row_role", torch.tensor([row for row, _ in pairs]), persistent=False)
        self.register_buffer("column_role", torch.tensor([column for _, column in pairs]), persistent=False)
        self.row_role: Tensor
        self.column_role: Tensor
        self.end = nn.Parameter(torch.empty(size).uniform_(-0.15, 0.15))
        self.mlp = MLP(size, hidden * len(names), dropout)
        for role in range(len(names)):
            nn.init.xavier_uniform_(self.mlp.linear.weight.data[role * hidden : (role + 1) * hidden])
        self.matrices = nn.Parameter(torch.empty(len(roles), hidden + 1, hidden + 1))
        for matrix in self.matrices.data:
            nn.init.orthogonal_(matrix)
        self.groups: list[tuple[tuple[int, int], tuple[int, int]]] = []  # roles; first and last channel that has them
        for channel, pair in enumerate(pairs):
            if self.groups and self.groups[-1][0] == pair:
                self.groups[-1] = pair, (self.groups[-1][1][0], channel)
            else:
                self.groups.append((pair, (channel, channel)))

    def role_vectors(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of every position in every role, a constant 1 appended.

        Parameters
        ----------
        states : (B, T + 1, size)
            Context vectors of the root and the words.
        lengths : int64 (B,)

        Returns
        -------
        (B, N, R, hidden + 1) with N = T + 2; position ``lengths[b] + 1`` is the learned end position.
        """
        padded = append_end(states, lengths, self.end)
        hidden = self.mlp(padded).view(*padded.shape[:2], -1, self.hidden)
        return torch.cat([hidden, hidden.new_ones(*hidden.shape[:3], 1)], dim=-1)

    def forward(self, vectors: Tensor) -> Tensor:
        """All scores (B, C, N, N) from `role_vectors`."""
        return self.scores(vectors, self.products(vectors))

    def products(self, vectors: Tensor) -> list[Tensor]:
        """[xᵢ; 1]ᵀ U_c of every position i and channel c, from `role_vectors`: (B, N, ·, hidden + 1) for each group."""
        width = vectors.shape[3]
        return [
            (vectors[:, :, row] @ self.matrices[first : last + 1].transpose(0, 1).flatten(1)).unflatten(2, (-1, width))
            for (row, _), (first, last) in self.groups
        ]

    def scores(self, vectors: Tensor, products: Sequence[Tensor]) -> Tensor:
        """All scores (B, C, N, N) from `role_vectors` and their `products`."""
        blocks = [
            (left.flatten(1, 2) @ vectors[:, :, column].transpose(1, 2)).unflatten(1, left.shape[1:3]).transpose(1, 2)
            for left, ((_, column), _) in zip(products, self.groups, strict=True)
        ]
        return torch.cat(blocks, dim=1)

    def score_parts(self, vectors: Tensor, products: Sequence[Tensor], sentences: Tensor, parts: Tensor) -> Tensor:
        """Scores (P,) of single parts: ``scores(vectors, products)[sentences, *parts.T]``, up to rounding.

        The gradient of the structured loss touches a few parts only; this spares the backward pass through the
        full matrices.

        Parameters
        ----------
        vectors : (B, N, R, hidden + 1)
        products
            Theirs, as they are now; the gradient flows through ``vectors`` and ``matrices`` alone.
        sentences : int64 (P,)
        parts : int64 (P, 3)
            Rows (channel, row, column), sorted by channel.
        """
        _, size, roles, _ = vectors.shape
        channels, rows, columns = parts.unbind(1)
        row_positions, column_positions = sentences * size + rows, sentences * size + columns
        ends = torch.bincount(channels, minlength=len(self.matrices)).cumsum(0).tolist()
        known, start = [], 0
        for left, (_, (first, last)) in zip(products, self.groups, strict=True):
            here = slice(start, ends[last])
            index = row_positions[here] * (last + 1 - first) + channels[here] - first
            known.append(left.detach().flatten(0, 2).index_select(0, index))
            start = ends[last]
        return _PartScores.apply(
            vectors.flatten(0, 2),
            self.matrices,
            torch.cat(known),
            row_positions * roles + self.row_role[channels],
            column_positions * roles + self.column_role[channels],
            ends,
        )


class _PartScores(torch.autograd.Function):
    """xᵀ U_c y of P parts, sorted by channel c, where the products xᵀ U_c are known already.

    ``apply(vectors, matrices, products, rows, columns, ends)`` with vectors (M, W), of which x and y have the numbers
    ``rows`` and ``columns`` (P,), matrices (C, W, W), products (P, W), and where the parts of each channel end, (C,).
    """

    @staticmethod
    def forward(
        context: Any,
        vectors: Tensor,
        matrices: Tensor,
        products: Tensor,
        rows: Tensor,
        columns: Tensor,
        ends: Sequence[int],
    ) -> Tensor:
        """As of `torch.autograd.Function`."""
        context.save_for_backward(vectors, matrices, products, rows, columns)
        context.ends = ends
        return (products * vectors.index_select(0, columns)).sum(1)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """As of `torch.autograd.Function`."""
        vectors, matrices, products, rows, columns = context.saved_tensors
        left = vectors.index_select(0, rows)
        right = vectors.index_select(0, columns) * gradient[:, None]
        to_left, to_matrices = torch.empty_like(left), torch.empty_like(matrices)
        start = 0
        for matrix, to_matrix, end in zip(matrices, to_matrices, context.ends, strict=True):
            torch.mm(right[start:end], matrix.t(), out=to_left[start:end])
            torch.mm(left[start:end].t(), right[start:end], out=to_matrix)
            start = end
        to_vectors = torch.zeros_like(vectors)
        to_vectors.index_add_(0, rows, to_left)
        to_vectors.index_add_(0, columns, products * gradient[:, None])
        return to_vectors, to_matrices, None, None, None, None
