"""What a decoder returns, and what it says when there is nothing to return."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class InfeasibleError(ValueError):
    """No tree of the decoder's class avoids the forbidden (−inf) arcs."""


class ChartTooLargeError(ValueError):
    """The chart of this sentence would take more than the decoder's memory limit."""


class UnsupportedError(ValueError):
    """This decoder has no such thing; the message names those that have it."""


class Derivation(NamedTuple):
    """The best derivation of a sentence of n words.

    Attributes
    ----------
    heads : int32 (n + 1,)
        ``heads[d]`` is the head of word d, 0 the root; ``heads[0] == -1``.
    parts : int32 (P, 3)
        Rows (channel, row, column): the scores this derivation collects. A part may occur more than once.
    score : float
        The sum of ``scores`` over ``parts`` plus the bonus of each arc.
    """

    heads: np.ndarray
    parts: np.ndarray
    score: float


class Solved(NamedTuple):
    """Numbers for a chart, and what was found in it.

    Attributes
    ----------
    scores : float32 (C, N, N)
    arc_bonus : float32 (N, N)
        Both less what all derivations share where that is large.
    best : Derivation
        The best one, with its score under these numbers.
    chart : float32, optional
        The memory that holds the filled chart; None if that has been used for another sentence since.
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
        What `decode` returns.
    values : float64 (n + 1,)
        How much the score falls, at least 0, if word d gets another head and the rest of the tree is the best for that;
        +inf where no other head is possible, and at position 0.
    heads : int32 (n + 1,)
        That other head; −1 where there is none.
    """

    derivation: Derivation
    values: np.ndarray
    heads: np.ndarray


class PartMarginals(NamedTuple):
    """Sums over all derivations, each weighing exp(score / temperature).

    Attributes
    ----------
    log_partition : float
        Logarithm of the sum of the weights.
    parts : float64 (C, N, N)
        How often a derivation has each part on average: what log_partition · temperature grows by if its score does.
    arcs : float64 (N, N)
        Probability of each arc [head, dependent]; the same for the arc bonus.
    """

    log_partition: float
    parts: np.ndarray
    arcs: np.ndarray
