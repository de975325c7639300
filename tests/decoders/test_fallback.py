"""The fallbacks for a chart that is too large and for a beam that finds no allowed derivation."""

import numpy as np
import pytest

from mh4.decoders import ChartTooLargeError, InfeasibleError, UnsupportedError, decoder_names, get_decoder
from mh4.decoders.fallback import Fallback
from mh4.decoders.trees import is_tree, mark_arcs

CHARTS = [name for name in decoder_names() if name != "mst"]


def problem(decoder, n, seed=0, known=0.0):
    """Scores, an arc bonus that fixes the heads of a share ``known`` of the words, and these heads (−1: not fixed)."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(len(decoder.channels), n + 2, n + 2)).astype(np.float32)
    tree = get_decoder("eisner").decode(rng.normal(size=(1, n + 2, n + 2))).heads
    fixed = rng.random(n + 1) < known
    fixed[0] = False
    bonus = np.zeros((n + 2, n + 2), np.float32)
    only = np.full_like(bonus, -np.inf)
    mark_arcs(only, tree, 0.0)
    bonus[:, : n + 1][:, fixed] = only[:, : n + 1][:, fixed]
    return scores, bonus, np.where(fixed, tree, -1)


def without_room(name, n, search="exact", single_root=True):
    """A decoder whose memory limit is just too low for n words."""
    decoder = get_decoder(name, single_root=single_root, search=search)
    chart = decoder.chart if search != "exact" else decoder
    chart.memory_limit = chart.chart_bytes(n) - 1
    return decoder


@pytest.mark.parametrize("name", decoder_names())
def test_nothing_changes_where_the_chart_fits(name):
    decoder = get_decoder(name)
    fallback = Fallback(decoder)
    scores, bonus, _ = problem(decoder, 12, known=0.3)
    found, expected = fallback.decode(scores, bonus), decoder.decode(scores, bonus)
    assert (found.parts.tolist(), found.score) == (expected.parts.tolist(), expected.score)
    assert fallback.instead(12) is None
    assert fallback.chart_bytes(12) == decoder.chart_bytes(12)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("name", CHARTS)
def test_too_long_for_the_chart(name, single_root):
    decoder = without_room(name, 20, single_root=single_root)
    scores, bonus, _ = problem(decoder, 20)
    bonus[0, 1 : bonus.shape[0] - 1] += 5.0  # a root with several children is better
    with pytest.raises(ChartTooLargeError):
        decoder.decode(scores, bonus)
    fallback = Fallback(decoder)
    found = fallback.decode(scores, bonus)
    if "arc" in decoder.channels:
        assert fallback.instead(20) == "mst"
        expected = get_decoder("mst", single_root=single_root).decode(scores[:1], bonus)
    else:
        assert fallback.instead(20) == "beam:16"
        expected = get_decoder(name, single_root=single_root, search="beam:16").decode(scores, bonus)
    assert (np.count_nonzero(found.heads == 0) == 1) == single_root
    assert (found.parts.tolist(), found.score) == (expected.parts.tolist(), expected.score)
    assert (fallback.decode_batch(scores[None], [20], bonus[None])[0].heads == found.heads).all()


@pytest.mark.parametrize("name", ["mh3", "mh4-hybrid"])
def test_by_arcs(name):
    decoder = without_room(name, 20)
    fallback = Fallback(decoder, by_arcs=True)
    scores, _, _ = problem(decoder, 20)
    arcs = scores[0]
    found = fallback.decode(np.zeros_like(scores), arcs)
    expected = get_decoder("mst").decode(arcs[None])
    assert fallback.instead(20) == "mst"
    assert (found.heads == expected.heads).all()
    assert found.score == expected.score
    assert len(found.parts) == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_that_dies_out_leaves_it_to_the_chart(seed):
    beam = get_decoder("mh4-hybrid", search="greedy")
    scores, bonus, _ = problem(beam, 20, seed, known=1.0)
    with pytest.raises(InfeasibleError):
        beam.decode(scores, bonus)
    found, expected = Fallback(beam).decode(scores, bonus), beam.chart.decode(scores, bonus)
    assert (found.parts.tolist(), found.score) == (expected.parts.tolist(), expected.score)


@pytest.mark.parametrize("room", [True, False])
def test_a_beam_that_does_not_fit_is_replaced_by_the_chart_if_that_fits(room):
    beam = get_decoder("mh4-hybrid", search="beam:99999999")
    instead = beam.chart if room else get_decoder("mh4-hybrid", search="beam:16")
    beam.chart.memory_limit = beam.chart.chart_bytes(20) - (not room)
    scores, bonus, _ = problem(beam, 20)
    fallback = Fallback(beam)
    assert fallback.instead(20) == ("the exact chart" if room else "beam:16")
    found, expected = fallback.decode(scores, bonus), instead.decode(scores, bonus)
    assert (found.parts.tolist(), found.score) == (expected.parts.tolist(), expected.score)
    assert fallback.forest(scores, bonus).best.score == expected.score
    with pytest.raises(UnsupportedError, match="beam of 99999999> need not find the best tree"):
        _ = fallback.forest(scores, bonus).margins


@pytest.mark.parametrize("search", ["exact", "greedy"])
@pytest.mark.parametrize("known", [0.5, 1.0])
def test_where_not_even_the_chart_fits_the_allowed_arcs_are_kept(search, known):
    decoder = without_room("mh4-hybrid", 60, search)
    scores, bonus, heads = problem(decoder, 60, known=known)
    with pytest.raises(InfeasibleError):
        get_decoder("mh4-hybrid", search=search if search == "greedy" else "beam:16").decode(scores, bonus)
    found = Fallback(decoder).decode(scores, bonus)
    assert (found.heads[heads >= 0] == heads[heads >= 0]).all()
    assert is_tree(found.heads, single_root=True)
    assert len(found.parts) == found.score == 0


@pytest.mark.parametrize("search", ["exact", "greedy"])
@pytest.mark.parametrize("room", [True, False])
def test_no_tree_of_allowed_arcs(search, room):
    decoder = get_decoder("mh4-two", search=search) if room else without_room("mh4-two", 9, search)
    scores, bonus, _ = problem(decoder, 9)
    bonus[:, 4] = -np.inf
    with pytest.raises(InfeasibleError, match="mh4-two"):
        Fallback(decoder).decode(scores, bonus)
    with pytest.raises(InfeasibleError, match="mh4-two"):
        Fallback(decoder).decode(np.full_like(scores, -np.inf))
