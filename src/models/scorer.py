"""Biaffine scores with one form per channel: context vectors in, a stack of square score matrices out."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .biaffine import PartScores, score_all
from .devices import send, send_together
from .layers import MLP, SMALL, room
from .products import COLUMNS, WIDE_REGISTERS


def append_end(states: Tensor, lengths: Tensor, end: Tensor) -> Tensor:
    """(B, T + 1, size) → (B, T + 2, size): put ``end`` at position ``lengths[b] + 1``; what follows is padding.

    ``lengths``, int64 (B,), is on the host.
    """
    batch, positions, size = states.shape
    padded = torch.cat([states, states.new_zeros(batch, 1, size)], dim=1)
    is_end = send(torch.arange(positions + 1) == (lengths + 1)[:, None], states.device)
    return torch.where(is_end[..., None], end, padded)


class ChannelScorer(nn.Module):
    """Scores the parts of every channel of a decoder.

    Each role (head, dependent, s0, b0, …) has an MLP of size ``hidden``, each channel c a matrix U_c. Part (c, i, j)
    scores [xᵢ; 1]ᵀ U_c [yⱼ; 1], where x and y are the vectors of i in the channel's row role and of j in its column
    role; ``roles`` has these pairs (`mh4.decoders.Decoder.roles`). ``size`` is the size of the context vectors. In an
    ensemble of several ``members``, each has its own MLPs, dropout masks and matrices; the score of a part is the mean
    over the members.
    """

    def __init__(
        self, size: int, roles: Sequence[tuple[str, str]], hidden: int, dropout: float, members: int = 1
    ) -> None:
        super().__init__()
        own_roles = [((member, row), (member, column)) for member in range(members) for row, column in roles]
        names = list(dict.fromkeys(role for pair in own_roles for role in pair))
        self.hidden, self.members = hidden, members
        pairs = [(names.index(row), names.index(column)) for row, column in own_roles]
        # Not buffers, so that they stay on the host.
        self.row_role, self.column_role = torch.from_numpy(np.array(pairs).T.copy())
        self.end = nn.Parameter(room(size).uniform_(-SMALL, SMALL))
        self.mlp = MLP(size, hidden * len(names), dropout)
        for role in range(len(names)):
            nn.init.xavier_uniform_(self.mlp.linear.weight.data[role * hidden : (role + 1) * hidden])
        self.matrices = nn.Parameter(room(len(pairs), hidden + 1, hidden + 1))
        for matrix in self.matrices.data:
            nn.init.orthogonal_(matrix)
        self.groups: list[tuple[tuple[int, int], tuple[int, int]]] = []  # roles, first and last channel of a run
        for channel, pair in enumerate(pairs):
            if self.groups and self.groups[-1][0] == pair:
                self.groups[-1] = pair, (self.groups[-1][1][0], channel)
            else:
                self.groups.append((pair, (channel, channel)))

    def role_vectors(self, states: Tensor, lengths: Tensor) -> Tensor:
        """Vectors (B, N, R, hidden + 1) of every position in every role, a constant 1 appended; float32.

        ``states`` (B, T + 1, size) are the context vectors of the root and the words, ``lengths`` int64 (B,), on the
        host. N = T + 2; position ``lengths[b] + 1`` is the learned end position.
        """
        padded = append_end(states, lengths, self.end)
        hidden = self.mlp(padded).float().view(*padded.shape[:2], -1, self.hidden)
        return torch.cat([hidden, hidden.new_ones(*hidden.shape[:3], 1)], dim=-1)

    def forward(self, vectors: Tensor) -> Tensor:
        """All scores (B, C, N, N) from `role_vectors`."""
        if self._compiles(vectors):
            scores = score_all(vectors, self.matrices, self.row_role, self.column_role, keep_products=False)[1]
        else:
            scores = torch.cat([own for _, own in self._by_roles(vectors)], dim=1)
        return scores if self.members == 1 else scores.unflatten(1, (self.members, -1)).mean(1)

    def products_and_scores(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """[xᵢ; 1]ᵀ U_c of every position i and channel c, (B, N, C, hidden + 1), and all scores (B, C, N, N).

        With several members, C counts the channels of all members, one member after the other.
        """
        if self._compiles(vectors):
            return score_all(vectors, self.matrices, self.row_role, self.column_role)
        products, scores = zip(*self._by_roles(vectors), strict=True)
        return torch.cat(products, dim=2), torch.cat(scores, dim=1)

    @staticmethod
    def _compiles(vectors: Tensor) -> bool:
        on_cpu = vectors.device.type == "cpu" and not torch.is_grad_enabled()
        return on_cpu and WIDE_REGISTERS and vectors.shape[3] >= COLUMNS

    def _by_roles(self, vectors: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield `products_and_scores` for each run of channels with the same roles, in order."""
        for (row, column), (first, last) in self.groups:
            matrices = self.matrices[first : last + 1].transpose(0, 1).flatten(1)
            left = (vectors[:, :, row] @ matrices).unflatten(2, (-1, vectors.shape[3]))
            right = vectors[:, :, column].transpose(1, 2)
            yield left, (left.flatten(1, 2) @ right).unflatten(1, left.shape[1:3]).transpose(1, 2)

    def score_parts(self, vectors: Tensor, products: Tensor, sentences: Tensor, parts: Tensor) -> Tensor:
        """Scores (P,) of single parts: ``products_and_scores(vectors)[1][sentences, *parts.T]``, up to rounding.

        The gradient of the structured loss touches only a few parts; this avoids the backward pass through the full
        matrices. ``products`` must be the products of these ``vectors``; the gradient flows through ``vectors`` and
        ``matrices`` only. ``sentences``, int64 (P,), and ``parts``, int64 (P, 3) with rows (channel, row, column),
        sorted by channel, are on the host.
        """
        _, size, roles, _ = vectors.shape
        channels, rows, columns = parts.unbind(1)
        row_positions, column_positions = sentences * size + rows, sentences * size + columns
        ends = torch.bincount(channels, minlength=len(self.matrices)).cumsum(0).tolist()
        rows, columns, known = send_together(
            [
                row_positions * roles + self.row_role[channels],
                column_positions * roles + self.column_role[channels],
                row_positions * len(self.matrices) + channels,
            ],
            vectors.device,
        )
        all_vectors, all_products = vectors.flatten(0, 2), products.detach().flatten(0, 2)
        return PartScores.apply(all_vectors, self.matrices, all_products, rows, columns, known, ends)
