"""Losses of trees that the naive trainer of `test_losses` does not cover."""

import contextlib
from dataclasses import replace

import naive
import numpy as np
import pytest
import torch
from small import small_config, small_greedy_config

from mh4.data.sentence import Sentence
from mh4.decoders import InfeasibleError, decoder_names
from mh4.decoders.closest import closest_tree
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, TransitionConfig, make_config
from mh4.parsers.definition import Definition
from mh4.parsers.greedy import GreedyParser
from mh4.training.objectives import make_objective
from mh4.training.treebanks import read_gold


@pytest.mark.parametrize("decoder", decoder_names())
def test_without_scores_the_hinge_is_the_cost(decoder):
    """Two words have two trees, which share no head."""
    sentence = Sentence.from_words(["a", "b"])
    parser = ChartParser(Definition.learn(small_config(decoder), [sentence]), device="cpu")
    with torch.no_grad():
        parser.network.scorer.matrices.zero_()
    encoded = parser.encode([sentence, sentence])
    trees = [closest_tree(heads, parser.decoder) for heads in ([-1, 2, 0], [-1, 0, 1])]
    assert make_objective(parser).loss(encoded, trees, 0).item() == 4.0


@pytest.mark.parametrize("loss", ["crf", "softmax-margin"])
@pytest.mark.parametrize("decoder", ["mst", "mh4-hybrid"])
def test_the_gradient_of_losses_over_all_trees_reaches_the_scorer(decoder, loss):
    """Checked by finite differences along a random direction of its weights; labels are not involved."""
    sentences = [Sentence.from_words(["a", "b", "a"]), Sentence.from_words(["b", "a"])]
    config = replace(small_config(decoder), loss=loss)
    parser = ChartParser(Definition.learn(config, sentences), device="cpu")
    parser.network.eval()
    objective, weights = make_objective(parser), parser.network.scorer.matrices
    trees = [np.array([-1, 2, 0, 2]), np.array([-1, 2, -1])]

    def value():
        return objective.loss(parser.encode(sentences), trees, 0)

    value().backward()
    with torch.no_grad():
        direction = torch.randn_like(weights, generator=torch.Generator().manual_seed(1))
        values = []
        for step in (2.0**-6, -(2.0**-5)):
            weights += step * direction
            values.append(value().item())
    slope = (weights.grad * direction).sum().item()
    assert (values[0] - values[1]) * 2.0**5 == pytest.approx(slope, rel=2e-2, abs=1e-3)


@pytest.mark.parametrize("loss", ["hinge", "crf"])
@pytest.mark.parametrize("decoder", ["mst", "mh4-hybrid"])
def test_relations_that_join_the_decision_learn_from_it(decoder, loss):
    """Checked with dropout: the loss by enumeration, its gradient by finite differences in the labeler's weights."""
    sentences = [
        Sentence(["a", "b", "c"], heads=[2, 0, 2], relations=["x", "root", "y"]),
        Sentence(["b", "a"], heads=[2, 0], relations=["z", "root"]),
    ]
    config = replace(small_config(decoder), loss=loss, label_bonus=0.7)
    parser = ChartParser(Definition.learn(config, sentences), device="cpu")
    weights, objective = parser.network.labeler.output.weight, make_objective(parser)
    with torch.no_grad():
        weights *= 5
    parser.network.train()
    encoded, trees = parser.encode(sentences), [np.array([-1, 2, 0, 2]), np.array([-1, 2, 0])]

    def expected():
        total = 0.0
        scores, bonus = parser.network.scorer(encoded.roles), parser.arc_bonus(encoded.states)[0]
        for own, of_arcs, gold in zip(scores.detach().numpy(), bonus.detach().numpy(), trees, strict=True):
            size, words = len(gold) + 1, np.arange(1, len(gold))
            found = {}
            for heads in naive.all_trees(len(gold) - 1, single_root=True):
                with contextlib.suppress(InfeasibleError):
                    best = parser.decoder.derive_batch(own[None, :, :size, :size], [heads])[0].score
                    found[tuple(heads)] = best + of_arcs[heads[1:], words].sum()
            cost = {heads: (np.array(heads) != gold).sum() for heads in found}
            if loss == "hinge":
                total += max(found[heads] + cost[heads] for heads in found) - found[tuple(gold)]
            else:
                total += np.log(sum(np.exp(score) for score in found.values())) - found[tuple(gold)]
        return total

    value = objective.loss(encoded, trees, 0)
    if (decoder, loss) != ("mh4-hybrid", "crf"):  # its trees have several derivations each
        assert value.item() == pytest.approx(expected(), abs=1e-4)
    value.backward(retain_graph=True)
    with torch.no_grad():
        direction = weights.grad / weights.grad.norm()
        values = []
        for step in (2.0**-7, -(2.0**-6)):
            weights += step * direction
            values.append(objective.loss(encoded, trees, 0).item())
    slope = (weights.grad * direction).sum().item()
    assert slope > 0.01
    assert (values[0] - values[1]) * 2.0**6 == pytest.approx(slope, rel=2e-2, abs=1e-3)


def test_losses_over_all_trees_need_a_decoder_that_sums():
    with pytest.raises(ValueError, match="loss crf sums over all trees, which 1ec does not support; mst, eisner, mh3"):
        make_config(ChartConfig, {"decoder": "1ec", "loss": "crf"})


@pytest.mark.parametrize("loss", ["crf", "softmax-margin"])
def test_losses_over_all_trees_leave_out_sentences_whose_sums_do_not_fit(loss):
    sentences = [Sentence.from_words(["a"] * n).replace(heads=[0, *range(1, n)]) for n in (4, 5)]
    parser = ChartParser(Definition.learn(replace(small_config("mh4-two"), loss=loss), sentences), "cpu")
    parser.decoder.memory_limit = parser.decoder.sums_bytes(5) - 1
    assert parser.decoder.fits(5)
    found = [make_objective(parser).training_tree(sentence) for sentence in sentences]
    assert [tree is None for tree in found] == [False, True]


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e36])
def test_scores_that_are_no_numbers_are_those_of_diverged_training(value):
    sentence = Sentence.from_words(["a", "b"])
    parser = ChartParser(Definition.learn(small_config("eisner"), [sentence]), device="cpu")
    encoded = parser.encode([sentence])
    objective = make_objective(parser)
    with pytest.raises(InfeasibleError, match="no eisner derivation"):  # not diverged: scores are finite
        objective.loss(encoded, [np.array([-1, 0, 0])], 0)
    with torch.no_grad():
        parser.network.scorer.matrices.fill_(value)
    with pytest.raises(ValueError, match="training diverged: scores are no numbers"):
        objective.loss(encoded, [closest_tree([-1, 2, 0], parser.decoder)], 0)


def greedy_parser(sentences, **transitions):
    config = small_greedy_config(TransitionConfig(**transitions))
    return GreedyParser(Definition.learn(config, sentences), "cpu")


def followed_positions(parser, sentences, seeds, epoch):
    """Return, for each seed, the sentences and tokens of the contexts met, which determine the loss."""
    objective, met = make_objective(parser), []
    trees = [objective.training_tree(sentence) for sentence in sentences]
    encoded = parser.encode(sentences)
    hook = parser.network.scorer.register_forward_hook(
        lambda _, given, scores: met.append([x.tolist() for x in given[1:]])
    )
    for seed in seeds:
        parser.randomness.start(seed)
        objective.loss(encoded, trees, epoch)
    hook.remove()
    return met


@pytest.mark.parametrize("kind", ["chart", "arc-hybrid", "covington"])
def test_a_batch_loses_what_its_sentences_lose(kind, small_treebanks):
    sentences = read_gold(small_treebanks[0])[:6]
    if kind == "chart":
        parser = ChartParser(Definition.learn(small_config(), sentences), device="cpu")
    else:
        parser = greedy_parser(sentences, system=kind)
    parser.network.eval()
    objective = make_objective(parser)

    def loss(some):
        encoded = parser.encode(some)
        return objective.loss(encoded, [objective.training_tree(sentence) for sentence in some], 0).item()

    alone = [loss([sentence]) for sentence in sentences]
    assert min(alone) > 0
    assert loss(sentences) == pytest.approx(sum(alone), rel=1e-4)


def test_wrong_predictions_are_followed_from_some_epoch_on(small_treebanks):
    sentences = read_gold(small_treebanks[0])[:6]
    parser = greedy_parser(sentences, exploration_start=2, exploration=0.5)
    parser.network.eval()
    for epoch, explores in ((0, False), (1, False), (2, True)):
        met = followed_positions(parser, sentences, range(4), epoch)
        assert any(positions != met[0] for positions in met) == explores


def test_every_sentence_explores_by_itself(small_treebanks):
    sentence = max(read_gold(small_treebanks[0]), key=len)
    parser = greedy_parser([sentence], exploration_start=0, exploration=0.5)
    parser.network.eval()
    differs = False
    for owners, positions in followed_positions(parser, [sentence, sentence], range(4), 0):
        first, second = ([p for owner, p in zip(owners, positions, strict=True) if owner == b] for b in range(2))
        differs |= first != second
    assert differs


def test_decisions_are_followed_with_dropout(small_treebanks):
    sentences = read_gold(small_treebanks[0])[:8]
    parser = greedy_parser(sentences, positions="s1,s0,b0", exploration_start=0)
    parser.network.train()
    met = []
    for rate in (0.0, 0.8, 0.8):
        parser.network.scorer.dropout.rate = rate
        parser.randomness.start(2)
        met += followed_positions(parser, sentences, [1], 0)
    without, once, again = met
    assert without != once == again
