"""Several members on one encoder: each has a loss of its own, and the mean of their scores decides."""

import numpy as np
import pytest
import torch
from small import changed, same_weights, small_config, train

import mh4
from mh4.decoders.trees import arc_matrix
from mh4.models.layers import Classifier
from mh4.models.loss import multiclass_hinge
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, GreedyConfig, make_config
from mh4.parsers.definition import Definition
from mh4.training.objectives import make_objective
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

MEMBERS = 3
STILL = {"mlp_dropout": 0.0, "lstm_dropout": 0.0, "block_dropout": 0.0, "word_unknown": 0.0, "character_unknown": 0.0}


def parser_of(sentences, decoder="mh4-hybrid", **settings):
    config = changed(small_config(decoder), **{"members": MEMBERS, **STILL, **settings})
    return ChartParser(Definition.learn(config, sentences), device="cpu")


def members_of(parser, sentences):
    """Yield each member as a parser by itself, with copies of the shared weights."""
    for k in range(MEMBERS):
        alone = ChartParser(Definition.learn(changed(parser.config, members=1), sentences), device="cpu")
        own = {}
        for name, weight in parser.network.state_dict().items():
            if name in ("scorer.matrices", "scorer.mlp.linear.weight", "scorer.mlp.linear.bias") or name.startswith(
                "labeler.hidden"
            ):
                weight = weight.chunk(MEMBERS)[k]
            elif name == "labeler.output.weight":
                weight = weight.chunk(MEMBERS, 1)[k]
            own[name] = weight.clone()
        alone.network.load_state_dict(own)
        yield alone


@pytest.mark.parametrize("decoder", ["mst", "eisner", "1ec", "mh4-two", "mh4-hybrid"])
def test_scores_are_the_mean_of_those_of_all_members(decoder, small_treebanks):
    sentences = read_gold(small_treebanks[0])[:6]
    parser = parser_of(sentences, decoder)
    alone = [one.score(sentences) for one in members_of(parser, sentences)]
    assert not np.allclose(alone[0][0], alone[1][0], atol=1e-3)
    for own, *others in zip(parser.score(sentences), *alone, strict=True):
        np.testing.assert_allclose(own, np.mean(others, 0), atol=1e-5)


@pytest.mark.parametrize("label_bonus", [0.0, 0.5])
@pytest.mark.parametrize("loss", ["hinge", "softmax-margin", "crf"])
def test_the_loss_is_the_mean_of_those_of_all_members(loss, label_bonus, small_treebanks):
    sentences = read_gold(small_treebanks[0])[:6]
    parser = parser_of(sentences, "mh4-two", loss=loss, label_bonus=label_bonus)

    def loss_and_gradient(one, states):
        objective = make_objective(one)
        trees = [objective.training_tree(sentence) for sentence in sentences]
        own = states.detach().requires_grad_()
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        encoded = one.encode(sentences)._replace(states=own, roles=one.network.scorer.role_vectors(own, lengths))
        value = objective.loss(encoded, trees, 0)
        value.backward()
        return float(value.detach()), own.grad

    states = parser.encode(sentences).states
    alone = list(members_of(parser, sentences))
    if label_bonus:  # from the mean of their label scores
        for one in alone:
            one.arc_bonus, one.bonus_difference = parser.arc_bonus, parser.bonus_difference
    values, gradients = zip(*(loss_and_gradient(one, states) for one in alone), strict=True)
    value, gradient = loss_and_gradient(parser, states)
    assert value == pytest.approx(np.mean(values), rel=1e-5)
    assert len({round(own, 3) for own in values}) == MEMBERS
    torch.testing.assert_close(gradient, torch.stack(gradients).mean(0), atol=1e-5, rtol=1e-4)


def test_labels_are_learnt_by_each_member(small_treebanks, tmp_path):
    sentences = read_gold(small_treebanks[0])[:6]
    parser = parser_of(sentences, "mst", tagger_weight=0.0, labeler_weight=0.7)
    trainer = Trainer(parser, sentences, [], tmp_path)
    batch = trainer.collate(range(6))
    encoded = parser.encode([trainer.examples[i].sentence for i in range(6)])
    arcs = encoded.states, batch.arc_sentence, batch.arc_head, batch.arc_dependent
    alone = [one.network.label_scores(*arcs) for one in members_of(parser, sentences)]
    mean = torch.stack(alone).mean(0)
    torch.testing.assert_close(parser.network.label_scores(*arcs), mean, atol=1e-5, rtol=1e-5)
    (labels,) = trainer.batch_loss._others(encoded, batch)
    expected = 0.7 * sum(multiclass_hinge(own, batch.relations) for own in alone) / MEMBERS
    assert labels.item() == pytest.approx(expected.item(), rel=1e-5)
    logs = parser.network.label_logs(encoded.states, torch.zeros(2, mean.shape[1]), *arcs[1:])
    torch.testing.assert_close(logs, mean.log_softmax(-1).amax(-1), atol=1e-5, rtol=1e-5)


def test_members_have_masks_of_their_own(small_treebanks):
    sentences = read_gold(small_treebanks[0])[:1]
    parser = parser_of(sentences, "mst", mlp_dropout=0.5)
    parser.network.train()
    vectors = parser.encode(sentences).roles[..., :-1].unflatten(2, (MEMBERS, -1))
    dropped = (vectors == 0).flatten(2).chunk(MEMBERS, 2)
    assert all(0.3 < float(own.float().mean()) < 0.7 for own in dropped)
    assert not torch.equal(dropped[0], dropped[1])


def test_answers_are_exact_for_the_mean(small_treebanks, tmp_path):
    folder = tmp_path / "m"
    train(*small_treebanks, folder, changed(small_config("eisner"), members=MEMBERS), device="cpu")
    parser = ChartParser.load(folder, device="cpu")
    sentences = read_gold(small_treebanks[1])[:5]
    for sentence, scores in zip(sentences, parser.score(sentences), strict=True):
        forest = parser.decoder.forest(scores)
        trees = parser.k_best(sentence.forms, 3)
        for tree, expected in zip(trees, forest.k_best(3), strict=True):
            assert tree.padded_heads.tolist() == expected.heads.tolist()
        sure = parser(sentence.forms, confidence=True)
        np.testing.assert_allclose(sure.confidence.margins, forest.margins[1][1:], atol=1e-3)
        kept = sentence.replace(heads=trees[2].heads.tolist())
        (best,) = parser.predict([kept], keep_heads=True)
        assert best.heads.tolist() == trees[2].heads.tolist()
        total = float((arc_matrix(trees[0].padded_heads) * scores[0]).sum())
        assert total == pytest.approx(forest.best.score, abs=1e-3)


def test_equal_seeds_give_equal_models_also_after_an_interruption(small_treebanks, tmp_path):
    config = changed(small_config(), members=2)
    train(*small_treebanks, tmp_path / "whole", config, device="cpu")
    train(*small_treebanks, tmp_path / "cut", changed(config, max_steps=8), device="cpu")
    train(*small_treebanks, tmp_path / "cut", config, device="cpu", resume=True)
    assert same_weights(tmp_path / "whole", tmp_path / "cut")
    twins = mh4.load(tmp_path / "whole", tmp_path / "cut", device="cpu")
    assert len(list(twins.parse(small_treebanks[1]))) == 12


def test_members_begin_as_one_does():
    """Glorot's bound is that of each member's own layer, not of the wide layer that holds all members."""
    classifier = Classifier(20, 10, 5, 0.0, members=8)
    for weight, own in ((classifier.hidden.linear.weight, (20, 10)), (classifier.output.weight, (10, 5))):
        bound = (6 / sum(own)) ** 0.5
        assert 0.95 * bound < float(weight.detach().abs().max()) <= bound


def test_only_decoders_have_members():
    assert make_config(ChartConfig, {"members": "4"}).scorers.members == 4
    with pytest.raises(ValueError, match="several members need a parser with a decoder"):
        make_config(GreedyConfig, {"members": 2})
    with pytest.raises(ValueError, match="members"):
        make_config(ChartConfig, {"members": 0})
