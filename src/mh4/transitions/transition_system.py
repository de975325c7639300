"""The protocol of a transition system: configurations, transitions, computations.

A transition system builds a tree step by step. A *configuration* is an immutable value that holds everything known so
far; a *transition* maps it to the next one; a *computation* leads from the initial configuration of a sentence of n
words to a final one, whose ``heads`` are the tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np

NO_HEAD = -1

C = TypeVar("C")  # configuration
T = TypeVar("T")  # transition: a name, or a named tuple for parametric transitions


class TransitionError(ValueError):
    """A transition that the configuration does not allow."""


class TransitionSystem(ABC, Generic[C, T]):
    """What every transition system offers.

    Attributes
    ----------
    name : str
        As on the command line.
    """

    name: ClassVar[str]

    @abstractmethod
    def initial(self, n: int) -> C:
        """The configuration before the first word of n is read."""

    @abstractmethod
    def legal(self, configuration: C) -> Sequence[T]:
        """Transitions that apply, in the system's order; none in a final or stuck configuration."""

    @abstractmethod
    def apply(self, configuration: C, transition: T) -> C:
        """The next configuration.

        Raises
        ------
        TransitionError
            The transition is not legal here.
        """

    @abstractmethod
    def is_final(self, configuration: C) -> bool:
        """Whether the tree is complete."""

    @abstractmethod
    def heads(self, configuration: C) -> np.ndarray:
        """int32 (n + 1,): the head of each word so far, `NO_HEAD` where there is none (and at 0)."""

    def run(self, n: int, transitions: Iterable[T]) -> Iterator[C]:
        """The configurations of a computation, the initial one first."""
        configuration = self.initial(n)
        yield configuration
        for transition in transitions:
            configuration = self.apply(configuration, transition)
            yield configuration
