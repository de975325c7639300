"""Arc-hybrid parsing, the transition system of the MH3 decoder: the topmost word gets its head on either side.

The root 0 is the bottom of the stack and never leaves it; the position after the last word has no dependents. So a
sentence of n words takes 2n transitions: n shifts and n reductions, each of which makes the arc to the word it removes.

Source: Gómez-Rodríguez, Shi and Lee (2018), "Global transition-based non-projective dependency parsing", section 3.2;
after Kuhlmann, Gómez-Rodríguez and Satta (2011).
"""

from typing import ClassVar

from .arc_standard import Configuration
from .transition_system import NO_HEAD, TransitionSystem

__all__ = ["SHIFT", "ArcHybrid", "Configuration"]

SHIFT = "shift"


class ArcHybrid(TransitionSystem[Configuration, str]):
    """Attach the topmost word of the stack to the one below it or to the next word of the input, and remove it.

    The system builds all projective trees.

    With S the lower part of the stack and B the rest of the remaining input (the buffer):

    =========  ==================================================================================
    ``shift``  (S, b B, T) becomes (S b, B, T)
    ``la``     (S s0, b0 B, T) becomes (S, b0 B, T and (b0, s0)), unless s0 is 0
    ``ra``     (S s1 s0, B, T) becomes (S s1, B, T and (s1, s0))
    =========  ==================================================================================

    Parameters
    ----------
    single_root : bool
        Whether exactly one word is attached to the root, or any number of words. A removed word gets no more
        dependents, so the only child of the root must be removed last: an arc from the root is legal only as the very
        last transition. Another transition always applies until then, so nothing gets stuck.
    """

    name = "arc-hybrid"
    transitions: ClassVar[tuple[str, ...]] = (SHIFT, "la", "ra")
    reduces: ClassVar[dict[str, tuple[int, int]]] = {"la": (3, 2), "ra": (1, 2)}
    """Head and dependent of each reduction, as indices into `window`."""

    def __init__(self, single_root: bool = False) -> None:
        self.single_root = single_root

    def initial(self, n: int) -> Configuration:
        """The configuration (0, 1 … n, ∅)."""
        return Configuration((0,), 1, n)

    @staticmethod
    def window(configuration: Configuration) -> tuple[int, int, int, int]:
        """s2, s1, s0, b0: the three topmost elements of the stack and the next word, `NO_HEAD` where there is none."""
        s2, s1, s0 = (NO_HEAD, NO_HEAD, *configuration.stack)[-3:]
        return s2, s1, s0, configuration.front if configuration.front <= configuration.n else NO_HEAD

    def arc(self, configuration: Configuration, reduction: str) -> tuple[int, int]:
        """Head and dependent of a reduction, `NO_HEAD` where there is no such token; not every such arc is legal."""
        window = self.window(configuration)
        head, dependent = self.reduces[reduction]
        return window[head], window[dependent]

    def legal(self, configuration: Configuration) -> tuple[str, ...]:
        remaining = configuration.front <= configuration.n
        least = 1 if self.single_root and (remaining or len(configuration.stack) > 2) else 0
        found = [SHIFT] if remaining else []
        for reduction in self.reduces:
            head, dependent = self.arc(configuration, reduction)
            if head >= least and dependent > 0:
                found.append(reduction)
        return tuple(found)

    def apply(self, configuration: Configuration, transition: str) -> Configuration:
        self.check(configuration, transition)
        stack, front, n, arcs = configuration.stack, configuration.front, configuration.n, configuration.arcs
        if transition == SHIFT:
            return Configuration((*stack, front), front + 1, n, arcs)
        head, dependent = self.arc(configuration, transition)
        return Configuration(tuple(s for s in stack if s != dependent), front, n, arcs | {(head, dependent)})

    def is_final(self, configuration: Configuration) -> bool:
        return len(configuration.stack) == 1 and configuration.front > configuration.n
