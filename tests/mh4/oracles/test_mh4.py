"""The oracle succeeds on exactly the trees that some computation builds, and replaces all others."""

import numpy as np
import pytest
from computations import all_trees, configurations

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.decoders import ChartTooLargeError, InfeasibleError
from mh4.decoders.closest import closest_tree
from mh4.oracles.mh4 import POLICIES, closest_derivable, is_derivable, optimal_computation
from mh4.oracles.mh4_search import search_closest
from mh4.transitions.mh4 import MH4

SINGLE_ROOT = pytest.mark.parametrize("single_root", [False, True])
NOT_IN_THE_CHART = np.array([-1, 3, 0, 5, 2, 4])  # Gómez-Rodríguez et al. (2018), section 3.2


def built(gold, single_root=False):
    system = MH4(single_root)
    *_, last = system.run(len(gold) - 1, optimal_computation(gold, single_root))
    assert system.is_final(last)
    return system.heads(last)


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_tree_of_the_system_is_derived(n, single_root):
    system = MH4(single_root)
    trees = {tuple(system.heads(c).tolist()) for c in configurations(system, n) if system.is_final(c)}
    golds = all_trees(n)
    assert {tuple(gold.tolist()) for gold in golds if is_derivable(gold, single_root)} == trees
    for gold in golds:
        if tuple(gold.tolist()) in trees:
            assert built(gold, single_root).tolist() == gold.tolist()


def test_more_is_derived_than_the_chart_covers():
    assert is_derivable(NOT_IN_THE_CHART, single_root=True)
    assert built(NOT_IN_THE_CHART).tolist() == NOT_IN_THE_CHART.tolist()
    assert closest_tree(NOT_IN_THE_CHART, "mh4", single_root=True).tolist() != NOT_IN_THE_CHART.tolist()


@SINGLE_ROOT
@pytest.mark.parametrize("n", [2, 3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_other_trees_are_replaced_by_the_closest_one_of_the_system(n, single_root):
    derivable = np.array([gold for gold in all_trees(n) if is_derivable(gold, single_root)])
    known = set(map(tuple, derivable.tolist()))
    for gold in all_trees(n):
        closest = closest_derivable(gold, single_root)
        assert tuple(closest.tolist()) in known
        assert (closest == gold).sum() == (derivable == gold).sum(1).max()
        assert built(gold, single_root).tolist() == closest.tolist()


def test_a_closer_tree_than_any_of_the_chart():
    gold = np.array([-1, 4, 0, 0, 2, 1])
    assert (closest_derivable(gold) == gold).sum() - 1 == 4
    assert (closest_tree(gold, "mh4", single_root=False) == gold).sum() - 1 == 3


def test_beyond_the_bound_the_tree_of_the_chart_stands_in(monkeypatch, caplog):
    gold = np.array([-1, 4, 0, 0, 2, 1])
    assert search_closest(gold, configurations=3) is None
    monkeypatch.setattr("mh4.oracles.mh4.search_closest", lambda heads, single_root: None)
    expected = closest_tree(gold, "mh4", single_root=False)
    assert closest_derivable(gold).tolist() == expected.tolist()
    assert "a tree of 5 words is replaced by the closest one of the MH4 chart, which need not be" in caplog.text
    assert np.count_nonzero(closest_derivable(gold, single_root=True) == 0) == 1


@pytest.fixture
def without_search_or_chart(monkeypatch):
    def small(heads, tree_class, single_root):
        if tree_class == "mh4":
            raise ChartTooLargeError
        return closest_tree(heads, tree_class, single_root)

    monkeypatch.setattr("mh4.oracles.mh4.search_closest", lambda heads, single_root: None)
    monkeypatch.setattr("mh4.oracles.mh4.closest_tree", small)


def test_beyond_the_chart_a_beam_stands_in(without_search_or_chart, caplog):
    gold = np.array([-1, 4, 0, 0, 2, 1])
    one, several = (closest_derivable(gold, single_root) for single_root in (True, False))
    assert np.count_nonzero(one == 0) == 1 < np.count_nonzero(several == 0)
    assert is_derivable(several)
    assert (several == gold).sum() >= (closest_tree(gold, "projective", single_root=False) == gold).sum()
    assert "a tree of 5 words is replaced by the closest projective one or one found by a beam" in caplog.text


def test_beyond_the_chart_the_closest_projective_tree_stands_in_for_a_worse_one(without_search_or_chart, monkeypatch):
    monkeypatch.setattr("mh4.oracles.mh4.BEAM", "greedy")
    gold = np.array([-1, 4, 5, 0, 0, 0])  # greedy search keeps no arc of it
    expected = closest_tree(gold, "projective", single_root=False)
    assert (expected == gold).sum() - 1 == 3
    assert closest_derivable(gold).tolist() == expected.tolist()


def test_the_search_visits_as_many_configurations_as_it_may():
    """A word is read and removed: three configurations."""
    gold = np.array([-1, 0])
    assert search_closest(gold, configurations=2) is None
    assert search_closest(gold, configurations=3).tolist() == [-1, 0]


def test_the_chart_order_is_for_sentences_up_to_a_length(monkeypatch):
    monkeypatch.setattr("mh4.oracles.mh4.LONGEST", 2)
    assert len(optimal_computation(np.array([-1, 0, 1]), policy="chart-order")) == 4
    with pytest.raises(ChartTooLargeError, match="chart-order is for sentences of up to 2 words: 3"):
        optimal_computation(np.array([-1, 0, 1, 1]), policy="chart-order")


def test_a_sentence():
    """In "A hearing is scheduled on the issue today", "issue" depends on "hearing", across "scheduled"."""
    gold = np.array([-1, 2, 4, 4, 0, 7, 7, 2, 4])
    expected = "shift la shift shift la shift shift shift la la shift ra2 la' shift ra ra"
    assert optimal_computation(gold) == tuple(expected.split())
    assert built(gold).tolist() == gold.tolist()


def test_of_two_words_the_topmost_one_is_removed_first():
    assert optimal_computation(np.array([-1, 3, 3, 0])) == ("shift", "shift", "la", "la", "shift", "ra")


def test_the_sample_is_rebuilt(tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text("".join(read_sample()["dev"]), encoding="utf-8")
    derivable = 0
    for sentence in read_conllu(path, trees="required"):
        heads = built(sentence.padded_heads, single_root=True)
        derivable += is_derivable(sentence.padded_heads, single_root=True)
        assert (heads.tolist() == sentence.padded_heads.tolist()) == is_derivable(
            sentence.padded_heads, single_root=True
        )
    assert derivable > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_heads_may_be_a_list(policy):
    gold = [-1, 6, 8, 7, 0, 2, 4, 5, 1, 3]
    assert not is_derivable(gold)
    assert closest_derivable(gold).tolist() == closest_derivable(np.array(gold)).tolist()
    assert optimal_computation(gold, policy=policy) == optimal_computation(np.array(gold), policy=policy)


def test_bad_gold_trees_are_errors():
    for function in (is_derivable, closest_derivable, optimal_computation):
        with pytest.raises(ValueError, match="not a tree"):
            function(np.array([-1, 2, 1]))


def test_no_word_can_be_the_one_below_the_root():
    for function in (closest_derivable, optimal_computation):
        with pytest.raises(InfeasibleError, match="without words"):
            function(np.array([-1]), single_root=True)
