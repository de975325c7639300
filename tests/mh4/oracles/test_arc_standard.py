"""The oracles of Nederhof (2019), against enumeration of all computations and against one another."""

import numpy as np
import pytest
from arc_standard_twin import SYSTEM, allows, bare_configurations, scores_by_listing
from computations import all_trees, computations, configurations, random_projective_tree, random_tree, reachable_trees
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.tabular import FORBIDDEN, count_best
from mh4.decoders.trees import is_projective
from mh4.oracles.arc_standard import (
    ALGORITHMS,
    flat_configurations,
    optimal_computation,
    optimal_step,
    step_scores_batch,
)
from mh4.oracles.arc_standard.cubic import GRAMMAR
from mh4.oracles.arc_standard.restrictions import restrictions
from mh4.transitions.arc_standard import POLICIES, TRANSITIONS, Configuration

LEFT_FIRST, STRICT, RIGHT_FIRST = POLICIES
every_policy = pytest.mark.parametrize("policy", POLICIES)


def heads(*words):
    return np.array([-1, *words], np.int32)


def step_scores(stack, front, gold, policy=LEFT_FIRST, algorithm=None):
    """The step scores of a single configuration."""
    return step_scores_batch(stack, [0, len(stack)], [front], [0], [gold], policy, algorithm)[0]


def random_configuration(rng, n):
    """A random configuration of n words, however unlikely a parser is to reach it."""
    front, push = int(rng.integers(1, n + 2)), rng.choice([0.3, 0.6, 0.95])
    return Configuration((0, *(word for word in range(1, front) if rng.random() < push)), front, n)


def test_no_way_back_from_a_reduce_too_early():
    """With 0 → 2, 2 → 1 and 2 → 3, attaching 1 before 2 is read costs only the arc 2 → 1."""
    step = optimal_step(Configuration((0, 1), 2, 3), heads(2, 0, 2))
    assert step.scores == {"shift": 3, "reduce_left": 2, "reduce_right": None}
    assert (step.best, step.accuracy) == (("shift",), 1.0)


def test_arcs_built_before_are_counted():
    gold = heads(0, 1, 2)
    right, wrong = (Configuration((0, 1), 3, 3, frozenset([(head, 2)])) for head in (1, 3))
    assert optimal_step(right, gold).scores == {"shift": 2, "reduce_left": 2, "reduce_right": None}
    assert optimal_step(wrong, gold).scores == {"shift": 1, "reduce_left": 1, "reduce_right": None}


def test_policies_differ_in_the_side_that_comes_first():
    """0 → 2 and 2 → 1, 2 → 3, with 2 on top of 1 and 3 still to come."""
    configuration, gold = Configuration((0, 1, 2), 3, 3), heads(2, 0, 2)
    for policy in (LEFT_FIRST, STRICT):
        assert optimal_step(configuration, gold, policy).scores == {"shift": 1, "reduce_left": 0, "reduce_right": 3}
    assert optimal_step(configuration, gold, RIGHT_FIRST).scores == {"shift": 3, "reduce_left": 0, "reduce_right": 2}


def test_only_the_strict_policy_forbids_to_mend():
    """2 should get 1 and 3, but 3 is already on top: 2 → 1 must follow 2 → 3, which only the strict policy forbids."""
    configuration, gold = Configuration((0, 1, 2, 3), 4, 3), heads(2, 0, 2)
    for policy, expected in ((LEFT_FIRST, 3), (STRICT, 1), (RIGHT_FIRST, 3)):
        assert optimal_step(configuration, gold, policy).scores["reduce_left"] == expected


def test_a_tree_that_cannot_be_built():
    """1 → 3 and 4 → 2 cross, so one of them is lost; a reduce decides which."""
    gold = heads(4, 4, 1, 0)
    assert not is_projective(gold)
    assert optimal_step(SYSTEM.initial(4), gold).scores["shift"] == 3
    scores = optimal_step(Configuration((0, 1, 2), 3, 4), gold).scores
    assert scores == {"shift": 3, "reduce_left": 3, "reduce_right": 2}


@every_policy
@pytest.mark.parametrize("n", range(1, 5))
def test_every_configuration_with_every_tree(policy, n):
    golds = all_trees(n)
    projective = np.array([is_projective(gold) for gold in golds])
    for configuration in bare_configurations(n):
        expected = scores_by_listing(policy, configuration, golds)
        batch = flat_configurations((configuration, sentence) for sentence in range(len(golds)))
        for algorithm in ("cubic", None):
            ours = step_scores_batch(*batch, golds, policy, algorithm)
            np.testing.assert_array_equal(ours, expected, f"{configuration} {algorithm}")
        batch = flat_configurations((configuration, sentence) for sentence in range(projective.sum()))
        for algorithm in ALGORITHMS:
            ours = step_scores_batch(*batch, golds[projective], policy, algorithm)
            np.testing.assert_array_equal(ours, expected[projective], f"{configuration} {algorithm}")


@pytest.mark.slow
@every_policy
def test_every_configuration_of_five_words(policy):
    test_every_configuration_with_every_tree(policy, 5)


@every_policy
def test_every_configuration_with_its_arcs(policy):
    golds = all_trees(3)
    for configuration in configurations(SYSTEM, 3):
        trees = reachable_trees(SYSTEM, configuration, allows(policy))
        for gold in golds:
            scores = dict.fromkeys(TRANSITIONS)
            scores |= {t: int((found[:, 1:] == gold[1:]).sum(axis=1).max()) for t, found in trees.items()}
            step = optimal_step(configuration, gold, policy)
            assert step.scores == scores, (configuration, gold)
            assert step.best == tuple(t for t in trees if scores[t] == step.score)


@every_policy
@pytest.mark.parametrize("n", [5, 6, 7])
def test_random_configurations(policy, n):
    rng = np.random.default_rng(n)
    for _ in range(12):
        configuration = random_configuration(rng, n)
        projective = [random_projective_tree(rng, n) for _ in range(30)]
        golds = np.array(projective + [random_tree(rng, n) for _ in range(30)])
        expected = scores_by_listing(policy, configuration, golds)
        for gold, scores in zip(golds, expected, strict=True):
            np.testing.assert_array_equal(
                step_scores(configuration.stack, configuration.front, gold, policy, "cubic"), scores
            )
        for gold, scores in zip(projective, expected, strict=False):
            for algorithm in ALGORITHMS:
                ours = step_scores(configuration.stack, configuration.front, gold, policy, algorithm)
                np.testing.assert_array_equal(ours, scores, f"{configuration} {gold} {algorithm}")


@every_policy
@given(n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_the_algorithms_agree(policy, n, seed):
    rng = np.random.default_rng(seed)
    golds = [random_projective_tree(rng, n) for _ in range(20)]
    batch = flat_configurations((random_configuration(rng, n), sentence) for sentence in range(20))
    cubic = step_scores_batch(*batch, golds, policy, "cubic")
    for algorithm in ("critical-cubic", "quadratic", "linear"):
        np.testing.assert_array_equal(step_scores_batch(*batch, golds, policy, algorithm), cubic, algorithm)


@every_policy
@given(n=st.integers(40, 90), seed=st.integers(0, 2**32 - 1))
def test_linear_and_quadratic_agree_on_long_sentences(policy, n, seed):
    rng = np.random.default_rng(seed)
    golds = [random_projective_tree(rng, n) for _ in range(20)]
    batch = flat_configurations((random_configuration(rng, n), sentence) for sentence in range(20))
    linear, quadratic = (step_scores_batch(*batch, golds, policy, name) for name in ("linear", "quadratic"))
    np.testing.assert_array_equal(linear, quadratic)


@every_policy
@pytest.mark.parametrize("n", range(1, 6))
def test_one_derivation_for_each_computation(policy, n):
    """Section 4: parses that attach children as low as possible correspond one to one to computations, and to trees."""
    for configuration in bare_configurations(n):
        found = {}
        for steps, final in computations(SYSTEM, configuration, allows(policy, everywhere=True)):
            if steps:
                found.setdefault(steps[0], []).append(tuple(SYSTEM.heads(final).tolist()))
        every = reachable_trees(SYSTEM, configuration, allows(policy))
        for transition, built in found.items():
            following = SYSTEM.apply(configuration, transition)
            depth = len(following.stack)
            size = depth + n + 1 - following.front
            weights = np.zeros((size, size), np.int32)
            first, last, no_right = restrictions(POLICIES.index(policy), TRANSITIONS.index(transition), depth)
            for i in range(first, last):
                weights[i, :i] = FORBIDDEN
            if no_right:
                weights[depth - 1, depth:] = FORBIDDEN
            string = GRAMMAR.encode(["p"] * (depth - 1) + ["s"] * (size - depth + 1))
            assert count_best(GRAMMAR, string, weights) == (0, len(built)), (configuration, transition)
            assert len(set(built)) == len(built)
            assert set(built) == {tuple(tree) for tree in every[transition].tolist()}


@every_policy
@pytest.mark.parametrize("n", range(1, 5))
def test_optimal_computations(policy, n):
    for gold in all_trees(n):
        steps = optimal_computation(gold, policy)
        path = list(SYSTEM.run(n, steps))
        taken = tuple(zip(path, steps, strict=False))
        assert SYSTEM.is_final(path[-1])
        assert all(allows(policy)(path[0], taken[: length + 1]) for length in range(len(taken)))
        best = optimal_step(path[0], gold, policy).score
        assert path[-1].gold_arcs(gold) == best
        # Each step is optimal: a policy that applies from the current configuration on can only allow more.
        assert all(optimal_step(c, gold, policy).scores[t] == best for c, t in taken)


def test_an_optimal_computation_with_one_word_below_the_root():
    """With one word below the root, only one of 0 → 1 and 0 → 2 is possible."""
    assert optimal_computation(heads(0, 0)) == ("shift", "reduce_left", "shift", "reduce_left")
    *_, final = SYSTEM.run(2, optimal_computation(heads(0, 0), single_root=True))
    assert SYSTEM.heads(final).tolist().count(0) == 1


def test_a_batch_of_several_sentences():
    rng = np.random.default_rng(1)
    golds = [heads(2, 0, 2), heads(4, 4, 1, 0), random_projective_tree(rng, 9)]
    pairs = [(random_configuration(rng, len(golds[s]) - 1), s) for s in (2, 0, 1, 1, 2, 0, 0, 2)]
    for policy in POLICIES:
        scores = step_scores_batch(*flat_configurations(pairs), golds, policy)
        assert scores.dtype == np.int32
        for row, (configuration, sentence) in zip(scores, pairs, strict=True):
            alone = step_scores(configuration.stack, configuration.front, golds[sentence], policy)
            np.testing.assert_array_equal(row, alone)
    assert step_scores_batch(*flat_configurations([]), golds).shape == (0, 3)


def test_errors_of_one_configuration():
    start, gold, crossing = SYSTEM.initial(4), heads(0, 1, 2, 3), heads(4, 4, 1, 0)
    with pytest.raises(ValueError, match=f"unknown policy 'left'; known: {LEFT_FIRST}"):
        optimal_step(start, gold, "left")
    with pytest.raises(ValueError, match="unknown policy 'left'"):
        optimal_computation(gold, "left")
    with pytest.raises(ValueError, match="unknown algorithm 'fast'; known: linear"):
        optimal_step(start, gold, algorithm="fast")
    with pytest.raises(ValueError, match="has 3 words, but the gold tree has 4"):
        optimal_step(SYSTEM.initial(3), gold)
    with pytest.raises(ValueError, match="not a tree"):
        optimal_step(start, heads(2, 1, 0, 0))
    for algorithm in ("linear", "quadratic", "critical-cubic"):
        with pytest.raises(ValueError, match=f"the {algorithm} algorithm needs a projective gold tree, use 'cubic'"):
            optimal_step(start, crossing, algorithm=algorithm)
    with pytest.raises(ValueError, match="offsets must rise"):
        step_scores([], 1, gold)
    for stack, front in (([1], 2), ([0, 2, 1], 3), ([0, 1, 3], 3), ([0], 0), ([0], 6)):
        with pytest.raises(ValueError, match="not a configuration of 4 words"):
            step_scores(stack, front, gold)


def test_errors_of_a_batch():
    golds = [heads(2, 0), heads(0, 1, 2)]
    with pytest.raises(ValueError, match="row 1 is not a configuration of 2 words"):
        step_scores_batch([0, 0, 2], [0, 1, 3], [1, 2], [1, 0], golds)
    with pytest.raises(ValueError, match="2 fronts need 3 offsets and 2 sentences"):
        step_scores_batch([0, 0], [0, 1], [1, 1], [0, 0], golds)
    with pytest.raises(ValueError, match="offsets must rise"):
        step_scores_batch([0, 0], [0, 2, 2], [1, 1], [0, 0], golds)
    with pytest.raises(ValueError, match="sentences must be 0 to 1"):
        step_scores_batch([0], [0, 1], [1], [2], golds)
    with pytest.raises(ValueError, match="unknown algorithm 'fast'"):
        step_scores_batch([0], [0, 1], [1], [0], golds, algorithm="fast")
    with pytest.raises(ValueError, match="the linear algorithm needs a projective gold tree"):
        step_scores_batch([0], [0, 1], [1], [0], [heads(4, 4, 1, 0)], algorithm="linear")
    for broken in ([-1, 2, 1], [-1, 7, 0], []):
        with pytest.raises(ValueError, match="not a tree"):
            step_scores_batch([0], [0, 1], [1], [0], [np.array(broken)])
