"""What decoders return and which errors they raise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class InfeasibleError(ValueError):
    """No tree of the decoder's class avoids the forbidden (−inf) arcs."""


class ChartTooLargeError(ValueError):
    """The chart of this sentence would take more than the decoder's memory limit."""


def memory_size(size: int) -> str:
    """A number of bytes for messages, such as ``2.0 GiB`` or, below 1 GiB, ``51.2 MiB``."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


class UnsupportedError(ValueError):
    """This decoder does not support the operation."""


class Derivation(NamedTuple):
    """A derivation of a sentence of n words.

    Attributes
    ----------
    heads : int32 (n + 1,)
        ``heads[d]`` is the head of word d, 0 the root; ``heads[0] == -1``.
    parts : int32 (P, 3)
        Rows (channel, row, column): the scores that this derivation sums. A part may occur more than once.
    score : float
        The sum of ``scores`` over ``parts`` plus the bonus of each arc.
    """

    heads: np.ndarray
    parts: np.ndarray
    score: float


class Solved(NamedTuple):
    """The numbers a chart was filled with, and the result.

    Attributes
    ----------
    scores : float32 (C, N, N)
    arc_bonus : float32 (N, N)
        Both less the constants that all derivations share, where these are large.
    best : Derivation
        The best derivation, with its score under these numbers.
    chart : float32, optional
        The memory that holds the filled chart; None if it has been reused for another sentence.
    """

    scores: np.ndarray
    arc_bonus: np.ndarray
    best: Derivation
    chart: np.ndarray | None


class Margins(NamedTuple):
    """How sure a decoder is of each head of the best tree of n words.

    Attributes
    ----------
    derivation : Derivation
        The best derivation, as `decode` returns it.
    values : float64 (n + 1,)
        Lead of the best derivation over the best one in which word d has another head, at least 0; +inf where no other
        head is possible, and at position 0.
    heads : int32 (n + 1,)
        That other head; −1 where there is none.
    """

    derivation: Derivation
    values: np.ndarray
    heads: np.ndarray


class PartMarginals(NamedTuple):
    """Sums over all derivations, each with the weight exp(score / temperature).

    Attributes
    ----------
    log_partition : float
        Logarithm of the sum of the weights.
    parts : float64 (C, N, N)
        Expected count of each part: the derivative of log_partition · temperature by the score of the part.
    arcs : float64 (N, N)
        Probability of each arc [head, dependent]: the derivative by its arc bonus.
    """

    log_partition: float
    parts: np.ndarray
    arcs: np.ndarray
