import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paths import GOLDEN_FOLDER
from test_mst import arc_scores, check_against_all_trees, check_against_golden, kinds

from mh4.decoders import get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective

GOLDEN = np.load(GOLDEN_FOLDER / "eisner.npz")


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), kinds, st.booleans())
@example(6, 0, "cycle", True)
@example(6, 0, "cycle", False)
def test_best_of_all_projective_trees(n, seed, kind, single_root):
    check_against_all_trees("eisner", n, seed, kind, single_root, projective=True)


@pytest.mark.parametrize(("single_root", "suffix"), [(True, ""), (False, "_free")])
def test_golden(single_root, suffix):
    check_against_golden(get_decoder("eisner", single_root), GOLDEN, suffix)


@pytest.mark.parametrize("n", [7, 8, 9, 15, 16, 17, 50])
def test_projective_tree_is_found_again_at_any_length(n):
    """Eisner's algorithm finds the best of all trees if it is projective; lengths around multiples of vector widths."""
    rng = np.random.default_rng(n)
    heads = get_decoder("eisner").decode(rng.normal(size=(1, n + 2, n + 2)).astype(np.float32)).heads
    assert is_projective(heads)
    scores = rng.normal(size=(1, n + 2, n + 2)).astype(np.float32)
    scores[0, heads[1:], np.arange(1, n + 1)] += 5
    best = get_decoder("mst").decode(scores)
    assert (best.heads == heads).all()
    assert (get_decoder("eisner").decode(scores).heads == heads).all()


def test_a_crossing_tree_is_out_of_reach():
    crossing = [-1, 3, 0, 2]
    found = closest_tree(np.array(crossing), "projective", single_root=True)
    assert is_projective(found)
    assert (found[1:] == crossing[1:]).sum() == 2


def test_what_lies_outside_the_arcs_is_not_read():
    scores = arc_scores(9, 3, "normal")
    expected = get_decoder("eisner").decode(scores).heads
    scores[0, :, 0] = 99
    np.fill_diagonal(scores[0], 99)
    scores[0, -1] = scores[0, :, -1] = 99
    assert (get_decoder("eisner").decode(scores).heads == expected).all()
