"""Arc-standard dependency parsing, also known as shift-reduce (Nederhof 2019, Table 1)."""

from dataclasses import dataclass

from .transition_system import ConfigurationWithArcs, TransitionSystem, show_configuration

SHIFT, REDUCE_LEFT, REDUCE_RIGHT = TRANSITIONS = ("shift", "reduce_left", "reduce_right")

POLICIES = ("left-before-right", "strict-left-before-right", "right-before-left")
"""Restrictions on how a computation may continue from a configuration (Nederhof 2019, section 2).

Only arcs built after the configuration count; an arc is a left one if the dependent is left of its head.

- ``left-before-right``: the topmost word of the stack and those of the remaining input get their left arcs before any
  right arc. A word deeper in the stack may still get left arcs, all of them after its first right one.
- ``strict-left-before-right``: in addition, words below the topmost one get no more left arcs (Nederhof 2021, Table 2).
- ``right-before-left``: the topmost word and those of the remaining input get their right arcs before any left arc.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Configuration(ConfigurationWithArcs):
    """A stack, the remaining input and the arcs built so far.

    Attributes
    ----------
    stack : tuple of int
        Positions, topmost last; the first is the root, 0.
    front : int
        First word of the remaining input, n + 1 if none remains.
    n : int
        Words of the sentence.
    arcs : frozenset of (int, int)
        (head, dependent): one for every word that is neither in the stack nor in the remaining input.
    """

    stack: tuple[int, ...]
    front: int
    n: int
    arcs: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        return show_configuration(" ".join(map(str, self.stack)), self.front, self.n, self.arcs)


class ArcStandard(TransitionSystem[Configuration, str]):
    """Join the two topmost words of the stack by an arc in either direction; the dependent leaves the stack.

    The system builds all projective trees, with any number of words below the root.

    With S the lower part of the stack and B the rest of the remaining input:

    ================  ======================================================================
    ``shift``         (S, b B, T) becomes (S b, B, T)
    ``reduce_left``   (S a₁ a₂, B, T) becomes (S a₁, B, T and (a₁, a₂))
    ``reduce_right``  (S a₁ a₂, B, T) becomes (S a₂, B, T and (a₂, a₁)), unless a₁ is 0
    ================  ======================================================================

    References
    ----------
    Nederhof (2019), "Calculating the optimal step in shift-reduce dependency parsing: from cubic to linear time",
    Table 1.
    """

    name = "arc-standard"
    transitions = TRANSITIONS

    def initial(self, n: int) -> Configuration:
        """The configuration (0, 1 … n, ∅)."""
        return Configuration((0,), 1, n)

    def legal(self, configuration: Configuration) -> tuple[str, ...]:
        depth = len(configuration.stack)
        shift = configuration.front <= configuration.n
        if depth == 1:
            return (SHIFT,) if shift else ()
        reduces = (REDUCE_LEFT, REDUCE_RIGHT) if depth > 2 else (REDUCE_LEFT,)
        return (SHIFT, *reduces) if shift else reduces

    def apply(self, configuration: Configuration, transition: str) -> Configuration:
        self.check(configuration, transition)
        stack, front, n, arcs = configuration.stack, configuration.front, configuration.n, configuration.arcs
        if transition == SHIFT:
            return Configuration((*stack, front), front + 1, n, arcs)
        if transition == REDUCE_LEFT:
            return Configuration(stack[:-1], front, n, arcs | {(stack[-2], stack[-1])})
        return Configuration((*stack[:-2], stack[-1]), front, n, arcs | {(stack[-1], stack[-2])})

    def is_final(self, configuration: Configuration) -> bool:
        return len(configuration.stack) == 1 and configuration.front > configuration.n
