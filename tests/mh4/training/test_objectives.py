"""Losses of trees, beside what the naive trainer of `test_losses` shows."""

import pytest
import torch
from small import SMALL_NETWORK, small_config

from mh4.data.sentence import Sentence
from mh4.decoders import decoder_names
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import GreedyConfig, TransitionConfig
from mh4.parsers.greedy import GreedyParser
from mh4.parsers.vocabulary import Vocabulary
from mh4.training.objectives import make_objective
from mh4.training.treebanks import read_gold


@pytest.mark.parametrize("decoder", decoder_names())
def test_without_scores_the_hinge_is_the_cost(decoder):
    """Two words have two trees, and neither head of one is in the other."""
    sentence = Sentence.from_words(["a", "b"])
    parser = ChartParser(small_config(decoder), Vocabulary.from_sentences([sentence]), device="cpu")
    with torch.no_grad():
        parser.network.scorer.matrices.zero_()
    encoded = parser.network.encode(parser.vocabulary.batch([sentence, sentence]))
    trees = [parser.decoder.closest_tree(heads) for heads in ([-1, 2, 0], [-1, 0, 1])]
    assert make_objective(parser).loss(encoded, trees, 0).item() == 4.0


def test_decisions_are_followed_with_dropout(small_treebanks):
    sentences = read_gold(small_treebanks[0])[:8]
    config = GreedyConfig(TransitionConfig("arc-hybrid", positions="s1,s0,b0", exploration_start=0), SMALL_NETWORK)
    parser = GreedyParser(config, Vocabulary.from_sentences(sentences), "cpu")
    objective, scorer = make_objective(parser), parser.network.scorer
    trees = [objective.training_tree(sentence) for sentence in sentences]
    encoded = parser.network.train().encode(parser.vocabulary.batch(sentences))
    followed = []
    scorer.register_forward_hook(lambda _, arguments, scores: followed.append(arguments[2].tolist()))
    for rate in (0.0, 0.8, 0.8):
        scorer.dropout.rate = rate
        torch.manual_seed(1)
        objective.loss(encoded, trees, 0)
    without, once, again = followed
    assert without != once == again
