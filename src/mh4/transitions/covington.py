"""Covington's non-projective parsing: any pair of words can be considered, and joined by an arc or not.

The right focus word j is the first of the buffer, the left focus word i the last of λ₁. For each j, the words to its
left are passed from right to left and moved to λ₂, until the next word is read. λ₁, λ₂ and the buffer are thus always
the words 1 … i, i + 1 … j − 1 and j … n, so a configuration stores only i, j and the arcs.

The root 0 is in none of the lists: words without a head at the end are attached to it.

Source: Gómez-Rodríguez and Fernández-González (2015), "An efficient dynamic oracle for unrestricted non-projective
parsing", section 2; after Covington (2001) and Nivre (2008).
"""

from dataclasses import dataclass

import numpy as np

from .transition_system import NO_HEAD, ConfigurationWithArcs, TransitionSystem, heads_of, show_arcs

SHIFT, NO_ARC, LEFT_ARC, RIGHT_ARC = TRANSITIONS = ("shift", "no_arc", "left_arc", "right_arc")


@dataclass(frozen=True, slots=True, repr=False)
class Configuration(ConfigurationWithArcs):
    """Two lists of words that were read, the buffer and the arcs made so far.

    Attributes
    ----------
    left : int
        Left focus word i, the last of λ₁; 0 when λ₁ is empty.
    right : int
        Right focus word j, the first of the buffer; n + 1 when that is empty.
    n : int
        Words of the sentence.
    arcs : frozenset of (int, int)
        (head, dependent), between words; a word without a head at the end is attached to the root.
    """

    left: int
    right: int
    n: int
    arcs: frozenset[tuple[int, int]] = frozenset()

    @property
    def lambda1(self) -> range:
        """Words read that can still be joined to the first one of the buffer."""
        return range(1, self.left + 1)

    @property
    def lambda2(self) -> range:
        """Words read that the first one of the buffer has passed."""
        return range(self.left + 1, self.right)

    @property
    def buffer(self) -> range:
        """Words not read yet."""
        return range(self.right, self.n + 1)

    def __repr__(self) -> str:
        return f"⟨{list(self.lambda1)}, {list(self.lambda2)}, {list(self.buffer)}, {show_arcs(self.arcs)}⟩"

    def heads(self) -> np.ndarray:
        """int32 (n + 1,): the head of each word by the arcs made so far, `NO_HEAD` where there is none (and at 0)."""
        return heads_of(self.arcs, self.n)


def _topmost(heads: list[int], word: int) -> int:
    """The topmost ancestor of a word, or the word itself if it has no head."""
    while heads[word] != NO_HEAD:
        word = heads[word]
    return word


class Covington(TransitionSystem[Configuration, str]):
    """Join the focus words by an arc in either direction, or not, and move to the next pair; or read the next word.

    The system builds all trees, with any number of words below the root. A sentence of n words takes n shifts and at
    most n (n − 1) / 2 other transitions; nothing gets stuck.

    =============  ================================================================================================
    ``shift``      ⟨λ₁, λ₂, j|B, A⟩ becomes ⟨λ₁·λ₂|j, [], B, A⟩
    ``no_arc``     ⟨λ₁|i, λ₂, j|B, A⟩ becomes ⟨λ₁, i|λ₂, j|B, A⟩
    ``left_arc``   the same with the arc j → i, unless i has a head or there is a path from i to j
    ``right_arc``  the same with the arc i → j, unless j has a head or there is a path from j to i
    =============  ================================================================================================

    References
    ----------
    Gómez-Rodríguez and Fernández-González (2015), Figure 1.
    """

    name = "covington"
    transitions = TRANSITIONS

    def initial(self, n: int) -> Configuration:
        """⟨[], [], [1 … n], ∅⟩."""
        return Configuration(0, 1, n)

    def legal(self, configuration: Configuration) -> tuple[str, ...]:
        i, j = configuration.left, configuration.right
        if j > configuration.n:
            return ()
        if i == 0:
            return (SHIFT,)
        heads = configuration.heads().tolist()
        # Words have at most one head, so a word without head has a path to all words of its component.
        separate = _topmost(heads, i) != _topmost(heads, j)
        applies = (True, True, separate and heads[i] == NO_HEAD, separate and heads[j] == NO_HEAD)
        return tuple(t for t, possible in zip(TRANSITIONS, applies, strict=True) if possible)

    def apply(self, configuration: Configuration, transition: str) -> Configuration:
        self.check(configuration, transition)
        i, j, n, arcs = configuration.left, configuration.right, configuration.n, configuration.arcs
        if transition == SHIFT:
            return Configuration(j, j + 1, n, arcs)
        if transition == LEFT_ARC:
            arcs |= {(j, i)}
        elif transition == RIGHT_ARC:
            arcs |= {(i, j)}
        return Configuration(i - 1, j, n, arcs)

    def is_final(self, configuration: Configuration) -> bool:
        """Whether the buffer is empty."""
        return configuration.right > configuration.n

    def heads(self, configuration: Configuration) -> np.ndarray:
        """int32 (n + 1,): the head of each word so far, `NO_HEAD` where there is none (and at 0).

        In a final configuration, words without an arc have head 0.
        """
        heads = configuration.heads()
        if self.is_final(configuration):
            heads[1:] = np.maximum(heads[1:], 0)
        return heads
