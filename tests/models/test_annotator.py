"""The annotator: weights of its losses, penalties of incomplete analyses, dropout."""

import numpy as np
import pytest
import torch

from mh4.models.annotator import IGNORED, Analyses, Annotator, Classes
from mh4.models.dropout import Dropout
from mh4.models.network_config import LossWeights, ScorerConfig


def test_losses_are_weighted_each_by_its_own():
    analyses = Analyses(np.array([0, 1]), np.array([0, 0]), np.array([0, 0]), np.eye(2, dtype=np.float32))
    classes = Classes(2, 0, 0, 3, analyses)
    config = ScorerConfig(mlp=4, mlp_dropout=0.0)
    annotator = Annotator(config, LossWeights(analysis_weight=1.0, lemma_weight=1.0), 5, classes).eval()
    words, targets = torch.ones(2, 5), torch.tensor([[0, 0, 0, 2], [1, 0, 0, 1]])
    values = {}
    for weights in ((1.0, 0.0), (0.0, 1.0), (0.25, 3.0)):
        own = LossWeights(analysis_weight=weights[0], lemma_weight=weights[1])
        weighted = Annotator(config, own, 5, classes).eval()
        for name in ("upos", "xpos", "feats", "lemmas"):
            setattr(weighted, name, getattr(annotator, name))
        values[weights] = weighted.loss(words, targets).item()
        without_lemmas = targets.clone()
        without_lemmas[:, 3] = IGNORED
        assert (weighted.loss(words, without_lemmas).item() == values[weights]) == (weights == (1.0, 0.0))
    analysis, lemma = values[1.0, 0.0], values[0.0, 1.0]
    assert min(analysis, lemma) > 0.1
    assert abs(analysis - lemma) > 0.01
    assert values[0.25, 3.0] == pytest.approx(0.25 * analysis + 3.0 * lemma, rel=1e-5)


def test_analyses_without_a_tag_are_for_those_who_have_no_other():
    """The second analysis lacks a UPOS, which others have, so its score drops by 20; none has an XPOS."""
    none = np.array([IGNORED] * 3)
    analyses = Analyses(np.array([0, IGNORED, 1]), none, np.array([0, 1, 2]), np.zeros((2, 3), np.float32))
    classes = Classes(2, 0, 0, 0, analyses)
    annotator = Annotator(ScorerConfig(mlp=4), LossWeights(analysis_weight=1.0), 5, classes).eval()
    assert annotator(torch.ones(2, 5)).analyses.tolist() == [[0.0, -20.0, 0.0]] * 2


def test_scores_of_parts_are_added_in_float32_in_half_precision_too():
    none = np.array([IGNORED] * 2)
    analyses = Analyses(np.array([0, 1]), none, np.array([0, 0]), np.array([[1, 1], [1, 1], [0, 1]], np.float32))
    annotator = Annotator(ScorerConfig(mlp=4), LossWeights(analysis_weight=1.0), 5, Classes(3, 0, 0, 0, analyses))
    annotator.upos = torch.nn.Linear(5, 3).requires_grad_(False)
    annotator.upos.weight.zero_()
    annotator.upos.forward = lambda words: torch.tensor([[200.0, 0.25, 0.25]]).expand(len(words), -1)
    with torch.autocast("cpu", torch.bfloat16):
        assert annotator(torch.ones(2, 5)).analyses.tolist() == [[200.25, 200.5]] * 2


def test_hidden_layers_have_the_dropout_of_the_settings():
    none = np.array([IGNORED])
    classes = Classes(2, 2, 2, 3, Analyses(none, none, np.array([0]), np.zeros((6, 1), np.float32)))
    annotator = Annotator(
        ScorerConfig(mlp=4, mlp_dropout=0.4), LossWeights(analysis_weight=1.0, lemma_weight=1.0), 5, classes
    )
    assert [own.rate for own in annotator.modules() if isinstance(own, Dropout)] == [0.4] * 4
