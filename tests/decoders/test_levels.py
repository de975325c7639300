"""Large numbers that no derivation can avoid must not hide the differences between small scores."""

import enumerated
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mh4.decoders import InfeasibleError, decoder_names, get_decoder
from mh4.decoders.levels import levels_of
from mh4.decoders.numbers import LARGEST_SUM, check_numbers
from mh4.decoders.shared import LARGE

LOWEST_FLOAT32 = float(np.finfo(np.float32).min)
masks = st.sampled_from([-1e6, -1e9, -1e12, -1e30])
kinds = st.sampled_from(["instead", "added", "on arcs", "of two sizes", "positive", "of both signs"])


def masked(name, n, seed, mask, kind):
    """Scores and arc bonus, float64, with a large number ``mask`` in 10 to 80% of the places."""
    rng = np.random.default_rng(seed)
    shape = (len(get_decoder(name).channels) + 1, n + 2, n + 2)
    numbers = rng.normal(size=shape).astype(np.float32) * rng.choice([1.0, 3.0, 20.0])
    where = rng.random(shape) < rng.choice([0.1, 0.3, 0.6, 0.8])
    if kind == "on arcs":
        where[:-1] = False
    if kind == "of two sizes":
        mask = rng.choice([mask, 1e-3 * mask], shape)
    if kind == "of both signs":  # bounded: where masks cancel out, float64 must keep the rest
        mask = max(mask, -1e9) * rng.choice([-1.0, 1.0], shape)
    numbers = np.where(where, numbers + mask if kind == "added" else -mask if kind == "positive" else mask, numbers)
    return numbers[:-1], numbers[-1]


def rounding(score):
    """Tolerance for rounding in float64 sums of masks and float32 sums of the other numbers."""
    return 2e-3 + 4e-15 * abs(score)


@pytest.mark.parametrize("name", decoder_names())
@given(n=st.integers(2, 4), seed=st.integers(0, 2**32 - 1), mask=masks, kind=kinds, single_root=st.booleans())
@example(n=4, seed=201764, mask=-1e9, kind="positive", single_root=False)  # without the shared part, masks cancel out
@example(n=4, seed=356049034, mask=-1e9, kind="positive", single_root=True)  # masks sum to −2e-7, not 0
@example(n=2, seed=1442924093, mask=-1e30, kind="positive", single_root=False)  # masks in cells that no derivation uses
@settings(max_examples=30)
def test_masks_hide_nothing(name, n, seed, mask, kind, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = masked(name, n, seed, mask, kind)
    trees, totals = enumerated.trees(name, scores, bonus, single_root)
    best, values, _ = decoder.margins(scores, bonus)
    assert best.score == decoder.decode(scores, bonus).score == pytest.approx(totals[0], abs=rounding(totals[0]))
    for d in range(1, n + 1):
        others = totals[trees[:, d] != best.heads[d]]
        expected = best.score - others.max() if len(others) else np.inf
        assert values[d] == pytest.approx(expected, rel=1e-5, abs=rounding(totals[0]))
    found = decoder.k_best(scores, 6, bonus)
    assert len(found) == min(6, len(totals))
    for one, total in zip(found, totals.tolist(), strict=False):
        assert one.score == pytest.approx(total, abs=rounding(total))


@pytest.mark.parametrize("name", decoder_names())
@given(
    n=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
    top=st.sampled_from([5, 9]),
    mask=st.sampled_from([0.0, -1e14]),
    single_root=st.booleans(),
)
@example(n=4, seed=315, top=9, mask=-1e14, single_root=True)  # eisner needs levels that end at gaps
@settings(max_examples=60)
def test_numbers_of_all_sizes(name, n, seed, top, mask, single_root):
    """Sums of large scores may differ by less than small scores, so no level may decide first, except that of masks."""
    decoder, rng = get_decoder(name, single_root), np.random.default_rng(seed)
    shape = (len(decoder.channels) + 1, n + 2, n + 2)
    numbers = rng.choice([-1, 1], shape) * 10 ** rng.uniform(2, top, shape)
    near = 1e-6 * np.abs(numbers).max() + 1e-14 * abs(mask)
    numbers[-1][rng.random(shape[1:]) < 0.7] += mask
    trees, totals = enumerated.trees(name, numbers[:-1], numbers[-1], single_root)
    best, values, _ = decoder.margins(numbers[:-1], numbers[-1])
    assert best.score == pytest.approx(totals[0], abs=near)
    for d in range(1, n + 1):
        others = totals[trees[:, d] != best.heads[d]]
        expected = best.score - others.max() if len(others) else np.inf
        assert values[d] == pytest.approx(expected, rel=1e-5, abs=near)
    for one, total in zip(decoder.k_best(numbers[:-1], 6, numbers[-1]), totals.tolist(), strict=False):
        assert one.score == pytest.approx(total, abs=near)


@pytest.mark.parametrize("name", decoder_names())
@pytest.mark.parametrize("low", [LOWEST_FLOAT32, -3.3e38, -3.41e38, -1e300])
@pytest.mark.filterwarnings("error")
def test_what_is_too_low_for_float32_counts_as_forbidden(name, low):
    decoder, rng = get_decoder(name), np.random.default_rng(0)
    for n in (2, 4):
        numbers = rng.normal(size=(len(decoder.channels) + 1, n + 2, n + 2))
        where = rng.random(numbers.shape) < 0.4
        forbidden, lowered = (np.where(where, number, numbers) for number in (-np.inf, low))
        if low >= LOWEST_FLOAT32:
            lowered = lowered.astype(np.float32)
            forbidden = forbidden.astype(np.float32)
        try:
            expected = decoder.k_best(forbidden[:-1], 3, forbidden[-1])
            derived = decoder.derive_batch(forbidden[None, :-1], [expected[0].heads]) if expected else []
        except InfeasibleError:
            derived = []
        found = decoder.k_best(lowered[:-1], 3, lowered[-1])
        assert [(one.heads.tolist(), one.score) for one in found] == [(e.heads.tolist(), e.score) for e in expected]
        marginals = [decoder.max_marginals(one[:-1], one[-1]) for one in (lowered, forbidden)]
        np.testing.assert_array_equal(*marginals)
        if not expected:
            for ask in (decoder.decode, decoder.margins, *[decoder.log_partition] * decoder.has_marginals):
                with pytest.raises(InfeasibleError):
                    ask(lowered[:-1], arc_bonus=lowered[-1])
            continue
        assert decoder.decode(lowered[:-1], lowered[-1]).heads.tolist() == expected[0].heads.tolist()
        together = decoder.decode_together(lowered[None, :-1], [n], lowered[None, -1])
        assert together.heads[1 - len(expected[0].heads) :].tolist() == expected[0].heads[1:].tolist()
        values = [decoder.margins(one[:-1], one[-1]).values for one in (lowered, forbidden)]
        np.testing.assert_array_equal(*values)
        if derived:
            (again,) = decoder.derive_batch(lowered[None, :-1], [expected[0].heads])
            assert again.score == derived[0].score
        if decoder.has_marginals:
            for one, other in zip(*(decoder.part_marginals(x[:-1], x[-1]) for x in (lowered, forbidden)), strict=True):
                np.testing.assert_array_equal(one, other)


def test_three_thousand_short_of_the_best_tree():
    scores = np.zeros((1, 5, 5), np.float32)
    scores[0, :4, 1:4] = [[-60990, 7997, 829], [-139, -706809, 6782], [-327, 20759, -13416], [7130, 3362, -248794]]
    best = get_decoder("mst").decode(scores)
    assert (best.heads.tolist(), best.score) == ([-1, 2, 0, 1], 14452)


@pytest.mark.parametrize("name", ["mst", "eisner", "mh4-hybrid"])
def test_a_mask_that_forty_words_cannot_avoid(name):
    """Three words can only be heads of each other without a mask, so one mask must be paid; the scores choose which."""
    decoder, rng = get_decoder(name), np.random.default_rng(0)
    scores = rng.normal(size=(len(decoder.channels), 42, 42)).astype(np.float32)
    for mask in (-1e9, -1e30):
        bonus = np.zeros((42, 42))
        bonus[:, 4:7] = mask
        bonus[4:7, 4:7] = 0
        best, values, _ = decoder.margins(scores, bonus)
        single = [best.heads[d] not in (4, 5, 6) for d in (4, 5, 6)]
        assert single.count(True) == 1
        without = np.where(bonus == mask, -np.inf, bonus)
        expected = -np.inf
        for d in (4, 5, 6):
            for h in [*range(4), *range(7, 41)]:
                paid = without.copy()
                paid[h, d] = 0
                paid[[x for x in range(42) if x != h], d] = -np.inf
                expected = max(expected, decoder.decode(scores, paid).score)
        assert best.score - mask == pytest.approx(expected, abs=max(1e-3, 1e-15 * abs(mask)))
        assert decoder.k_best(scores, 2, bonus)[1].score == pytest.approx(best.score - values.min(), rel=1e-12)


def test_levels_add_up():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=40)
    values = noise + rng.choice([0, -1e9, 2e9, -999e9, -1e12, 3e4], 40)
    values[::7] = -np.inf
    *levels, rest = levels_of(values, 10)
    assert len(levels) == 3
    for level, unit in zip(levels, (999e9, 1e9, 3e4), strict=True):
        times = level[level != 0] / unit
        np.testing.assert_allclose(times, np.rint(times), rtol=1e-4)
    assert (np.abs(rest[rest > -np.inf]) < 100).all()
    np.testing.assert_allclose(sum(levels) + rest, values)
    assert len(levels_of(noise, 10)) == 1


@pytest.mark.parametrize("place", [(0, 0, 1, 2), (1, 0, 1, 2)], ids=["scores", "arc_bonus"])
def test_numbers_above_the_limit_are_noticed(place):
    numbers = np.zeros((2, 1, 5, 5), np.float32)
    for value, is_high in ((LARGE, False), (LARGE + 1, True), (-1e9, False), (-np.inf, False), (1e30, True)):
        numbers[place] = value
        assert check_numbers(numbers[0], numbers[1, 0]) == is_high
    for value in (LARGEST_SUM / 5, -LARGEST_SUM / 5, np.inf, np.nan):
        numbers[place] = value
        with pytest.raises(ValueError, match="too large to be summed"):
            check_numbers(numbers[0], numbers[1, 0])
