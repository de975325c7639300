"""Greedy parsing of many sentences side by side: configurations in flat arrays, and the kernels that work on them.

A sentence of n words has the positions 0 (root) to n; the arrays of all sentences are concatenated, with sentence s at
``offsets[s]`` to ``offsets[s + 1] - 1``. In both systems every word is pushed once and popped once, so every
computation has 2n steps; the steps of all sentences are concatenated as well: see `TaggedText.step_offsets`. `replay`
turns computations into the input that a classifier or an oracle needs for each of their configurations.

Transitions are those of `mh4.transitions.arrays`; the kernels do not check their arguments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import ArcEager
from mh4.transitions.arc_standard import ArcStandard
from mh4.transitions.arrays import arc_eager, arc_standard
from mh4.transitions.transition_system import NO_HEAD

NO_WORD, ROOT_WORD = 0, 1  # rows of the word vectors, and numbers of tags
WORD_SLOTS = 6  # the three topmost stack elements, from the top; the first three words of the remaining input
RELATION_SLOTS = 4  # leftmost and rightmost dependent of the topmost stack element, then of the one below it
LABEL_SLOTS = 2  # labels of the two topmost stack elements
NO_RELATION = -1


class ArraySystem(NamedTuple):
    """A transition system in which every word is pushed once and popped once.

    Attributes
    ----------
    name : str
    transitions : tuple of str
        As in `mh4.transitions`.
    labelled : bool
        Whether stack elements have labels. If so, the kernels of arc-eager parsing are used, else of arc-standard.
    pops : int64 (T,)
        The element that each transition pops and gives a head: 0 the topmost, 1 the one below it, −1 none.
    attaches_below : bool (T,)
        Whether the head is the element below the popped one.
    """

    name: str
    transitions: tuple[str, ...]
    labelled: bool
    pops: np.ndarray
    attaches_below: np.ndarray

    @property
    def makes_arc(self) -> np.ndarray:
        """bool (T,): whether each transition makes an arc, and so needs a relation."""
        return self.pops >= 0


ARRAY_SYSTEMS = {
    ArcStandard.name: ArraySystem(
        ArcStandard.name, ArcStandard.transitions, False, np.array([-1, 0, 1]), np.array([False, True, False])
    ),
    ArcEager.name: ArraySystem(
        ArcEager.name, ArcEager.transitions, True, np.array([-1, 0, -1, 0]), np.array([False, False, False, True])
    ),
}
"""Shift-reduce (Nederhof 2019, Table 1) and unnormalized arc-eager with reduce_correct (Nederhof 2021, Table 6)."""


class TaggedText(NamedTuple):
    """S sentences of a treebank, P positions in all.

    Attributes
    ----------
    offsets : int64 (S + 1,)
    words, tags : int32 (P,)
        Rows of the word vectors and numbers of the tags; `ROOT_WORD` at each position 0.
    """

    offsets: np.ndarray
    words: np.ndarray
    tags: np.ndarray

    @property
    def step_offsets(self) -> np.ndarray:
        """int64 (S + 1,): the offsets of the 2n steps of each sentence."""
        return 2 * (self.offsets - np.arange(len(self.offsets)))


class States(NamedTuple):
    """The present configuration of every sentence.

    Attributes
    ----------
    stacks : int32 (P,)
        The first ``depths[s]`` elements from ``offsets[s]`` on are the stack, from the root to the top.
    labels : int8 (P,)
        Labels of the stack elements, indices of `mh4.transitions.arc_eager.LABELS`; unused in shift-reduce.
    depths, fronts : int32 (S,)
        Depth of the stack; first word of the remaining input, n + 1 if none remains.
    heads, relations : int32 (P,)
        The arc to each word, `NO_HEAD` and `NO_RELATION` as long as there is none.
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
    def initial(cls, text: TaggedText) -> States:
        """(0, 1 … n, ∅) for every sentence."""
        sentences, positions = len(text.offsets) - 1, len(text.words)
        nothing = np.full((3, positions), NO_RELATION, np.int32)
        return cls(
            np.zeros(positions, np.int32),
            np.full(positions, arc_eager.R, np.int8),
            np.ones(sentences, np.int32),
            np.ones(sentences, np.int32),
            np.full(positions, NO_HEAD, np.int32),
            *nothing,
        )


class Configurations(NamedTuple):
    """B configurations, as arguments of the oracles' ``step_scores_batch``.

    Attributes
    ----------
    stacks : int32 (E,)
        All stacks, concatenated, each from the root to the top.
    labels : int8 (E,)
        As in `States`.
    offsets : int64 (B + 1,)
        The stack of configuration b is ``stacks[offsets[b]:offsets[b + 1]]``.
    fronts, sentences : int32 (B,)
        First word of the remaining input, n + 1 if none remains; index of the sentence.
    """

    stacks: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray
    fronts: np.ndarray
    sentences: np.ndarray

    @property
    def depths(self) -> np.ndarray:
        """int64 (B,): the depth of each stack."""
        return np.diff(self.offsets)


class Described(NamedTuple):
    """B configurations as input of the classifier.

    Attributes
    ----------
    words : int32 (B, WORD_SLOTS)
        Rows of the word vectors.
    symbols : int32 (B, F)
        Tags of the same words, relations, and labels if the system has any; each slot has its own range of symbols.
    codes : int32 (B,)
        Bit t: transition t is legal. Bit T: the second stack element is the root.
    """

    words: np.ndarray
    symbols: np.ndarray
    codes: np.ndarray

    @classmethod
    def empty(cls, count: int, symbol_slots: int) -> Described:
        """Uninitialized arrays for ``count`` configurations."""
        return cls(
            np.empty((count, WORD_SLOTS), np.int32),
            np.empty((count, symbol_slots), np.int32),
            np.empty(count, np.int32),
        )


@njit(cache=True, nogil=True)
def _describe(labelled, transitions, text, starts, states, s, words, symbols):
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
        words[i] = text.words[position] if position >= 0 else NO_WORD
        symbols[i] = starts[i] + (text.tags[position] if position >= 0 else NO_WORD)
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
    code = 1 << transitions if depth == 2 else 0
    for t in range(transitions):
        if labelled:
            legal = arc_eager.applies(t, True, states.labels[base:], depth, front, n)
        else:
            legal = arc_standard.applies(t, depth, front, n)
        if legal:
            code |= 1 << t
    return code


@njit(cache=True, nogil=True)
def _move(labelled, transition, base, states, s):
    """Take a legal step without adding its arc; return head and dependent, −1 if it makes none."""
    stack, depth, front = states.stacks[base:], states.depths[s], states.fronts[s]
    if labelled:
        depth, front, head, dependent = arc_eager.move(transition, stack, states.labels[base:], depth, front)
    else:
        depth, front, head, dependent = arc_standard.move(transition, stack, depth, front)
    states.depths[s], states.fronts[s] = depth, front
    return head, dependent


@njit(cache=True, nogil=True)
def _add_arc(head, dependent, relation, base, states):
    states.heads[base + dependent] = head
    states.relations[base + dependent] = relation
    # A head gets its dependents on either side from the inside out, so the last one is the outermost.
    (states.leftmost if dependent < head else states.rightmost)[base + head] = relation


@njit(cache=True, nogil=True)
def describe_sentences(labelled, transitions, text, starts, states, sentences, described):
    """Describe the present configurations of some sentences, row by row."""
    for row in range(sentences.shape[0]):
        described.codes[row] = _describe(
            labelled, transitions, text, starts, states, sentences[row], described.words[row], described.symbols[row]
        )


@njit(cache=True, nogil=True)
def advance_sentences(labelled, text, states, sentences, transitions, relations):
    """Take one step in each of some sentences."""
    for row in range(sentences.shape[0]):
        base = text.offsets[sentences[row]]
        head, dependent = _move(labelled, transitions[row], base, states, sentences[row])
        if dependent != NO_HEAD:
            _add_arc(head, dependent, relations[row], base, states)


@njit(cache=True, nogil=True)
def _replay(labelled, count, text, starts, transitions, relations, states, described, configurations):
    row = 0
    for s in range(text.offsets.shape[0] - 1):
        base = text.offsets[s]
        for _ in range(2 * (text.offsets[s + 1] - base - 1)):
            described.codes[row] = _describe(
                labelled, count, text, starts, states, s, described.words[row], described.symbols[row]
            )
            depth, first = states.depths[s], configurations.offsets[row]
            configurations.stacks[first : first + depth] = states.stacks[base : base + depth]
            configurations.labels[first : first + depth] = states.labels[base : base + depth]
            configurations.fronts[row] = states.fronts[s]
            configurations.sentences[row] = s
            head, dependent = _move(labelled, transitions[row], base, states, s)
            if dependent != NO_HEAD:
                _add_arc(head, dependent, relations[base + dependent], base, states)
            row += 1


def replay(
    system: ArraySystem, text: TaggedText, starts: np.ndarray, transitions: np.ndarray, relations: np.ndarray
) -> tuple[Described, Configurations]:
    """All configurations except final ones, of one computation per sentence, in order.

    Parameters
    ----------
    system : ArraySystem
    text : TaggedText
    starts : int32 (F,)
        The first symbol of each slot's range.
    transitions : int (M,)
        Numbers of the steps, 2n per sentence; they must be legal.
    relations : int32 (P,)
        The relation of the arc to each word.

    Returns
    -------
    described : Described
        M rows.
    configurations : Configurations
        The same M configurations.
    """
    # Each stack has depth 1 at the start and at the end, so one sum over all sentences gives all depths.
    after = 1 + np.cumsum(np.where(system.makes_arc[transitions], -1, 1))
    depths = np.roll(after, 1)  # the last depth, 1, moves to the start
    rows, offsets = len(depths), np.cumsum([0, *depths], dtype=np.int64)
    configurations = Configurations(
        np.empty(offsets[-1], np.int32),
        np.empty(offsets[-1], np.int8),
        offsets,
        np.empty(rows, np.int32),
        np.empty(rows, np.int32),
    )
    described, states = Described.empty(rows, len(starts)), States.initial(text)
    count = len(system.transitions)
    _replay(system.labelled, count, text, starts, transitions, relations, states, described, configurations)
    return described, configurations
