"""Max-marginals, margins and k-best trees of longer sentences, against decoding with constraints.

Decoders without an outside pass decode again for each word, so they get fewer examples, or only ``slow`` ones.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_certainty import NAMES, kinds, problem
from test_marginals import NAMES as SUMMING
from test_marginals import check_numbers

from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.trees import is_tree

QUICK = [name for name in NAMES if not name.startswith("1ec")]
SLOW = [name for name in NAMES if name.startswith("1ec")]
seeds = st.integers(0, 2**32 - 1)


def feasible(name, n, seed, kind, single_root):
    """Like `problem`, but "forbid" and "given" leave at least one derivation, drawn at random, allowed."""
    scores, bonus = problem(name, n, seed, "ties" if kind == "ties" else "normal")
    rng = np.random.default_rng(seed)
    kept = get_decoder(name, single_root).decode(rng.normal(size=scores.shape).astype(np.float32))
    words = np.arange(1, n + 1)
    if kind == "forbid":
        allowed = rng.random((len(scores) + 1, n + 2, n + 2)) > 0.25
        allowed[tuple(kept.parts.T)] = allowed[-1, kept.heads[1:], words] = True
        scores[~allowed[:-1]] = bonus[~allowed[-1]] = -np.inf
    if kind == "given":
        for d in words[rng.random(n) < 0.4]:
            bonus[np.arange(n + 2) != kept.heads[d], d] = -np.inf
    return scores, bonus


def forced(bonus, h, d):
    """``bonus`` with every head of d forbidden except h."""
    only = bonus.copy()
    only[:, d] = -np.inf
    only[h, d] = bonus[h, d] if h != d else -np.inf
    return only


def score_or_nothing(decoder, scores, bonus):
    try:
        return decoder.decode(scores, bonus).score
    except InfeasibleError:
        return -np.inf


def check_of_the_class(decoder, derivation, scores, bonus):
    """Check that the derivation's tree is in the decoder's class, and that its best derivation scores no less."""
    heads = derivation.heads
    assert is_tree(heads, decoder.single_root)
    best = decoder.derive_batch(scores[None], [heads])[0]
    words = np.arange(1, len(heads))
    assert best.score + bonus[heads[1:], words].sum(dtype=np.float64) >= derivation.score - 1e-3


def check_some_arcs(name, n, seed, kind, single_root, arcs):
    """Check max-marginals of random arcs against decoding with the arc forced, column maxima against the best tree."""
    decoder = get_decoder(name, single_root)
    scores, bonus = feasible(name, n, seed, kind, single_root)
    found = decoder.max_marginals(scores, bonus)
    assert (found[:, [0, n + 1]] == -np.inf).all()
    assert (found[n + 1] == -np.inf).all()
    best = decoder.decode(scores, bonus)
    np.testing.assert_allclose(found[best.heads[1:], np.arange(1, n + 1)], best.score, atol=1e-3)
    np.testing.assert_allclose(found[:, 1 : n + 1].max(axis=0), best.score, atol=1e-3)
    rng = np.random.default_rng(seed)
    for _ in range(arcs):
        h, d = rng.integers(0, n + 1), rng.integers(1, n + 1)
        expected = score_or_nothing(decoder, scores, forced(bonus, h, d))
        assert found[h, d] == pytest.approx(expected, abs=1e-3)


def check_margins_and_best_trees(name, n, seed, kind, single_root, k, words):
    decoder = get_decoder(name, single_root)
    scores, bonus = feasible(name, n, seed, kind, single_root)
    trees = decoder.k_best(scores, k, bonus)
    best, values, heads = decoder.margins(scores, bonus)
    assert trees[0].heads.tolist() == best.heads.tolist() == decoder.decode(scores, bonus).heads.tolist()
    assert all(first.score >= second.score - 1e-3 for first, second in pairwise(trees))
    assert len({tuple(one.heads) for one in trees}) == len(trees)
    for one in trees:
        check_of_the_class(decoder, one, scores, bonus)
    if k > 1:
        second = trees[1].score if len(trees) > 1 else -np.inf
        assert values.min() == pytest.approx(best.score - second, abs=1e-3)
    assert (values >= 0).all()
    for d in np.random.default_rng(seed).integers(1, n + 1, words):
        without = bonus.copy()
        without[best.heads[d], d] = -np.inf
        assert values[d] == pytest.approx(best.score - score_or_nothing(decoder, scores, without), abs=1e-3)
        if values[d] < np.inf:
            with_it = score_or_nothing(decoder, scores, forced(bonus, heads[d], d))
            assert with_it == pytest.approx(best.score - values[d], abs=1e-3)


@pytest.mark.parametrize("name", QUICK)
@given(n=st.integers(10, 40), seed=seeds, kind=kinds, single_root=st.booleans())
@settings(max_examples=25)
def test_max_marginals_are_what_decoding_with_the_arc_finds(name, n, seed, kind, single_root):
    check_some_arcs(name, n, seed, kind, single_root, arcs=8)


@pytest.mark.parametrize("name", SLOW)
@given(n=st.integers(6, 9), seed=seeds, kind=kinds, single_root=st.booleans())
@settings(max_examples=3)
def test_max_marginals_by_decoding_again(name, n, seed, kind, single_root):
    check_some_arcs(name, n, seed, kind, single_root, arcs=4)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("kind", ["ties", "forbid"])
def test_max_marginals_by_decoding_again_of_forty_words(name, kind):
    check_some_arcs(name, 40, 0, kind, single_root=True, arcs=20)


@pytest.mark.parametrize("name", ["eisner", "mh3", "mh4-hybrid"])
@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_max_marginals_of_long_sentences(name, n):
    check_some_arcs(name, n, 0, "normal", single_root=True, arcs=8)


@pytest.mark.parametrize("name", QUICK)
@given(n=st.integers(6, 40), seed=seeds, kind=kinds, single_root=st.booleans(), k=st.sampled_from([1, 2, 6]))
@settings(max_examples=25)
def test_margins_and_the_best_trees(name, n, seed, kind, single_root, k):
    check_margins_and_best_trees(name, n, seed, kind, single_root, k, words=4)


@pytest.mark.parametrize("name", SLOW)
@given(n=st.integers(6, 12), seed=seeds, kind=kinds, single_root=st.booleans())
@settings(max_examples=5)
def test_margins_and_the_best_trees_by_decoding_again(name, n, seed, kind, single_root):
    check_margins_and_best_trees(name, n, seed, kind, single_root, k=3, words=2)


@pytest.mark.parametrize("name", SLOW)
def test_margins_and_the_best_trees_of_forty_words_by_decoding_again(name):
    check_margins_and_best_trees(name, 40, 0, "forbid", single_root=True, k=2, words=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@given(n=st.integers(10, 40), seed=seeds, kind=kinds, single_root=st.booleans())
@settings(max_examples=10)
def test_many_margins_and_best_trees(name, n, seed, kind, single_root):
    check_margins_and_best_trees(name, n, seed, kind, single_root, k=4, words=4)


@pytest.mark.parametrize("name", SUMMING)
@given(
    n=st.integers(6, 40),
    seed=seeds,
    kind=kinds,
    single_root=st.booleans(),
    temperature=st.sampled_from([0.1, 1.0, 10.0]),
)
@settings(max_examples=12)
def test_probabilities_and_samples(name, n, seed, kind, single_root, temperature):
    decoder = get_decoder(name, single_root)
    scores, bonus = feasible(name, n, seed, kind, single_root)
    best = decoder.decode(scores, bonus).score
    found = decoder.part_marginals(scores, bonus, temperature)
    check_numbers(found, n)
    assert temperature * found.log_partition >= best - 1e-3
    words = np.arange(1, n + 1)
    for one in decoder.sample(scores, 3, bonus, temperature, rng=seed):
        check_of_the_class(decoder, one, scores, bonus)
        assert one.score <= best + 1e-3
        assert (found.arcs[one.heads[1:], words] > 0).all()
        assert (found.parts[tuple(one.parts.T)] > 0).all()
