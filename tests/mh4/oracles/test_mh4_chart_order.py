"""Oracle computations in the order in which an MH4 chart derives a tree."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from computations import all_trees, random_projective_tree, random_tree
from naive_mh import derivations
from paths import UD

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.decoders import ChartTooLargeError
from mh4.decoders.closest import closest_tree
from mh4.oracles.costs import CHART_ORDER, STATIC
from mh4.oracles.mh4 import is_derivable, optimal_computation
from mh4.oracles.mh4_chart_order import LONGEST
from mh4.parsers.systems import apply, find_costs, get_system, initialize, list_candidates, prepare
from mh4.transitions.arrays.state import TRANSITION, new_candidates, new_state
from mh4.transitions.mh4 import MH4
from mh4.trees.closest import training_tree


def built(gold, single_root=False):
    *_, last = MH4().run(len(gold) - 1, optimal_computation(gold, single_root, "chart-order"))
    return MH4().heads(last)


# Reductions of items with three and four heads, in the order of the chart: the heads' indices of head and dependent.
OF_THREE = {"ra": (0, 1), "la": (2, 1)}
OF_FOUR = {"ra2": (0, 2), "ra": (1, 2), "la": (3, 2), "ra'": (0, 1), "la'": (2, 1), "la2": (3, 1)}


def naive_computation(gold):
    """Apply all rules of the chart in the order of its description; an item keeps its first best derivation."""
    end = len(gold)
    items = {(i, i + 1): (0, ()) for i in range(end)}

    def offer(item, score, transitions):
        if item not in items or score > items[item][0]:
            items[item] = score, transitions

    def combine(item, left, right):
        offer(item, items[left][0] + items[right][0], (*items[left][1], "shift", *items[right][1]))

    def reduce(item, reductions):
        score, transitions = items[item]
        for name, (head, gone) in reductions.items():
            if item[head] != end:  # the end of the input is not a word
                right = gold[item[gone]] == item[head]
                offer((*item[:gone], *item[gone + 1 :]), score + right, (*transitions, name))

    for length in range(2, end + 1):
        for first, second in product(range(1, length), repeat=2):
            for i in range(end + 1 - length):
                j, k, last = i + first, i + first + second, i + length
                if k > last:
                    continue
                if second == 1:
                    combine((i, j, last), (i, j), (j, last))
                if k < last:
                    combine((i, j, k, last), (i, j, k), (k, last))
                    combine((i, j, k, last), (i, j), (j, k, last))
                    reduce((i, j, k, last), OF_FOUR)
                else:
                    reduce((i, j, last), OF_THREE)
    return items[0, end][1]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_ties_are_broken_as_described(n):
    for gold in all_trees(n):
        assert optimal_computation(gold, policy="chart-order") == naive_computation(gold.tolist())


def test_ties_in_longer_trees_are_broken_as_described():
    rng = np.random.default_rng(3)
    for gold in (random_tree(rng, n) for n in (6, 8, 10, 12) for _ in range(5)):
        assert optimal_computation(gold, policy="chart-order") == naive_computation(gold.tolist())


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_it_builds_a_closest_tree_of_the_chart(n):
    trees = np.unique(derivations("mh4-two", n)[0], axis=0)
    for gold in all_trees(n):
        kept = (trees[:, 1:] == gold[1:]).sum(axis=1).max()
        assert (built(gold)[1:] == gold[1:]).sum() == kept


def test_longer_trees():
    rng = np.random.default_rng(1)
    for n in (9, 17, 25):
        gold = random_projective_tree(rng, n)
        assert built(gold).tolist() == gold.tolist()
    with pytest.raises(ChartTooLargeError, match="up to 200 words: 201"):
        optimal_computation(random_projective_tree(rng, 201), policy="chart-order")


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_one_word_below_the_root(n):
    trees = np.unique(derivations("mh4-two", n)[0], axis=0)
    trees = trees[(trees == 0).sum(axis=1) == 1]
    for gold in all_trees(n):
        found = built(gold, single_root=True)
        assert (found == 0).sum() == 1
        assert (found[1:] == gold[1:]).sum() == (trees[:, 1:] == gold[1:]).sum(axis=1).max()


def test_words_are_removed_late():
    """For 3 → 2 → 1, the default policy removes 1 as soon as possible, while the chart's order reads on first."""
    gold = np.array([-1, 2, 3, 0])
    assert optimal_computation(gold)[:3] == ("shift", "la", "shift")
    assert optimal_computation(gold, policy="chart-order")[:3] != ("shift", "la", "shift")


def test_shares_of_reductions_are_the_published_ones():
    path = UD / "hu" / "hu-ud-train.conllu"
    if not path.exists():
        pytest.skip("the UD treebanks are not at hand")
    counts = Counter()
    for sentence in read_conllu(path, trees="required"):
        if len(sentence) <= 25:
            counts.update(optimal_computation(sentence.padded_heads, policy="chart-order"))
    del counts["shift"]
    for transition, percent in (("la", 32), ("la'", 28), ("ra", 24), ("ra2", 14)):
        assert 100 * counts[transition] / counts.total() == pytest.approx(percent, abs=1)


def followed(gold, oracle):
    """The transitions with cost 0 in training, from the first to the last."""
    system, n = get_system("mh4"), len(gold) - 1
    state, candidates = new_state(n), new_candidates(len(system.tokens), n)
    gold = gold.astype(np.int32)
    initialize(system.kernels, state, n)
    prepare(system.kernels, state, oracle, gold)
    transitions = []
    while count := list_candidates(system.kernels, state, candidates)[0]:
        find_costs(system.kernels, state, oracle, gold, candidates, count)
        (right,) = candidates.rows[:count][candidates.costs[:count] == 0]
        transitions.append(MH4.transitions[right[TRANSITION]])
        apply(system.kernels, state, right[TRANSITION], 0, 0)
    assert state.heads[1 : n + 1].tolist() == gold[1:].tolist()
    return tuple(transitions)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_training_follows_the_same_computation(n):
    for tree in np.unique(derivations("mh4-two", n)[0], axis=0):
        if (tree == 0).sum() == 1:
            assert followed(tree, CHART_ORDER) == optimal_computation(tree, True, "chart-order")


def test_long_sentences_are_learnt_as_by_the_static_oracle():
    rng = np.random.default_rng(2)
    long, short = (closest_tree(random_projective_tree(rng, n), "projective", True) for n in (LONGEST + 1, 30))
    assert followed(long, CHART_ORDER) == followed(long, STATIC) == optimal_computation(long, True)
    assert followed(short, CHART_ORDER) == optimal_computation(short, True, "chart-order") != followed(short, STATIC)


def test_trees_beyond_the_chart_are_replaced_for_training(monkeypatch):
    heads = [0, 4, 1, 1, 2]
    sentence = Sentence(list("abcde"), heads=heads)
    system = get_system("mh4")
    assert training_tree(sentence, system, "static").tolist()[1:] == heads  # the system can build it
    found = training_tree(sentence, system, "chart-order")
    assert found.tolist()[1:] != heads
    assert is_derivable(found, True)
    assert followed(found, CHART_ORDER) == optimal_computation(sentence.padded_heads, True, "chart-order")
    monkeypatch.setattr("mh4.oracles.mh4.LONGEST", 4)  # longer sentences do not need the chart
    assert training_tree(sentence, system, "chart-order").tolist()[1:] == heads


def test_one_word_is_below_the_root_in_training():
    found = training_tree(Sentence(list("abc"), heads=[0, 0, 2]), get_system("mh4"), "chart-order")
    assert found.tolist().count(0) == 1
