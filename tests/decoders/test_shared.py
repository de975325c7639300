"""Constants that all trees share do not change the best tree, however large they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_contract import NAMES, every_decoder, random_bonus, random_scores

from mh4.decoders import get_decoder

constants = st.integers(-(10**9), 10**9)
lengths = st.integers(1, 8)
seeds = st.integers(0, 2**32 - 1)


@every_decoder
@settings(max_examples=15)
@given(n=lengths, seed=seeds, data=st.data(), ties=st.booleans(), single_root=st.booleans())
def test_a_constant_on_the_arcs_to_a_word_changes_no_tree(name, n, seed, data, ties, single_root):
    decoder = get_decoder(name, single_root)
    # In sixteenths, sums are exact, so ties remain ties.
    scores = np.round(16 * random_scores(decoder, n, seed, ties)) / 16
    bonus = random_bonus(n, seed).astype(np.float64)
    found = decoder.decode(scores, bonus)
    constant = np.array([0, *data.draw(st.lists(constants, min_size=n, max_size=n)), 0])
    moved = decoder.decode(scores, bonus + constant)
    assert moved.heads.tolist() == found.heads.tolist()
    assert moved.parts.tolist() == found.parts.tolist()
    assert moved.score == pytest.approx(found.score + constant.sum(), abs=1e-5)


@every_decoder
@settings(max_examples=15)
@given(n=lengths, seed=seeds, data=st.data(), large=st.sampled_from([1e6, 1e9]))
def test_constants_on_scores_that_all_derivations_share_change_no_tree(name, n, seed, data, large):
    decoder = get_decoder(name)
    scores = (np.round(16 * random_scores(decoder, n, seed)) / 16).astype(np.float64)
    found = decoder.decode(scores)
    moved, added = scores.copy(), 0.0
    for group in decoder.shared:
        constant = large * np.array([0, *data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), 0])
        if group[0][1] == "all":
            constant[:] = constant[1]
        added += constant[1:-1].sum()
        for channel, axis in group:
            matrix = moved[decoder.channels.index(channel)]
            matrix += constant[:, None] if axis == "row" else constant[1] if axis == "all" else constant
    again = decoder.decode(moved)
    assert again.heads.tolist() == found.heads.tolist()
    assert again.score == pytest.approx(found.score + added, abs=1e-3)


@every_decoder
def test_float32_scores_below_a_large_constant_decide(name):
    """The scores and the constant in the bonus are exact, but their float32 sums would not be."""
    decoder = get_decoder(name)
    scores, large = random_scores(decoder, 12, 0), np.full((14, 14), 1e6, np.float32)
    assert (decoder.decode(scores, large).heads == decoder.decode(scores).heads).all()
    assert (decoder.decode(scores, -1000 * large).heads == decoder.decode(scores).heads).all()


@every_decoder
@pytest.mark.parametrize("constant", [1e9, -1e9])
def test_a_constant_on_the_arcs_from_a_single_root_is_subtracted(name, constant, monkeypatch):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 10, 0), np.zeros((12, 12))
    bonus[0] = constant
    monkeypatch.setattr("mh4.decoders.forest.best_of_large", lambda *arguments: pytest.fail("numbers are still large"))
    assert (decoder.decode(scores, bonus).heads == decoder.decode(scores).heads).all()


@pytest.mark.parametrize("name", [name for name in NAMES if get_decoder(name).channels == ("arc",)])
def test_a_penalty_that_one_arc_of_the_root_must_pay_hides_nothing(name):
    decoder = get_decoder(name)
    for seed in range(20):
        scores, bonus = random_scores(decoder, 10, seed), np.zeros((12, 12))
        bonus[0] = -1e9
        assert (decoder.decode(scores, bonus).heads == decoder.decode(scores).heads).all()


@every_decoder
@pytest.mark.filterwarnings("error")
def test_float64_below_the_smallest_float32_forbids(name):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 6, 0), np.zeros((8, 8))
    taken = decoder.decode(scores).heads[3]
    bonus[taken, 3] = -np.inf
    forbidden = decoder.decode(scores, bonus)
    bonus[taken, 3] = -1e300
    assert decoder.decode(scores, bonus).heads.tolist() == forbidden.heads.tolist()
    bonus[taken, 3] = 1e300
    with pytest.raises(ValueError, match="too large to be summed"):
        decoder.decode(scores, bonus)


@every_decoder
@settings(max_examples=15)
@given(n=st.integers(1, 9), seed=seeds)
def test_every_derivation_has_the_shared_parts(name, n, seed):
    decoder = get_decoder(name)
    parts = decoder.decode(random_scores(decoder, n, seed)).parts.tolist()
    for group in decoder.shared:
        axes = {decoder.channels.index(channel): axis for channel, axis in group}
        of_group = [part for part in parts if part[0] in axes]
        if "all" in axes.values():
            assert len(of_group) == n
        else:
            words = [part[1] if axes[part[0]] == "row" else part[2] for part in of_group]
            assert sorted(words) == list(range(1, n + 1))
