"""Compiled loops of the perceptron parser: parse sentences, or train on them for an epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mh4.transitions.arrays.state import (
    ARGUMENT,
    CONTEXT,
    DEPENDENT,
    HEAD,
    NONE,
    TRANSITION,
    Candidates,
    State,
    add_arc,
    new_candidates,
    new_state,
)

from ..systems import GreedySystem, apply, find_costs, finish, follow, initialize, list_candidates, prepare
from ..templates import Templates, feature_keys
from .weights import add_scores, find_blocks, update, with_room

ANY_RELATION = -1  # instead of a gold relation: the arc may get any
BEST, ALL, ANY = range(3)
TIES = ("best", "all", "any")  # see `PerceptronConfig`


class Text(NamedTuple):
    """Sentences in flat arrays, P positions in all."""

    offsets: np.ndarray  # int64 (S + 1,): where each sentence begins, with its root
    words: np.ndarray  # int32 (2, P): numbers of form and part of speech


class Gold(NamedTuple):
    """Gold trees of a text."""

    heads: np.ndarray  # int32 (P,): −1 at the position of each root
    relations: np.ndarray  # int32 (P,): `ANY_RELATION` where the treebank has no relation to learn


class Actions(NamedTuple):
    """Actions are transitions with a relation, or without one."""

    # int32 (T + 1,): the actions of transition t are ``first[t]`` to ``first[t + 1] - 1``, one for each relation
    first: np.ndarray
    allowed: np.ndarray  # bool (2, R): whether a relation may stand below a word (row 0) and below the root (row 1)

    @classmethod
    def of(cls, system: GreedySystem, allowed: np.ndarray) -> Actions:
        """The actions of a system; for ``allowed`` see `RelationPlaces.allowed`."""
        relations = allowed.shape[1]
        widths = [1 if transition in system.unlabelled else relations for transition in system.transitions]
        return cls(np.cumsum([0, *widths], dtype=np.int32), allowed)


class Room(NamedTuple):
    """Working buffers of the loops, allocated once."""

    state: State
    candidates: Candidates
    values: np.ndarray  # int64 (M,): values of the atoms in one context
    keys: np.ndarray  # int64 (C, F): features of each context
    counts: np.ndarray  # int32 (C,): number of features of each context
    blocks: np.ndarray  # int64 (F,): blocks of the features of one context; see `weights`
    scores: np.ndarray  # float32 (C, A): scores of all actions in each context


def new_room(system: GreedySystem, templates: Templates, actions: Actions, longest: int) -> Room:
    """Buffers for sentences of up to this many words."""
    candidates = new_candidates(len(system.tokens), longest)
    contexts, features = len(candidates.groups), len(templates.conjunctions)
    return Room(
        new_state(longest),
        candidates,
        np.zeros(len(templates.atoms), np.int64),
        np.zeros((contexts, features), np.int64),
        np.zeros(contexts, np.int32),
        np.zeros(features, np.int64),
        np.zeros((contexts, actions.first[-1]), np.float32),
    )


@njit(cache=True, nogil=True)
def score_contexts(weights, templates, words, base, contexts, room):
    """Fill the scores of the first ``contexts`` contexts."""
    for i in range(contexts):
        count = feature_keys(
            templates,
            words,
            base,
            room.state,
            room.candidates.tokens[i],
            room.candidates.groups[i],
            room.values,
            room.keys[i],
        )
        room.counts[i] = count
        find_blocks(weights, room.keys[i], count, room.blocks)
        room.scores[i] = 0.0
        add_scores(weights, room.blocks, count, room.scores[i])


@njit(nogil=True, inline="always")
def _best_relation(actions, room, candidate, wanted):
    """The best-scoring relation of a candidate, and its score; ``wanted`` is the only choice if not `ANY_RELATION`."""
    row = room.candidates.rows[candidate]
    scores = room.scores[row[CONTEXT]]
    first, stop = actions.first[row[TRANSITION]], actions.first[row[TRANSITION] + 1]
    if row[DEPENDENT] == NONE:
        return NONE, scores[first]
    begin, end = first, stop
    below_root = 1 if row[HEAD] == 0 else 0
    if wanted >= 0:
        begin = first + wanted
        end = begin + 1
    best, best_score = NONE, np.float32(-np.inf)
    for action in range(begin, end):
        if scores[action] > best_score:
            relation = action - first
            if stop - first > 1 and not actions.allowed[below_root, relation]:
                continue
            best, best_score = relation, scores[action]
    return best, best_score


@njit(cache=True, nogil=True)
def best_action(actions, room, count):
    """The candidate and relation with the highest score; the first in a tie."""
    best, best_relation, best_score = -1, NONE, np.float32(-np.inf)
    for c in range(count):
        relation, score = _best_relation(actions, room, c, ANY_RELATION)
        if score > best_score:
            best, best_relation, best_score = c, relation, score
    return best, best_relation


@njit(nogil=True, inline="always")
def _optimal_relation(actions, room, candidate, heads, relations):
    """`_best_relation` of a candidate; a gold arc takes its gold relation."""
    dependent = room.candidates.rows[candidate, DEPENDENT]
    gold = dependent != NONE and heads[dependent] == room.candidates.rows[candidate, HEAD]
    return _best_relation(actions, room, candidate, relations[dependent] if gold else ANY_RELATION)


@njit(cache=True, nogil=True)
def best_optimal_action(actions, room, count, heads, relations):
    """The best candidate of least cost, its relation, and this cost; gold arcs take their gold relations."""
    least = room.candidates.costs[:count].min()
    best, best_relation, best_score = -1, NONE, np.float32(-np.inf)
    for c in range(count):
        if room.candidates.costs[c] > least:
            continue
        relation, score = _optimal_relation(actions, room, c, heads, relations)
        if score > best_score:
            best, best_relation, best_score = c, relation, score
    return best, best_relation, least


@njit(cache=True, nogil=True)
def _any_optimal_action(actions, room, count, least, random, heads, relations):
    """A candidate of least cost, picked by the number ``random``, and its relation."""
    nth = random % np.uint64((room.candidates.costs[:count] == least).sum())
    for c in range(count):
        if room.candidates.costs[c] > least:
            continue
        if nth == 0:
            break
        nth -= np.uint64(1)
    relation, _ = _optimal_relation(actions, room, c, heads, relations)
    return c, relation


@njit(cache=True, nogil=True)
def parse_text(system, weights, templates, actions, text, room, root_relation, single_root, heads, relations):
    """Parse greedily; fills heads and relations, int32 (P,).

    Words left without a head are attached to the root; with ``single_root`` there is one word below it.
    """
    for s in range(text.offsets.shape[0] - 1):
        base = text.offsets[s]
        n = text.offsets[s + 1] - base - 1
        initialize(system, room.state, n)
        while True:
            count, contexts = list_candidates(system, room.state, room.candidates)
            if count == 0:
                break
            score_contexts(weights, templates, text.words, base, contexts, room)
            best, relation = best_action(actions, room, count)
            row = room.candidates.rows[best]
            apply(system, room.state, row[TRANSITION], row[ARGUMENT], relation)
        while single_root and finish(system, room.state, room.candidates):
            score_contexts(weights, templates, text.words, base, 1, room)
            _, relation = best_action(actions, room, 1)
            row = room.candidates.rows[0]
            add_arc(room.state, row[HEAD], row[DEPENDENT], relation)
        heads[base] = NONE
        relations[base] = NONE
        for word in range(1, n + 1):
            head, relation = room.state.heads[word], room.state.relations[word]
            heads[base + word] = max(head, 0)
            relations[base + word] = root_relation if head == NONE else relation


@njit(cache=True, nogil=True, inline="always")
def _next_random(state):
    """The next state of the random generator (xorshift, 64 bits)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(cache=True, nogil=True)
def _change(weights, actions, room, candidate, relation, change, step):
    """Add ``change`` to the weights of a candidate's action for the features of its context."""
    row = room.candidates.rows[candidate]
    action, context = actions.first[row[TRANSITION]] + max(relation, 0), row[CONTEXT]
    update(weights, room.keys[context], room.counts[context], action, change, step)


@njit(cache=True, nogil=True)
def train_epoch(system, oracle, ties, weights, templates, actions, text, gold, order, exploration, random, step, room):
    """Train on the sentences in the given order; returns the weights, perhaps in new arrays, step and wrong decisions.

    A decision is wrong if it is not the optimal action preferred by ``ties``, an index of `TIES`. Training then follows
    the predicted action with probability ``exploration``, else the preferred one. ``random``, uint64 and not 0, is the
    state of the random generator. ``step`` counts the decisions of all epochs so far, over which weights are averaged;
    wrong decisions are counted for this epoch.
    """
    wrong = 0
    features, width = room.keys.shape[1], room.scores.shape[1]
    for s in order:
        base = text.offsets[s]
        heads, relations = gold.heads[base : text.offsets[s + 1]], gold.relations[base : text.offsets[s + 1]]
        initialize(system, room.state, heads.shape[0] - 1)
        prepare(system, room.state, oracle, heads)
        while True:
            count, contexts = list_candidates(system, room.state, room.candidates)
            if count == 0:
                break
            score_contexts(weights, templates, text.words, base, contexts, room)
            find_costs(system, room.state, oracle, heads, room.candidates, count)
            predicted, relation = best_action(actions, room, count)
            best, best_relation, least = best_optimal_action(actions, room, count, heads, relations)
            if ties == ANY:
                random = _next_random(random)
                best, best_relation = _any_optimal_action(actions, room, count, least, random, heads, relations)
            step += 1
            followed = best
            if predicted != best or relation != best_relation:
                wrong += 1
                optimal = (room.candidates.costs[:count] == least).sum() if ties == ALL else 1
                weights = with_room(weights, (optimal + 1) * features, width)
                for c in range(count):
                    if (room.candidates.costs[c] == least) if ties == ALL else (c == best):
                        r, _ = _optimal_relation(actions, room, c, heads, relations)
                        _change(weights, actions, room, c, r, np.float32(1.0 / optimal), step)
                _change(weights, actions, room, predicted, relation, np.float32(-1.0), step)
                random = _next_random(random)
                if np.float64(random >> np.uint64(11)) * 2.0**-53 < exploration:
                    followed, best_relation = predicted, relation
            row = room.candidates.rows[followed]
            follow(system, room.state, oracle, row[TRANSITION])
            apply(system, room.state, row[TRANSITION], row[ARGUMENT], best_relation)
    return weights, step, wrong
