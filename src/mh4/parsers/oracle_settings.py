"""Settings of every greedy parser: its transition system, and what it is told in training."""

from __future__ import annotations

from dataclasses import dataclass

from mh4.transitions.arrays.state import DYNAMIC, ORACLES

from .systems import get_system


@dataclass(frozen=True)
class OracleSettings:
    """A system, its oracle, and how training explores.

    Attributes
    ----------
    system : str
        One of `mh4.parsers.systems.SYSTEMS`.
    oracle : str
        One of the system's; empty: the dynamic one if it has one, else the static one. ``all-pairs`` is a static oracle
        of Covington parsing only: see `mh4.transitions.arrays.covington`.
    exploration_start, exploration : int, float
        With a dynamic oracle, follow wrong predictions with this probability once so many epochs are done; before, and
        otherwise, follow the optimal transition with the highest score (Goldberg & Nivre 2012).

    Raises
    ------
    ValueError
        A value that is out of range, or unknown to the system.
    """

    system: str = "arc-hybrid"
    oracle: str = ""
    exploration_start: int = 1
    exploration: float = 0.9

    def __post_init__(self) -> None:
        _, system = get_system(self.system)
        if not self.oracle:
            default = ORACLES[DYNAMIC] if ORACLES[DYNAMIC] in system.oracles else system.oracles[0]
            object.__setattr__(self, "oracle", default)
        if self.oracle not in system.oracles:
            raise ValueError(f"unknown oracle {self.oracle!r} of {self.system}; known: {', '.join(system.oracles)}")
        if self.exploration_start < 0:
            raise ValueError(f"exploration_start is a number of epochs, not {self.exploration_start}")
        if not 0.0 <= self.exploration <= 1.0:
            raise ValueError(f"exploration is a probability, not {self.exploration}")

    def exploration_at(self, epoch: int) -> float:
        """Probability of following a wrong prediction in an epoch, counted from 0."""
        _, system = get_system(self.system)
        explores = self.oracle == ORACLES[DYNAMIC] and system.explores and epoch >= self.exploration_start
        return float(self.exploration) if explores else 0.0
