"""The contract that every decoder fulfils, whatever its class of trees and its scores."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mh4.decoders import InfeasibleError, decoder_names, eisner, get_decoder
from mh4.decoders import decoder as decoder_module
from mh4.decoders.closest import closest_tree
from mh4.decoders.one_endpoint_crossing import is_one_endpoint_crossing
from mh4.decoders.trees import is_projective, is_tree, mark_arcs

NAMES = decoder_names()
PROJECTIVE = [name for name in ("eisner", "mh3") if name in NAMES]
NONPROJECTIVE = [name for name in NAMES if name not in PROJECTIVE]
SEARCHES = [(name, "exact") for name in NAMES] + [("mh3", "greedy"), ("mh4-two", "beam:4"), ("mh4-hybrid", "beam:4")]

every_decoder = pytest.mark.parametrize("name", NAMES)
every_search = pytest.mark.parametrize(("name", "search"), SEARCHES)
lengths = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)


def random_scores(decoder, n, seed, ties=False):
    rng = np.random.default_rng(seed)
    shape = (len(decoder.channels), n + 2, n + 2)
    return (rng.integers(-2, 3, shape) if ties else rng.normal(size=shape)).astype(np.float32)


def random_bonus(n, seed, forbid=0.0):
    rng = np.random.default_rng([seed, 1])
    bonus = rng.integers(-3, 4, (n + 2, n + 2)).astype(np.float32)
    bonus[rng.random(bonus.shape) < forbid] = -np.inf
    return bonus


def only(heads, otherwise=-np.inf, there=0.0):
    """An arc bonus that is ``there`` on the arcs of a tree and ``otherwise`` on all other arcs."""
    bonus = np.full((len(heads) + 1, len(heads) + 1), otherwise, np.float32)
    mark_arcs(bonus, heads, there)
    return bonus


@every_search
@given(n=lengths, seed=seeds, ties=st.booleans(), single_root=st.booleans(), forbid=st.sampled_from([0, 0.1, 0.4]))
def test_a_derivation_is_a_tree_and_its_score_the_sum_of_its_parts(name, search, n, seed, ties, single_root, forbid):
    decoder = get_decoder(name, single_root, search=search)
    scores, bonus = random_scores(decoder, n, seed, ties), random_bonus(n, seed, forbid)
    try:
        found = decoder.decode(scores, bonus)
    except InfeasibleError:
        assume(False)
    assert found.heads.dtype == found.parts.dtype == np.int32
    assert found.heads.shape == (n + 1,)
    assert found.parts.shape[1:] == (3,)
    assert is_tree(found.heads, single_root)
    if name in PROJECTIVE:
        assert is_projective(found.heads)
    arcs = [bonus[h, d] for d, h in enumerate(found.heads) if d > 0]
    assert np.isfinite(arcs).all()
    assert found.score == pytest.approx(sum(float(scores[tuple(p)]) for p in found.parts) + sum(map(float, arcs)))


@every_decoder
@given(n=lengths, seed=seeds, single_root=st.booleans())
def test_no_bonus_is_a_bonus_of_zero(name, n, seed, single_root):
    decoder = get_decoder(name, single_root)
    scores = random_scores(decoder, n, seed)
    plain, zero = decoder.decode(scores), decoder.decode(scores, np.zeros((n + 2, n + 2)))
    assert (plain.heads == zero.heads).all()
    assert plain.score == zero.score


@every_decoder
def test_any_number_of_root_children_on_request(name):
    bonus = only(np.zeros(6, np.int32), otherwise=0.0, there=1.0)
    scores = random_scores(get_decoder(name), 5, 0) * 0
    assert get_decoder(name, single_root=False).decode(scores, bonus).heads.tolist() == [-1, 0, 0, 0, 0, 0]
    assert get_decoder(name).decode(scores, bonus).score == 1


@given(n=lengths, seed=seeds, single_root=st.booleans(), forbid=st.sampled_from([0, 0.3]))
def test_a_larger_class_of_trees_has_a_better_best_tree(n, seed, single_root, forbid):
    """With scores of arcs alone, given as a bonus, the best scores are ordered mst ≥ mh4 ≥ mh3 = eisner."""
    bonus = random_bonus(n, seed, forbid) + random_scores(get_decoder("mst"), n, seed)[0]
    best = {}
    for name in ("mst", "mh4-two", "mh4-hybrid", "mh3", "eisner"):
        decoder = get_decoder(name, single_root)
        try:
            best[name] = decoder.decode(np.zeros((len(decoder.channels), n + 2, n + 2), np.float32), bonus).score
        except InfeasibleError:
            best[name] = -np.inf
    assert best["mst"] >= best["mh4-two"] - 1e-5
    assert best["mh4-two"] >= best["mh3"] - 1e-5
    assert best["mh4-two"] == pytest.approx(best["mh4-hybrid"], abs=1e-5)
    assert best["mh3"] == pytest.approx(best["eisner"], abs=1e-5)


@cache
def transition_trees(n):
    return {heads for heads, _ in naive.transition_sequences("mh4-two", n)}


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
@given(n=st.integers(1, 5), seed=seeds, single_root=st.booleans())
def test_mh4_trees_are_trees_of_the_transition_system(name, n, seed, single_root):
    decoder = get_decoder(name, single_root)
    assert tuple(decoder.decode(random_scores(decoder, n, seed)).heads) in transition_trees(n)


@pytest.mark.parametrize("name", NONPROJECTIVE)
def test_crossing_arcs_are_in_reach(name):
    heads = np.array([-1, 3, 0, 2])
    decoder = get_decoder(name)
    assert decoder.decode(random_scores(decoder, 3, 0), only(heads)).heads.tolist() == heads.tolist()


@every_decoder
@given(n=lengths, seed=seeds, single_root=st.booleans())
def test_decoding_restricted_to_a_tree_returns_it(name, n, seed, single_root):
    decoder = get_decoder(name, single_root)
    gold = decoder.decode(random_scores(decoder, n, seed)).heads
    scores = random_scores(decoder, n, seed + 1)
    found = decoder.decode(scores, only(gold))
    assert (found.heads == gold).all()
    assert found.score <= decoder.decode(scores).score + 1e-5


@every_decoder
@given(sizes=st.lists(lengths, min_size=1, max_size=3), seed=seeds)
def test_the_best_derivation_of_a_tree_is_that_of_decoding_restricted_to_it(name, sizes, seed):
    decoder = get_decoder(name)
    scores = np.random.default_rng(seed).normal(
        size=(len(sizes), len(decoder.channels), max(sizes) + 2, max(sizes) + 2)
    )
    scores = scores.astype(np.float32)
    trees = [decoder.decode(random_scores(decoder, n, seed + b)).heads for b, n in enumerate(sizes)]
    for own, tree, found in zip(scores, trees, decoder.derive_batch(scores, trees), strict=True):
        wanted = decoder.decode(own[:, : len(tree) + 1, : len(tree) + 1], only(tree))
        assert (found.heads == tree).all()
        assert sorted(found.parts.tolist()) == sorted(wanted.parts.tolist())
        assert found.score == pytest.approx(wanted.score, abs=1e-4)


@every_decoder
def test_a_tree_that_is_not_allowed_has_no_derivation(name):
    decoder = get_decoder(name)
    scores = random_scores(decoder, 3, 0)[None]
    with pytest.raises(InfeasibleError):
        decoder.derive_batch(scores, [np.array([-1, 0, 0, 2])])  # two words below the root
    tree = np.array([-1, 2, 0, 2])
    [derivation] = decoder.derive_batch(scores, [tree])
    assert derivation.heads.dtype == np.int32
    assert derivation.heads is not tree
    scores[(0, *derivation.parts[0])] = -np.inf
    with pytest.raises(InfeasibleError):
        decoder.derive_batch(scores, [tree])


@every_decoder
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_tree_has_no_derivation_of_scores_that_are_no_numbers(name, value):
    decoder = get_decoder(name)
    with pytest.raises(ValueError, match="NaN"):
        decoder.derive_batch(np.full((1, len(decoder.channels), 5, 5), value), [np.array([-1, 2, 0, 2])])


@every_decoder
def test_lists_and_other_byte_orders_are_arrays_too(name):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 3, 0)[None], random_bonus(3, 0)[None]
    [wanted] = decoder.decode_batch(scores, [3], bonus)
    [found] = decoder.decode_batch(scores.tolist(), [3], bonus.tolist())
    assert found.score == wanted.score
    heads = np.array([-1, 2, 0, 2])
    assert closest_tree(heads.astype(">i4"), decoder).tolist() == heads.tolist()


@pytest.mark.parametrize("name", ["1ec", "1ec-first-order"])
def test_other_trees_than_those_of_the_class_have_no_derivation(name):
    decoder = get_decoder(name)
    scores = random_scores(decoder, 6, 0)[None]
    two_pairs_cross = np.array([-1, 4, 5, 0, 3, 3, 2])
    assert not is_one_endpoint_crossing(two_pairs_cross)
    with pytest.raises(ValueError, match="not a 1-endpoint-crossing tree"):
        decoder.derive_batch(scores, [two_pairs_cross])


@every_decoder
@given(n=lengths, seed=seeds, single_root=st.booleans())
def test_the_closest_tree_of_a_tree_in_the_class_is_itself(name, n, seed, single_root):
    decoder = get_decoder(name, single_root)
    heads = decoder.decode(random_scores(decoder, n, seed)).heads
    assert (closest_tree(heads, decoder) == heads).all()


@pytest.mark.parametrize("name", PROJECTIVE)
@given(n=st.integers(3, 5), seed=seeds, single_root=st.booleans())
def test_the_closest_projective_tree_shares_most_arcs(name, n, seed, single_root):
    trees = naive.all_trees(n)
    heads = trees[seed % len(trees)]
    found = closest_tree(heads, get_decoder(name, single_root))
    shared = (naive.all_trees(n, single_root, projective=True)[:, 1:] == heads[1:]).sum(axis=1).max()
    assert (found[1:] == heads[1:]).sum() == shared


@every_search
@pytest.mark.parametrize("threads", [1, 2, 3, None])
def test_a_batch_decodes_as_its_sentences_do(name, search, threads, monkeypatch):
    monkeypatch.setattr(decoder_module, "THREADED_BYTES", 0)
    decoder = get_decoder(name, search=search)
    sizes = [4, 9, 1, 7, 9, 2]
    rng = np.random.default_rng(7)
    scores = rng.normal(size=(len(sizes), len(decoder.channels), 11, 11)).astype(np.float32)
    bonus = rng.integers(-2, 3, (len(sizes), 11, 11)).astype(np.float32)
    for b, n in enumerate(sizes):  # padding must be ignored
        scores[b, :, n + 2 :] = scores[b, :, :, n + 2 :] = 1e6
        bonus[b, n + 2 :] = bonus[b, :, n + 2 :] = 1e6
    batch = decoder.decode_batch(scores, sizes, bonus, threads=threads)
    for b, n in enumerate(sizes):
        alone = decoder.decode(scores[b, :, : n + 2, : n + 2], bonus[b, : n + 2, : n + 2])
        assert (batch[b].heads == alone.heads).all()
        assert (batch[b].parts == alone.parts).all()
        assert batch[b].score == alone.score
    bonus[1, :, 2] += 2.0**30  # in every tree of sentence 1
    batch = decoder.decode_batch(scores, sizes, bonus, threads=threads)
    together = decoder.decode_together(scores, sizes, bonus, threads=threads)
    assert together.counts.tolist() == [len(derivation.parts) for derivation in batch]
    assert together.totals.tolist() == [derivation.score for derivation in batch]
    for (heads, parts), derivation in zip(together.each(), batch, strict=True):
        assert (heads == derivation.heads).all()
        assert (parts[: len(derivation.parts)] == derivation.parts).all()
    with pytest.raises(ValueError, match="arc_bonus must have shape"):
        decoder.decode_together(scores, sizes, bonus[:, 1:], threads=threads)
    bonus[4, :, 3] = -np.inf
    with pytest.raises(InfeasibleError):
        decoder.decode_together(scores, sizes, bonus, threads=threads)
    plain = decoder.decode_batch(scores, np.array(sizes), threads=threads)
    assert [len(d.heads) for d in plain] == [n + 1 for n in sizes]


def test_threads_are_for_long_sentences(monkeypatch):
    used = []

    class Pool(ThreadPoolExecutor):
        def map(self, function, items):
            used.append(True)
            return super().map(function, items)

    monkeypatch.setattr(decoder_module, "_thread_pool", Pool)
    decoder = get_decoder("mh4-hybrid")
    for n, expected in ((20, False), (100, True)):
        decoder.decode_batch(np.zeros((3, len(decoder.channels), n + 2, n + 2), np.float32), [n] * 3, threads=2)
        assert bool(used) == expected


@every_decoder
def test_an_empty_batch(name):
    decoder = get_decoder(name)
    assert decoder.decode_batch(np.zeros((0, len(decoder.channels), 5, 5), np.float32), []) == []


@every_search
def test_an_error_in_a_batch_is_not_swallowed(name, search, monkeypatch):
    monkeypatch.setattr(decoder_module, "THREADED_BYTES", 0)
    decoder = get_decoder(name, search=search)
    bonus = np.zeros((3, 6, 6), np.float32)
    bonus[1] = -np.inf
    with pytest.raises(InfeasibleError):
        decoder.decode_batch(np.zeros((3, len(decoder.channels), 6, 6), np.float32), [4, 4, 4], bonus, threads=2)


@every_search
@pytest.mark.parametrize("single_root", [True, False])
def test_a_word_without_a_head_is_infeasible(name, search, single_root):
    decoder = get_decoder(name, single_root, search=search)
    bonus = np.zeros((6, 6), np.float32)
    bonus[:, 2] = -np.inf
    with pytest.raises(InfeasibleError, match=name):
        decoder.decode(random_scores(decoder, 4, 0), bonus)


@every_decoder
def test_two_words_that_only_the_root_may_head_are_infeasible_with_one_root_child(name):
    heads = np.array([-1, 0, 0])
    scores = random_scores(get_decoder(name), 2, 0)
    with pytest.raises(InfeasibleError):
        get_decoder(name).decode(scores, only(heads))
    assert (get_decoder(name, single_root=False).decode(scores, only(heads)).heads == heads).all()


@every_decoder
@pytest.mark.parametrize("mask", [-1e6, -1e9, -1e30, -3.3e38])
@pytest.mark.parametrize("n", [2, 5])
def test_a_large_negative_number_forbids_as_infinity_does(name, n, mask):
    """Only the root may head word 2; keeping other words from the root must not cost the scores their precision."""
    decoder = get_decoder(name)
    for seed in range(5):
        scores, bonus = random_scores(decoder, n, seed), np.zeros((n + 2, n + 2), np.float32)
        bonus[1:, 2] = mask
        assert decoder.decode(scores, bonus).score == pytest.approx(
            decoder.decode(scores, np.where(bonus < 0, -np.inf, 0)).score, abs=1e-4
        )


@pytest.mark.parametrize("name", ["1ec", "1ec-first-order"])
@pytest.mark.parametrize("forbidden", [-np.inf, -3.3e38])
def test_that_there_is_no_tree_with_one_root_child_is_soon_found_out(name, forbidden, monkeypatch):
    decoder = get_decoder(name)
    fill, fills = type(decoder)._fill, []
    monkeypatch.setattr(type(decoder), "_fill", lambda *arguments: (fills.append(1), fill(*arguments)))
    scores = random_scores(decoder, 4, 0)
    scores[-1, 3, 4] = -1e30
    bonus = np.zeros((6, 6), np.float32)
    bonus[1:, 1:3] = forbidden
    with pytest.raises(InfeasibleError):
        decoder.decode(scores, bonus)
    assert len(fills) <= 4


@pytest.mark.parametrize("name", ["1ec", "1ec-first-order"])
@pytest.mark.parametrize("attraction", [1.0, 100.0, 1e4])
def test_one_root_child_however_attractive_the_root_is(name, attraction):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 4, 0, ties=True), np.zeros((6, 6), np.float32)
    bonus[0] = attraction
    found = decoder.decode(scores, bonus)
    assert is_tree(found.heads, single_root=True)
    assert found.score - attraction == decoder.decode(scores).score


@every_decoder
def test_a_cycle_is_infeasible(name):
    with pytest.raises(InfeasibleError):
        get_decoder(name).decode(random_scores(get_decoder(name), 3, 0), only(np.array([-1, 2, 1, 0])))


@every_decoder
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(name, value):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 4, 0), random_bonus(4, 0)
    for array in (scores[-1], bonus):
        kept, array[1, 2] = array[1, 2], value
        array[2, 1] = -np.inf  # −inf + inf would be NaN
        with pytest.raises(ValueError, match="NaN"):
            decoder.decode(scores, bonus)
        array[1, 2] = kept
    assert is_tree(decoder.decode(scores, bonus).heads)


@every_search
def test_numbers_whose_sums_leave_float32_are_refused(name, search):
    decoder = get_decoder(name, search=search)
    for value in (3e38, -3e38, np.finfo(np.float32).max, 2.0**121 / 6):
        scores = random_scores(decoder, 4, 0)
        scores[0, 1, 2] = value
        with pytest.raises(ValueError, match="too large"):
            decoder.decode(scores)
    scores = np.full((len(decoder.channels), 6, 6), 2.0**120 / 6, np.float32)
    assert np.isfinite(decoder.decode(scores).score)
    assert np.isfinite(decoder.decode(-scores).score)


@every_decoder
def test_wrong_shapes_name_what_is_wanted(name):
    decoder = get_decoder(name)
    count = len(decoder.channels)
    for shape in [(count + 1, 5, 5), (count, 5, 6), (5, 5)]:
        with pytest.raises(ValueError, match="shape") as caught:
            decoder.decode(np.zeros(shape, np.float32))
        assert ", ".join(decoder.channels) in str(caught.value)
    with pytest.raises(ValueError, match="no word"):
        decoder.decode(np.zeros((count, 2, 2), np.float32))
    with pytest.raises(ValueError, match="arc_bonus"):
        decoder.decode(np.zeros((count, 5, 5), np.float32), np.zeros((4, 4), np.float32))
    batch = np.zeros((2, count, 5, 5), np.float32)
    with pytest.raises(ValueError, match="2 score tensors but 1 lengths"):
        decoder.decode_batch(batch, [3])
    for length in (4, 0, -3):
        with pytest.raises(ValueError, match=f"{length} words does not fit"):
            decoder.decode_batch(batch, [3, length])
    with pytest.raises(TypeError):
        decoder.decode_batch(batch, [3, 2.5])
    with pytest.raises(ValueError, match=r"shape \(B, "):
        decoder.decode_batch(batch[0], [3] * count)
    with pytest.raises(ValueError, match="arc_bonus"):
        decoder.decode_batch(batch, [3, 3], np.zeros((3, 5, 5), np.float32))
    for threads in (0, -1):
        with pytest.raises(ValueError, match=f"at least one thread; got {threads}"):
            decoder.decode_batch(batch, [3, 3], threads=threads)
    for trees in ([np.array([-1, 0, 1, 2])], [np.array([-1, 0, 1, 2]), np.array([-1, 0, 1, 2, 3])]):
        with pytest.raises(ValueError, match=r"score tensors but|does not fit"):
            decoder.derive_batch(batch, trees)
    with pytest.raises(ValueError, match=r"shape \(B, "):
        decoder.derive_batch(np.zeros((1, count + 1, 5, 5)), [np.array([-1, 0, 1, 2])])
    with pytest.raises(ValueError, match="not a tree"):
        closest_tree(np.array([-1, 2, 1]), decoder)


@every_decoder
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_number_types_and_layouts_are_converted(name, dtype):
    decoder = get_decoder(name)
    scores = random_scores(decoder, 6, 0, ties=True)
    expected = decoder.decode(scores)
    strange = np.asfortranarray(scores.astype(dtype))
    assert (decoder.decode(strange).heads == expected.heads).all()
    scores.flags.writeable = False
    assert (decoder.decode(scores, np.broadcast_to(np.float32(0), (8, 8))).heads == expected.heads).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_tensors_of_any_type_are_converted(dtype):
    torch = pytest.importorskip("torch")
    decoder = get_decoder("mst")
    tensor = torch.tensor(random_scores(decoder, 4, 0, ties=True)).to(getattr(torch, dtype)).requires_grad_()
    bonus = torch.zeros(6, 6, dtype=tensor.dtype).requires_grad_()
    scores = tensor.detach().double().numpy()
    expected = decoder.decode(scores)
    assert (decoder.decode(tensor, bonus).heads == expected.heads).all()
    assert (decoder.decode_batch(tensor[None], [4], bonus[None])[0].heads == expected.heads).all()
    forest = decoder.forest(tensor, bonus)
    assert np.allclose(forest.marginals, decoder.marginals(scores))
    assert np.allclose(forest.margins.values, decoder.margins(scores).values)


def test_tensors_that_are_views_of_complex_numbers():
    torch = pytest.importorskip("torch")
    decoder = get_decoder("mst")
    scores = random_scores(decoder, 4, 0, ties=True)
    negated = torch.complex(torch.zeros(scores.shape), -torch.tensor(scores)).conj()
    assert (decoder.decode(negated.imag).heads == decoder.decode(scores).heads).all()
    with pytest.raises(ValueError, match="real numbers; got complex"):
        decoder.decode(negated)


@every_decoder
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_lowest_number_of_a_tensor_is_a_mask(name, dtype):
    torch = pytest.importorskip("torch")
    decoder, n = get_decoder(name), 4
    scores = torch.tensor(random_scores(decoder, n, 0, ties=True)).to(getattr(torch, dtype))
    bonus = torch.zeros(n + 2, n + 2, dtype=scores.dtype)
    bonus[1:, 2] = torch.finfo(scores.dtype).min
    expected = decoder.decode(scores, np.where(bonus.double().numpy() < 0, -np.inf, 0))
    for found in (decoder.decode(scores, bonus), decoder.decode_batch(scores[None], [n], bonus[None])[0]):
        assert found.heads[2] == 0
        assert found.score == expected.score


def test_masks_and_complex_scores_are_errors():
    decoder = get_decoder("mst")
    scores = random_scores(decoder, 3, 0)
    for mask in (np.ones((5, 5), bool), [[True] * 5] * 5):
        with pytest.raises(ValueError, match=r"is no mask; write np\.where\(allowed, 0, -np\.inf\)"):
            decoder.decode(scores, mask)
    with pytest.raises(ValueError, match="real numbers; got complex"):
        decoder.decode(scores.astype(complex))
    with pytest.raises(ValueError, match=r"\(batches: decode_batch\)"):
        decoder.decode(scores[None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_masked_arrays_are_errors(dtype):
    decoder = get_decoder("eisner")
    scores, bonus = random_scores(decoder, 3, 0).astype(dtype), random_bonus(3, 0).astype(dtype)
    masked, masked_bonus = np.ma.masked_less(scores, 0), np.ma.masked_less(bonus, 0)
    heads = decoder.decode(scores, bonus).heads
    for ask in (
        lambda: decoder.decode(masked),
        lambda: decoder.decode(scores, masked_bonus),
        lambda: decoder.forest(masked),
        lambda: decoder.decode_batch(masked[None], [3]),
        lambda: decoder.decode_together(scores[None], [3], masked_bonus[None]),
        lambda: decoder.derive_batch(masked[None], [heads]),
        lambda: decoder.marginals(scores, masked_bonus),
    ):
        with pytest.raises(ValueError, match=r"masked arrays; write array\.filled\(-np\.inf\)"):
            ask()


def test_kernels_are_not_compiled_again_for_read_only_arrays():
    decoder = get_decoder("eisner")
    scores = random_scores(decoder, 3, 0)
    decoder.decode(scores)
    before = list(eisner._decode.signatures)
    scores.flags.writeable = False
    decoder.decode(scores, np.broadcast_to(np.float32(0), (5, 5)))
    assert eisner._decode.signatures == before


FORKED = """
import multiprocessing
import numpy as np
from mh4.decoders import decoder, get_decoder

decoder.THREADED_BYTES = 0

def decode(_):
    return len(get_decoder("mst").decode_batch(np.zeros((3, 1, 6, 6), np.float32), [4] * 3, threads=2))

assert decode(0) == 3
with multiprocessing.get_context("fork").Pool(1) as pool:
    assert pool.apply_async(decode, (0,)).get(timeout=60) == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_threads_are_started_anew_in_a_forked_process():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120)


@every_decoder
def test_the_input_is_left_alone(name):
    decoder = get_decoder(name)
    scores, bonus = random_scores(decoder, 6, 0), random_bonus(6, 0)
    before = scores.copy(), bonus.copy()
    decoder.decode(scores, bonus)
    assert (scores == before[0]).all()
    assert (bonus == before[1]).all()


@every_decoder
def test_name_channels_and_roles(name):
    decoder = get_decoder(name)
    assert decoder.name == name
    assert len(set(decoder.channels)) == len(decoder.channels) == len(decoder.roles)
    assert all(len(pair) == 2 for pair in decoder.roles)
    assert repr(decoder) == f"<{name} decoder, one root child>"
    assert decoder.fits(20)
    assert get_decoder(name, memory_limit=0).fits(20) == (decoder.chart_bytes(20) == 0)


def test_an_unknown_decoder_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown decoder 'mh5'") as caught:
        get_decoder("mh5")
    assert all(name in str(caught.value) for name in NAMES)
