import itertools

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.trees import checked_tree, crossed_arcs, gap_degree, is_planar, is_projective, is_tree, is_well_nested


@pytest.mark.parametrize(("n", "trees", "projective"), [(1, 1, 1), (2, 3, 3), (3, 16, 12), (4, 125, 55)])
def test_known_counts(n, trees, projective):
    assert len(naive.all_trees(n)) == trees
    assert sum(is_projective(t) for t in naive.all_trees(n)) == projective


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_is_tree_agrees_with_naive(heads):
    n = len(heads)
    heads = [-1, *(min(h, n) for h in heads)]
    assert is_tree(heads) == naive.is_tree(heads)
    assert is_tree(heads, single_root=True) == (naive.is_tree(heads) and heads.count(0) == 1)


@pytest.mark.parametrize("heads", [[], [0], [0, 0], [-1, 2], [-1, -1], [-1, 1], [-1, 2, 1], [-1, 2, 3, 2, 0]])
def test_not_a_tree(heads):
    assert not is_tree(np.array(heads, np.int32))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_crossed_arcs_agree_with_naive(n):
    for heads in naive.all_trees(n):
        assert crossed_arcs(heads).tolist() == naive.crossed(heads)


def test_the_root_arc_is_a_chord_from_position_zero():
    heads = [-1, 3, 0, 2]  # 3 → 1 spans word 2, a child of the root
    assert crossed_arcs(heads).tolist() == [False, True, True, False]
    assert not is_projective(heads)


def test_a_cycle_has_no_crossings_to_ask_for():
    with pytest.raises(ValueError, match="not a tree"):
        crossed_arcs([-1, 2, 1])


def subtree(heads, a):
    """The positions in the subtree of a, sorted."""
    members = {a}
    while more := {d for d in range(1, len(heads)) if heads[d] in members} - members:
        members |= more
    return sorted(members)


def interleave(first, second):
    if set(first) & set(second):
        return False
    return any(
        i < j < k < m
        for one, other in ((first, second), (second, first))
        for i, k in itertools.combinations(one, 2)
        for j, m in itertools.combinations(other, 2)
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_structures_agree_with_their_definitions(n):
    for heads in naive.all_trees(n):
        subtrees = [subtree(heads, a) for a in range(n + 1)]
        gaps = max(sum(q - p > 1 for p, q in itertools.pairwise(words)) for words in subtrees)
        assert gap_degree(heads) == gaps
        pairs = itertools.combinations(subtrees, 2)
        assert is_well_nested(heads) == (not any(interleave(*pair) for pair in pairs))
        arcs = [(heads[d], d) for d in range(1, n + 1) if heads[d] > 0]
        assert is_planar(heads) == (not any(naive.cross(*pair) for pair in itertools.combinations(arcs, 2)))
        assert is_projective(heads) == (gaps == 0)


@pytest.mark.parametrize("structure", [gap_degree, is_planar, is_well_nested])
def test_a_cycle_has_no_structure(structure):
    with pytest.raises(ValueError, match="not a tree"):
        structure([-1, 2, 1])


@pytest.mark.parametrize("kind", [np.uint8, np.uint64])
def test_heads_without_a_sign_are_no_tree(kind):
    with pytest.raises(ValueError, match="not a tree"):
        checked_tree(np.array([0, 2, 0, 2], kind))
