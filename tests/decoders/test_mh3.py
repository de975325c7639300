import numpy as np
import pytest
from golden import check_golden, load_golden, padded_arcs
from hypothesis import given
from hypothesis import strategies as st
from naive_mh import best_score, derivations, enumerated_scores

from mh4.decoders import InfeasibleError, get_decoder

GOLDEN, CASES = load_golden("mh3")


def random_problem(seed, n, forbidden=0.0, integers=False):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-2, 3, (4, n + 2, n + 2)) if integers else rng.normal(size=(4, n + 2, n + 2))
    numbers = np.where(rng.random(numbers.shape) < forbidden, -np.inf, numbers).astype(np.float32)
    return numbers[:3], numbers[3]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("suffix", ["", "_free"])
def test_golden(case, suffix):
    check_golden(
        get_decoder("mh3", single_root=not suffix),
        GOLDEN[case + "scores"].transpose(2, 0, 1),
        padded_arcs(GOLDEN[case + "arc"]),
        GOLDEN[f"{case}value{suffix}"],
        GOLDEN[f"{case}heads{suffix}"],
        GOLDEN[f"{case}trace{suffix}"][:, [2, 0, 1]],  # rows (s0, b0, action)
    )


@pytest.mark.parametrize(
    ("n", "sequences", "trees", "one_root"),
    [(1, 1, 1, 1), (2, 3, 3, 2), (3, 13, 12, 7), (4, 67, 55, 30), (5, 381, 273, 143)],
)
def test_the_naive_enumeration_has_the_known_counts(n, sequences, trees, one_root):
    heads, _ = derivations("mh3", n)
    distinct = np.unique(heads, axis=0)
    assert (len(heads), len(distinct), ((distinct == 0).sum(axis=1) == 1).sum()) == (sequences, trees, one_root)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    forbidden=st.sampled_from([0.0, 0.1, 0.4]),
    integers=st.booleans(),
    single_root=st.booleans(),
)
def test_best_of_all_derivations(seed, n, forbidden, integers, single_root):
    scores, bonus = random_problem(seed, n, forbidden, integers)
    heads, totals = enumerated_scores("mh3", scores, bonus, single_root)
    decoder = get_decoder("mh3", single_root)
    if totals.max() == -np.inf:
        with pytest.raises(InfeasibleError):
            decoder.decode(scores, bonus)
        return
    found = decoder.decode(scores, bonus)
    assert found.score == pytest.approx(totals.max(), abs=1e-4)
    assert found.heads.tolist() in heads.tolist()


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(6, 14),
    forbidden=st.sampled_from([0.0, 0.1]),
    single_root=st.booleans(),
)
def test_same_score_as_the_plain_twin(seed, n, forbidden, single_root):
    scores, bonus = random_problem(seed, n, forbidden)
    expected = best_score("mh3", scores, bonus, single_root)
    decoder = get_decoder("mh3", single_root)
    if expected == -np.inf:
        with pytest.raises(InfeasibleError):
            decoder.decode(scores, bonus)
        return
    assert decoder.decode(scores, bonus).score == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 32, 33, 100])
def test_parts_are_a_shift_and_a_reduce_for_each_word(n):
    scores, bonus = random_problem(n, n)
    found = get_decoder("mh3").decode(scores, bonus)
    assert np.bincount(found.parts[:, 0] > 0).tolist() == [n, n]
    assert sorted(found.parts[found.parts[:, 0] > 0, 1]) == list(range(1, n + 1))


def test_every_projective_tree_is_its_own_closest_tree():
    heads, _ = derivations("mh3", 5)
    decoder = get_decoder("mh3", single_root=False)
    for tree in np.unique(heads, axis=0):
        assert decoder.closest_tree(tree).tolist() == tree.tolist()
