"""How many attachments a parser has to choose from, decision by decision, and how many transitions are correct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from mh4.data.sentence import Sentence
from mh4.oracles.costs import DYNAMIC
from mh4.parsers.perceptron.loops import Actions, best_action, best_optimal_action, new_room, score_contexts
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.perceptron.weights import from_lists
from mh4.parsers.systems import apply, find_costs, get_system, initialize, list_candidates, prepare
from mh4.transitions.arrays.state import ARGUMENT, DEPENDENT, NONE, TRANSITION


@njit(cache=True, nogil=True)
def _count(system, weights, templates, actions, text, room):
    """Parse; return the sentence and the number of candidate arcs of each decision, int32 (D, 2)."""
    counts = np.empty((2 * text.offsets[-1], 2), np.int32)
    rows = 0
    for s in range(text.offsets.shape[0] - 1):
        base = text.offsets[s]
        initialize(system, room.state, text.offsets[s + 1] - base - 1)
        while True:
            count, contexts = list_candidates(system, room.state, room.candidates)
            if count == 0:
                break
            if rows == counts.shape[0]:
                larger = np.empty((2 * rows, 2), np.int32)
                larger[:rows] = counts
                counts = larger
            counts[rows, 0] = s
            counts[rows, 1] = 0
            for c in range(count):
                counts[rows, 1] += room.candidates.rows[c, DEPENDENT] != NONE
            rows += 1
            score_contexts(weights, templates, text.words, base, contexts, room)
            best, relation = best_action(actions, room, count)
            row = room.candidates.rows[best]
            apply(system, room.state, row[TRANSITION], row[ARGUMENT], relation)
    return counts[:rows]


def count_attachments(parser: PerceptronParser, sentences: Sequence[Sentence]) -> tuple[np.ndarray, np.ndarray]:
    """The number of unlabelled arcs to choose from in each decision: gamma in Sartorio et al. (2013), section 5.

    For LR-spine parsing, this is the length of the left spine of the topmost tree, unless the tree below it is the
    root's, plus the length of the right spine of the tree below. Automatic steps are not counted.

    Parameters
    ----------
    parser : PerceptronParser
    sentences : sequence of Sentence
        Sentences to parse.

    Returns
    -------
    lengths : int64 (D,)
        Number of words in the sentence of each decision.
    counts : int32 (D,)
        Number of arcs among the candidates of each decision.
    """
    if not sentences:
        return np.empty(0, np.int64), np.empty(0, np.int32)
    system = get_system(parser.config.system)
    templates = system.compiled_templates()
    actions = Actions.of(system, parser.vocabulary.places.allowed(parser.vocabulary.relations))
    room = new_room(system, templates, actions, max(map(len, sentences)))
    text = parser.vocabulary.text(sentences)
    counts = _count(system.kernels, from_lists(*parser.lists), templates, actions, text, room)
    return (np.diff(text.offsets) - 1)[counts[:, 0]], counts[:, 1].copy()


@njit(cache=True, nogil=True)
def _count_correct(system, weights, templates, actions, text, gold, room):
    """Follow the best-scored correct transitions; return the number of decisions, and of those with several correct."""
    decisions = ambiguous = 0
    for s in range(text.offsets.shape[0] - 1):
        base = text.offsets[s]
        heads, relations = gold.heads[base : text.offsets[s + 1]], gold.relations[base : text.offsets[s + 1]]
        initialize(system, room.state, heads.shape[0] - 1)
        prepare(system, room.state, DYNAMIC, heads)
        while True:
            count, contexts = list_candidates(system, room.state, room.candidates)
            if count == 0:
                break
            score_contexts(weights, templates, text.words, base, contexts, room)
            find_costs(system, room.state, DYNAMIC, heads, room.candidates, count)
            best, relation, least = best_optimal_action(actions, room, count, heads, relations)
            decisions += 1
            ambiguous += (room.candidates.costs[:count] == least).sum() > 1
            row = room.candidates.rows[best]
            apply(system, room.state, row[TRANSITION], row[ARGUMENT], relation)
    return decisions, ambiguous


def share_of_ambiguous(parser: PerceptronParser, sentences: Sequence[Sentence]) -> float:
    """The share of decisions with two correct transitions, in computations of gold trees, which must be projective.

    Sartorio et al. (2013), section 4.2. The parser takes the correct transition with the best score, as in training.
    Automatic steps are not counted.
    """
    system = get_system(parser.config.system)
    templates = system.compiled_templates()
    actions = Actions.of(system, parser.vocabulary.places.allowed(parser.vocabulary.relations))
    room = new_room(system, templates, actions, max(map(len, sentences)))
    gold = parser.vocabulary.gold(sentences, [sentence.padded_heads for sentence in sentences])
    text = parser.vocabulary.text(sentences)
    weights = from_lists(*parser.lists)
    decisions, ambiguous = _count_correct(system.kernels, weights, templates, actions, text, gold, room)
    return ambiguous / decisions
