"""Compiled loops of greedy parsing with network scores: parse a sentence, or note the decisions to learn from.

In training, the computation (sequence of transitions) of a sentence runs outside PyTorch. It notes the tokens of all
contexts, the candidates of all decisions and which of these are optimal; PyTorch then computes the loss from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from mh4.models.transition_scorer import BiaffineArrays
from mh4.transitions.arrays.state import ARGUMENT, CONTEXT, DEPENDENT, HEAD, TRANSITION, add_arc

from .systems import apply, find_costs, finish, follow, initialize, list_candidates, prepare


class Decisions(NamedTuple):
    """Buffers for the decisions of a computation, with U contexts and K candidates."""

    positions: np.ndarray  # int32 (U, R): the token in each role of a context; n + 1 for none
    contexts: np.ndarray  # int32 (K,): context of each candidate
    transitions: np.ndarray  # int32 (K,)
    steps: np.ndarray  # int32 (K,): number of the decision that each candidate belongs to
    optimal: np.ndarray  # bool (K,)

    @classmethod
    def empty(cls, contexts: int, candidates: int, roles: int) -> Decisions:
        """Allocate buffers for this many contexts, candidates and roles."""
        return cls(
            np.empty((contexts, roles), np.int32),
            np.empty(candidates, np.int32),
            np.empty(candidates, np.int32),
            np.empty(candidates, np.int32),
            np.empty(candidates, np.bool_),
        )


def _concatenated(scorer, sentence, positions, dropout, scores):
    """Fill ``scores`` (T,) of the transitions in one context, from the arrays of a `TransitionScorer`."""
    scores[:] = scorer.output_bias
    hidden = scorer.bias.copy()
    for r in range(len(positions)):
        hidden += scorer.vectors[sentence, positions[r], r]
    for h in range(len(hidden)):
        if dropout > 0.0 and np.random.random() < dropout:
            continue
        value = np.tanh(hidden[h]) / np.float32(1.0 - dropout)
        for t in range(len(scores)):
            scores[t] += value * scorer.output[h, t]


def _biaffine(scorer, sentence, positions, dropout, scores):
    """`_concatenated` for the arrays of a `BiaffineTransitionScorer`, to whose vectors dropout is already applied."""
    vector = scorer.vectors[sentence, positions[1]]
    for t in range(len(scores)):
        product, score = scorer.products[sentence, positions[0], t], np.float32(0)
        for h in range(len(vector)):
            score += product[h] * vector[h]
        scores[t] = score


def _score(scorer, sentence, positions, dropout, scores):
    """Call `_biaffine` or `_concatenated`, depending on the type of ``scorer``."""
    kind = _biaffine if isinstance(scorer, BiaffineArrays) else _concatenated
    kind(scorer, sentence, positions, dropout, scores)


@overload(_score)  # in compiled code, the choice is made at compile time
def _score_of_kind(scorer, sentence, positions, dropout, scores):
    return _biaffine if scorer.instance_class is BiaffineArrays else _concatenated


@njit(cache=True, nogil=True)
def _positions(candidates, context, roles, nothing, positions):
    """Fill ``positions`` (R,) with a context's tokens in the roles; ``nothing`` stands for no token."""
    for r in range(roles.shape[0]):
        position = candidates.tokens[context, roles[r]]
        positions[r] = position if position >= 0 else nothing


@njit(cache=True, nogil=True)
def score_contexts(scorer, sentence, nothing, roles, candidates, contexts, dropout, scores):
    """Fill the first rows of ``scores`` (C, T), one per context; ``nothing`` is the position that means no token."""
    positions = np.empty(roles.shape[0], np.int32)
    for i in range(contexts):
        _positions(candidates, i, roles, nothing, positions)
        _score(scorer, sentence, positions, dropout, scores[i])


@njit(cache=True, nogil=True)
def parse_sentence(system, scorer, sentence, n, roles, state, candidates, scores, heads):
    """Parse by taking the best candidate in each step; fills ``heads``, int32 (n + 1,), with a single-rooted tree."""
    initialize(system, state, n)
    while True:
        count, contexts = list_candidates(system, state, candidates)
        if count == 0:
            break
        if count > 1:
            score_contexts(scorer, sentence, n + 1, roles, candidates, contexts, 0.0, scores)
        best = 0
        for c in range(1, count):
            row, leader = candidates.rows[c], candidates.rows[best]
            if scores[row[CONTEXT], row[TRANSITION]] > scores[leader[CONTEXT], leader[TRANSITION]]:
                best = c
        row = candidates.rows[best]
        apply(system, state, row[TRANSITION], row[ARGUMENT], 0)
    while finish(system, state, candidates):
        add_arc(state, candidates.rows[0, HEAD], candidates.rows[0, DEPENDENT], 0)
    heads[0] = -1
    for d in range(1, n + 1):
        heads[d] = max(state.heads[d], 0)


@njit(cache=True, nogil=True)
def _followed(candidates, count, least, scores, exploration):
    """The candidate to follow: the best optimal one or, in exploration, the best wrong one; see `note_decisions`."""
    right, right_score = -1, np.float32(-np.inf)
    wrong, wrong_score = -1, np.float32(-np.inf)
    for c in range(count):
        score = scores[candidates.rows[c, CONTEXT], candidates.rows[c, TRANSITION]]
        if candidates.costs[c] == least:
            if right < 0 or score > right_score:
                right, right_score = c, score
        elif wrong < 0 or score > wrong_score:
            wrong, wrong_score = c, score
    if wrong >= 0 and wrong_score > right_score - np.float32(1.0):
        probability = exploration[0] if wrong_score > right_score else exploration[1]
        if probability > 0.0 and np.random.random() < probability:
            return wrong
    return right


@njit(cache=True, nogil=True)
def note_decisions(
    system, oracle, scorer, sentence, gold, roles, exploration, dropout, seed, state, candidates, scores, decisions
):
    """Run a computation and note its decisions, except those without an alternative.

    Each step follows the best-scoring optimal candidate or, in exploration, the best-scoring wrong one: with the first
    probability of ``exploration`` if the wrong one scores higher, with the second if it is behind by less than the
    margin of 1. The hidden layer has dropout, as in training. Returns the numbers of contexts, candidates and steps
    noted, or −1 for each if the buffers are too small.
    """
    n = gold.shape[0] - 1
    np.random.seed(seed)
    initialize(system, state, n)
    prepare(system, state, oracle, gold)
    may_stray = max(exploration) > 0.0
    noted_contexts, noted, steps = 0, 0, 0
    while True:
        count, contexts = list_candidates(system, state, candidates)
        if count == 0:
            return noted_contexts, noted, steps
        find_costs(system, state, oracle, gold, candidates, count)
        costs = candidates.costs[:count]
        least = costs.min()
        if count > 1:
            if noted_contexts + contexts > decisions.positions.shape[0] or noted + count > decisions.optimal.shape[0]:
                return -1, -1, -1
            for i in range(contexts):
                _positions(candidates, i, roles, n + 1, decisions.positions[noted_contexts + i])
            for c in range(count):
                decisions.contexts[noted + c] = noted_contexts + candidates.rows[c, CONTEXT]
                decisions.transitions[noted + c] = candidates.rows[c, TRANSITION]
                decisions.steps[noted + c] = steps
                decisions.optimal[noted + c] = candidates.costs[c] == least
            noted_contexts += contexts
            noted += count
            steps += 1
        if may_stray or (costs == least).sum() > 1:
            score_contexts(scorer, sentence, n + 1, roles, candidates, contexts, dropout, scores)
            followed = _followed(candidates, count, least, scores, exploration)
        else:
            followed = costs.argmin()
        row = candidates.rows[followed]
        follow(system, state, oracle, row[TRANSITION])
        apply(system, state, row[TRANSITION], row[ARGUMENT], 0)
