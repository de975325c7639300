"""`derive_batch`, the best derivation of a given tree, against decoding with all other arcs forbidden."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders import InfeasibleError, decoder_names, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import mark_arcs

NAMES = decoder_names()
CHARTS = ("mh3", "mh4-two", "mh4-hybrid")  # several derivations per tree
every_decoder = pytest.mark.parametrize("name", NAMES)
seeds = st.integers(0, 2**32 - 1)


def numbers(rng, shape, ties, forbidden=0.0):
    scores = (rng.integers(-1, 2, shape) if ties else rng.normal(size=shape)).astype(np.float32)
    scores[rng.random(shape) < forbidden] = -np.inf
    return scores


def by_decoding(decoder, scores, tree):
    """Parts and score of the best derivation of a tree, found by decoding; None if there is none."""
    only = np.full(scores.shape[1:], -np.inf, np.float32)
    mark_arcs(only, tree, 0.0)
    try:
        found = decoder.decode(scores, only)
    except InfeasibleError:
        return None
    assert (found.heads == tree).all()
    return found.parts.tolist(), found.score


def derived(decoder, scores, tree):
    try:
        [found] = decoder.derive_batch(scores[None], [tree])
    except InfeasibleError:
        return None
    except ValueError as error:
        if "not a 1-endpoint-crossing tree" in str(error):
            return None
        raise
    assert (found.heads == tree).all()
    return found.parts.tolist(), found.score


def as_decoded(decoder, scores, tree):
    found, expected = derived(decoder, scores, tree), by_decoding(decoder, scores, tree)
    if decoder.name.startswith("1ec") and found and expected:  # backtracking lists the parts in another order
        return sorted(found[0]) == sorted(expected[0]) and found[1] == pytest.approx(expected[1], abs=1e-4)
    return found == expected


@every_decoder
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_tree(name, n, single_root):
    """Trees inside and outside the decoder's class, with ties and forbidden parts."""
    decoder = get_decoder(name, single_root)
    rng = np.random.default_rng(n)
    for tree in naive.all_trees(n):
        for ties, forbidden in ((True, 0.0), (True, 0.1), (False, 0.0)):
            scores = numbers(rng, (len(decoder.channels), n + 2, n + 2), ties, forbidden)
            assert as_decoded(decoder, scores, tree), tree.tolist()


@pytest.mark.parametrize("name", CHARTS)
def test_every_tree_of_five_words(name):
    decoder = get_decoder(name)
    rng = np.random.default_rng(5)
    for tree in naive.all_trees(5, single_root=True):
        assert as_decoded(decoder, numbers(rng, (len(decoder.channels), 7, 7), True), tree), tree.tolist()


def random_tree(kind, n, rng):
    """The tree that the decoder ``kind`` finds for random scores; most have short arcs, "mh4-two" has crossing ones."""
    decoder = get_decoder(kind, single_root=bool(rng.random() < 0.8))
    scores = rng.normal(size=(len(decoder.channels), n + 2, n + 2)).astype(np.float32)
    positions = np.arange(n + 2)
    far = rng.choice([0.0, 0.5, 2.0]) * np.log1p(np.abs(positions[:, None] - positions))
    return decoder.decode(scores, -far).heads


@every_decoder
@given(
    kind=st.sampled_from(["eisner", "mh4-two", "mst", "1ec-first-order"]),
    n=st.integers(5, 24),
    seed=seeds,
    ties=st.booleans(),
    forbidden=st.sampled_from([0.0, 0.02]),
    single_root=st.booleans(),
)
def test_long_trees(name, kind, n, seed, ties, forbidden, single_root):
    rng = np.random.default_rng(seed)
    decoder = get_decoder(name, single_root)
    tree = random_tree(kind, n, rng)
    scores = numbers(rng, (len(decoder.channels), n + 2, n + 2), ties, forbidden)
    assert as_decoded(decoder, scores, tree)


@pytest.mark.parametrize("name", [*CHARTS, "mst", "eisner"])
@pytest.mark.parametrize("kind", ["eisner", "mh4-two"])
@pytest.mark.parametrize("n", [60, 130])
def test_very_long_trees(name, kind, n):
    rng = np.random.default_rng(n)
    decoder = get_decoder(name, single_root=False)
    for ties in (True, False):
        tree = random_tree(kind, n, rng)
        assert as_decoded(decoder, numbers(rng, (len(decoder.channels), n + 2, n + 2), ties), tree)


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("shape", ["left chain", "right chain", "left star", "right star", "zigzag"])
def test_trees_with_most_items(name, shape):
    n = 30
    words = np.arange(n + 1)
    zigzag = np.empty(n + 1, int)
    order = [word for pair in zip(range(1, n // 2 + 1), range(n, n // 2, -1), strict=True) for word in pair]
    zigzag[order] = [0, *order[:-1]]
    tree = {
        "left chain": (words + 1) % (n + 1),
        "right chain": words - 1,
        "left star": np.where(words == n, 0, n),
        "right star": np.where(words == 1, 0, 1),
        "zigzag": zigzag,
    }[shape]
    tree[0] = -1
    decoder = get_decoder(name)
    rng = np.random.default_rng(0)
    assert derived(decoder, numbers(rng, (len(decoder.channels), n + 2, n + 2), True), tree) is not None
    for ties in (True, False):
        assert as_decoded(decoder, numbers(rng, (len(decoder.channels), n + 2, n + 2), ties), tree)


@every_decoder
def test_a_padded_batch(name):
    """Results equal those of single sentences, ignore NaN in the padding, and share no memory."""
    decoder = get_decoder(name)
    rng = np.random.default_rng(3)
    trees = [random_tree("eisner", n, rng) for n in (4, 9, 1, 7)]
    trees = [closest_tree(tree, "projective", single_root=True) for tree in trees]
    scores = numbers(rng, (4, len(decoder.channels), 12, 12), False)
    for own, tree in zip(scores, trees, strict=True):
        own[:, len(tree) + 1 :] = own[:, :, len(tree) + 1 :] = np.nan
    together = decoder.derive_batch(scores, trees)
    for own, tree, found in zip(scores, trees, together, strict=True):
        size = len(tree) + 1
        assert (found.parts.tolist(), found.score) == derived(decoder, own[:, :size, :size], tree)
        found.heads[:] = found.parts[:] = 0
    assert decoder.derive_batch(scores[:0], []) == []
    assert all(tree[0] == -1 for tree in trees)


@every_decoder
@pytest.mark.parametrize(
    "tree", [[-1, 2, 1, 0], [-1, 1, 0, 2], [-1, 9, 0, 2], [-1, -7, 0, 2], [0, 2, 0, 2], [-1, 0, 0, 2]]
)
def test_heads_that_are_no_tree(name, tree):
    decoder = get_decoder(name)
    with pytest.raises(ValueError, match=r"not a tree|no .* derivation of these heads that is allowed"):
        decoder.derive_batch(np.zeros((1, len(decoder.channels), 5, 5), np.float32), [np.array(tree)])


@every_decoder
@pytest.mark.parametrize("tree", [[-1, 2**32, 1], [-1, 2, -(2**32)]])
def test_heads_that_int32_would_make_a_tree(name, tree):
    decoder = get_decoder(name)
    with pytest.raises(InfeasibleError, match="beyond the words"):
        decoder.derive_batch(np.zeros((1, len(decoder.channels), 4, 4), np.float32), [np.array(tree)])


@every_decoder
def test_heads_that_are_no_integers(name):
    decoder = get_decoder(name)
    with pytest.raises(TypeError):
        decoder.derive_batch(np.zeros((1, len(decoder.channels), 4, 4), np.float32), [np.array([-1.0, 2.5, 0.0])])


@pytest.mark.parametrize("trees", [np.array, iter, lambda rows: [list(row) for row in rows], "tensor", "tensors"])
def test_trees_may_be_one_array_or_any_iterable_or_tensors(trees):
    rows = [np.array([-1, 2, 0, 2]), np.array([-1, 0, 1, 2])]
    if isinstance(trees, str):
        torch = pytest.importorskip("torch")
        tensor = torch.tensor(np.array(rows))
        trees = {"tensor": lambda _: tensor, "tensors": lambda _: [*tensor]}[trees]
    found = get_decoder("mst").derive_batch(np.zeros((2, 1, 5, 5), np.float32), trees(rows))
    assert [one.heads.tolist() for one in found] == [row.tolist() for row in rows]
