"""Perceptron parsers of single systems: Covington and LR-spine."""

from dataclasses import replace

import numpy as np
import pytest

from mh4.data.conllu import read_conllu
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.perceptron.vocabulary import PerceptronVocabulary
from mh4.training.perceptron import PerceptronTrainer, fit


@pytest.mark.parametrize("oracle", ["static", "dynamic", "all-pairs"])
def test_a_covington_parser_learns_crossing_arcs(oracle, small_treebanks):
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    parser = fit(PerceptronConfig("covington", oracle, iterations=12, exploration_start=3), sentences)
    predictions = parser.predict(sentences)
    right = [
        sentence.heads.tolist() == prediction.heads.tolist()
        for sentence, prediction in zip(sentences, predictions, strict=True)
    ]
    assert sum(right) >= 0.9 * len(right)


def test_words_without_a_head_go_below_the_first_one(small_treebanks):
    """If every sentence of the treebank has one root; otherwise, they go below the root."""
    train, dev = (list(read_conllu(path, trees="required")) for path in small_treebanks)
    parser = fit(PerceptronConfig("covington", "static", iterations=1), train[:40])
    assert parser.vocabulary.single_root
    as_published = PerceptronParser(parser.config, replace(parser.vocabulary, single_root=False), parser.lists)
    several = 0
    for one, other in zip(parser.predict(dev), as_published.predict(dev), strict=True):
        first, *others = np.flatnonzero(other.padded_heads == 0).tolist()
        several += bool(others)
        expected = other.padded_heads.copy()
        expected[others] = first
        assert one.padded_heads.tolist() == expected.tolist()
        assert all(one.relations[word - 1] != parser.vocabulary.root_relation for word in others)
        kept = [word - 1 for word in range(1, len(one.heads) + 1) if word not in others]
        assert [one.relations[i] for i in kept] == [other.relations[i] for i in kept]
    assert several > 3


def test_trees_with_several_words_below_the_root_are_learnt_as_they_are(small_treebanks):
    sentences = list(read_conllu(small_treebanks[0], trees="required"))[:20]
    vocabulary = PerceptronVocabulary.from_sentences(
        [sentences[0].replace(heads=[0] * len(sentences[0])), *sentences[1:]]
    )
    assert not vocabulary.single_root


@pytest.mark.parametrize("oracle", ["static", "dynamic"])
def test_an_lr_spine_parser_learns(oracle, small_treebanks):
    """It gets over 95% of the heads of its training sentences right."""
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    parser = fit(PerceptronConfig("lr-spine", oracle, iterations=8), sentences)
    predictions = parser.predict(sentences)
    right = sum((p.heads == s.heads).sum() for s, p in zip(sentences, predictions, strict=True))
    assert all((prediction.heads == 0).sum() == 1 for prediction in predictions)
    assert right > 0.95 * sum(map(len, sentences))


def test_an_lr_spine_parser_learns_from_wrong_predictions(small_treebanks):
    """By default, from the second epoch on; following them makes more of its decisions wrong."""
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    trainers = [
        PerceptronTrainer(PerceptronConfig("lr-spine", "dynamic", **settings), sentences)
        for settings in ({}, {"exploration": 0.0})
    ]
    (first, second), (same, other) = ([trainer.train_epoch() for _ in range(2)] for trainer in trainers)
    assert first == same
    assert second > other
