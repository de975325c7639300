"""LR-spine parsing: a tree can be attached anywhere along the outer edge of the tree beside it.

The stack holds trees, each with its two *spines*: the left spine is the path from the root of the tree that takes the
leftmost left child at each step, the right spine the same with rightmost right children. Attaching a tree to a node of
a spine hides the nodes further down, which get no more children on that side.

Source: Sartorio, Satta and Nivre (2013), "A transition-based dependency parser using a dynamic parsing strategy",
section 3.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .transition_system import ConfigurationWithArcs, TransitionSystem, show_configuration

KINDS = ("shift", "left_arc", "right_arc")


class Transition(NamedTuple):
    """A transition of one of the `KINDS`, sh, la and ra in the paper.

    ``k`` is the spine node that becomes the head of the arc, counted from 1, the root of its tree; 0 for a shift.
    """

    kind: str
    k: int = 0

    def __str__(self) -> str:
        return f"{self.kind}({self.k})" if self.k else self.kind


SHIFT = Transition("shift")


def left_arc(k: int = 1) -> Transition:
    """The transition la_k."""
    return Transition("left_arc", k)


def right_arc(k: int = 1) -> Transition:
    """The transition ra_k."""
    return Transition("right_arc", k)


class Element(NamedTuple):
    """A tree in the stack: its left and its right spine, both from the root of the tree."""

    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def root(self) -> int:
        """The root of the tree, which the spines share."""
        return self.left[0]


@dataclass(frozen=True, slots=True, repr=False)
class Configuration(ConfigurationWithArcs):
    """A stack of trees, the remaining input and the arcs built so far.

    Attributes
    ----------
    stack : tuple of Element
        Topmost last. Their trees cover the positions before ``front``, from left to right.
    front : int
        First position of the remaining input ``front … n``; n + 1 when that is empty.
    n : int
        Words of the sentence.
    arcs : frozenset of (int, int)
        (head, dependent).
    """

    stack: tuple[Element, ...]
    front: int
    n: int
    arcs: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        spines = [f"⟨{' '.join(map(str, left))} | {' '.join(map(str, right))}⟩" for left, right in self.stack]
        return show_configuration(" ".join(spines) or "ε", self.front, self.n, self.arcs)


class LRSpine(TransitionSystem[Configuration, Transition]):
    """Join the two topmost trees by an arc from a node on the inner spine of one to the root of the other.

    The system builds all projective trees, with any number of words below the root. A tree over n words takes 2n + 1
    transitions, in whatever order; no computation gets stuck.

    With S the lower part of the stack, B the rest of the remaining input, and an element written ⟨left | right⟩:

    ================  ====================================================================================
    ``shift``         (S, b B, T) becomes (S ⟨b | b⟩, B, T)
    ``left_arc(k)``   (S ⟨x… | y…⟩ ⟨u₁…u_p | v…⟩, B, T) becomes (S ⟨u₁…u_k x… | v…⟩, B, T and (u_k, x₁)),
                      unless x₁ is 0
    ``right_arc(k)``  (S ⟨x… | y₁…y_s⟩ ⟨u… | v…⟩, B, T) becomes (S ⟨x… | y₁…y_k v…⟩, B, T and (y_k, u₁))
    ================  ====================================================================================
    """

    name = "lr-spine"
    transitions = KINDS

    def initial(self, n: int) -> Configuration:
        """(ε, 0 1 … n, ∅): the root is shifted too."""
        return Configuration((), 0, n)

    def legal(self, configuration: Configuration) -> tuple[Transition, ...]:
        """Transitions that apply: the shift, left arcs by rising k, right arcs by rising k."""
        stack = configuration.stack
        shift = (SHIFT,) if configuration.front <= configuration.n else ()
        if len(stack) < 2:
            return shift
        second, top = stack[-2:]
        left = map(left_arc, range(1, len(top.left) + 1)) if second.root > 0 else ()
        return (*shift, *left, *map(right_arc, range(1, len(second.right) + 1)))

    def apply(self, configuration: Configuration, transition: Transition) -> Configuration:
        """The next configuration; `TransitionError` if ``transition`` does not apply. A string stands for k = 0."""
        transition = Transition(transition) if isinstance(transition, str) else Transition(*transition)
        self.check(configuration, transition)
        kind, k = transition
        stack, front, n, arcs = configuration.stack, configuration.front, configuration.n, configuration.arcs
        if kind == "shift":
            return Configuration((*stack, Element((front,), (front,))), front + 1, n, arcs)
        second, top = stack[-2:]
        if kind == "left_arc":
            arc = (top.left[k - 1], second.root)
            joined = Element(top.left[:k] + second.left, top.right)
        else:
            arc = (second.right[k - 1], top.root)
            joined = Element(second.left, second.right[:k] + top.right)
        return Configuration((*stack[:-2], joined), front, n, arcs | {arc})

    def is_final(self, configuration: Configuration) -> bool:
        """Whether only the tree of the root is left and the input is read."""
        return len(configuration.stack) == 1 and configuration.front > configuration.n
