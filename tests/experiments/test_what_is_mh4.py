"""Counting small trees, making them smaller and finding the minimal ones; the page agrees with the results."""

import json
from functools import cache

import mh_k_coverage
import numpy as np
import pytest
import what_is_mh4
from computations import all_trees
from hypothesis import given, settings
from hypothesis import strategies as st
from mh_k import best_tree, heads_needed
from naive_mh import derivations
from paths import ROOT
from what_is_mh4 import CLOSED_WAYS, closure, members, merged, minimal_trees, mirrored, smaller, trees_of

from mh4.decoders import InfeasibleError
from mh4.decoders.trees import is_tree

PAGE = (ROOT / "experiments" / "MH4_CLASS.md").read_text(encoding="utf-8")
REMOVED_FROM = (-1, 2, 0, 5, 1, 0)  # in MH4, but not after removing word 2


@cache
def found():
    return members(5)


def random_tree(seed, n):
    rng = np.random.default_rng(seed)
    heads = [-1] * (n + 1)
    joined = [0]
    for word in rng.permutation(np.arange(1, n + 1)).tolist():
        nearest = sorted(joined, key=lambda other: abs(other - word))
        heads[word] = nearest[min(int(rng.exponential(0.8)), len(joined) - 1)]
        joined.append(word)
    return tuple(heads)


def is_buildable(tree, k):
    """Whether the deduction steps of MH_k can build a tree."""
    arcs = np.full((len(tree), len(tree)), -np.inf)
    arcs[tree[1:], np.arange(1, len(tree))] = 0
    try:
        return best_tree(arcs, k).heads.tolist() == list(tree)
    except InfeasibleError:
        return False


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
def test_all_trees(n):
    trees = list(trees_of(n))
    assert len(set(trees)) == len(trees) == (n + 1) ** max(n - 1, 0)
    assert set(trees) == {tuple(tree) for tree in all_trees(n).tolist()}


@pytest.mark.parametrize(
    ("heads", "kept", "word", "expected"),
    [
        ((-1, 0, 1, 1), 0, 1, (-1, 0, 0)),  # the first word into the root
        ((-1, 3, 3, 4, 0), 2, 3, (-1, 2, 3, 0)),  # a head into its dependent
        ((-1, 3, 3, 4, 0), 3, 2, (-1, 2, 3, 0)),  # a dependent into its head
        ((-1, 4, 4, 2, 0), 1, 2, (-1, 3, 1, 0)),  # a word into its sibling
    ],
)
def test_one_word_into_another(heads, kept, word, expected):
    assert merged(heads, kept, word) == expected


def test_a_tree_is_made_smaller_in_every_way():
    """In 1 ← 2 → 3 the leaves are 1 and 3, both pairs of neighbours are linked, and no siblings are neighbours."""
    assert sorted(smaller((-1, 2, 0, 2))) == [
        ("leaf", (-1, 0, 1)),
        ("leaf", (-1, 2, 0)),
        ("linked", (-1, 0, 1)),
        ("linked", (-1, 2, 0)),
        ("removed", (-1, 0, 0)),
        ("removed", (-1, 0, 1)),
        ("removed", (-1, 2, 0)),
    ]
    assert ("siblings", (-1, 0, 1)) in list(smaller((-1, 0, 1, 1)))
    assert ("linked", (-1, 0, 0)) in list(smaller((-1, 0, 1, 1)))  # the first word into the root


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 13))
@settings(max_examples=300, deadline=None)
def test_what_never_needs_more_heads(seed, n):
    """Merging linked or sibling neighbours keeps MH_k for every k, deleting leaves for k ≤ 4 (proofs: MH4_CLASS.md)."""
    tree = random_tree(seed, n)
    least = heads_needed(np.array(tree))
    for way, small in smaller(tree):
        assert is_tree(np.array(small))
        assert len(small) == n
        if way in ("linked", "siblings") or (way == "leaf" and least <= 4):
            assert heads_needed(np.array(small)) <= least, (tree, way, small)


def test_what_leaves_a_class():
    leaving = closure(found())
    assert leaving["MH3"] == dict.fromkeys(what_is_mh4.WAYS)
    assert leaving["MH4"] == dict.fromkeys(CLOSED_WAYS) | {"removed": list(REMOVED_FROM)}
    assert heads_needed(np.array(REMOVED_FROM)) == 4
    assert max(heads_needed(np.array(small)) for way, small in smaller(REMOVED_FROM) if way == "removed") == 5


def test_a_leaf_less_can_need_more_heads():
    """From k = 5 on, deleting a leaf can lead out of MH_k; the deduction steps agree."""
    tree = (-1, 4, 0, 0, 2, 3, 9, 8, 3, 7)
    assert heads_needed(np.array(tree)) == 5
    assert is_buildable(tree, 5)
    small = [small for way, small in smaller(tree) if way == "leaf" and heads_needed(np.array(small)) > 5]
    assert small == [(-1, 4, 0, 0, 2, 8, 7, 3, 6)]
    assert not is_buildable(small[0], 5)
    assert is_buildable(small[0], 6)


def test_minimal_trees_are_outside_and_all_smaller_ones_inside():
    inside = {n: {tuple(tree) for tree in derivations("mh4-two", n)[0].tolist()} for n in range(1, 6)}
    trees = minimal_trees(found(), "MH4", ("leaf",))
    assert list(map(len, trees)) == [0, 0, 0, 0, 7, 116]
    assert set(trees[4]) == {tuple(tree) for tree in all_trees(4).tolist()} - inside[4]
    for tree in all_trees(5).tolist():
        leaves = [word for word in range(1, 6) if word not in tree]
        without = [tuple(h - (h > leaf) for d, h in enumerate(tree) if d != leaf) for leaf in leaves]
        assert (tuple(tree) in trees[5]) == (tuple(tree) not in inside[5] and all(w in inside[4] for w in without))
    assert set(minimal_trees(found(), "MH4", CLOSED_WAYS)[5]) < set(trees[5])
    assert list(map(len, minimal_trees(found(), "MH3", CLOSED_WAYS))) == [0, 0, 0, 4, 4, 4]


def test_mirrored():
    assert mirrored((-1, 2, 0, 2, 3)) == (-1, 2, 3, 0, 3)
    assert all(mirrored(mirrored(tree)) == tree and mirrored(tree) in found()[4] for tree in trees_of(4))


def test_counts_of_the_classes():
    counts = what_is_mh4.counts(found()[4])
    assert counts["trees"] == 125
    assert {name: counts["in"][name] for name in ("MH3", "MH4", "MH4 by transitions", "MH5")} == {
        "MH3": 55,
        "MH4": 118,
        "MH4 by transitions": 119,
        "MH5": 125,
    }
    assert counts["in MH4 and"]["MH4"] == 118
    assert counts["in MH4 and"]["MH4 by transitions"] == 118
    assert counts["largest gap degree in MH4"] == 1


@pytest.mark.parametrize(("module", "name"), [(what_is_mh4, "small-trees"), (mh_k_coverage, "coverage")])
def test_the_page_shows_what_the_results_say(module, name):
    text = (ROOT / "experiments" / "results" / "mh4-class" / f"{name}.json").read_text(encoding="utf-8")
    for table in module.markdown(json.loads(text)).strip().split("\n\n"):
        assert table in PAGE


def test_coverage_of_a_treebank(tmp_path):
    """The tree of section 3.2, which only transitions build, one of 4 words that needs 5 heads, and two that need 3."""
    trees = [(3, 0, 5, 2, 4), (2, 0, 0, 1), (0, 1, 1), (2, 0, 2)]
    lines = []
    for tree in trees:
        for word, head in enumerate(tree, start=1):
            lines.append("\t".join([str(word), "x", *"____", str(head), "root" if head == 0 else "dep", "_", "_"]))
        lines.append("")
    path = tmp_path / "t.conllu"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = mh_k_coverage.coverage(str(path))
    assert (found["sentences"], found["words"]) == (4, 15)
    assert found["heads_needed"] == {"3": 2, "5": 2}
    assert found["transition_system"] == 3
    assert found["names"] == {"needs 5": ["1", "2"], "needs more": [], "transitions only": ["1"], "chart only": []}
    assert found["joint"]["in MH4, in 1EC"] == 2
