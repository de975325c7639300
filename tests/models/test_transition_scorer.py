"""Transition scorers against a hidden layer over concatenated vectors, and against single products."""

import numpy as np
import pytest
import torch

from mh4.models.transition_scorer import BiaffineTransitionScorer, TransitionScorer, step_hinge


@pytest.fixture
def scorer():
    torch.manual_seed(1)
    scorer = TransitionScorer(6, roles=3, transitions=4, hidden=5, dropout=0.5)
    torch.nn.init.normal_(scorer.bias)
    torch.nn.init.normal_(scorer.output.bias)
    return scorer


def test_scores_are_those_of_one_hidden_layer_over_concatenated_vectors(scorer):
    scorer.eval()
    states, lengths = torch.randn(2, 5, 6), torch.tensor([4, 2])
    sentences = torch.tensor([0, 1, 1, 0])
    positions = torch.tensor([[0, 1, 4], [3, 2, 0], [1, 1, 3], [5, 5, 5]])  # 5 and 3 are past the end: no token
    tokens = [torch.cat([states[0], scorer.end[None]]), torch.cat([states[1, :3], scorer.end[None]])]
    together = torch.stack([tokens[s][p].flatten() for s, p in zip(sentences.tolist(), positions, strict=True)])
    weight = scorer.input.view(3, 5, 6).transpose(0, 1).reshape(5, 18)
    expected = scorer.output(torch.tanh(together @ weight.t() + scorer.bias))
    scores = scorer(scorer.role_vectors(states, lengths), sentences, positions)
    torch.testing.assert_close(scores, expected)


def test_the_hidden_layer_starts_as_one_layer(scorer):
    """The Glorot range follows the size of the whole concatenation, not of each role."""
    wide = TransitionScorer(100, roles=4, transitions=2, hidden=200, dropout=0.0)
    assert float(wide.input.detach().abs().max()) == pytest.approx((6 / (400 + 200)) ** 0.5, rel=0.01)


def test_dropout_is_for_training_only(scorer):
    vectors = scorer.role_vectors(torch.randn(1, 4, 6), torch.tensor([3]))
    sentences, positions = torch.zeros(50, dtype=torch.int64), torch.ones(50, 3, dtype=torch.int64)
    assert scorer.train()(vectors, sentences, positions).std(0).max() > 0
    assert scorer.eval()(vectors, sentences, positions).std(0).max() < 1e-6


def test_biaffine_scores_are_those_of_single_products():
    torch.manual_seed(2)
    scorer = BiaffineTransitionScorer(6, transitions=3, hidden=5, dropout=0.5).eval()
    states, lengths = torch.randn(2, 5, 6), torch.tensor([4, 2])
    sentences, positions = torch.tensor([0, 1, 1]), torch.tensor([[0, 4], [3, 2], [3, 3]])
    vectors = scorer.role_vectors(states, lengths)
    scores = scorer(vectors, sentences, positions)
    tokens = [torch.cat([states[0], scorer.channels.end[None]]), torch.cat([states[1, :3], scorer.channels.end[None]])]
    for row, sentence, (first, second) in zip(scores, sentences.tolist(), positions.tolist(), strict=True):
        x, y = (scorer.channels.mlp(tokens[sentence][[position]]).view(2, 5) for position in (first, second))
        x, y = torch.cat([x[0], torch.ones(1)]), torch.cat([y[1], torch.ones(1)])
        torch.testing.assert_close(row, torch.stack([x @ matrix @ y for matrix in scorer.channels.matrices]))
    arrays = scorer.arrays(vectors)
    in_loops = np.einsum(
        "mtd,md->mt", arrays.products[sentences, positions[:, 0]], arrays.vectors[sentences, positions[:, 1]]
    )
    np.testing.assert_allclose(in_loops, scores.detach(), rtol=1e-5, atol=1e-6)


def test_biaffine_scores_have_dropout_in_training_only():
    scorer = BiaffineTransitionScorer(6, transitions=3, hidden=50, dropout=0.5)
    states, lengths, sentences = torch.randn(1, 4, 6), torch.tensor([3]), torch.zeros(1, dtype=torch.int64)
    positions = torch.tensor([[1, 2]])

    def scores():
        return scorer(scorer.role_vectors(states, lengths), sentences, positions)

    assert not torch.equal(scores(), scores())
    scorer.eval()
    assert torch.equal(scores(), scores())


def test_step_hinge_is_the_hinge_of_each_step():
    generator = np.random.default_rng(1)
    for _ in range(50):
        sizes = generator.integers(1, 5, 6)
        steps = np.repeat(np.arange(6), sizes)
        scores = generator.normal(size=len(steps)).astype(np.float32)
        optimal = generator.random(len(steps)) < 0.5
        optimal[np.cumsum(sizes) - 1] = True
        expected = 0.0
        for step in range(6):
            right, wrong = scores[(steps == step) & optimal], scores[(steps == step) & ~optimal]
            if len(wrong):
                expected += max(0.0, 1.0 + wrong.max() - right.max())
        variable = torch.from_numpy(scores).requires_grad_()
        loss = step_hinge(variable, torch.from_numpy(steps), torch.from_numpy(optimal), 6)
        assert loss.item() == pytest.approx(expected, abs=1e-5)
        loss.backward()
        assert torch.isfinite(variable.grad).all()
        assert variable.grad.sum().item() == pytest.approx(0.0, abs=1e-5)
