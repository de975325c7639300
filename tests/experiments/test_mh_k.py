"""MH_k by its deduction steps, against definitions of the classes without them, on all small trees."""

from functools import cache

import numpy as np
import pytest
from computations import all_trees
from hypothesis import given, settings
from hypothesis import strategies as st
from mh_k import antecedents, best_tree, chart_size, head_counts, heads_needed, items_of
from mh_k_coverage import costs, coverage, markdown
from naive_mh import derivations

from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective, is_tree


@cache
def needed(n):
    """All trees of n words and, for each, the smallest k for which MH_k builds it."""
    trees = np.array([np.array(tree) for tree in all_trees(n)])
    return trees, np.array([heads_needed(tree) for tree in trees])


def only(tree):
    """Arc scores that forbid all arcs outside one tree."""
    arcs = np.full((len(tree), len(tree)), -np.inf)
    arcs[tree[1:], np.arange(1, len(tree))] = 0
    return arcs


def is_buildable(tree, k):
    try:
        return best_tree(only(tree), k).heads.tolist() == list(tree)
    except InfeasibleError:
        return False


def random_tree(seed, n):
    """A random tree in which most words are attached to near ones."""
    rng = np.random.default_rng(seed)
    heads = np.full(n + 1, -1)
    joined = [0]
    for word in rng.permutation(np.arange(1, n + 1)) if seed % 2 else range(1, n + 1):
        nearest = sorted(joined, key=lambda other: abs(other - word))
        heads[word] = nearest[min(int(rng.exponential(1.0)), len(joined) - 1)]
        joined.append(word)
    return heads


def test_the_trees_that_each_number_of_heads_adds():
    found = {n: dict(zip(*np.unique(needed(n)[1], return_counts=True), strict=True)) for n in range(1, 6)}
    assert found == {
        1: {3: 1},
        2: {3: 3},
        3: {3: 12, 4: 4},
        4: {3: 55, 4: 63, 5: 7},
        5: {3: 273, 4: 746, 5: 257, 6: 20},
    }


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_three_heads_are_projective_and_four_are_the_chart_of_mh4(n):
    trees, least = needed(n)
    assert [is_projective(tree) for tree in trees] == (least <= 3).tolist()
    for name, k in (("mh3", 3), ("mh4-two", 4)):
        built = {tuple(tree) for tree in derivations(name, n)[0].tolist()}
        assert built == {tuple(tree) for tree in trees[least <= k].tolist()}


def check_deduction(n, k):
    trees, least = needed(n)
    for tree, heads in zip(trees, least, strict=True):
        assert is_buildable(tree, k) == (heads <= k), tree


@pytest.mark.parametrize(("n", "k"), [(n, k) for n in (1, 2, 3, 4) for k in (3, 4, 5, 6)])
def test_deduction_builds_the_trees_that_need_no_more_heads(n, k):
    check_deduction(n, k)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 4, 5, 6, 7])
def test_deduction_builds_the_trees_of_five_words_that_need_no_more_heads(k):
    check_deduction(5, k)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 9), k=st.integers(3, 5))
@settings(max_examples=40, deadline=None)
def test_deduction_on_longer_trees(seed, n, k):
    tree = random_tree(seed, n)
    assert is_buildable(tree, k) == (heads_needed(tree) <= k)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_four_heads_on_long_trees(seed, n):
    tree = random_tree(seed, n)
    least = heads_needed(tree)
    assert 3 <= least <= max(n + 2, 3)
    assert (least == 3) == is_projective(tree)
    assert (least <= 4) == (closest_tree(tree, "mh4", single_root=False).tolist() == tree.tolist())


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 5), k=st.integers(3, 7), forbidden=st.sampled_from([0.0, 0.3]))
@settings(max_examples=60, deadline=None)
def test_the_best_of_all_trees_of_the_class(seed, n, k, forbidden):
    rng = np.random.default_rng(seed)
    arcs = np.where(rng.random((n + 1, n + 1)) < forbidden, -np.inf, rng.normal(size=(n + 1, n + 1)))
    trees, least = needed(n)
    inside = trees[least <= k]
    totals = arcs[inside[:, 1:], np.arange(1, n + 1)].sum(axis=1)
    if totals.max() == -np.inf:
        with pytest.raises(InfeasibleError, match=f"no tree of MH{k}"):
            best_tree(arcs, k)
        return
    found = best_tree(arcs, k)
    assert found.score == pytest.approx(totals.max())
    assert found.heads.tolist() == inside[totals.argmax()].tolist()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_scores_of_the_decoders(seed, n):
    """Decoders with the same class of trees: Eisner and MH3 for k = 3, MH4 for k = 4, MST for k = n + 2."""
    arcs = np.random.default_rng(seed).normal(size=(n + 2, n + 2)).astype(np.float32)
    for k, names in ((3, ("eisner", "mh3")), (4, ("mh4-two", "mh4-hybrid")), (n + 2, ("mst",) if n <= 6 else ())):
        for name in names:
            decoder = get_decoder(name, single_root=False)
            zeros = np.zeros((len(decoder.channels), n + 2, n + 2), np.float32)
            found = best_tree(arcs[:-1, :-1].astype(float), max(k, 3))
            assert is_tree(found.heads)
            assert found.score == pytest.approx(decoder.decode(zeros, arcs).score, abs=1e-4)


@pytest.mark.parametrize(("n", "k"), [(1, 3), (4, 3), (4, 4), (6, 5), (5, 9)])
def test_size_of_the_chart(n, k):
    found = best_tree(np.zeros((n + 1, n + 1)), k)
    assert (found.items, found.steps) == chart_size(n, k)


def test_items_follow_what_they_are_derived_from():
    seen = set()
    for item in items_of(5, 5):
        assert all(one in seen for before, _ in antecedents(item, 5, 5) for one in before)
        seen.add(item)
    assert (0, 6) in seen


def test_open_words_of_a_span():
    """In [0, 3], word 1 has its head outside and word 2 a dependent; in [0, 5] no word is open."""
    heads = np.array([-1, 4, 0, 0, 2])
    counts = head_counts(heads)
    assert counts[0, 3] == 4
    assert counts[0, 5] == 2
    assert heads_needed(heads) == 5


def test_what_is_no_tree_and_no_class_is_an_error():
    with pytest.raises(ValueError, match="not a tree"):
        heads_needed(np.array([-1, 2, 1]))
    with pytest.raises(ValueError, match="3 heads or more"):
        best_tree(np.zeros((2, 2)), 2)


def test_trees_are_counted_by_the_heads_they_need(tmp_path):
    path = tmp_path / "x.conllu"
    trees = {"a": [0, 1], "b": [0, 0, 0, 1], "c": [3, 0, 0, 1], "d": [2, 0, 0, 1], "e": [0, 0, 1, 0, 2]}
    with path.open("w") as stream:
        for name, heads in trees.items():
            stream.write(f"# sent_id = {name}\n")
            stream.writelines(f"{i}\tw\t_\t_\t_\t_\t{head}\tdep\t_\t_\n" for i, head in enumerate(heads, start=1))
            stream.write("\n")
    found = coverage(str(path))
    assert found["heads_needed"] == {"3": 1, "4": 2, "5": 2}
    assert (found["sentences"], found["words"], found["1EC"], found["transition_system"]) == (5, 19, 4, 4)
    assert found["names"] == {"needs 5": ["c", "d"], "needs more": [], "transitions only": ["c"], "chart only": []}
    assert found["joint"]["in MH4, out of 1EC"] == 1
    assert found["joint"]["out of MH4, in 1EC"] == 2
    _, _, shares, _, _, _, counts, *_ = markdown({"treebanks": {"x": found}, "costs": {}}).splitlines()
    assert shares == "| x | 5 | 20.00 | 60.00 | 100.00 | 100.00 | 80.00 | 80.00 | 5 |"
    assert counts == "| x | 2 | 2 | 2 | 1 | 0 | 1 | 0 |"


def test_costs_are_those_of_each_number_of_heads(monkeypatch):
    monkeypatch.setattr("mh_k_coverage.fastest", lambda run, repeats=5: 1.5)
    found = costs()
    for k in (3, 4, 5):
        sizes = [(own["items"], own["steps"]) for own in found[f"MH{k}"]["chart"].values()]
        assert sizes == [chart_size(n, k) for n in (10, 20, 40)]
    decoders = {name: row["decoder"] for name, row in found.items() if "decoder" in row}
    assert decoders == {"MH3": "mh3", "MH4": "mh4-two", "1EC": "1ec-first-order"}
