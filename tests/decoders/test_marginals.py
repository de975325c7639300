"""Sums over derivations: against enumeration for a few words, for consistency and extreme numbers on more."""

import itertools

import enumerated
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_certainty import kinds, problem

from mh4.decoders import (
    ChartTooLargeError,
    InfeasibleError,
    UnsupportedError,
    decoder_names,
    get_decoder,
    mh4_sums,
    mst_sums,
)
from mh4.decoders.mh4_log_sums import LogSums
from mh4.decoders.trees import is_tree

NAMES = ("mst", "eisner", "mh3", "mh4-two", "mh4-hybrid")
every_summing_decoder = pytest.mark.parametrize("name", NAMES)


def check_numbers(found, n):
    """Check that marginals of arcs are probabilities that sum to 1 for each word, and that all numbers are finite."""
    assert np.isfinite(found.log_partition)
    assert found.arcs.shape[0] == n + 2
    assert (found.arcs >= 0).all()
    assert (found.arcs <= 1).all()
    np.testing.assert_allclose(found.arcs.sum(axis=0)[1 : n + 1], 1, atol=1e-6)
    assert not found.arcs[:, [0, n + 1]].any()
    assert not found.arcs[n + 1].any()
    assert (found.parts >= 0).all()
    assert np.isfinite(found.parts).all()


def check_against_enumeration(name, n, seed, kind, single_root, temperature):
    check_sums(name, *problem(name, n, seed, kind), single_root, temperature)


def check_sums(name, scores, bonus, single_root=True, temperature=1.0):
    decoder, n = get_decoder(name, single_root), len(bonus) - 2
    heads, totals = enumerated.derivations(name, scores, bonus, single_root)
    if len(totals) == 0 or totals.max() == -np.inf:
        with pytest.raises(InfeasibleError):
            decoder.part_marginals(scores, bonus, temperature)
        return
    weights = np.exp((totals - totals.max()) / temperature)
    expected = np.zeros(bonus.shape)
    for d in range(1, n + 1):
        np.add.at(expected[:, d], heads[:, d], weights / weights.sum())
    found = decoder.part_marginals(scores, bonus, temperature)
    check_numbers(found, n)
    log_partition = totals.max() / temperature + np.log(weights.sum())
    assert found.log_partition == pytest.approx(log_partition, rel=1e-12, abs=1e-9)
    assert decoder.log_partition(scores, bonus, temperature) == pytest.approx(found.log_partition, abs=1e-9)
    np.testing.assert_allclose(found.arcs, expected, atol=1e-9)


@every_summing_decoder
@given(
    n=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    kind=kinds,
    single_root=st.booleans(),
    temperature=st.sampled_from([0.1, 1.0, 3.0]),
)
@settings(max_examples=60)
def test_sums_over_all_derivations(name, n, seed, kind, single_root, temperature):
    check_against_enumeration(name, n, seed, kind, single_root, temperature)


@pytest.mark.slow
@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", ["normal", "ties", "forbid", "given"])
def test_sums_over_all_derivations_of_six_words(name, kind, single_root):
    for seed in range(3):
        check_against_enumeration(name, 6, seed, kind, single_root, 1.0)


@every_summing_decoder
@given(n=st.integers(2, 9), seed=st.integers(0, 2**32 - 1), kind=kinds, single_root=st.booleans())
@settings(max_examples=15)
def test_parts_are_the_gradient_of_the_log_partition_function(name, n, seed, kind, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = (numbers.astype(np.float64) for numbers in problem(name, n, seed, kind))
    temperature, step = 1.7, 1e-5
    try:
        found = decoder.part_marginals(scores, bonus, temperature)
    except InfeasibleError:
        return
    rng = np.random.default_rng(seed)

    def slope(array, at):
        array[at] += step
        above = decoder.log_partition(scores, bonus, temperature)
        array[at] -= 2 * step
        below = decoder.log_partition(scores, bonus, temperature)
        array[at] += step
        return (above - below) * temperature / (2 * step)

    for _ in range(12):
        part = tuple(rng.integers(0, scores.shape))
        if part[1] != part[2]:
            assert found.parts[part] == pytest.approx(slope(scores, part), abs=1e-6)
        arc = tuple(rng.integers(0, bonus.shape))
        assert found.arcs[arc] == pytest.approx(slope(bonus, arc), abs=1e-6)


def numbers_of_scale(kind, scale, rng, shape):
    """Numbers of size ``scale`` and both signs: exponentials may overflow or underflow although sums cancel out."""
    signs = rng.choice([-2, -1, 0, 1, 2], shape, p=[0.04, 0.06, 0.8, 0.06, 0.04])
    numbers = {"normal": rng.normal(size=shape), "balanced": rng.choice([-1, 0, 1], shape), "sparse": signs}.get(kind)
    if numbers is None:  # "a few far apart"
        return rng.normal(size=shape) + scale * np.sign(signs)
    return numbers * scale


@every_summing_decoder
@pytest.mark.parametrize("kind", ["normal", "balanced", "sparse", "a few"])
@pytest.mark.parametrize("scale", [30, 60, 100, 150, 200, 250, 300, 350, 400, 500, 600, 700, 800, 1000, 1500])
def test_sums_of_numbers_whose_exponentials_leave_the_range(name, kind, scale):
    channels = len(get_decoder(name).channels)
    for seed in range(8):
        rng = np.random.default_rng([seed, scale])
        n = int(rng.integers(2, 5))
        numbers = numbers_of_scale(kind, scale, rng, (channels + 1, n + 2, n + 2))
        check_sums(name, numbers[:-1], numbers[-1], single_root=seed % 2 == 0)


@pytest.mark.parametrize("kind", ["normal", "balanced", "sparse", "a few"])
@given(n=st.integers(5, 25), seed=st.integers(0, 2**32 - 1), scale=st.integers(10, 1000), single_root=st.booleans())
@settings(max_examples=25)
def test_trees_are_summed_on_logarithms_as_on_plain_numbers(kind, n, seed, scale, single_root):
    numbers = numbers_of_scale(kind, scale, np.random.default_rng(seed), (2, n + 2, n + 2))
    decoder = get_decoder("mst", single_root)
    found = decoder.part_marginals(numbers[:1], numbers[1])
    check_numbers(found, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mst_sums, "LARGEST_EXCESS", -1.0)
        expected = decoder.part_marginals(numbers[:1], numbers[1])
    assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(found.arcs, expected.arcs, atol=1e-9)


def test_the_arc_of_the_root_may_weigh_up_what_no_number_holds():
    scores = np.zeros((1, 5, 5))
    scores[0, :4, 1:4] = [[600, 0, 900], [900, 300, 0], [300, 0, 0], [0, 0, 0]]
    check_sums("mst", scores, np.zeros((5, 5)))


def test_a_factor_that_no_number_holds_may_be_weighed_up():
    scores, bonus = np.zeros((7, 4, 4)), np.zeros((4, 4))
    scores[0, 1, 2] = scores[3, 1, 2] = -300
    bonus[0, 2] = bonus[2, 1] = 600
    check_sums("mh4-two", scores, bonus)
    scores, bonus = np.zeros((13, 4, 4)), np.zeros((4, 4))
    scores[2, 0, 1] = scores[8, 1, 3] = 300
    scores[2, 0, 2] = scores[2, 1, 2] = scores[5, 1, 2] = scores[8, 2, 3] = 600
    check_sums("mh4-hybrid", scores, bonus)


HARD = {
    "all equal": lambda rng, shape: np.zeros(shape),
    "spread": lambda rng, shape: rng.normal(size=shape),
    "far apart": lambda rng, shape: rng.normal(size=shape) * 1e4,
    "plus or minus": lambda rng, shape: rng.choice([-1e4, 1e4], shape),
    "a few far apart": lambda rng, shape: rng.normal(size=shape) + 1e4 * (rng.random(shape) < 0.01),
    "huge": lambda rng, shape: rng.normal(size=shape) * 1e36,
    "tiny": lambda rng, shape: rng.normal(size=shape) * 1e-100,
}


@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", [1, 2, 25])
@pytest.mark.parametrize("kind", HARD)
def test_hard_numbers(name, kind, n, single_root):
    decoder = get_decoder(name, single_root)
    shape = (len(decoder.channels) + 1, n + 2, n + 2)
    numbers = HARD[kind](np.random.default_rng(n), shape)
    check_numbers(decoder.part_marginals(numbers[:-1], numbers[-1]), n)


@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1e12, 1e15, 1e20, 1e30])
def test_of_huge_numbers_the_best_tree_gets_it_all(name, scale, single_root):
    decoder = get_decoder(name, single_root)
    for n, seed in ((2, 0), (3, 8), (4, 1), (5, 2), (8, 3)):
        scores = np.random.default_rng(seed).normal(size=(len(decoder.channels), n + 2, n + 2)) * scale
        heads = decoder.decode(scores).heads
        found = decoder.marginals(scores)
        np.testing.assert_allclose(found[heads[1:], np.arange(1, n + 1)], 1, atol=1e-6)
        np.testing.assert_allclose(found.sum(0)[1:-1], 1, atol=1e-6)
        assert next(iter(decoder.sample(scores, 1, rng=np.random.default_rng(0)))).heads.tolist() == heads.tolist()


@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e10, -1e13, -1e20, -1e30, 1e10, 1e20])
@pytest.mark.parametrize("uneven", [0, 0.01])
def test_masks_that_cannot_be_avoided_leave_the_rest_as_probable_as_it_is(name, mask, uneven, single_root):
    """Only derivations with the best sum of masks have a probability: the fewest penalties, or the most rewards."""
    decoder = get_decoder(name, single_root)
    for n, seed in ((2, 0), (3, 1), (4, 2)):
        rng, size = np.random.default_rng(seed), (n + 2, n + 2)
        scores, where = rng.normal(size=(len(decoder.channels), *size)), 1.0 * (rng.random(size) < 0.7)
        where *= 1 + uneven * rng.integers(2, size=size)
        heads, totals = enumerated.derivations(name, scores, np.zeros(size), single_root)
        masks = (np.sign(mask) * where[heads[:, 1:], np.arange(1, n + 1)].sum(axis=1)).round(9)
        weights = np.exp(totals) * (masks == masks.max())
        expected = np.zeros(size)
        for d in range(1, n + 1):
            np.add.at(expected[:, d], heads[:, d], weights / weights.sum())
        found = decoder.part_marginals(scores, mask * where)
        np.testing.assert_allclose(found.arcs, expected, atol=1e-5)
        log_partition = abs(mask) * masks.max() + np.log(weights.sum())
        assert found.log_partition == pytest.approx(log_partition, rel=1e-15, abs=1e-5)


def check_certain(decoder, scores, bonus):
    """Check that max-marginals and margins are not NaN and agree with the best tree."""
    best, values, heads = decoder.margins(scores, bonus)
    n = len(values) - 1
    assert (values >= 0).all()  # false for NaN, too
    assert values[0] == np.inf
    others = values < np.inf
    assert (heads[~others] == -1).all()
    assert (heads[others] != best.heads[others]).all()
    assert ((heads[others] >= 0) & (heads[others] <= n)).all()
    if decoder.has_outside_pass:
        found = decoder.max_marginals(scores, bonus)
        assert not np.isnan(found).any()
        size = max(1.0, abs(best.score))
        assert (found <= best.score + 1e-5 * size).all()
        np.testing.assert_allclose(found[best.heads[1:], np.arange(1, n + 1)], best.score, atol=1e-5 * size)


@pytest.mark.parametrize("name", decoder_names())
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", [1, 2, 14])
@pytest.mark.parametrize("kind", [kind for kind in HARD if kind not in ("huge", "tiny")])
def test_margins_and_best_trees_of_hard_numbers(name, kind, n, single_root):
    decoder = get_decoder(name, single_root)
    numbers = HARD[kind](np.random.default_rng(n), (len(decoder.channels) + 1, n + 2, n + 2))
    check_certain(decoder, numbers[:-1], numbers[-1])
    trees = decoder.k_best(numbers[:-1], 3, numbers[-1])
    possible = {1: 1, 2: 2 if single_root else 3}.get(n, 3)
    assert len({tuple(one.heads) for one in trees}) == len(trees) == possible
    assert all(np.isfinite(one.score) for one in trees)
    assert all(first.score >= second.score - 1e-6 * abs(first.score) for first, second in itertools.pairwise(trees))


@pytest.mark.parametrize("name", decoder_names())
@pytest.mark.parametrize("n", [1, 2, 14])
def test_margins_and_best_trees_of_the_only_tree(name, n):
    decoder = get_decoder(name)
    scores, bonus = problem(name, n, 1)
    tree = decoder.decode(scores).heads
    only = np.full_like(bonus, -np.inf)
    only[tree[1:], np.arange(1, n + 1)] = 1
    best, values, heads = decoder.margins(scores, only)
    assert best.heads.tolist() == tree.tolist()
    assert (values == np.inf).all()
    assert (heads == -1).all()
    assert [one.heads.tolist() for one in decoder.k_best(scores, 5, only)] == [tree.tolist()]
    np.testing.assert_array_equal(decoder.max_marginals(scores, only) > -np.inf, only > -np.inf)


@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
def test_one_tree_possible(name, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, 20, 1)
    tree = decoder.decode(scores).heads
    only = np.full_like(bonus, -np.inf)
    only[tree[1:], np.arange(1, 21)] = bonus[tree[1:], np.arange(1, 21)]
    found = decoder.part_marginals(scores, only)
    check_numbers(found, 20)
    np.testing.assert_allclose(found.arcs[tree[1:], np.arange(1, 21)], 1, atol=1e-9)
    if name in ("mst", "eisner"):
        assert found.log_partition == pytest.approx(decoder.decode(scores, only).score, abs=1e-4)
    assert all((one.heads == tree).all() for one in decoder.sample(scores, 3, only, rng=0))


@every_summing_decoder
@given(n=st.integers(5, 14), seed=st.integers(0, 2**32 - 1), single_root=st.booleans())
@settings(max_examples=10)
def test_towards_zero_temperature_the_best_tree_gets_it_all(name, n, seed, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, n, seed)
    best, values, _ = decoder.margins(scores, bonus)
    if values.min() < 0.01:
        return
    found = decoder.part_marginals(scores, bonus, 1e-4)
    check_numbers(found, n)
    np.testing.assert_allclose(found.arcs[best.heads[1:], np.arange(1, n + 1)], 1, atol=1e-6)
    assert 1e-4 * found.log_partition == pytest.approx(best.score, abs=1e-2)


@every_summing_decoder
@pytest.mark.parametrize("single_root", [True, False])
def test_samples_are_as_frequent_as_they_are_probable(name, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, 4, 7)
    count = 2000
    drawn = decoder.sample(scores, count, bonus, 2.0, rng=1)
    expected = decoder.marginals(scores, bonus, 2.0)
    frequency = np.zeros_like(expected)
    for one in drawn:
        assert is_tree(one.heads, single_root)
        assert one.heads.dtype == one.parts.dtype == np.int32
        parts = sum(float(scores[tuple(part)]) for part in one.parts)
        arcs = sum(float(bonus[h, d]) for d, h in enumerate(one.heads) if d)
        assert one.score == pytest.approx(parts + arcs, abs=1e-4)
        frequency[one.heads[1:], np.arange(1, 5)] += 1 / count
    assert (np.abs(frequency - expected) <= 5 * np.sqrt(expected * (1 - expected) / count) + 1e-12).all()


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("scale", [1.0, 4.0, 300.0])
def test_trees_are_drawn_alike_without_loops(single_root, scale, monkeypatch):
    """Sampling without loops has the right marginals, also when many trees tie or weights need logarithms."""
    decoder = get_decoder("mst", single_root)
    scores = np.random.default_rng(3).integers(-1, 2, (1, 6, 6)) * scale
    expected, count = decoder.marginals(scores), 2000
    assert ((expected > 0.1) & (expected < 0.9)).any()
    monkeypatch.setattr(mst_sums, "PATIENCE", 0)
    frequency = np.zeros_like(expected)
    for one in decoder.sample(scores, count, rng=1):
        frequency[one.heads[1:], np.arange(1, 5)] += 1 / count
    assert (np.abs(frequency - expected) <= 5 * np.sqrt(expected * (1 - expected) / count) + 1e-9).all()


@every_summing_decoder
def test_samples_repeat_with_the_seed(name):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 8, 3)
    first, second = ([one.heads.tolist() for one in decoder.sample(scores, 5, bonus, rng=4)] for _ in range(2))
    assert first == second
    assert len({tuple(heads) for heads in first}) > 1


def test_a_sum_over_given_heads_is_the_sum_over_the_trees_that_have_them():
    decoder = get_decoder("eisner")
    scores, bonus = problem("eisner", 4, 0)
    sums = []
    for heads in itertools.product(range(5), repeat=2):
        own = bonus.copy()
        for d, h in zip((1, 3), heads, strict=True):
            own[np.arange(6) != h, d] = -np.inf
        try:
            sums.append(decoder.log_partition(scores, own))
        except InfeasibleError:
            continue
    assert np.logaddexp.reduce(sums) == pytest.approx(decoder.log_partition(scores, bonus))


def test_what_is_not_a_sum():
    decoder = get_decoder("mst")
    scores, bonus = problem("mst", 3, 0)
    for temperature in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="temperature must be positive"):
            decoder.marginals(scores, temperature=temperature)
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or"):
            decoder.marginals(np.full_like(scores, number), bonus)
    for sign in (-1, 1):  # the quotients would be infinite, and −inf means forbidden
        with pytest.raises(ValueError, match="too large to be summed at a temperature"):
            decoder.marginals(np.full_like(scores, sign), temperature=1e-310)
    with pytest.raises(ValueError, match="cannot be negative"):
        decoder.sample(scores, -1)
    with pytest.raises(UnsupportedError, match="mst, eisner, mh3, mh4-two, mh4-hybrid"):
        get_decoder("1ec").marginals(np.zeros((4, 5, 5)))


@every_summing_decoder
def test_no_room_for_probabilities(name):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 20, 0)
    decoder.memory_limit = decoder.sums_bytes(20) - 1
    assert decoder.fits(20)
    asked = (decoder.part_marginals, decoder.marginals, decoder.log_partition, lambda *own: decoder.sample(*own[:1], 1))
    for ask in asked:
        with pytest.raises(ChartTooLargeError, match="probabilities of 20 words take"):
            ask(scores, bonus)
    decoder.memory_limit += 1
    assert np.isfinite(decoder.log_partition(scores, bonus))


@every_summing_decoder
def test_a_batch_is_summed_at_its_temperature(name):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 6, 1)
    found = decoder.part_marginals_batch(np.stack([scores] * 2), [6, 4], np.stack([bonus] * 2), 3.0, threads=2)
    for n, own in zip((6, 4), found, strict=True):
        alone = decoder.part_marginals(scores[:, : n + 2, : n + 2], bonus[: n + 2, : n + 2], 3.0)
        assert own.log_partition == alone.log_partition
        np.testing.assert_array_equal(own.parts, alone.parts)
        np.testing.assert_array_equal(own.arcs, alone.arcs)


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    kind=kinds,
    single_root=st.booleans(),
    temperature=st.sampled_from([0.01, 0.1, 1.0, 50.0]),
)
@settings(max_examples=25)
def test_sums_on_plain_numbers_are_those_on_logarithms(name, n, seed, kind, single_root, temperature):
    decoder = get_decoder(name, single_root)
    scores, bonus = (x.astype(np.float64) / temperature for x in problem(name, n, seed, kind))
    try:
        slow = LogSums(scores, bonus, single_root)
    except InfeasibleError:
        return
    found, expected = decoder.part_marginals(scores, bonus), slow.marginals()
    check_numbers(found, n)
    assert found.log_partition == pytest.approx(expected.log_partition, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(found.arcs, expected.arcs, atol=1e-9)
    np.testing.assert_allclose(found.parts, expected.parts, atol=1e-9)


def test_what_leaves_the_range_of_numbers_is_summed_on_logarithms(monkeypatch):
    asked = []
    monkeypatch.setattr(mh4_sums, "LogSums", lambda *known: asked.append(known) or LogSums(*known))
    decoder = get_decoder("mh4-hybrid")
    scores, bonus = problem("mh4-hybrid", 12, 0)
    check_numbers(decoder.part_marginals(scores, bonus), 12)
    assert not asked
    check_numbers(decoder.part_marginals(scores * 3000, bonus), 12)
    assert len(asked) == 1


@every_summing_decoder
@pytest.mark.parametrize("constant", [1e4, -1e4, 1e9])
def test_what_all_derivations_share_changes_no_probability(name, constant, monkeypatch):
    decoder = get_decoder(name)
    scores, bonus = (x.astype(np.float64) for x in problem(name, 12, 0))
    (tree,) = decoder.sample(scores, 1, bonus, rng=0)
    monkeypatch.setattr(mh4_sums, "LogSums", None)  # the slow sums on logarithms must not be needed
    expected = decoder.part_marginals(scores, bonus)
    found = decoder.part_marginals(scores + constant, bonus - constant)
    check_numbers(found, 12)
    np.testing.assert_allclose(found.arcs, expected.arcs, atol=1e-5)  # the precision of a score that float64 keeps
    np.testing.assert_allclose(found.parts, expected.parts, atol=1e-5)
    shared = constant * (len(tree.parts) - 12)
    log_partition = decoder.log_partition(scores + constant, bonus - constant)
    assert log_partition == found.log_partition == pytest.approx(expected.log_partition + shared, abs=1e-4)


def check_long_sentence(name, kind, n=400):
    decoder = get_decoder(name)
    numbers = HARD[kind](np.random.default_rng(0), (len(decoder.channels) + 1, n + 2, n + 2))
    check_numbers(decoder.part_marginals(numbers[:-1], numbers[-1]), n)
    check_certain(decoder, numbers[:-1], numbers[-1])


@pytest.mark.parametrize("name", ["mst", "eisner", "mh3"])
@pytest.mark.parametrize("kind", ["all equal", "spread"])
def test_four_hundred_words(name, kind):
    check_long_sentence(name, kind)


@pytest.mark.slow
@every_summing_decoder
@pytest.mark.parametrize("kind", ["all equal", "spread", "far apart", "plus or minus", "a few far apart"])
def test_long_sentences_whatever_it_takes(name, kind):
    # On logarithms, MH4 would take minutes for 400 words.
    check_long_sentence(name, kind, 120 if name.startswith("mh4") else 400)
