"""Exact scores of unnormalized and normalized arc-eager transitions, against enumeration of all computations."""

import numpy as np
import pytest
from arc_eager_twin import (
    allows,
    bare_configurations,
    every_pair,
    number_of_computations,
    random_configuration,
    scores_by_listing,
)
from computations import all_trees, computations, random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.tabular import count_best
from mh4.oracles import arc_eager
from mh4.oracles.arc_eager import normalized as arc_eager_normalized
from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.oracles.arc_eager.grammars import (
    NORMALIZED_GRAMMARS,
    UNNORMALIZED_GRAMMARS,
    normalized_string,
    unnormalized_string,
)
from mh4.oracles.arc_eager.steps import encode_labels
from mh4.oracles.optimal_step import UNREACHABLE
from mh4.transitions.arc_eager import LABELS, POLICIES, ArcEager, Configuration, NormalizedArcEager

SYSTEMS = {(system, correct): system(correct) for system in (ArcEager, NormalizedArcEager) for correct in (True, False)}
CASES = [(ArcEager, policy) for policy in POLICIES] + [(NormalizedArcEager, None)]

both = pytest.mark.parametrize("reduce_correct", [True, False])
every_case = pytest.mark.parametrize(("system", "policy"), CASES)


def step_scores(module, stack, labels, front, tree):
    """The step scores of a single configuration."""
    return module.step_scores_batch(stack, encode_labels(labels), [0, len(stack)], [front], [0], [tree])[0]


def exact(batch, system, policy, reduce_correct):
    if system is ArcEager:
        return arc_eager.step_scores_batch(*batch, policy, "exact", reduce_correct)
    return arc_eager_normalized.step_scores_batch(*batch, "exact", reduce_correct)


def check(system, policy, reduce_correct, configurations, gold):
    """Check exact scores against enumeration, for every pair of a configuration and a gold tree."""
    ours = exact(every_pair(configurations, gold), system, policy, reduce_correct)
    ours = ours.reshape(len(configurations), len(gold), -1)
    for configuration, scores in zip(configurations, ours, strict=True):
        expected = scores_by_listing(SYSTEMS[system, reduce_correct], policy, configuration, gold)
        np.testing.assert_array_equal(scores, expected, str(configuration))


@both
@every_case
@pytest.mark.parametrize("n", range(1, 5))
def test_every_configuration_with_every_gold_tree(system, policy, reduce_correct, n):
    check(system, policy, reduce_correct, bare_configurations(SYSTEMS[system, reduce_correct], n), all_trees(n))


@pytest.mark.slow
@both
@every_case
def test_every_configuration_of_five_words_with_every_gold_tree(system, policy, reduce_correct):
    check(system, policy, reduce_correct, bare_configurations(SYSTEMS[system, reduce_correct], 5), all_trees(5))


@both
@every_case
@pytest.mark.parametrize(("n", "count"), [(6, 12), (7, 4)])
def test_longer_sentences(system, policy, reduce_correct, n, count):
    rng = np.random.default_rng(n)
    gold = np.array([random_tree(rng, n) for _ in range(100)])
    check(system, policy, reduce_correct, [random_configuration(rng, n) for _ in range(count)], gold)


def string_after(system, policy, configuration, transition):
    """The string of grammar symbols for the configuration after a transition."""
    after = SYSTEMS[system, True].apply(configuration, transition)
    k, m = len(after.stack), after.n + 1 - after.front
    number = system.transitions.index(transition)
    if system is ArcEager:
        return unnormalized_string(POLICIES.index(policy), number, encode_labels(after.labels), k, m)
    return normalized_string(number, encode_labels(after.labels), k, m)


@both
@every_case
@pytest.mark.parametrize("n", range(1, 6))
def test_derivations_computations_and_trees_are_one_to_one(system, policy, reduce_correct, n):
    grammars = UNNORMALIZED_GRAMMARS if system is ArcEager else NORMALIZED_GRAMMARS
    instance = SYSTEMS[system, reduce_correct]
    for configuration in bare_configurations(instance, n):
        computations_of = number_of_computations(instance, policy, configuration)
        trees_of = {}
        for transitions, final in computations(instance, configuration, allows(policy)):
            trees_of.setdefault(transitions[:1], set()).add(final.arcs)
        for transition in instance.legal(configuration):
            string = string_after(system, policy, configuration, transition)
            # With zero weights, all trees are optimal, so all derivations are counted.
            weights = np.zeros((len(string), len(string)), np.int32)
            _, derivations = count_best(grammars[reduce_correct], string, weights)
            assert derivations == computations_of.get(transition, 0) == len(trees_of.get((transition,), ()))


# Small examples to check by hand. Words 1 and 2 are on the stack, 3 and 4 are to come unless stated otherwise.


def gold(*heads):
    return np.array([-1, *heads], np.int32)


def test_what_stands_between_must_go_first():
    """Gold has 3 → 1 and 1 → 2, so 2 must be reduced first; making 3 a right child of 2 keeps only 1 → 2."""
    configuration = Configuration((0, 1, 2), "RLR", 3, 3)
    step = arc_eager.optimal_step(configuration, gold(3, 1, 0))
    assert step.scores == {"shift": None, "left_arc": None, "right_arc": 1, "reduce": 3}
    assert step.best == ("reduce",)
    assert (step.score, step.accuracy) == (3, 1.0)


def test_a_wrong_left_label_can_be_corrected_only_later():
    """Gold has 1 → 2, but 2 was shifted. Reducing it corrects this, but a word shifted now may not be corrected."""
    configuration = Configuration((0, 1, 2), "RRL", 3, 3)
    step = arc_eager.optimal_step(configuration, gold(0, 1, 1))
    assert step.scores == {"shift": None, "left_arc": 2, "right_arc": 2, "reduce": 3}
    without = arc_eager.optimal_step(configuration, gold(0, 1, 1), reduce_correct=False)
    assert without.scores == {"shift": None, "left_arc": 2, "right_arc": None, "reduce": None}


def test_the_policy_decides_between_two_ways_to_one_tree():
    """The situation of Table 7: 2 is complete, and 3 must become a left child of 4."""
    configuration, tree = Configuration((0, 1, 2), "RRR", 3, 4), gold(0, 1, 4, 1)
    best = {policy: arc_eager.optimal_step(configuration, tree, policy).best for policy in POLICIES}
    assert best == {
        "shift-before-reduce": ("shift",),
        "reduce-before-shift": ("reduce",),
        "strict-reduce-before-shift": ("reduce",),
    }


def test_only_the_strict_policy_holds_past_shifts_against_a_parser():
    """3 must become a left child of 4, but was shifted on top of 2, which should have been reduced before."""
    configuration, tree = Configuration((0, 1, 2, 3), "RRRL", 4, 4), gold(0, 1, 4, 1)
    scores = {policy: arc_eager.optimal_step(configuration, tree, policy).scores for policy in POLICIES}
    assert scores["reduce-before-shift"]["left_arc"] == 4
    assert scores["strict-reduce-before-shift"]["left_arc"] == 3


def test_arcs_made_already_count():
    configuration = Configuration((0, 2), "RR", 4, 4, frozenset({(2, 1), (2, 3)}))
    tree = gold(2, 0, 4, 2)
    assert arc_eager.optimal_step(configuration, tree).scores == {
        "shift": None,
        "left_arc": None,
        "right_arc": 3,
        "reduce": 2,
    }
    remaining = step_scores(arc_eager, [0, 2], "RR", 4, tree)
    assert remaining.tolist() == [UNREACHABLE, UNREACHABLE, 2, 1]


def test_a_normalized_step():
    """2 must become the head of 1: as a left child of 3 it loses all gold arcs, as a right child of 1 all but 2 → 3."""
    configuration = Configuration((0, 1, 2), "RLN", 3, 3)
    step = arc_eager_normalized.optimal_step(configuration, gold(2, 0, 2))
    assert step.scores == {"shift": None, "left_child": 0, "right_child": 1, "reduce_left": None, "reduce_right": 3}
    remaining = step_scores(arc_eager_normalized, configuration.stack, "RLN", 3, gold(2, 0, 2))
    assert remaining.tolist() == [UNREACHABLE, 0, 1, UNREACHABLE, 3]


def test_a_final_configuration_has_no_step():
    step = arc_eager.optimal_step(Configuration((0,), "R", 3, 2, frozenset({(0, 1), (0, 2)})), gold(0, 1))
    assert step.best == ()
    assert step.score is None


@both
@every_case
@given(n=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
def test_a_best_step_leads_where_the_score_is_at_least_as_high(system, policy, reduce_correct, n, seed):
    """Along best steps from any configuration, the score never falls; at the end it is the number of gold arcs."""
    rng = np.random.default_rng(seed)
    instance, tree = SYSTEMS[system, reduce_correct], random_tree(rng, n)
    configuration, promised = instance.initial(n), 0
    if system is ArcEager:
        options = {"policy": policy, "reduce_correct": reduce_correct}
        module = arc_eager
    else:
        options = {"reduce_correct": reduce_correct}
        module = arc_eager_normalized
    while not instance.is_final(configuration):
        step = module.optimal_step(configuration, tree, **options)
        assert step.score >= promised
        if rng.random() < 0.3:
            possible = [t for t, score in step.scores.items() if score is not None]
            transition = possible[rng.integers(len(possible))]
        else:
            transition = step.best[rng.integers(len(step.best))]
        promised = step.scores[transition]
        configuration = instance.apply(configuration, transition)
    assert (instance.heads(configuration)[1:] == tree[1:]).sum() == promised


@both
@every_case
def test_a_batch_of_several_sentences_is_many_single_calls(system, policy, reduce_correct):
    rng = np.random.default_rng(5)
    golds = [random_tree(rng, n) for n in (1, 9, 4)]
    pairs = [(random_configuration(rng, len(golds[s]) - 1), s) for s in rng.integers(3, size=40).tolist()]
    together = exact((*flat_configurations(pairs), golds), system, policy, reduce_correct)
    for (configuration, sentence), scores in zip(pairs, together, strict=True):
        alone = exact((*flat_configurations([(configuration, 0)]), [golds[sentence]]), system, policy, reduce_correct)
        assert scores.tolist() == alone[0].tolist()


def test_an_empty_batch():
    assert arc_eager.step_scores_batch(*flat_configurations([]), []).shape == (0, 4)
    assert arc_eager_normalized.step_scores_batch(*flat_configurations([]), [gold(0)]).shape == (0, 5)


@pytest.mark.parametrize(
    ("stack", "labels", "front"),
    [
        ([1, 2], "RR", 3),
        ([0, 2, 2], "RRR", 3),
        ([0, 1], "RR", 1),
        ([0, 1], "RR", 5),
        ([0, 1], "LR", 2),
        ([0, 1, 2], "RNR", 3),
    ],
)
@pytest.mark.parametrize("module", [arc_eager, arc_eager_normalized])
def test_what_no_configuration_can_be_is_an_error(module, stack, labels, front):
    with pytest.raises(ValueError, match="row 0 is not a configuration of 3 words"):
        step_scores(module, stack, labels, front, gold(0, 0, 0))


def test_only_the_normalized_system_has_undecided_words():
    arguments = [0, 1], "RN", 2, gold(0, 0, 0)
    assert step_scores(arc_eager_normalized, *arguments).max() == 3
    with pytest.raises(ValueError, match="not a configuration"):
        step_scores(arc_eager, *arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 3]}, "offsets must rise"),
        ({"offsets": [0, 1, 2]}, "1 fronts need 2 offsets and 1 sentences: 3, 1"),
        ({"sentences": [1]}, "sentences must be 0 to 0: 1 to 1"),
        ({"labels": [0]}, "2 stack elements need as many labels: 1"),
        ({"labels": [0, len(LABELS)]}, "row 0 is not a configuration"),
        ({"golds": [[-1, 2, 1]]}, "not a tree"),
    ],
)
def test_a_batch_that_does_not_fit_together_is_an_error(change, message):
    batch = {
        "stacks": [0, 1],
        "labels": [0, 0],
        "offsets": [0, 2],
        "fronts": [2],
        "sentences": [0],
        "golds": [[-1, 0, 1]],
    }
    with pytest.raises(ValueError, match=message):
        arc_eager.step_scores_batch(**batch | change)


@pytest.mark.parametrize("module", [arc_eager, arc_eager_normalized])
def test_a_configuration_of_another_sentence_is_an_error(module):
    with pytest.raises(ValueError, match="the configuration has 1 words, but the gold tree has 2"):
        module.optimal_step(Configuration((0,), "R", 1, 1), gold(0, 1))


def test_unknown_names_list_the_known_ones():
    configuration, tree = Configuration((0,), "R", 1, 2), gold(0, 1)
    with pytest.raises(ValueError, match="known: shift-before-reduce, reduce-before-shift, strict"):
        arc_eager.optimal_step(configuration, tree, policy="eager")
    for module in (arc_eager, arc_eager_normalized):
        with pytest.raises(ValueError, match="known: exact, linear"):
            module.optimal_step(configuration, tree, algorithm="fast")
