"""Arc-eager parsing: the unnormalized system and the normalized one, with labels on the stack.

Every stack element carries a label. ``R``: the token is to become a right child of the element under it (the root has
this label too). ``L``: it is to become a left child. ``N``, in the normalized system only: nothing is decided yet.

The arc of a right child is made when the child is reduced, not when it is pushed: until then the label ``R`` in the
stack shows its head, but `heads` does not. With `reduce_correct`, a token wrongly labelled ``L`` can still be reduced
into the element under it, so that no computation gets stuck at the end of the input.

Source: Nederhof (2021), "Calculating the optimal step of arc-eager parsing for non-projective trees", section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .transition_system import ConfigurationWithArcs, TransitionSystem, show_configuration

SHIFT = "shift"
LEFT_ARC, RIGHT_ARC, REDUCE = "left_arc", "right_arc", "reduce"
LEFT_CHILD, RIGHT_CHILD = "left_child", "right_child"
REDUCE_LEFT, REDUCE_RIGHT = "reduce_left", "reduce_right"

LABELS = "RLN"

POLICIES = ("shift-before-reduce", "reduce-before-shift", "strict-reduce-before-shift")
"""Policies of the unnormalized system: each admits one order of the steps that build a tree (Nederhof 2021, section 3).

A policy restricts the steps from a configuration on, the next one included. When the topmost word is a complete right
child and the next word is a left child, that left child can be shifted before or after the right child is reduced:

- ``shift-before-reduce``: no reduce is directly followed by a shift.
- ``reduce-before-shift``: no left_arc is directly followed by a reduce, unless the left_arc removes a word that was in
  the stack of the configuration already; mistakes made before may be corrected.
- ``strict-reduce-before-shift``: no left_arc is directly followed by a reduce.

Under every policy, a word that gets the label ``L`` after the configuration must become a left child; only words that
have the label before may be reduced instead. So exactly one computation leads from a configuration to each tree that
can be reached from it, or possibly none under the strict policy. The normalized system has no policies, but this rule
also holds there, for words labelled ``L`` by left_child.
"""
_SUPERSCRIPTS = str.maketrans(LABELS, "ᴿᴸᴺ")


@dataclass(frozen=True, slots=True, repr=False)
class Configuration(ConfigurationWithArcs):
    """A stack with labels, the remaining input and the arcs made so far.

    Attributes
    ----------
    stack : tuple of int
        Tokens from the bottom, which is the root 0, to the top; increasing.
    labels : str
        One of `LABELS` for each stack element.
    front : int
        First token of the remaining input ``front … n``; n + 1 when that is empty.
    n : int
        Words of the sentence.
    arcs : frozenset of (int, int)
        (head, dependent).
    """

    stack: tuple[int, ...]
    labels: str
    front: int
    n: int
    arcs: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        stack = " ".join(
            f"{token}{label.translate(_SUPERSCRIPTS)}" for token, label in zip(self.stack, self.labels, strict=True)
        )
        return show_configuration(stack, self.front, self.n, self.arcs)


class _ArcEagerBase(TransitionSystem[Configuration, str]):
    """Base of the two arc-eager systems.

    Parameters
    ----------
    reduce_correct : bool
        Whether a token labelled ``L`` may be reduced into the element under it. Without this, a computation that has
        an ``L`` in its stack when the input ends is stuck.
    """

    def __init__(self, reduce_correct: bool = True) -> None:
        self.reduce_correct = reduce_correct

    def initial(self, n: int) -> Configuration:
        """(0ᴿ, 1 … n, ∅)."""
        return Configuration((0,), "R", 1, n)

    def is_final(self, configuration: Configuration) -> bool:
        """Whether only the root is left and the input is read."""
        return configuration.stack == (0,) and configuration.front > configuration.n

    def _reducible(self, configuration: Configuration) -> bool:
        return len(configuration.stack) > 1 and (
            configuration.labels[-1] == "R" or (self.reduce_correct and configuration.labels[-1] == "L")
        )


class ArcEager(_ArcEagerBase):
    """Unnormalized arc-eager parsing (Nederhof 2021, Table 6).

    Pushing a token decides on which side its parent is: shift (left child) or right_arc (right child). Several orders
    of shift and reduce may build the same tree; each of the `POLICIES` leaves one of them.

    Without `reduce_correct`, this is Table 4 without its fifth transition.
    """

    name = "arc-eager"
    transitions = (SHIFT, LEFT_ARC, RIGHT_ARC, REDUCE)

    def legal(self, configuration: Configuration) -> Sequence[str]:
        remaining = configuration.front <= configuration.n
        left_arc = remaining and configuration.labels[-1] == "L"
        applies = (remaining, left_arc, remaining, self._reducible(configuration))
        return tuple(t for t, possible in zip(self.transitions, applies, strict=True) if possible)

    def apply(self, configuration: Configuration, transition: str) -> Configuration:
        self.check(configuration, transition)
        stack, labels = configuration.stack, configuration.labels
        front, n, arcs = configuration.front, configuration.n, configuration.arcs
        if transition == SHIFT:
            return Configuration((*stack, front), labels + "L", front + 1, n, arcs)
        if transition == RIGHT_ARC:
            return Configuration((*stack, front), labels + "R", front + 1, n, arcs)
        parent = front if transition == LEFT_ARC else stack[-2]
        return Configuration(stack[:-1], labels[:-1], front, n, arcs | {(parent, stack[-1])})


class NormalizedArcEager(_ArcEagerBase):
    """Normalized arc-eager parsing (Nederhof 2021, Table 8).

    A token is pushed undecided, takes its left children, and only then left_child or right_child decides on which side
    its parent is. The order reduce-before-shift is built in, so each tree is built by one order of steps.
    """

    name = "arc-eager-normalized"
    transitions = (SHIFT, LEFT_CHILD, RIGHT_CHILD, REDUCE_LEFT, REDUCE_RIGHT)

    def legal(self, configuration: Configuration) -> Sequence[str]:
        undecided = configuration.labels[-1] == "N"
        applies = (
            configuration.front <= configuration.n and not undecided,
            undecided,
            undecided,
            self._reducible(configuration),
            undecided and configuration.labels[-2] == "L",
        )
        return tuple(t for t, possible in zip(self.transitions, applies, strict=True) if possible)

    def apply(self, configuration: Configuration, transition: str) -> Configuration:
        self.check(configuration, transition)
        stack, labels = configuration.stack, configuration.labels
        front, n, arcs = configuration.front, configuration.n, configuration.arcs
        if transition == SHIFT:
            return Configuration((*stack, front), labels + "N", front + 1, n, arcs)
        if transition == LEFT_CHILD:
            return Configuration(stack, labels[:-1] + "L", front, n, arcs)
        if transition == RIGHT_CHILD:
            return Configuration(stack, labels[:-1] + "R", front, n, arcs)
        if transition == REDUCE_LEFT:
            return Configuration(stack[:-1], labels[:-1], front, n, arcs | {(stack[-2], stack[-1])})
        return Configuration((*stack[:-2], stack[-1]), labels[:-2] + "N", front, n, arcs | {(stack[-1], stack[-2])})
