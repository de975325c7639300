"""A deterministic transition-based parser: a classifier picks every step, without backtracking.

All sentences are parsed in lockstep: the k-th steps of all sentences that have one are chosen in one batch. The systems
are those of `deterministic.states`: shift-reduce and unnormalized arc-eager.

A step is a transition and, if that makes an arc, a relation; the classifier chooses among the legal ones. As everywhere
in this package, words below the root, and only these, get the relation ``root`` (if the training text has such a
relation at all); any number of words may be below the root.

Nederhof (2019), section 8, and (2021), section 6, list the features. In arc-eager parsing, the classifier also sees the
labels of the two topmost stack elements. They give the information that parsers making the arc of a right child at once
have in this arc. Of the outermost dependents, the leftmost one must be left of its head, and the rightmost one right.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from deterministic.states import (
    ARRAY_SYSTEMS,
    LABEL_SLOTS,
    NO_RELATION,
    RELATION_SLOTS,
    ROOT_WORD,
    WORD_SLOTS,
    ArraySystem,
    Configurations,
    Described,
    States,
    TaggedText,
    advance_sentences,
    describe_sentences,
    replay,
)
from deterministic.step_classifier import HIDDEN, StepClassifier
from deterministic.word_vectors import WordVectors
from mh4.data.annotation import Annotation
from mh4.data.sentence import Sentence
from mh4.models.word_vocabulary import normalise
from mh4.parsers.relation_places import ROOT_RELATION
from mh4.parsers.vocabulary import Vocabulary
from mh4.transitions.arc_eager import LABELS
from mh4.transitions.registry import system_name

UNKNOWN = ROOT_WORD + 1  # vector row (zeros) and tag number of anything not in the training text
LOCKSTEP_SENTENCES = 2_048  # parsed in one batch
ABSENT, ANY_RELATION = 0, 1  # targets of a transition; 2 + r stands for relation r


class Steps:
    """The classes of the classifier: transitions, combined with each of the R relations if they make an arc.

    Attributes
    ----------
    transitions, relations : int32 (K,)
        The transition and the relation of each class; `NO_RELATION` without an arc.
    allowed : bool (2^(T + 1), K)
        The classes allowed by each code of `Described`.
    right : bool (T · (R + 2), K)
        Row t · (R + 2) + x has the right classes for a target: transition t with relation x − 2, with any relation (x
        is `ANY_RELATION`), or no class at all (`ABSENT`).
    root : int
        The relation reserved for words below the root, or `NO_RELATION`.
    """

    def __init__(self, system: ArraySystem, relations: Sequence[str]) -> None:
        self.system = system
        self.relation_count = len(relations)
        self.root = relations.index(ROOT_RELATION) if ROOT_RELATION in relations and len(relations) > 1 else NO_RELATION
        pairs = [
            (transition, relation)
            for transition, makes_arc in enumerate(system.makes_arc)
            for relation in (range(len(relations)) if makes_arc else [NO_RELATION])
        ]
        self.transitions, self.relations = np.array(pairs, np.int32).T.copy()
        self.allowed = torch.from_numpy(self._allowed())
        self.right = torch.from_numpy(self._right())

    def __len__(self) -> int:
        return len(self.transitions)

    def _allowed(self) -> np.ndarray:
        count = len(self.system.transitions)
        codes = np.arange(1 << (count + 1))[:, None]
        allowed = (codes >> self.transitions & 1).astype(bool)
        if self.root != NO_RELATION:
            head_is_root = (codes >> count & 1).astype(bool) & self.system.attaches_below[self.transitions]
            allowed &= ~self.system.makes_arc[self.transitions] | (head_is_root == (self.relations == self.root))
        return allowed

    def _right(self) -> np.ndarray:
        count, kinds = len(self.system.transitions), self.relation_count + 2
        right = np.zeros((count, kinds, len(self)), bool)
        classes = np.arange(len(self))
        right[self.transitions, ANY_RELATION, classes] = True
        arcs = classes[self.relations != NO_RELATION]
        right[self.transitions[arcs], 2 + self.relations[arcs], arcs] = True
        return right.reshape(count * kinds, len(self))

    def targets(
        self, text: TaggedText, configurations: Configurations, best: np.ndarray, relations: np.ndarray
    ) -> np.ndarray:
        """Rows of `right`, int32 (B, T), for some configurations and their best transitions.

        Parameters
        ----------
        text : TaggedText
        configurations : Configurations
        best : bool (B, T)
        relations : int32 (P,)
            Gold relations. A word's gold relation may be impossible with the head that a transition gives it (``root``
            below a word, or another relation below the root). Then any relation counts as right.
        """
        tops = configurations.offsets[1:] - 1
        targets = np.empty(best.shape, np.int32)
        for t, popped in enumerate(self.system.pops):
            kind = np.full(len(best), ANY_RELATION)
            if popped >= 0:
                elements = tops - np.minimum(popped, configurations.depths - 1)
                gold = relations[text.offsets[configurations.sentences] + configurations.stacks[elements]]
                head_is_root = (configurations.depths == 2) & self.system.attaches_below[t]
                possible = (gold == self.root) == head_is_root if self.root != NO_RELATION else True
                kind = np.where(possible, 2 + gold, ANY_RELATION)
            targets[:, t] = t * (self.relation_count + 2) + np.where(best[:, t], kind, ABSENT)
        return targets


class DeterministicParser:
    """A greedy parser with an untrained classifier; `deterministic.training` trains it.

    Parameters
    ----------
    system : {"arc-standard", "arc-eager"}
    vocabulary : Vocabulary
        Tags and relations of the training text.
    vectors : WordVectors
        `WordVectors.none()` to do without.
    hidden : int
        Units of the hidden layer.

    Raises
    ------
    ValueError
        An unknown system; the message lists the known ones.
    """

    def __init__(self, system: str, vocabulary: Vocabulary, vectors: WordVectors, hidden: int = HIDDEN) -> None:
        self.system = ARRAY_SYSTEMS[system_name(system, ARRAY_SYSTEMS)]
        self.vocabulary = vocabulary
        self.vectors = vectors
        self.steps = Steps(self.system, vocabulary.relations)
        tags, relations, labels = len(vocabulary.tags) + UNKNOWN + 1, len(vocabulary.relations) + 1, len(LABELS) + 1
        ranges = [tags] * WORD_SLOTS + [relations] * RELATION_SLOTS + [labels] * LABEL_SLOTS * self.system.labelled
        self.starts = np.cumsum([0, *ranges[:-1]], dtype=np.int32)
        special = np.zeros((UNKNOWN + 1, vectors.table.shape[1]), np.float32)
        self.classifier = StepClassifier(
            torch.from_numpy(np.concatenate([special, vectors.table])),
            WORD_SLOTS,
            len(ranges),
            sum(ranges),
            len(self.steps),
            hidden,
        )

    @cached_property
    def _tag_numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.vocabulary.tags, start=UNKNOWN + 1)}

    def encode(self, sentences: Sequence[Sentence]) -> TaggedText:
        """The words and gold parts of speech as numbers."""
        rows, tags = self.vectors.index, self._tag_numbers
        return TaggedText(
            np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)], dtype=np.int64),
            np.array(
                [
                    row
                    for sentence in sentences
                    for row in (ROOT_WORD, *(UNKNOWN + 1 + rows.get(normalise(form), -1) for form in sentence.forms))
                ],
                np.int32,
            ),
            np.array(
                [
                    number
                    for sentence in sentences
                    for number in (ROOT_WORD, *(tags.get(tag, UNKNOWN) for tag in sentence.upos))
                ],
                np.int32,
            ),
        )

    @torch.inference_mode()
    def _choose(self, described: Described) -> tuple[np.ndarray, np.ndarray]:
        scores = self.classifier(torch.from_numpy(described.words), torch.from_numpy(described.symbols))
        scores.masked_fill_(~self.steps.allowed[torch.from_numpy(described.codes)], -torch.inf)
        best = scores.argmax(1).numpy()
        return self.steps.transitions[best], self.steps.relations[best]

    def run(self, text: TaggedText) -> tuple[np.ndarray, States]:
        """Parse some sentences.

        Returns
        -------
        transitions : int8 (M,)
            Numbers of the transitions taken, 2n per sentence.
        states : States
            The final configurations.
        """
        lengths = np.diff(text.offsets) - 1
        order = np.argsort(-lengths, kind="stable")
        first_steps, labelled = text.step_offsets, self.system.labelled
        transitions = np.empty(first_steps[-1], np.int8)
        states = States.initial(text)
        for start in range(0, len(order), LOCKSTEP_SENTENCES):
            chunk = order[start : start + LOCKSTEP_SENTENCES]
            for step in range(2 * lengths[chunk[0]]):
                chunk = chunk[: np.count_nonzero(2 * lengths[chunk] > step)]  # sorted, longest first
                described = Described.empty(len(chunk), len(self.starts))
                describe_sentences(labelled, len(self.system.transitions), text, self.starts, states, chunk, described)
                chosen, relations = self._choose(described)
                advance_sentences(labelled, text, states, chunk, chosen, relations)
                transitions[first_steps[chunk] + step] = chosen
        return transitions, states

    def predict(self, sentences: Sequence[Sentence]) -> list[Annotation]:
        """The trees of some sentences, parsed from their forms and gold parts of speech."""
        text = self.encode(sentences)
        _, states = self.run(text)
        names = np.array(self.vocabulary.relations, dtype=object)
        return [
            Annotation(states.heads[a + 1 : b], tuple(names[states.relations[a + 1 : b]]))
            for a, b in zip(text.offsets[:-1], text.offsets[1:], strict=True)
        ]

    def replay(
        self, text: TaggedText, transitions: np.ndarray, relations: np.ndarray
    ) -> tuple[Described, Configurations]:
        """The configurations of given computations, as input for the classifier and for oracles.

        Parameters
        ----------
        text : TaggedText
        transitions : int (M,)
            Legal steps, 2n per sentence.
        relations : int32 (P,)
            The relation of the arc to each word.
        """
        return replay(self.system, text, self.starts, transitions, relations)


def visited_configurations(parser: DeterministicParser, sentences: Sequence[Sentence]) -> Configurations:
    """The configurations that a trained parser visits, without final ones: 2n per sentence, in order.

    They can be passed to ``step_scores_batch`` of `mh4.oracles.arc_standard` and `mh4.oracles.arc_eager`.
    """
    text = parser.encode(sentences)
    transitions, states = parser.run(text)
    return parser.replay(text, transitions, states.relations)[1]
