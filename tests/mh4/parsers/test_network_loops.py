"""The compiled loops with network scores, checked against kernels of the systems called one by one."""

import numpy as np
import pytest

from mh4.decoders import get_decoder
from mh4.models.transition_scorer import BiaffineArrays, ScorerArrays
from mh4.oracles.costs import CHART_ORDER, DYNAMIC, ORACLE_NAMES, STATIC
from mh4.parsers.network_loops import Decisions, note_decisions, parse_sentence
from mh4.parsers.systems import GREEDY_SYSTEMS, apply, find_costs, follow, initialize, list_candidates, prepare
from mh4.transitions.arrays.state import ARGUMENT, CONTEXT, TRANSITION, new_candidates, new_state

HIDDEN = 6


def random_scorer(generator, sentences, n, roles, transitions):
    def draw(*shape):
        return generator.normal(size=shape).astype(np.float32)

    return ScorerArrays(
        draw(sentences, n + 2, roles, HIDDEN), draw(HIDDEN), draw(HIDDEN, transitions), draw(transitions)
    )


def random_biaffine_scorer(generator, sentences, n, transitions):
    shape = sentences, n + 2, transitions, HIDDEN
    products, vectors = generator.normal(size=shape), generator.normal(size=shape)[:, :, 0]
    return BiaffineArrays(products.astype(np.float32), np.ascontiguousarray(vectors, np.float32))


def random_tree(generator, n):
    """Return a random projective tree with one root, which every system can build."""
    return get_decoder("eisner").decode(generator.normal(size=(1, n + 2, n + 2)).astype(np.float32)).heads


def room(system, n):
    candidates = new_candidates(len(system.tokens), n)
    return new_state(n), candidates, np.empty((len(candidates.groups), len(system.transitions)), np.float32)


def role_numbers(system):
    return np.array([system.tokens.index(name) for name in system.positions], np.int32)


def naive_scores(scorer, sentence, n, roles, tokens):
    positions = [tokens[role] if tokens[role] >= 0 else n + 1 for role in roles]
    if isinstance(scorer, BiaffineArrays):
        return positions, scorer.products[sentence, positions[0]] @ scorer.vectors[sentence, positions[1]]
    hidden = scorer.bias + sum(scorer.vectors[sentence, position, r] for r, position in enumerate(positions))
    return positions, np.tanh(hidden) @ scorer.output + scorer.output_bias


@pytest.mark.parametrize("name", GREEDY_SYSTEMS)
@pytest.mark.parametrize("form", ["concatenated", "biaffine"])
def test_parsing_follows_the_best_candidate(name, form):
    system = GREEDY_SYSTEMS[name]
    generator = np.random.default_rng(1)
    roles = role_numbers(system)
    for n in (1, 2, 5, 9):
        scorer = random_scorer(generator, 2, n, len(roles), len(system.transitions))
        if form == "biaffine":
            scorer, roles = random_biaffine_scorer(generator, 2, n, len(system.transitions)), roles[:2]
        state, candidates, scores = room(system, n)
        heads = np.empty(n + 1, np.int32)
        parse_sentence(system.kernels, scorer, 1, n, roles, state, candidates, scores, heads)
        initialize(system.kernels, state, n)
        while True:
            count, _ = list_candidates(system.kernels, state, candidates)
            if not count:
                break
            rows = candidates.rows[:count].copy()
            values = [
                naive_scores(scorer, 1, n, roles, candidates.tokens[row[CONTEXT]])[1][row[TRANSITION]] for row in rows
            ]
            best = rows[int(np.argmax(values))]
            apply(system.kernels, state, best[TRANSITION], best[ARGUMENT], 0)
        expected = state.heads[: n + 1].copy()
        first, *others = np.flatnonzero(expected[1:] <= 0) + 1  # Covington parsing leaves words without a head
        expected[first], expected[others] = 0, first
        np.testing.assert_array_equal(heads, expected)


def noted(system, oracle, scorer, gold, roles, exploration, seed=1, size=1000, dropout=0.0):
    decisions = Decisions.empty(size, 4 * size, len(roles))
    counts = note_decisions(
        system.kernels,
        oracle,
        scorer,
        0,
        gold,
        roles,
        exploration,
        dropout,
        seed,
        *room(system, len(gold) - 1),
        decisions,
    )
    return counts, decisions


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        (name, oracle)
        for name, system in GREEDY_SYSTEMS.items()
        for oracle in (STATIC, DYNAMIC, CHART_ORDER)
        if ORACLE_NAMES[oracle] in system.oracles
    ],
)
def test_what_is_noted_is_what_the_oracle_says_along_the_computation(name, oracle):
    system = GREEDY_SYSTEMS[name]
    generator = np.random.default_rng(2)
    roles = role_numbers(system)
    for n in (1, 2, 4, 7):
        gold = random_tree(generator, n)
        scorer = random_scorer(generator, 1, n, len(roles), len(system.transitions))
        (contexts, rows, steps), decisions = noted(system, oracle, scorer, gold, roles, (0.0, 0.0))
        state, candidates, _ = room(system, n)
        initialize(system.kernels, state, n)
        prepare(system.kernels, state, oracle, gold)
        context, row, step = 0, 0, 0
        while True:
            count, more = list_candidates(system.kernels, state, candidates)
            if not count:
                break
            find_costs(system.kernels, state, oracle, gold, candidates, count)
            optimal = candidates.costs[:count] == candidates.costs[:count].min()
            scored = [naive_scores(scorer, 0, n, roles, candidates.tokens[i]) for i in range(more)]
            if count > 1:
                np.testing.assert_array_equal(decisions.positions[context : context + more], [p for p, _ in scored])
                here = slice(row, row + count)
                np.testing.assert_array_equal(decisions.contexts[here], context + candidates.rows[:count, CONTEXT])
                np.testing.assert_array_equal(decisions.transitions[here], candidates.rows[:count, TRANSITION])
                np.testing.assert_array_equal(decisions.steps[here], step)
                np.testing.assert_array_equal(decisions.optimal[here], optimal)
                context, row, step = context + more, row + count, step + 1
            values = np.array([scored[c][1][t] for c, t in candidates.rows[:count, [CONTEXT, TRANSITION]]])
            best = candidates.rows[np.argmax(np.where(optimal, values, -np.inf))].copy()
            follow(system.kernels, state, oracle, best[TRANSITION])
            apply(system.kernels, state, best[TRANSITION], best[ARGUMENT], 0)
        assert (contexts, rows, steps) == (context, row, step)
        headless = np.maximum(state.heads[: n + 1], 0)
        np.testing.assert_array_equal(headless[1:], gold[1:])  # the oracle leads to the gold tree


def test_exploration_leaves_the_path_of_the_oracle_and_repeats_with_its_seed():
    system = GREEDY_SYSTEMS["covington"]
    generator = np.random.default_rng(3)
    roles, gold = role_numbers(system), random_tree(generator, 9)
    scorer = random_scorer(generator, 1, 9, len(roles), len(system.transitions))
    nothing = (0.0, 0.0)

    def positions(exploration, dropout, seed=1):
        counts, decisions = noted(system, DYNAMIC, scorer, gold, roles, exploration, seed, dropout=dropout)
        return decisions.positions[: counts[0]].tolist()

    quiet = positions(nothing, 0.0)
    assert positions((0.9, 0.0), 0.0) == positions((0.9, 0.0), 0.0) != quiet
    assert quiet == positions(nothing, 0.0, seed=2)
    # With small scores, every wrong candidate that is behind is within the margin.
    scorer = scorer._replace(output=scorer.output / 100, output_bias=scorer.output_bias / 100)
    assert positions((0.0, 0.9), 0.0) != positions(nothing, 0.0)
    scorer = scorer._replace(output=scorer.output * 1e4, output_bias=scorer.output_bias * 1e4)
    assert positions((0.0, 0.9), 0.0) == positions(nothing, 0.0)  # now none is


@pytest.mark.parametrize(("behind", "strays"), [(-0.5, True), (0.9, True), (1.1, False), (2.0, False), (8.0, False)])
def test_a_wrong_candidate_is_followed_if_it_is_behind_by_less_than_the_margin(behind, strays):
    """Every word is the head of the next one: shift is always right, and left-arc always wrong."""
    system = GREEDY_SYSTEMS["arc-hybrid"]
    roles = np.array([system.tokens.index(name) for name in ("s1", "s0", "b0")], np.int32)
    gold = np.array([-1, 0, 1, 2], np.int32)
    scorer = random_scorer(np.random.default_rng(6), 1, 3, len(roles), len(system.transitions))
    bias = np.full(len(system.transitions), -50, np.float32)
    bias[system.transitions.index("shift")], bias[system.transitions.index("la")] = 0.0, -behind
    scorer = scorer._replace(output=scorer.output * 0, output_bias=bias)
    (contexts, _, _), decisions = noted(system, DYNAMIC, scorer, gold, roles, (1.0, 1.0))
    assert decisions.positions[:contexts].tolist() == [[0, 1, 2], [0 if strays else 1, 2, 3]]


def test_scores_along_the_computation_have_dropout():
    system = GREEDY_SYSTEMS["covington"]
    generator = np.random.default_rng(5)
    roles, gold = role_numbers(system), random_tree(generator, 9)
    scorer = random_scorer(generator, 1, 9, len(roles), len(system.transitions))

    def positions(dropout, seed):
        counts, decisions = noted(system, DYNAMIC, scorer, gold, roles, (1.0, 0.0), seed, dropout=dropout)
        return decisions.positions[: counts[0]].tolist()

    assert positions(0.5, 1) == positions(0.5, 1)
    assert len({str(positions(0.5, seed)) for seed in range(9)}) > 1
    assert len({str(positions(0.0, seed)) for seed in range(9)}) == 1


def test_too_little_room_is_said():
    system = GREEDY_SYSTEMS["arc-standard"]
    generator = np.random.default_rng(4)
    roles, gold = role_numbers(system), random_tree(generator, 9)
    scorer = random_scorer(generator, 1, 9, len(roles), len(system.transitions))
    assert noted(system, STATIC, scorer, gold, roles, (0.0, 0.0), size=2)[0] == (-1, -1, -1)
