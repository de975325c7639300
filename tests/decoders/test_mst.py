import naive
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paths import GOLDEN_FOLDER

from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.trees import is_tree

GOLDEN = np.load(GOLDEN_FOLDER / "mst.npz")


def arc_scores(n, seed, kind):
    """Arc scores of n words: "ties" uses small integers, "forbid" forbids 35% of the arcs, "cycle" favours cycles."""
    rng = np.random.default_rng(seed)
    size = n + 2
    if kind == "ties":
        return rng.integers(-2, 3, (1, size, size)).astype(np.float32)
    scores = rng.normal(size=(1, size, size)).astype(np.float32)
    if kind == "forbid":
        scores[rng.random(scores.shape) < 0.35] = -np.inf
    if kind == "cycle":
        scores[0, 0] -= 100
        order = rng.permutation(n) + 1
        scores[0, order, np.roll(order, 1)] += 10
    return scores


def decode_or_none(decoder, scores):
    try:
        return decoder.decode(scores)
    except InfeasibleError:
        return None


def check_against_all_trees(name, n, seed, kind, single_root, projective):
    scores = arc_scores(n, seed, kind)
    best = naive.best_arc_score(scores[0, : n + 1, : n + 1], n, single_root, projective)
    found = decode_or_none(get_decoder(name, single_root), scores)
    if best == -np.inf:
        assert found is None
    else:
        assert found is not None
        assert found.score == pytest.approx(best, abs=1e-5)
        assert is_tree(found.heads, single_root)


def check_against_golden(decoder, golden, suffix):
    for c in range(int(golden["count"])):
        case = f"c{c:02d}_"
        n = int(golden[case + "n"])
        scores = np.full((1, n + 2, n + 2), 50, np.float32)
        scores[0, : n + 1, : n + 1] = golden[case + "arc"]
        value = float(golden[case + "value" + suffix])
        found = decode_or_none(decoder, scores)
        if value == -np.inf:
            assert found is None, case
        else:
            assert found is not None, case
            assert found.heads.tolist() == golden[case + "heads" + suffix].tolist(), case
            assert found.score == pytest.approx(value, rel=1e-5), case


kinds = st.sampled_from(["normal", "ties", "forbid", "cycle"])


@given(st.integers(1, 5), st.integers(0, 2**32 - 1), kinds, st.booleans())
@example(6, 0, "cycle", True)
@example(6, 0, "cycle", False)
def test_best_of_all_trees(n, seed, kind, single_root):
    check_against_all_trees("mst", n, seed, kind, single_root, projective=False)


@pytest.mark.parametrize(("single_root", "suffix"), [(False, ""), (True, "_single")])
def test_golden(single_root, suffix):
    check_against_golden(get_decoder("mst", single_root), GOLDEN, suffix)


@pytest.mark.parametrize("n", [15, 40])
@pytest.mark.parametrize("kind", ["normal", "cycle"])
def test_one_root_child_is_the_best_over_all_root_children(n, kind):
    """The result is the best of n decodes that each allow a single root arc."""
    scores = arc_scores(n, n, kind)
    scores[0, 0] += 3  # the best tree has many root children
    free = get_decoder("mst", single_root=False)
    assert (free.decode(scores).heads == 0).sum() > 1 or kind == "cycle"
    best = -np.inf
    for child in range(1, n + 1):
        bonus = np.zeros_like(scores[0])
        bonus[0, np.arange(n + 2) != child] = -np.inf
        best = max(best, free.decode(scores, bonus).score)
    assert get_decoder("mst").decode(scores).score == pytest.approx(best, rel=1e-6)


def test_nested_cycles():
    """1 ⇄ 2 is a cycle and, once contracted, {1, 2} ⇄ 3 another one; the arc 0 → 3 breaks both."""
    scores = np.full((1, 5, 5), -np.inf, np.float32)
    for h, d, score in [(1, 2, 10), (2, 1, 10), (3, 1, 8), (2, 3, 9), (0, 3, 1), (0, 1, -20)]:
        scores[0, h, d] = score
    assert get_decoder("mst").decode(scores).heads.tolist() == [-1, 3, 1, 0]


def test_column_zero_and_the_diagonal_are_not_read():
    scores = arc_scores(6, 3, "normal")
    expected = get_decoder("mst").decode(scores).heads
    scores[0, :, 0] = 99
    np.fill_diagonal(scores[0], 99)
    scores[0, -1] = scores[0, :, -1] = 99
    assert (get_decoder("mst").decode(scores).heads == expected).all()


def test_large_scores_do_not_hide_small_ones():
    """The common trick for one root child, a large penalty on root arcs, would round these differences away."""
    scores = np.zeros((1, 4, 4), np.float32)
    scores[0, 0, 1] = 1e-6
    scores[0, 0, 2] = 2e-6
    assert get_decoder("mst").decode(scores).heads.tolist() == [-1, 2, 0]
