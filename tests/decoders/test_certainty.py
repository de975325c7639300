"""Max-marginals, margins and k-best trees: against enumeration for a few words, against each other for more."""

from concurrent.futures import ThreadPoolExecutor

import enumerated
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mh4.decoders import ChartTooLargeError, InfeasibleError, UnsupportedError, decoder_names, get_decoder
from mh4.decoders.decoder import WITH_MARGINALS
from mh4.decoders.fallback import Fallback
from mh4.decoders.lanes import scratch

NAMES = decoder_names()
EXAMPLES = 40
LENGTHS = range(1, 6)
every_decoder = pytest.mark.parametrize("name", NAMES)
kinds = st.sampled_from(["normal", "ties", "forbid", "given"])


def problem(name, n, seed, kind="normal"):
    """Random scores and arc bonus.

    Kind "ties" draws small integers, "forbid" forbids a quarter of the parts and arcs, "given" fixes 40% of the heads.
    """
    rng = np.random.default_rng(seed)
    shape = (len(get_decoder(name).channels) + 1, n + 2, n + 2)
    numbers = (rng.integers(-2, 3, shape) if kind == "ties" else rng.normal(size=shape)).astype(np.float32)
    if kind == "forbid":
        numbers[rng.random(shape) < 0.25] = -np.inf
    if kind == "given":
        for d in range(1, n + 1):
            if rng.random() < 0.4:
                numbers[-1, np.arange(n + 2) != rng.integers(n + 1), d] = -np.inf
    return numbers[:-1], numbers[-1]


def check_max_marginals(name, n, seed, kind, single_root):
    scores, bonus = problem(name, n, seed, kind)
    expected = enumerated.max_marginals(name, scores, bonus, single_root)
    found = get_decoder(name, single_root).max_marginals(scores, bonus)
    assert found.dtype == np.float32
    assert found.shape == bonus.shape
    np.testing.assert_allclose(found, expected, atol=1e-4)


def check_margins(name, n, seed, kind, single_root):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, n, seed, kind)
    expected = enumerated.max_marginals(name, scores, bonus, single_root)
    if not np.isfinite(expected).any():
        with pytest.raises(InfeasibleError):
            decoder.margins(scores, bonus)
        return
    best, values, heads = decoder.margins(scores, bonus)
    assert best.heads.tolist() == decoder.decode(scores, bonus).heads.tolist()
    assert (values[0], heads[0]) == (np.inf, -1)
    for d in range(1, n + 1):
        others = expected[:, d].copy()
        others[best.heads[d]] = -np.inf
        assert values[d] == pytest.approx(best.score - others.max(), abs=1e-4)
        assert values[d] >= 0
        assert heads[d] == -1 if values[d] == np.inf else others[heads[d]] == pytest.approx(others.max(), abs=1e-4)


def check_k_best(name, n, seed, kind, single_root, k):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, n, seed, kind)
    before = bonus.copy()
    heads, totals = enumerated.trees(name, scores, bonus, single_root)
    found = decoder.k_best(scores, k, bonus)
    assert (bonus == before).all()
    assert [one.score for one in found] == pytest.approx(totals[:k].tolist(), abs=1e-4)
    score_of = dict(zip(map(tuple, heads.tolist()), totals, strict=True))
    assert len({tuple(one.heads) for one in found}) == len(found)
    for one in found:
        assert one.score == pytest.approx(score_of[tuple(one.heads)], abs=1e-4)
    if found:
        assert found[0].heads.tolist() == decoder.decode(scores, bonus).heads.tolist()


@every_decoder
def test_slow_margins_take_a_decode_per_word(name, monkeypatch):
    decoder, runs = get_decoder(name), []
    run = type(decoder)._run
    monkeypatch.setattr(type(decoder), "_run", lambda self, *arguments: runs.append(1) or run(self, *arguments))
    decoder.margins(*problem(name, 12, 1))
    assert (len(runs) <= 2) == decoder.has_fast_margins


@every_decoder
@given(n=st.sampled_from(LENGTHS), seed=st.integers(0, 2**32 - 1), kind=kinds, single_root=st.booleans())
@settings(max_examples=EXAMPLES)
def test_max_marginals_are_the_best_of_all_trees_with_the_arc(name, n, seed, kind, single_root):
    check_max_marginals(name, n, seed, kind, single_root)


@every_decoder
@given(n=st.sampled_from(LENGTHS), seed=st.integers(0, 2**32 - 1), kind=kinds, single_root=st.booleans())
@settings(max_examples=EXAMPLES)
def test_margins_are_the_distance_to_the_best_tree_with_another_head(name, n, seed, kind, single_root):
    check_margins(name, n, seed, kind, single_root)


@every_decoder
@given(
    n=st.sampled_from(LENGTHS),
    seed=st.integers(0, 2**32 - 1),
    kind=kinds,
    single_root=st.booleans(),
    k=st.sampled_from([1, 2, 5, 20]),
)
@settings(max_examples=EXAMPLES)
def test_k_best_lists_the_k_best_of_all_trees(name, n, seed, kind, single_root, k):
    check_k_best(name, n, seed, kind, single_root, k)


@pytest.mark.slow
@every_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", ["normal", "ties", "forbid", "given"])
def test_six_words(name, kind, single_root):
    for seed in range(3):
        check_max_marginals(name, 6, seed, kind, single_root)
        check_margins(name, 6, seed, kind, single_root)
        check_k_best(name, 6, seed, kind, single_root, 30)


@every_decoder
def test_a_batch_says_what_its_sentences_say(name):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 6, 1)
    found = decoder.margins_batch(np.stack([scores, scores]), [6, 4], np.stack([bonus, bonus]), threads=2)
    for n, own in zip((6, 4), found, strict=True):
        alone = decoder.margins(scores[:, : n + 2, : n + 2], bonus[: n + 2, : n + 2])
        assert own.derivation.heads.tolist() == alone.derivation.heads.tolist()
        assert own.values.tolist() == alone.values.tolist()
        assert own.heads.tolist() == alone.heads.tolist()


def test_an_approximate_search_is_not_certain():
    scores, bonus = problem("mh3", 4, 0)
    beam = get_decoder("mh3", search="beam:4")
    for ask in (beam.max_marginals, beam.margins, lambda scores, bonus: beam.k_best(scores, 2, bonus)):
        with pytest.raises(UnsupportedError, match="beam of 4"):
            ask(scores, bonus)


@pytest.mark.parametrize("name", ["1ec", "1ec-first-order"])
def test_what_a_decoder_has_not_is_said_with_those_that_have_it(name):
    decoder = get_decoder(name)
    scores, _ = problem(name, 4, 0)
    assert tuple(other for other in decoder_names() if get_decoder(other).has_marginals) == WITH_MARGINALS
    for ask in (decoder.marginals, decoder.log_partition, decoder.part_marginals, lambda s: decoder.sample(s, 1)):
        with pytest.raises(UnsupportedError, match=f"{name} .*these have: {', '.join(WITH_MARGINALS)}$"):
            ask(scores)


@every_decoder
@pytest.mark.parametrize("constant", [1e7, -1e9])
def test_large_constants_that_all_trees_share_cost_no_precision(name, constant):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 5, 2, "ties")
    expected = decoder.margins(scores, bonus)
    raised = bonus.astype(np.float64) + constant
    found = decoder.margins(scores, raised)
    assert found.values == pytest.approx(expected.values, abs=1e-3)
    assert [one.heads.tolist() for one in decoder.k_best(scores, 3, raised)] == [
        one.heads.tolist() for one in decoder.k_best(scores, 3, bonus)
    ]
    assert [one.score for one in decoder.k_best(scores, 3, raised)] == pytest.approx(
        [one.score + 5 * constant for one in decoder.k_best(scores, 3, bonus)], rel=1e-12
    )
    np.testing.assert_allclose(
        decoder.max_marginals(scores, raised), decoder.max_marginals(scores, bonus) + 5 * constant, rtol=1e-6
    )


def test_fewer_than_one_tree():
    scores, _ = problem("mst", 4, 0)
    with pytest.raises(ValueError, match="k must be at least 1"):
        get_decoder("mst").k_best(scores, 0)


def test_behind_a_fallback():
    decoder = get_decoder("eisner")
    scores, bonus = problem("eisner", 8, 0)
    fallback = Fallback(decoder)
    assert fallback.margins(scores, bonus).values.tolist() == decoder.margins(scores, bonus).values.tolist()
    assert (fallback.max_marginals(scores, bonus) == decoder.max_marginals(scores, bonus)).all()
    decoder.memory_limit = decoder.chart_bytes(8) - 1
    with pytest.raises(UnsupportedError, match="mst stands in"):
        Fallback(decoder).margins(scores, bonus)


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 13, 14, 15, 30])
def test_what_memory_holds_from_before_does_not_matter(name, n):
    decoder = get_decoder(name)
    scores, bonus = problem(name, n, 0, "normal")
    expected = decoder.max_marginals(scores, bonus)
    assert np.isfinite(expected).any()
    for garbage in (np.nan, np.inf, 3e38):
        scratch(decoder.outside_bytes(n) // 4)[:] = garbage
        assert (decoder.max_marginals(scores, bonus) == expected).all()


@pytest.mark.parametrize("name", ["eisner", "mh3", "mh4-two", "mh4-hybrid"])
def test_an_outside_pass_takes_little_more_than_two_charts(name):
    decoder = get_decoder(name)
    for n in (20, 40, 100, 400):
        assert decoder.chart_bytes(n) < decoder.outside_bytes(n) <= 2.2 * decoder.chart_bytes(n)


@pytest.mark.parametrize(
    ("n", "limit", "sizes"),
    [
        (50, 1 << 19, r"takes 0\.\d MiB, the limit is 0\.5 MiB"),
        (1300, 3 << 29, r"takes \d\.\d GiB, the limit is 1\.5 GiB"),
    ],
)
def test_errors_show_sizes_in_a_unit_that_fits(n, limit, sizes):
    decoder = get_decoder("mh4-two", memory_limit=limit)
    with pytest.raises(ChartTooLargeError, match=sizes):
        decoder.decode(np.zeros((7, n + 2, n + 2), np.float32))


def test_no_room_for_an_outside_pass():
    decoder = get_decoder("mh4-hybrid")
    scores, bonus = problem("mh4-hybrid", 20, 0)
    decoder.memory_limit = decoder.outside_bytes(20) - 1
    assert decoder.fits(20)
    for ask in (decoder.max_marginals, decoder.margins, lambda scores, bonus: decoder.k_best(scores, 2, bonus)):
        with pytest.raises(ChartTooLargeError, match=r"of 20 words take \d\.\d MiB, the limit is \d\.\d MiB"):
            ask(scores, bonus)


def test_threads_ask_at_once():
    decoder = get_decoder("mh4-hybrid")
    problems = [problem("mh4-hybrid", n, n) for n in range(10, 30)]
    expected = [decoder.margins(*one).values.tolist() for one in problems]
    with ThreadPoolExecutor(4) as pool:
        assert [one.values.tolist() for one in pool.map(lambda one: decoder.margins(*one), problems)] == expected
