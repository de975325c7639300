"""Static oracles: computations with as many gold arcs as possible that follow the policy."""

import numpy as np
import pytest
from arc_eager_twin import allows
from computations import all_trees, random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.closest import closest_tree
from mh4.oracles import arc_eager
from mh4.oracles.arc_eager import normalized as arc_eager_normalized
from mh4.transitions.arc_eager import POLICIES, ArcEager, NormalizedArcEager

# Without `reduce_correct`, which static oracles do not need.
CASES = [(ArcEager(False), policy) for policy in POLICIES] + [(NormalizedArcEager(False), None)]
every_case = pytest.mark.parametrize(("system", "policy"), CASES)


def computation(policy, gold, single_root=False):
    """The static oracle's computation under a policy of the unnormalized system; None means the normalized system."""
    if policy:
        return arc_eager.optimal_computation(gold, policy, single_root)
    return arc_eager_normalized.optimal_computation(gold, single_root)


def check(system, policy, gold):
    """Check that the computation follows the policy, builds the projectivized tree and consists of best steps."""
    transitions = computation(policy, gold)
    n = len(gold) - 1
    configurations = list(system.run(n, transitions))
    assert system.is_final(configurations[-1])
    assert (system.heads(configurations[-1]) == closest_tree(gold, "projective", single_root=False)).all()
    steps = tuple(zip(configurations, transitions, strict=False))
    assert all(allows(policy)(configurations[0], steps[:stop]) for stop in range(1, len(steps) + 1))
    kept = configurations[-1].gold_arcs(gold)
    for configuration, transition in steps:
        if policy:
            step = arc_eager.optimal_step(configuration, gold, policy)
        else:
            step = arc_eager_normalized.optimal_step(configuration, gold)
        assert transition in step.best
        assert step.score == kept


@every_case
@pytest.mark.parametrize("n", range(4))
def test_every_gold_tree(system, policy, n):
    for gold in all_trees(n):
        check(system, policy, gold)


@every_case
@given(n=st.integers(4, 15), seed=st.integers(0, 2**32 - 1))
def test_longer_sentences(system, policy, n, seed):
    check(system, policy, random_tree(np.random.default_rng(seed), n))


@every_case
def test_one_word_below_the_root(system, policy):
    """The computation builds the closest projective single-root tree, even if gold has several root children."""
    several = 0
    for gold in all_trees(4):
        *_, last = system.run(4, computation(policy, gold, single_root=True))
        heads = system.heads(last)
        assert system.is_final(last)
        assert np.count_nonzero(heads == 0) == 1
        assert (heads == closest_tree(gold, "projective", single_root=True)).all()
        several += np.count_nonzero(gold == 0) > 1
    assert several


def test_policies_differ_where_a_left_child_follows_a_complete_word():
    gold = np.array([-1, 0, 1, 4, 1])
    assert arc_eager.optimal_computation(gold, "shift-before-reduce")[2:5] == ("shift", "left_arc", "reduce")
    for policy in POLICIES[1:]:
        assert arc_eager.optimal_computation(gold, policy)[2:5] == ("reduce", "shift", "left_arc")


def test_what_is_no_tree_or_no_policy_is_an_error():
    with pytest.raises(ValueError, match="not a tree"):
        arc_eager.optimal_computation(np.array([-1, 2, 1]))
    with pytest.raises(ValueError, match="known: shift-before-reduce"):
        arc_eager.optimal_computation(np.array([-1, 0]), "any")
