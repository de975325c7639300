"""The classifier of deterministic parsers, and its loss with several right classes per example."""

import math

import numpy as np
import pytest
import torch
from deterministic.step_classifier import StepClassifier, target_set_loss
from hypothesis import given
from hypothesis import strategies as st


def naive_loss(scores, allowed, right):
    """The loss by its definition: the mean of −log of the probability of the right classes."""
    losses = []
    for row, may, good in zip(scores, allowed, right, strict=True):
        weights = [math.exp(score) if possible else 0.0 for score, possible in zip(row, may, strict=True)]
        share = sum(weight for weight, wanted in zip(weights, good, strict=True) if wanted) / sum(weights)
        losses.append(-math.log(share))
    return sum(losses) / len(losses)


@st.composite
def problems(draw):
    rows, classes = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    scores = generator.normal(0, 3, (rows, classes))
    allowed = generator.random((rows, classes)) < 0.7
    right = generator.random((rows, classes)) < 0.5
    one = generator.integers(classes, size=rows)
    allowed[np.arange(rows), one] = right[np.arange(rows), one] = True
    return scores, allowed, right


@given(problems())
def test_loss_and_gradient_equal_the_definition(problem):
    scores, allowed, right = problem
    tensor = torch.tensor(scores, requires_grad=True)
    loss = target_set_loss(tensor, torch.tensor(allowed), torch.tensor(right))
    assert loss.item() == pytest.approx(naive_loss(scores, allowed, right), abs=1e-12)
    loss.backward()
    step = 1e-5
    for index in np.ndindex(scores.shape):
        shift = np.zeros_like(scores)
        shift[index] = step
        change = naive_loss(scores + shift, allowed, right) - naive_loss(scores - shift, allowed, right)
        assert tensor.grad[index].item() == pytest.approx(change / (2 * step), abs=1e-7)


def test_one_right_class_is_cross_entropy():
    scores = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    gold = torch.tensor([0, 2, 1, 2])
    right = torch.nn.functional.one_hot(gold, 3).bool()
    loss = target_set_loss(scores, torch.ones_like(right), right)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(scores, gold))


def test_certainty_about_an_impossible_class_costs_nothing():
    scores = torch.tensor([[100.0, 0.0]], requires_grad=True)
    loss = target_set_loss(scores, torch.tensor([[False, True]]), torch.tensor([[True, True]]))
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad.tolist() == [[0.0, 0.0]]


def test_scores_are_one_hidden_layer_over_vectors_and_one_hot_symbols():
    torch.manual_seed(3)
    vectors = torch.randn(5, 4)
    classifier = StepClassifier(vectors, word_slots=2, symbol_slots=3, symbols=7, classes=6, hidden=8)
    words = torch.tensor([[0, 4], [1, 1]], dtype=torch.int32)
    symbols = torch.tensor([[0, 3, 6], [1, 2, 5]], dtype=torch.int32)
    for row, (pair, triple) in enumerate(zip(words, symbols, strict=True)):
        one_hot = torch.zeros(7)
        one_hot[triple] = 1.0
        hidden = classifier.words.weight @ torch.cat([vectors[pair[0]], vectors[pair[1]]])
        hidden = torch.relu(hidden + one_hot @ classifier.symbols.weight)
        expected = classifier.output.weight @ hidden + classifier.output.bias
        torch.testing.assert_close(classifier(words, symbols)[row], expected)


def test_word_vectors_stay_as_they_are():
    classifier = StepClassifier(torch.ones(5, 4), word_slots=2, symbol_slots=3, symbols=7, classes=6)
    assert "vectors" not in dict(classifier.named_parameters())
    assert torch.equal(classifier.state_dict()["vectors"], torch.ones(5, 4))


def test_without_word_vectors_only_symbols_count():
    classifier = StepClassifier(torch.zeros(5, 0), word_slots=2, symbol_slots=1, symbols=2, classes=3, hidden=4)
    scores = classifier(torch.tensor([[0, 1], [3, 4]]), torch.tensor([[1], [1]]))
    assert torch.equal(scores[0], scores[1])
    assert {name for name, _ in classifier.named_parameters()} == {"symbols.weight", "output.weight", "output.bias"}
