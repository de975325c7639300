import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.trees import crossed_arcs, is_projective, is_tree


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
    heads = [-1, 3, 0, 2]  # 3 → 1 spans word 2, which hangs from the root
    assert crossed_arcs(heads).tolist() == [False, True, True, False]
    assert not is_projective(heads)


def test_a_cycle_has_no_crossings_to_ask_for():
    with pytest.raises(ValueError, match="not a tree"):
        crossed_arcs([-1, 2, 1])
