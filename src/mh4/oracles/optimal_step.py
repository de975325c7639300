"""The scores of a configuration's transitions, in the form in which every oracle reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple

import numpy as np

from mh4.transitions import arc_eager, arc_standard
from mh4.transitions.transition_system import T

from .flat_arrays import check_arcs

UNREACHABLE = -(2**30)
"""In int32 score arrays: the transition does not apply, or it leads to no final configuration."""


def best_transitions(scores: np.ndarray) -> np.ndarray:
    """bool (B, T): whether each score, int32 (B, T), is the largest of its row and not `UNREACHABLE`."""
    return (scores == scores.max(axis=1, keepdims=True)) & (scores > UNREACHABLE)


class OptimalStep(NamedTuple, Generic[T]):
    """The transitions of a configuration with the score of the best tree that each can still lead to.

    Attributes
    ----------
    scores : dict
        For each transition of the system, in its order: the largest number of gold arcs of any tree that can be reached
        after it, arcs built already included. None where the transition does not apply or no tree can be reached.
        For LR-spine parsing, where arcs have an argument, only the transitions that apply are listed.
    best : tuple
        The transitions with the largest score, in the system's order; empty if no transition leads to a tree.
    n : int
        Words of the sentence.
    """

    scores: dict[T, int | None]
    best: tuple[T, ...]
    n: int

    @staticmethod
    def from_array(transitions: Sequence[str], scores: np.ndarray, n: int) -> OptimalStep[str]:
        """Make a step from one int32 score per transition, `UNREACHABLE` where there is none."""
        values = [score if score >= 0 else None for score in scores.tolist()]
        largest = max(scores.tolist())
        best = tuple(t for t, value in zip(transitions, values, strict=True) if value == largest)
        return OptimalStep(dict(zip(transitions, values, strict=True)), best, n)

    @staticmethod
    def with_arcs_made(
        transitions: Sequence[str],
        scores: np.ndarray,
        configuration: arc_standard.Configuration | arc_eager.Configuration,
        gold: np.ndarray,
    ) -> OptimalStep[str]:
        """Make a step from the numbers of gold arcs still to be made, to which those made already are added."""
        if len(gold) != configuration.n + 1:
            raise ValueError(f"the configuration has {configuration.n} words, but the gold tree has {len(gold) - 1}")
        check_arcs(configuration, configuration.front, configuration.stack)
        made = configuration.gold_arcs(gold)
        reached = np.where(scores > UNREACHABLE, scores + made, scores)
        return OptimalStep.from_array(transitions, reached, configuration.n)

    @property
    def score(self) -> int | None:
        """The largest score of any transition; None if no transition leads to a tree."""
        return self.scores[self.best[0]] if self.best else None

    @property
    def accuracy(self) -> float | None:
        """Attainable accuracy: the share of the words that can still get their gold head; None as for `score`.

        1 if there are no words.
        """
        return None if self.score is None else self.score / self.n if self.n else 1.0
