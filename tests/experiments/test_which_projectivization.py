"""Optimal projectivised trees are drawn uniformly, and training can use different ones in each epoch."""

import json

import naive
import numpy as np
import pytest
import which_projectivization
from scipy.stats import chisquare
from which_projectivization import optimal_trees, run, show

from mh4.data.conllu import read_conllu
from mh4.decoders.projectivization import count_optimal_trees
from mh4.decoders.trees import is_projective
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import PerceptronTrainer

TREES = ([-1, 3, 4, 0, 3], [-1, 4, 5, 0, 3, 0], [-1, 3, 5, 0, 2, 3], [-1, 3, 0, 2, 1, 3], [-1, 3, 1, 5, 1, 0])


@pytest.mark.parametrize("heads", TREES)
@pytest.mark.parametrize("single_root", [False, True])
def test_every_optimal_tree_is_as_likely(heads, single_root):
    heads = np.array(heads)
    projective = naive.all_trees(len(heads) - 1, single_root, projective=True)
    kept = (projective == heads)[:, 1:].sum(axis=1)
    optimal = {tuple(tree): 0 for tree in projective[kept == kept.max()].tolist()}
    assert len(optimal) == count_optimal_trees(heads, single_root)[1]
    for tree in optimal_trees(heads, 3000, single_root, np.random.default_rng(1)):
        optimal[tuple(tree.tolist())] += 1  # KeyError if the tree is not optimal
    assert len(optimal) == 1 or chisquare(list(optimal.values())).pvalue > 0.001


def test_a_projective_tree_stays():
    heads = np.array([-1, 2, 0, 2])
    assert [tree.tolist() for tree in optimal_trees(heads, 2, True, np.random.default_rng(1))] == [heads.tolist()] * 2


def test_trees_that_keep_too_few_arcs_are_drawn_again(monkeypatch):
    monkeypatch.setattr(which_projectivization, "WEIGHT", 0.5)
    heads = np.array(TREES[1])
    most, _ = count_optimal_trees(heads)
    drawn = optimal_trees(heads, 300, False, np.random.default_rng(1))
    assert len(drawn) == 300
    assert {int((tree == heads)[1:].sum()) for tree in drawn} == {most}


@pytest.mark.parametrize(("way", "draws"), [("fixed", 0), ("once", 1), ("anew", 3)])
def test_every_way_of_training(way, draws, tmp_path, small_treebanks, monkeypatch):
    for name, path in zip(("train", "dev"), small_treebanks, strict=False):
        (tmp_path / f"x-{name}.conllu").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    learnt, learn_from = [], PerceptronTrainer.learn_from

    def remember(trainer, sentences, trees):
        learnt.append(np.concatenate(trees).tolist())
        learn_from(trainer, sentences, trees)

    monkeypatch.setattr(PerceptronTrainer, "learn_from", remember)
    found = run(tmp_path, {"way": way, "seed": 1, "iterations": 3, "scored": "dev"})
    assert json.loads(json.dumps(found)) == found
    trees = [one.padded_heads for one in read_conllu(small_treebanks[0])]
    assert 0 < found["not_projective"] == sum(not is_projective(tree) for tree in trees) < len(trees)
    assert 0 < sum(found["LAS"]) <= sum(found["UAS"]) <= found["words"]
    assert len(learnt) == len(set(map(tuple, learnt))) == draws


def test_other_trees_are_learnt_from(small_treebanks):
    """A parser trained on trees that attach each word to the one before it does so too."""
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    trainer = PerceptronTrainer(PerceptronConfig("arc-standard", "dynamic", iterations=3), sentences)
    trainer.learn_from(sentences, [np.arange(len(sentence) + 1) - 1 for sentence in sentences])
    for _ in range(3):
        trainer.train_epoch()
    predicted = trainer.parser().predict(sentences)
    assert np.mean(np.concatenate([tree.heads == np.arange(len(tree.heads)) for tree in predicted])) > 0.95


def test_runs_differ_by_their_seeds(tmp_path, small_treebanks, monkeypatch):
    for name, path in zip(("train", "dev"), small_treebanks, strict=True):
        (tmp_path / f"x-{name}.conllu").write_bytes(path.read_bytes())
    seeds, drawn = [], []
    monkeypatch.setattr(
        which_projectivization,
        "PerceptronTrainer",
        lambda config, train: seeds.append(config.seed) or PerceptronTrainer(config, train),
    )
    monkeypatch.setattr(
        which_projectivization,
        "optimal_trees",
        lambda heads, count, single_root, rng: drawn.append((single_root, rng.integers(2**62))) or [heads] * count,
    )
    for seed in (1, 2):
        run(tmp_path, {"way": "once", "seed": seed, "iterations": 1, "scored": "dev"})
    assert seeds == [1, 2]
    assert all(single_root for single_root, _ in drawn)  # as in all of these gold trees
    assert len(set(drawn)) == len(drawn) == 80


def test_gains_are_those_of_shared_seeds(capsys):
    """In each of ten sentences of ten words, so many are right with each seed."""
    right = {"fixed": [5, 8], "once": [6], "anew": []}
    runs = {
        way: [{"seed": seed, "words": 100, "UAS": [n] * 10, "LAS": [n] * 10} for seed, n in enumerate(own, start=1)]
        for way, own in right.items()
    }
    show("hu", runs)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "hu UAS fixed: 65.00 ± 21.21, 2 seeds",
        "hu UAS once: 60.00 ± 0.00 (+10.00, p = 0.002), 1 seeds",
    ]
