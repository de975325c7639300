"""Greedy parsing of many sentences side by side: configurations in flat arrays, and the kernels that work on them.

A sentence of n words has the positions 0 (root) to n; the arrays of all sentences lie one after the other, sentence s
at ``offsets[s]`` to ``offsets[s + 1] - 1``. In both systems every word is pushed once and popped once, so that every
computation has 2n steps; those of all sentences lie in one flat array as well (`Text.step_offsets`). `replay` turns
computations into whatever a classifier or an oracle needs to know of each of their configurations.

The kernels do what `mh4.transitions` does one configuration at a time, and do not check what they are given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import LABELS, ArcEager
from mh4.transitions.shift_reduce import ShiftReduce
from mh4.transitions.transition_system import NO_HEAD

NONE, ROOT = 0, 1  # rows of word vectors and numbers of tags: no such word, the root
WORD_SLOTS = 6  # the three topmost stack elements, from the top; the first three words of the remaining input
RELATION_SLOTS = 4  # leftmost and rightmost dependent of the topmost stack element, then of the one below it
LABEL_SLOTS = 2  # labels of these two
NO_RELATION = -1

# What a transition does. The first two move the front to the stack with a label; the others make an arc and pop.
PUSH_LEFT, PUSH_RIGHT, TOP_UNDER_SECOND, SECOND_UNDER_TOP, TOP_UNDER_FRONT = range(5)
_R, _L = LABELS.index("R"), LABELS.index("L")


class ArraySystem(NamedTuple):
    """A transition system as the kernels take it.

    Attributes
    ----------
    name : str
    transitions : tuple of str
        As in `mh4.transitions`.
    moves : int64 (T,)
        What each of them does.
    labelled : bool
        Whether the labels of the stack mean anything.
    """

    name: str
    transitions: tuple[str, ...]
    moves: np.ndarray
    labelled: bool

    @property
    def makes_arc(self) -> np.ndarray:
        """bool (T,): whether a transition makes an arc, and so has a relation."""
        return self.moves >= TOP_UNDER_SECOND


SYSTEMS = {
    system.name: system
    for system in (
        ArraySystem(
            ShiftReduce.name,
            ("shift", "reduce_left", "reduce_right"),
            np.array([PUSH_LEFT, TOP_UNDER_SECOND, SECOND_UNDER_TOP]),
            False,
        ),
        ArraySystem(
            ArcEager.name,
            ArcEager.transitions,
            np.array([PUSH_LEFT, TOP_UNDER_FRONT, PUSH_RIGHT, TOP_UNDER_SECOND]),
            True,
        ),
    )
}
"""Shift-reduce (Nederhof 2019, Table 1) and unnormalized arc-eager with reduce_correct (Nederhof 2021, Table 6)."""


class Text(NamedTuple):
    """S sentences of a treebank, P positions in all.

    Attributes
    ----------
    offsets : int64 (S + 1,)
    words, tags : int32 (P,)
        Row of the word vector and number of the tag; `ROOT` at each position 0.
    """

    offsets: np.ndarray
    words: np.ndarray
    tags: np.ndarray

    @property
    def step_offsets(self) -> np.ndarray:
        """int64 (S + 1,): where the 2n steps of each sentence begin."""
        return 2 * (self.offsets - np.arange(len(self.offsets)))


class States(NamedTuple):
    """The present configuration of every sentence.

    Attributes
    ----------
    stacks : int32 (P,)
        The first ``depths[s]`` elements from ``offsets[s]`` on are the stack, from the root to the top.
    labels : int8 (P,)
        Of the stack elements, indices of `mh4.transitions.arc_eager.LABELS`; in shift-reduce L above the root.
    depths, fronts : int32 (S,)
        Elements of the stack; first word of the remaining input, n + 1 if none remains.
    heads, relations : int32 (P,)
        The arc to each word, `NO_HEAD` and `NO_RELATION` while there is none.
    leftmost, rightmost : int32 (P,)
        Relation of the outermost dependent to the left and to the right of each position, or `NO_RELATION`.
    """

    stacks: np.ndarray
    labels: np.ndarray
    depths: np.ndarray
    fronts: np.ndarray
    heads: np.ndarray
    relations: np.ndarray
    leftmost: np.ndarray
    rightmost: np.ndarray

    @classmethod
    def initial(cls, text: Text) -> States:
        """(0, 1 … n, ∅) for every sentence."""
        sentences, positions = len(text.offsets) - 1, len(text.words)
        nothing = np.full((3, positions), NO_RELATION, np.int32)
        return cls(
            np.zeros(positions, np.int32),
            np.full(positions, _R, np.int8),
            np.ones(sentences, np.int32),
            np.ones(sentences, np.int32),
            np.full(positions, NO_HEAD, np.int32),
            *nothing,
        )


class Configurations(NamedTuple):
    """B configurations as ``step_scores_batch`` of the oracles takes them.

    Attributes
    ----------
    stacks : int32 (E,)
        All stacks, one after the other, each from the root to the top.
    labels : int8 (E,)
        As in `States`; without meaning in shift-reduce.
    offsets : int64 (B + 1,)
        The stack of configuration b is ``stacks[offsets[b]:offsets[b + 1]]``.
    fronts, sentences : int32 (B,)
        First word of the remaining input, n + 1 if none remains; number of the sentence.
    """

    stacks: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    fronts: np.ndarray
    sentences: np.ndarray

    @property
    def depths(self) -> np.ndarray:
        """int64 (B,)."""
        return np.diff(self.offsets)


class Described(NamedTuple):
    """What the classifier is told of B configurations.

    Attributes
    ----------
    words : int32 (B, WORD_SLOTS)
        Rows of the word vectors.
    symbols : int32 (B, F)
        Tags of the same words, then the relations, then the labels if the system has any, each in a range of its own.
    codes : int32 (B,)
        Bit t: transition t is legal. Bit T: the second stack element is the root.
    """

    words: np.ndarray
    symbols: np.ndarray
    codes: np.ndarray

    @classmethod
    def empty(cls, count: int, symbol_slots: int) -> Described:
        """Room for ``count`` configurations."""
        return cls(
            np.empty((count, WORD_SLOTS), np.int32),
            np.empty((count, symbol_slots), np.int32),
            np.empty(count, np.int32),
        )


@njit(cache=True, nogil=True)
def _describe(moves, text, starts, states, s, words, symbols):
    """Fill one row of words and of symbols; return the code. ``starts``: the first symbol of each slot's range."""
    base = text.offsets[s]
    n = text.offsets[s + 1] - base - 1
    depth, front = states.depths[s], states.fronts[s]
    for i in range(WORD_SLOTS):
        position = -1
        if i < 3 and i < depth:
            position = base + states.stacks[base + depth - 1 - i]
        elif i >= 3 and front + i - 3 <= n:
            position = base + front + i - 3
        words[i] = text.words[position] if position >= 0 else NONE
        symbols[i] = starts[i] + (text.tags[position] if position >= 0 else NONE)
    for i in range(2):
        slot = WORD_SLOTS + 2 * i
        label_slot = WORD_SLOTS + RELATION_SLOTS + i
        symbols[slot : slot + 2] = starts[slot : slot + 2]
        if label_slot < symbols.shape[0]:
            symbols[label_slot] = starts[label_slot]
        if i < depth:
            element = base + depth - 1 - i
            position = base + states.stacks[element]
            symbols[slot] += 1 + states.leftmost[position]
            symbols[slot + 1] += 1 + states.rightmost[position]
            if label_slot < symbols.shape[0]:
                symbols[label_slot] += 1 + states.labels[element]
    code = 1 << moves.shape[0] if depth == 2 else 0
    for t in range(moves.shape[0]):
        if moves[t] <= PUSH_RIGHT:
            legal = front <= n
        elif moves[t] == TOP_UNDER_SECOND:
            legal = depth > 1
        elif moves[t] == SECOND_UNDER_TOP:
            legal = depth > 2
        else:
            legal = front <= n and states.labels[base + depth - 1] == _L
        if legal:
            code |= 1 << t
    return code


@njit(cache=True, nogil=True)
def _advance(move, relation, text, states, s):
    """Take a legal step; the relation is that of the arc, if the step makes one."""
    base = text.offsets[s]
    top = base + states.depths[s] - 1
    if move <= PUSH_RIGHT:
        states.stacks[top + 1] = states.fronts[s]
        states.labels[top + 1] = _L if move == PUSH_LEFT else _R
        states.depths[s] += 1
        states.fronts[s] += 1
        return
    head, dependent = states.fronts[s], states.stacks[top]
    if move == TOP_UNDER_SECOND:
        head = states.stacks[top - 1]
    elif move == SECOND_UNDER_TOP:
        head, dependent = dependent, states.stacks[top - 1]
        states.stacks[top - 1] = head
    states.depths[s] -= 1
    states.heads[base + dependent] = head
    states.relations[base + dependent] = relation
    # On either side a head gets its dependents from the nearest to the outermost one.
    if dependent < head:
        states.leftmost[base + head] = relation
    else:
        states.rightmost[base + head] = relation


@njit(cache=True, nogil=True)
def describe_sentences(moves, text, starts, states, sentences, described):
    """Describe the present configurations of some sentences, row by row."""
    for row in range(sentences.shape[0]):
        described.codes[row] = _describe(
            moves, text, starts, states, sentences[row], described.words[row], described.symbols[row]
        )


@njit(cache=True, nogil=True)
def advance_sentences(moves, text, states, sentences, transitions, relations):
    """Take one step in each of some sentences."""
    for row in range(sentences.shape[0]):
        _advance(moves[transitions[row]], relations[row], text, states, sentences[row])


@njit(cache=True, nogil=True)
def _replay(moves, text, starts, transitions, relations, states, described, configurations):
    row = 0
    for s in range(text.offsets.shape[0] - 1):
        base = text.offsets[s]
        for _ in range(2 * (text.offsets[s + 1] - base - 1)):
            described.codes[row] = _describe(
                moves, text, starts, states, s, described.words[row], described.symbols[row]
            )
            depth, first = states.depths[s], configurations.offsets[row]
            configurations.stacks[first : first + depth] = states.stacks[base : base + depth]
            configurations.labels[first : first + depth] = states.labels[base : base + depth]
            configurations.fronts[row] = states.fronts[s]
            configurations.sentences[row] = s
            move = moves[transitions[row]]
            top = base + depth - 1
            dependent = states.stacks[top - 1 if move == SECOND_UNDER_TOP else top]
            _advance(move, relations[base + dependent], text, states, s)
            row += 1


def replay(
    system: ArraySystem, text: Text, starts: np.ndarray, transitions: np.ndarray, relations: np.ndarray
) -> tuple[Described, Configurations]:
    """All configurations but the final ones of one computation a sentence, in order.

    Parameters
    ----------
    system : ArraySystem
    text : Text
    starts : int32 (F,)
        The first symbol of each slot's range.
    transitions : int (M,)
        Numbers of the steps, 2n a sentence; they must be legal.
    relations : int32 (P,)
        The relation of the arc to each word.

    Returns
    -------
    described : Described
        M rows.
    configurations : Configurations
        The same M.
    """
    pushes = system.moves[transitions] <= PUSH_RIGHT
    after = 1 + np.cumsum(np.where(pushes, 1, -1))  # every sentence ends as deep as it began, so the sum runs through
    depths = np.roll(after, 1)  # the last one is 1, as the first is to be
    count, offsets = len(depths), np.cumsum([0, *depths], dtype=np.int64)
    configurations = Configurations(
        np.empty(offsets[-1], np.int32),
        np.empty(offsets[-1], np.int8),
        offsets,
        np.empty(count, np.int32),
        np.empty(count, np.int32),
    )
    described, states = Described.empty(count, len(starts)), States.initial(text)
    _replay(system.moves, text, starts, transitions, relations, states, described, configurations)
    return described, configurations
