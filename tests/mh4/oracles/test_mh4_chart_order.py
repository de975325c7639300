"""Oracle computations in the order in which an MH4 chart derives a tree."""

from collections import Counter

import numpy as np
import pytest
from computations import all_trees, random_projective_tree
from naive_mh import derivations
from paths import UD

from mh4.data.conllu import read_conllu
from mh4.decoders import ChartTooLargeError
from mh4.oracles.mh4 import optimal_computation
from mh4.transitions.mh4 import MH4


def built(gold, single_root=False):
    *_, last = MH4().run(len(gold) - 1, optimal_computation(gold, single_root, "chart-order"))
    return MH4().heads(last)


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
    with pytest.raises(ChartTooLargeError, match="up to 80 words: 81"):
        optimal_computation(random_projective_tree(rng, 81), policy="chart-order")


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
