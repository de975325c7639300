"""Greedy parsers with the network's scores, from training to parsing."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from small import small_greedy_config, train

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders.trees import is_tree
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import PerceptronConfig, TransitionConfig
from mh4.parsers.definition import Definition
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.registry import load
from mh4.parsers.systems import GREEDY_SYSTEMS
from mh4.training.perceptron import PerceptronTrainer
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold


def small_transition_config(system, oracle="", form="", **training):
    return small_greedy_config(TransitionConfig(system, oracle, form=form), **training)


def same_weights(one, other):
    one, other = load_file(one / "weights.safetensors"), load_file(other / "weights.safetensors")
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def arc_hybrid(small_treebanks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("greedy") / "arc-hybrid"
    train(*small_treebanks, folder, small_transition_config("arc-hybrid", max_steps=16), device="cpu")
    return folder


@pytest.mark.parametrize(
    ("system", "form"), [*((system, "") for system in GREEDY_SYSTEMS), ("arc-hybrid", "concatenated")]
)
def test_every_system_learns(system, form, small_treebanks, tmp_path):
    config = small_transition_config(system, form=form, max_steps=120, evaluation_steps=60, learning_rate=0.02)
    train(*small_treebanks, tmp_path / "m", config, device="cpu")
    first, last = (json.loads(line) for line in (tmp_path / "m" / "log.jsonl").read_text().splitlines())
    assert last["loss"] < 0.9 * first["loss"]
    assert last["dev_uas"] > 20
    parser = load(tmp_path / "m", device="cpu")
    assert isinstance(parser, GreedyParser)
    for sentence in parser.parse(small_treebanks[1]):
        assert len(sentence.heads) == len(sentence)
        assert len(sentence.relations) == len(sentence)
        assert is_tree(sentence.padded_heads, single_root=True)


def test_trees_do_not_depend_on_the_batch(arc_hybrid, small_treebanks):
    parser = GreedyParser.load(arc_hybrid, device="cpu")
    sentences = list(read_conllu(small_treebanks[1]))
    for sentence, together in zip(sentences, parser.predict(sentences), strict=True):
        np.testing.assert_array_equal(together.heads, parser.predict([sentence])[0].heads)


def test_resumed_training_equals_an_uninterrupted_one(arc_hybrid, small_treebanks, tmp_path):
    """Including the random choices of exploration with a dynamic oracle."""
    config = small_transition_config("arc-hybrid", max_steps=16)
    assert config.transitions.exploration_at(1) > 0

    def interrupt(progress, _):
        if progress.step == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "m", config, device="cpu", on_step=interrupt)
    train(*small_treebanks, tmp_path / "m", config, device="cpu", resume=True)
    assert same_weights(tmp_path / "m", arc_hybrid)


def test_trees_that_cannot_be_built_are_replaced_once(small_treebanks, caplog):
    sentences = read_gold(small_treebanks[0])
    parser = GreedyParser(Definition.learn(small_transition_config("arc-hybrid"), sentences), "cpu")
    caplog.set_level("INFO", logger="mh4")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    replaced = [example for example in trainer.examples if (example.heads != example.sentence.padded_heads).any()]
    assert 0 < len(replaced) < len(sentences)
    assert f"{len(replaced)} of {len(sentences)} training trees cannot be built by arc-hybrid" in caplog.text


@pytest.mark.parametrize(("system", "oracle"), [("arc-standard", "exact"), ("arc-eager", "approximate")])
def test_training_on_original_trees(system, oracle, small_treebanks, tmp_path):
    """Trees are not made projective; interrupted and resumed, training ends with the same weights."""
    sentences = read_gold(small_treebanks[0])
    assert not all(sentence.is_projective for sentence in sentences)
    config = small_transition_config(system, oracle, max_steps=12)
    assert config.transitions.exploration_at(1) > 0
    parser = GreedyParser(Definition.learn(config, sentences), "cpu")
    trainer = Trainer(parser, sentences, sentences, small_treebanks[0].parent)
    assert all((example.heads == example.sentence.padded_heads).all() for example in trainer.examples)
    perceptron = PerceptronTrainer(PerceptronConfig(system, oracle), sentences)
    assert perceptron._gold.heads.tolist() == np.concatenate([s.padded_heads for s in sentences]).tolist()
    assert perceptron.train_epoch() > perceptron.train_epoch()

    def interrupt(progress, _):
        if progress.step == 7:
            raise KeyboardInterrupt

    train(*small_treebanks, tmp_path / "whole", config, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, tmp_path / "m", config, device="cpu", on_step=interrupt)
    train(*small_treebanks, tmp_path / "m", config, device="cpu", resume=True)
    assert same_weights(tmp_path / "m", tmp_path / "whole")


def test_a_model_is_loaded_as_what_it_is(arc_hybrid, small_model, small_treebanks):
    assert isinstance(load(small_model, device="cpu"), ChartParser)
    with pytest.raises(DataError, match=r"holds a greedy parser, not a chart parser .*GreedyParser\.load"):
        ChartParser.load(arc_hybrid, device="cpu")
    with pytest.raises(DataError, match=r"holds a chart parser, not a greedy parser .*ChartParser\.load"):
        GreedyParser.load(small_model, device="cpu")
    with pytest.raises(ValueError, match="search 'beam:4' is for chart parsers"):
        load(arc_hybrid, search="beam:4")


def test_given_heads_are_refused_before_any_work(arc_hybrid, tmp_path, monkeypatch):
    parser = load(arc_hybrid, device="cpu")
    assert not parser.can_keep_heads
    monkeypatch.setattr(parser.network, "encode", None)  # must not be called
    sentence = Sentence.from_words(["ju"])
    for refused in (
        lambda: parser.parse([sentence], keep_heads=True),
        lambda: parser.parse_file([sentence], tmp_path / "out.conllu", keep_heads=True),
        lambda: parser.predict([sentence], keep_heads=True),
        lambda: parser(sentence, keep_heads=True),
    ):
        with pytest.raises(ValueError, match="cannot keep given heads"):
            refused()
    assert not list(tmp_path.iterdir())


def test_greedy_trees_have_no_score(arc_hybrid):
    (prediction,) = load(arc_hybrid, device="cpu").predict([Sentence.from_words(["ju"])])
    assert prediction.score is None
