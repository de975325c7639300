"""The protocol of a transition system: configurations, transitions, computations.

A transition system builds a tree step by step. A *configuration* is an immutable value that holds everything known so
far; a *transition* maps it to the next one; a *computation* leads from the initial configuration of a sentence of n
words to a final one, whose ``heads`` are the tree.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np

NO_HEAD = -1


class ConfigurationWithArcs:
    """Base of all configurations: the number of words, and the arcs (head, dependent) made so far."""

    __slots__ = ()
    n: int
    arcs: frozenset[tuple[int, int]]

    def gold_arcs(self, gold: np.ndarray) -> int:
        """The number of arcs made so far that are in a gold tree; ``gold`` is int (n + 1,), its heads."""
        heads = np.asarray(gold).tolist()
        return sum(heads[dependent] == head for head, dependent in self.arcs)


C = TypeVar("C", bound=ConfigurationWithArcs)
T = TypeVar("T")  # transition: a name, or a named tuple for parametric transitions


class TransitionError(ValueError):
    """A transition that the configuration does not allow."""


def heads_of(arcs: Iterable[tuple[int, int]], n: int) -> np.ndarray:
    """int32 (n + 1,): the head of each word by arcs (head, dependent), `NO_HEAD` where there is none (and at 0)."""
    heads = np.full(n + 1, NO_HEAD, np.int32)
    for head, dependent in arcs:
        heads[dependent] = head
    return heads


def show_arcs(arcs: Collection[tuple[int, int]]) -> str:
    """A set of arcs in the notation of the papers."""
    return "{" + ", ".join(map(str, sorted(arcs))) + "}" if arcs else "∅"


def show_configuration(stack: str, front: int, n: int, arcs: Collection[tuple[int, int]]) -> str:
    """A configuration in the notation of the papers: the stack, the remaining input, the arcs."""
    return f"({stack}, {' '.join(map(str, range(front, n + 1))) or 'ε'}, {show_arcs(arcs)})"


class TransitionSystem(ABC, Generic[C, T]):
    """Interface of all transition systems.

    Attributes
    ----------
    name : str
        Name on the command line.
    transitions : tuple of str
        Names of the transitions; a parametric transition has its name as first field.
    """

    name: ClassVar[str]
    transitions: ClassVar[tuple[str, ...]]

    @abstractmethod
    def initial(self, n: int) -> C:
        """The initial configuration for a sentence of n words."""

    @abstractmethod
    def legal(self, configuration: C) -> Sequence[T]:
        """Transitions that apply, in the system's order; none in a final or stuck configuration."""

    @abstractmethod
    def apply(self, configuration: C, transition: T) -> C:
        """The next configuration; `TransitionError` as in `check`."""

    @abstractmethod
    def is_final(self, configuration: C) -> bool:
        """Whether the tree is complete."""

    def heads(self, configuration: C) -> np.ndarray:
        """int32 (n + 1,): the head of each word so far, `NO_HEAD` where there is none (and at 0)."""
        return heads_of(configuration.arcs, configuration.n)

    def check(self, configuration: C, transition: T) -> None:
        """Raise `TransitionError` if a transition is not legal here or unknown to the system."""
        name = transition[0] if isinstance(transition, tuple) else transition
        if name not in self.transitions:
            raise TransitionError(f"unknown transition {name!r}; known: {', '.join(self.transitions)}")
        if transition not in self.legal(configuration):
            raise TransitionError(f"{transition} does not apply to {configuration!r}")

    def run(self, n: int, transitions: Iterable[T]) -> Iterator[C]:
        """The configurations of a computation, the initial one first."""
        configuration = self.initial(n)
        yield configuration
        for transition in transitions:
            configuration = self.apply(configuration, transition)
            yield configuration
