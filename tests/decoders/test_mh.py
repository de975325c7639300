# ruff: noqa: E741 (i, j, k, l are the heads of an item)

import numpy as np
import pytest
from golden import check_golden, load_golden, padded_arcs
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_mh import best_score, derivations, enumerated_scores, run_transitions

from mh4.decoders import ChartTooLargeError, InfeasibleError, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_tree

NAMES = ("mh3", "mh4-two", "mh4-hybrid")
GOLDEN = {name: load_golden(name.replace("-", "_")) for name in NAMES}
CASES = [
    (name, case, suffix)
    for name in NAMES
    for case in GOLDEN[name][1]
    for suffix in (("", "_free") if name == "mh3" else ("",))  # one root child, any number
]
TWO_CHANNEL = np.array([0, 4, 5, 6, 1, 2, 3])  # our channel for each action in the golden files of mh4-two


def golden_scores(name, data, case):
    """Golden scores as (C, N, N), in the decoder's order of channels."""
    if name == "mh3":
        return data[case + "scores"].transpose(2, 0, 1)
    if name == "mh4-two":
        return data[case + "scores"].transpose(2, 0, 1)[np.argsort(TWO_CHANNEL)]
    a, b = data[case + "A"].transpose(2, 0, 1), data[case + "B"].transpose(2, 0, 1)
    return np.concatenate([data[case + "shift"][None], a, b])


def golden_parts(name, trace):
    if name == "mh3":
        return [(t, s0, b0) for s0, b0, t in trace]
    if name == "mh4-two":
        return [(TWO_CHANNEL[t], s0, b0) for s0, b0, t in trace]
    shifts = [(0, s0, b0) for _, s0, b0, t in trace if t < 0]
    return shifts + [part for s1, s0, b0, t in trace if t >= 0 for part in ((1 + t, s1, s0), (7 + t, s0, b0))]


def random_problem(name, seed, n, forbidden=0.0, integers=False):
    rng = np.random.default_rng(seed)
    shape = (len(get_decoder(name).channels) + 1, n + 2, n + 2)
    numbers = rng.integers(-2, 3, shape) if integers else rng.normal(size=shape)
    numbers = np.where(rng.random(shape) < forbidden, -np.inf, numbers).astype(np.float32)
    return numbers[:-1], numbers[-1]


def decode_or_nothing(decoder, scores, bonus, expected, tolerance):
    """Decode and check the score; if −inf is expected, check for InfeasibleError and return None."""
    if expected == -np.inf:
        with pytest.raises(InfeasibleError):
            decoder.decode(scores, bonus)
        return None
    found = decoder.decode(scores, bonus)
    assert found.score == pytest.approx(expected, abs=tolerance)
    return found


@pytest.mark.parametrize(("name", "case", "suffix"), CASES)
def test_golden(name, case, suffix):
    data, _ = GOLDEN[name]
    check_golden(
        get_decoder(name, single_root=name == "mh3" and not suffix),
        golden_scores(name, data, case),
        padded_arcs(data[case + "arc"]),
        data[f"{case}value{suffix}"],
        data[f"{case}heads{suffix}"],
        golden_parts(name, data[f"{case}trace{suffix}"]),
    )


@pytest.mark.parametrize(
    ("name", "n", "sequences", "trees", "one_root"),
    [
        ("mh3", 1, 1, 1, 1),
        ("mh3", 2, 3, 3, 2),
        ("mh3", 3, 13, 12, 7),
        ("mh3", 4, 67, 55, 30),
        ("mh3", 5, 381, 273, 143),
        ("mh4-two", 1, 1, 1, 1),
        ("mh4-two", 2, 6, 3, 2),
        ("mh4-two", 3, 64, 16, 9),
        ("mh4-two", 4, 840, 118, 60),
        ("mh4-two", 5, 12096, 1019, 485),
    ],
)
def test_the_naive_enumeration_has_the_known_counts(name, n, sequences, trees, one_root):
    heads, _ = derivations(name, n)
    distinct = np.unique(heads, axis=0)
    assert (len(heads), len(distinct), ((distinct == 0).sum(axis=1) == 1).sum()) == (sequences, trees, one_root)


@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 5),
    forbidden=st.sampled_from([0.0, 0.1, 0.4]),
    integers=st.booleans(),
    single_root=st.booleans(),
)
@settings(max_examples=400)
def test_best_of_all_derivations(name, seed, n, forbidden, integers, single_root):
    scores, bonus = random_problem(name, seed, n, forbidden, integers)
    heads, totals = enumerated_scores(name, scores, bonus, single_root)
    decoder = get_decoder(name, single_root)
    found = decode_or_nothing(decoder, scores, bonus, totals.max(), 1e-4)
    assert found is None or found.heads.tolist() in heads.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_one_root_child_builds_every_such_tree(name):
    """Of the derivable trees of 5 words, exactly those with one root child are feasible."""
    heads, _ = derivations(name, 5)
    decoder = get_decoder(name)
    scores = np.zeros((len(decoder.channels), 7, 7), np.float32)
    for tree in np.unique(heads, axis=0):
        only = np.full((7, 7), -np.inf, np.float32)
        only[tree[1:], np.arange(1, 6)] = 0
        if (tree == 0).sum() == 1:
            assert decoder.decode(scores, only).heads.tolist() == tree.tolist()
        else:
            with pytest.raises(InfeasibleError):
                decoder.decode(scores, only)


@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(6, 14),
    forbidden=st.sampled_from([0.0, 0.05, 0.3]),
    single_root=st.booleans(),
)
@settings(max_examples=80)
def test_same_score_as_the_plain_twin(name, seed, n, forbidden, single_root):
    scores, bonus = random_problem(name, seed, n, forbidden)
    expected = best_score(name, scores, bonus, single_root)
    decoder = get_decoder(name, single_root)
    found = decode_or_nothing(decoder, scores, bonus, expected, 1e-3)
    assert found is None or is_tree(found.heads, single_root)


@pytest.mark.parametrize("n", [15, 16, 17, 18, 24, 33])
def test_whole_panels_and_remainders(n):
    """Lengths around multiples of the vector width, where one more word starts a new panel."""
    scores, bonus = random_problem("mh4-hybrid", n, n, forbidden=0.02)
    found = get_decoder("mh4-hybrid").decode(scores, bonus)
    assert found.score == pytest.approx(best_score_by_rows(scores, bonus), abs=1e-3)


def best_score_by_rows(scores, bonus):
    """Best mh4-hybrid score with one root child, by recurrences in float64; recursion over items would be too slow."""
    end = scores.shape[1] - 1
    shift, a, b = scores[0].astype(float), scores[1:7].astype(float), scores[7:].astype(float)
    arc = bonus.astype(float)
    arc[end] = -np.inf
    c2 = np.full((end + 1, end + 1), -np.inf)
    c3 = np.full((end + 1,) * 3, -np.inf)
    ra2, ra, la, ra1, la1, la2 = range(6)
    closed = arc.copy()
    closed[0] = -np.inf  # no arcs from the root before the last move
    for l in range(1, end + 1):
        c2[l - 1, l] = 0
        for j in range(l - 1, -1, -1):
            for i in range(j - 1, -1, -1):
                c3[i, j, l] = max(c3[i, j, l], c2[i, j] + shift[i, j] + c2[j, l])
                for k in range(j + 1, l):
                    v = max(c3[i, j, k] + shift[j, k] + c2[k, l], c2[i, j] + shift[i, j] + c3[j, k, l])
                    score = a[:, j, k] + b[:, k, l]
                    without_k = max(score[ra2] + closed[i, k], score[ra] + closed[j, k], score[la] + closed[l, k])
                    without_j = max(score[ra1] + closed[i, j], score[la1] + closed[k, j], score[la2] + closed[l, j])
                    c3[i, j, l] = max(c3[i, j, l], v + without_k)
                    c3[i, k, l] = max(c3[i, k, l], v + without_j)
            if j > 0:  # every [j - 1, ·, l] is final
                arcs = arc if j == 1 and l == end else closed
                for k in range(j, l):
                    link = max(
                        a[ra, j - 1, k] + b[ra, k, l] + arcs[j - 1, k], a[la, j - 1, k] + b[la, k, l] + arcs[l, k]
                    )
                    c2[j - 1, l] = max(c2[j - 1, l], c3[j - 1, k, l] + link)
    return c2[0, end]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 32, 33, 100])
def test_parts_are_a_shift_and_a_reduce_for_each_word(name, n):
    scores, bonus = random_problem(name, n, n)
    found = get_decoder(name).decode(scores, bonus)
    per_word = 3 if name == "mh4-hybrid" else 2
    assert (len(found.parts), (found.parts[:, 0] == 0).sum()) == (per_word * n, n)
    if name == "mh3":
        assert sorted(found.parts[found.parts[:, 0] > 0, 1]) == list(range(1, n + 1))
    assert is_tree(found.heads, True)
    total = (
        scores[tuple(found.parts.T)].astype(float).sum()
        + bonus[found.heads[1:], np.arange(1, n + 1)].astype(float).sum()
    )
    assert found.score == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_scratch_memory_carries_nothing_over(name):
    """Sentences of different lengths, with and without forbidden parts, have the same results in any order."""
    problems = [random_problem(name, *numbers) for numbers in [(0, 40, 0.0), (1, 7, 0.02), (3, 23, 0.01)]]
    decoder = get_decoder(name)
    first = [decoder.decode(*problem) for problem in problems]
    again = [decoder.decode(*problem) for problem in reversed(problems)][::-1]
    assert [d.parts.tolist() for d in first] == [d.parts.tolist() for d in again]


def test_every_projective_tree_is_its_own_closest_tree():
    heads, _ = derivations("mh3", 5)
    decoder = get_decoder("mh3", single_root=False)
    for tree in np.unique(heads, axis=0):
        assert closest_tree(tree, decoder).tolist() == tree.tolist()


@pytest.mark.parametrize("single_root", [False, True])
def test_a_tree_of_the_class_too_long_for_the_chart_is_its_own_closest_tree(single_root):
    chain = np.arange(-1, 1300)
    chain[4:6] = 2, 3  # 2 → 4 and 3 → 5 cross
    assert not get_decoder("mh4-two").fits(1300)
    assert closest_tree(chain, "mh4", single_root).tolist() == chain.tolist()
    chain[700] = 0  # a second child of the root
    if single_root:
        with pytest.raises(ChartTooLargeError, match="1300 words"):
            closest_tree(chain, "mh4", single_root)
    else:
        assert closest_tree(chain, "mh4", single_root).tolist() == chain.tolist()


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
def test_some_trees_of_the_transition_system_are_not_in_the_chart(name):
    """Section 3.2 of the paper: the transition system can interleave these moves, but the deduction system cannot."""
    moves = ["shift"] * 3 + ["la2"] + ["shift"] * 2 + ["la2", "shift", "ra", "ra", "ra"]
    heads = run_transitions(5, moves)
    assert heads == [-1, 3, 0, 5, 2, 4]
    closest = closest_tree(np.array(heads), get_decoder(name))
    assert (closest[1:] != heads[1:]).sum() == 1
    assert heads not in derivations(name, 5)[0].tolist()


def test_chart_of_100_words_fits_10_megabytes():
    assert get_decoder("mh4-hybrid").chart_bytes(100) < 10e6
