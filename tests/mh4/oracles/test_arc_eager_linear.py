"""Linear-time scores of Nederhof (2021), section 5, and for the system of Table 8; exact for projective gold trees."""

import numpy as np
import pytest
from arc_eager_twin import bare_configurations, every_pair, random_configuration, scores_by_listing
from computations import all_trees, random_projective_tree, random_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from mh4.decoders.trees import is_projective
from mh4.oracles.arc_eager import normalized, optimal_step, step_scores_batch
from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.oracles.arc_eager.linear import rightmost_descendants
from mh4.oracles.optimal_step import UNREACHABLE
from mh4.transitions.arc_eager import POLICIES, ArcEager, Configuration, NormalizedArcEager

SYSTEM = ArcEager()
LINEAR = [
    (policy, correct) for policy in POLICIES for correct in (True, False) if (policy, correct) != (POLICIES[2], True)
]
both_policies = pytest.mark.parametrize("policy", ["shift-before-reduce", "reduce-before-shift"])
both = pytest.mark.parametrize("reduce_correct", [True, False])
every_linear = pytest.mark.parametrize(("policy", "reduce_correct"), LINEAR)


def projective_trees(n):
    trees = all_trees(n)
    return trees[[is_projective(tree) for tree in trees]]


@every_linear
@pytest.mark.parametrize("n", range(1, 6))
def test_every_configuration_with_every_projective_tree(policy, n, reduce_correct):
    system = ArcEager(reduce_correct)
    configurations, gold = bare_configurations(SYSTEM, n), projective_trees(n)
    ours = step_scores_batch(*every_pair(configurations, gold), policy, "linear", reduce_correct).reshape(
        len(configurations), len(gold), 4
    )
    for configuration, scores in zip(configurations, ours, strict=True):
        expected = scores_by_listing(system, policy, configuration, gold)
        np.testing.assert_array_equal(scores, expected, str(configuration))


def random_batch(rng, n, tree, count):
    push = rng.choice([0.2, 0.5, 0.9])
    pairs = [(random_configuration(rng, n, push), sentence) for sentence in range(count)]
    return *flat_configurations(pairs), [tree(rng, n) for _ in range(count)]


@every_linear
@given(n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_exact_for_projective_trees_of_any_length(policy, reduce_correct, n, seed):
    batch = random_batch(np.random.default_rng(seed), n, random_projective_tree, 30)
    np.testing.assert_array_equal(
        step_scores_batch(*batch, policy, "linear", reduce_correct),
        step_scores_batch(*batch, policy, "exact", reduce_correct),
    )


@both
@pytest.mark.parametrize("n", range(1, 6))
def test_every_normalized_configuration_with_every_projective_tree(n, reduce_correct):
    batch = every_pair(bare_configurations(NormalizedArcEager(), n), projective_trees(n))
    np.testing.assert_array_equal(
        normalized.step_scores_batch(*batch, "linear", reduce_correct),
        normalized.step_scores_batch(*batch, "exact", reduce_correct),
    )


def normalized_pair(rng, n, push, sentence):
    """A pair of a random configuration, often with an undecided word (N) on top, and a sentence."""
    configuration = random_configuration(rng, n, push)
    if configuration.front <= n and rng.random() < 0.5:
        stack, labels, front = configuration.stack, configuration.labels, configuration.front
        configuration = Configuration((*stack, front), labels + "N", front + 1, n)
    return configuration, sentence


@both
@settings(max_examples=300)
@given(n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_normalized_scores_are_exact_for_projective_trees_of_any_length(reduce_correct, n, seed):
    rng = np.random.default_rng(seed)
    push = rng.choice([0.2, 0.5, 0.9])
    pairs = [normalized_pair(rng, n, push, sentence) for sentence in range(30)]
    golds = [random_projective_tree(rng, n) for _ in pairs]
    batch = *flat_configurations(pairs), golds

    def scores(algorithm):
        return normalized.step_scores_batch(*batch, algorithm, reduce_correct)

    np.testing.assert_array_equal(scores("linear"), scores("exact"))
    golds[:5] = [random_tree(rng, n) for _ in range(5)]  # for these, the default is "exact"
    np.testing.assert_array_equal(scores(None), scores("exact"))
    np.testing.assert_array_equal(scores("linear") == UNREACHABLE, scores("exact") == UNREACHABLE)
    assert scores("linear").max() <= n


@every_linear
@given(n=st.integers(1, 25), seed=st.integers(0, 2**32 - 1))
def test_an_approximation_for_other_trees(policy, reduce_correct, n, seed):
    """For other gold trees, the same transitions are reachable, and no score exceeds the number of words."""
    batch = random_batch(np.random.default_rng(seed), n, random_tree, 30)
    linear, exact = (step_scores_batch(*batch, policy, a, reduce_correct) for a in ("linear", "exact"))
    np.testing.assert_array_equal(linear == UNREACHABLE, exact == UNREACHABLE)
    assert linear.max() <= n


@both
@given(n=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("policy", POLICIES)
def test_by_default_each_tree_has_the_algorithm_that_is_exact_for_it(policy, reduce_correct, n, seed):
    rng = np.random.default_rng(seed)
    *batch, projective = random_batch(rng, n, random_projective_tree, 30)
    golds = [tree if rng.random() < 0.5 else random_tree(rng, n) for tree in projective]
    np.testing.assert_array_equal(
        step_scores_batch(*batch, golds, policy, reduce_correct=reduce_correct),
        step_scores_batch(*batch, golds, policy, "exact", reduce_correct),
    )


@both_policies
def test_crossing_arcs_make_the_approximation_too_hopeful(policy):
    """0 → 2 and 3 → 1 cross, so one of them will be lost, which the linear algorithm overlooks."""
    configuration, gold = ArcEager().initial(4), np.array([-1, 3, 0, 2, 2])
    steps = {algorithm: optimal_step(configuration, gold, policy, algorithm) for algorithm in ("exact", "linear")}
    assert steps["exact"].scores["shift"] == 3
    assert steps["linear"].scores["shift"] == 4


def test_rightmost_descendants():
    assert rightmost_descendants(np.array([-1, 2, 0, 5, 3, 2], np.int32)).tolist() == [5, 1, 5, 4, 4, 5]


@given(n=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_rightmost_descendants_of_any_tree(n, seed):
    heads = random_tree(np.random.default_rng(seed), n)
    descendants = np.eye(n + 1, dtype=bool)
    for token in range(1, n + 1):
        ancestor = token
        while ancestor != 0:
            ancestor = heads[ancestor]
            descendants[ancestor, token] = True
    assert rightmost_descendants(heads).tolist() == [int(np.flatnonzero(row).max()) for row in descendants]


def test_descendants_of_a_right_child_of_the_top_are_those_in_the_input():
    """Literally, the paper also follows non-projective descendants through the stack; see the docstring of `linear`."""
    n = 4
    trees = all_trees(n)
    trees = trees[[not is_projective(tree) for tree in trees]]
    configurations = [c for c in bare_configurations(SYSTEM, n) if c.front < n]
    batch = every_pair(configurations, trees)
    shape = len(configurations), len(trees), 4
    linear, exact = (step_scores_batch(*batch, "shift-before-reduce", a).reshape(shape) for a in ("linear", "exact"))
    shift = SYSTEM.transitions.index("shift")
    closer = []
    for c, configuration in enumerate(configurations):
        top, front = configuration.front, configuration.front + 1
        for t, gold in enumerate(trees):
            end = token = n
            while token >= front and gold[token] != top:
                token = gold[token]
            ours = token >= front
            last = rightmost_descendants(gold)
            letter = any(gold[token] == top and last[token] == end for token in range(front, n + 1))
            if ours != letter:
                ours_off = abs(linear[c, t, shift] - exact[c, t, shift])
                closer.append(ours_off < abs(linear[c, t, shift] - 1 - exact[c, t, shift]))
    assert sorted(closer) == [False, True, True]


def test_what_it_is_not_made_for_is_an_error():
    configuration, gold = Configuration((0,), "R", 1, 2), np.array([-1, 0, 1])
    with pytest.raises(ValueError, match="with reduce_correct; use 'exact'"):
        optimal_step(configuration, gold, "strict-reduce-before-shift", "linear")
