"""Losses against their definitions, computed by enumerating all trees."""

import itertools

import numpy as np
import pytest
import torch

from mh4.decoders import get_decoder
from mh4.decoders.tree_batch import TreeBatch
from mh4.models.loss import PartDifference, cost_bonus, find_violations, log_loss, multiclass_hinge


def single_root_trees(n):
    """Yield the heads (n + 1,) of all trees of n words with one root child."""
    for heads in itertools.product(range(n + 1), repeat=n):
        tree = np.array([-1, *heads])
        if heads.count(0) != 1 or any(head == word for word, head in enumerate(heads, start=1)):
            continue
        if all(_reaches_root(tree, word) for word in range(1, n + 1)):
            yield tree


def _reaches_root(tree, word):
    for _ in range(len(tree)):
        if word == 0:
            return True
        word = tree[word]
    return False


@pytest.mark.parametrize("seed", range(5))
def test_structured_hinge_by_enumeration(seed):
    n = 4
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(1, 1, n + 2, n + 2)).astype(np.float32)
    trees = list(single_root_trees(n))
    gold = trees[generator.integers(len(trees))]
    words = np.arange(1, n + 1)

    def score(tree):
        return float(scores[0, 0, tree[1:], words].sum())

    best = max(trees, key=lambda tree: score(tree) + np.count_nonzero(tree != gold))
    difference = find_violations(get_decoder("mst"), scores, [gold], threads=1)
    loss = float((scores[0][tuple(difference.parts.T)] * difference.weights).sum()) + difference.cost
    assert loss == pytest.approx(score(best) + np.count_nonzero(best != gold) - score(gold), abs=1e-4)
    assert loss >= -1e-6
    assert difference.cost == np.count_nonzero(best != gold)
    assert set(difference.weights.tolist()) <= {1.0, -1.0}


@pytest.mark.parametrize("seed", range(5))
def test_structured_hinge_of_known_heads_by_enumeration(seed):
    """The gold score is that of the best tree with the known heads; only words with a known head cost if wrong."""
    n = 4
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(2, 1, n + 2, n + 2)).astype(np.float32)
    trees = list(single_root_trees(n))
    golds = [trees[generator.integers(len(trees))] for _ in range(2)]  # the first is fully known
    golds[1] = np.where([True, *generator.permutation([True, True, False, False])], golds[1], -1)
    words = np.arange(1, n + 1)
    expected = 0.0
    for matrix, gold in zip(scores[:, 0], golds, strict=True):
        score = {tuple(tree): float(matrix[tree[1:], words].sum()) for tree in trees}
        wrong = {key: sum(g not in (h, -1) for h, g in zip(key, gold, strict=True)) for key in score}
        expected += max(score[key] + wrong[key] for key in score)
        expected -= max(score[key] for key in score if not wrong[key])
    difference = find_violations(get_decoder("mst"), scores, golds, threads=1)
    of_parts = scores[(difference.sentences, *difference.parts.T)] * difference.weights
    assert float(of_parts.sum()) + difference.cost == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("cost_augmented", [False, True])
def test_log_loss_by_enumeration(cost_augmented):
    """A complete tree and one with two unknown heads, in one batch."""
    n = 4
    generator = np.random.default_rng(3)
    scores = generator.normal(size=(2, 1, n + 2, n + 2)).astype(np.float32)
    trees = list(single_root_trees(n))
    golds = [trees[5], np.array([-1, trees[9][1], -1, -1, trees[9][4]])]
    words = np.arange(1, n + 1)
    expected, gradient = 0.0, np.zeros_like(scores)
    for b, gold in enumerate(golds):
        totals = np.array([scores[b, 0, tree[1:], words].sum() for tree in trees], np.float64)
        wrong = np.array([((tree != gold) & (gold >= 0)).sum() for tree in trees])
        for weights, sign in ((np.exp(totals + cost_augmented * wrong), 1), (np.exp(totals) * (wrong == 0), -1)):
            expected += sign * np.log(weights.sum())
            for tree, probability in zip(trees, weights / weights.sum(), strict=True):
                gradient[b, 0, tree[1:], words] += sign * probability
    loss, found, _ = log_loss(get_decoder("mst"), scores, golds, cost_augmented, threads=1)
    assert loss == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(found, gradient, atol=1e-6)


@pytest.mark.parametrize("name", ["mst", "eisner", "mh3", "mh4-two", "mh4-hybrid"])
def test_log_loss_has_the_gradient_of_its_values(name):
    """Finite differences of float32 scores, for two sentences of different lengths in a padded batch."""
    decoder = get_decoder(name)
    generator = np.random.default_rng(8)
    golds = [np.array([-1, 2, 0, 2]), np.array([-1, 0, -1, 1, 3, 1])]
    scores = generator.normal(size=(2, len(decoder.channels), 7, 7)).astype(np.float32)
    direction = generator.normal(size=scores.shape).astype(np.float32)
    _, gradient, _ = log_loss(decoder, scores, golds, True)
    step = 2.0**-9
    values = [log_loss(decoder, scores + sign * step * direction, golds, True)[0] for sign in (1, -1)]
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(float((gradient * direction).sum()), abs=2e-3)
    assert not gradient[0, :, 5:].any()
    assert not gradient[0, :, :, 5:].any()


@pytest.mark.parametrize("golds", [([2, 0, 2], [0, 1, 1, 3, 1]), ([2, 0, -1], [-1, -1, 1, 3, 1])])
def test_an_arc_bonus_is_worth_as_much_as_scores_of_arcs(golds):
    """With mst, whose parts are single arcs, so the changed parts and the changed heads give the same bonus."""
    decoder, generator = get_decoder("mst"), np.random.default_rng(4)
    heads = [np.array([-1, *gold]) for gold in golds]
    scores = generator.normal(size=(2, 1, 7, 7)).astype(np.float32)
    bonus = generator.normal(size=(2, 7, 7)).astype(np.float32)
    inside, beside = (
        find_violations(decoder, scores + bonus[:, None], heads),
        find_violations(decoder, scores, heads, bonus=bonus),
    )
    assert len(beside.parts) > 0
    for one, other in zip(inside, beside, strict=True):
        np.testing.assert_array_equal(one, other)
    sentences, predicted, gold, words = beside.changed
    of_parts = (bonus[(beside.sentences, *beside.parts.T[1:])] * beside.weights).sum()
    assert (bonus[sentences, predicted, words] - bonus[sentences, gold, words]).sum() == pytest.approx(of_parts)
    assert of_parts != 0
    for augmented in (False, True):
        one = log_loss(decoder, scores + bonus[:, None], heads, augmented)
        other = log_loss(decoder, scores, heads, augmented, bonus=bonus)
        for own, expected in zip(other, one, strict=True):
            np.testing.assert_allclose(own, expected, atol=1e-5)
        np.testing.assert_allclose(other[2], other[1][:, 0], atol=1e-5)


@pytest.mark.parametrize("name", ["eisner", "mh3", "mh4-two", "mh4-hybrid"])
def test_no_violation_where_gold_wins_by_the_margin(name):
    """If scores favour the gold derivation by far, the loss-augmented best is gold too, and no part differs."""
    gold = np.array([-1, 2, 0, 2, 3])
    decoder = get_decoder(name)
    size = len(gold) + 1
    zeros = np.zeros((len(decoder.channels), size, size), np.float32)
    derivation = decoder.derive_batch(zeros[None], [gold])[0]
    scores = zeros - 10.0
    scores[tuple(derivation.parts.T)] = 10.0
    difference = find_violations(decoder, scores[None], [gold], threads=1)
    assert len(difference.parts) == 0
    assert difference.cost == 0.0


def test_parts_are_sorted_by_channel_and_batches_add_up():
    decoder = get_decoder("mh4-hybrid")
    generator = np.random.default_rng(7)
    golds = [np.array([-1, 2, 0, 2]), np.array([-1, 0, 1, 1, 3, 1])]
    scores = generator.normal(size=(2, 13, 7, 7)).astype(np.float32)
    both = find_violations(decoder, scores, golds)
    assert (np.diff(both.parts[:, 0]) >= 0).all()
    alone = [
        find_violations(decoder, scores[b : b + 1, :, : len(g) + 1, : len(g) + 1], [g]) for b, g in enumerate(golds)
    ]
    assert both.cost == sum(d.cost for d in alone)
    for b, difference in enumerate(alone):
        np.testing.assert_array_equal(both.parts[both.sentences == b], difference.parts)
        np.testing.assert_array_equal(both.weights[both.sentences == b], difference.weights)
    for whole, joined in zip(both, PartDifference.joined([(difference, 1) for difference in alone]), strict=True):
        np.testing.assert_array_equal(joined, whole)


def test_unknown_heads_cost_nothing():
    bonus, unknown = cost_bonus(TreeBatch.of([np.array([-1, -1, 0])]), 4)
    assert unknown == 1
    assert bonus[0].tolist() == [
        [1, 0, 0, 1],
        [1, 0, 1, 1],
        [1, 0, 1, 1],
        [1, 0, 1, 1],
    ]


def test_cost_bonus():
    cost = cost_bonus(TreeBatch.of([np.array([-1, 2, 0])]), 4)[0][0]
    assert cost[2, 1] == cost[0, 2] == 0.0
    assert cost.sum() == 14.0


def test_multiclass_hinge():
    scores = torch.tensor([[2.0, 0.5, 1.5], [0.0, 3.0, 0.0]])
    gold = torch.tensor([0, 1])
    assert multiclass_hinge(scores, gold).item() == pytest.approx(0.5)
    assert multiclass_hinge(scores, torch.tensor([1, 0])).item() == pytest.approx(1 + 2 - 0.5 + 1 + 3)
    assert multiclass_hinge(torch.zeros(4, 1), torch.zeros(4, dtype=torch.long)).item() == 0.0
