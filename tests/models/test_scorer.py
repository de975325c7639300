"""The channel scorer against the formula in its docstring."""

import pytest
import torch

from mh4.decoders import decoder_names, get_decoder
from mh4.models.biaffine import POSITIONS
from mh4.models.products import COLUMNS
from mh4.models.scorer import ChannelScorer


@pytest.mark.parametrize("name", decoder_names())
def test_scores_follow_the_formula(name):
    torch.manual_seed(1)
    roles = get_decoder(name).roles
    assert len(roles) == len(get_decoder(name).channels)
    scorer = ChannelScorer(6, roles, hidden=5, dropout=0.3).eval()
    lengths = torch.tensor([3, 2])
    vectors = scorer.role_vectors(torch.randn(2, 4, 6), lengths)
    scores = scorer(vectors)
    assert scores.shape == (2, len(roles), 5, 5)
    names = list(dict.fromkeys(role for pair in roles for role in pair))
    for channel, (row, column) in enumerate(roles):
        expected = torch.einsum(
            "bih,hg,bjg->bij",
            vectors[:, :, names.index(row)],
            scorer.matrices[channel],
            vectors[:, :, names.index(column)],
        )
        torch.testing.assert_close(scores[:, channel], expected)


def test_each_role_begins_as_an_mlp_of_its_own():
    """The Glorot range follows the size of one role, although all roles share a weight matrix."""
    hidden, size = 50, 60
    scorer = ChannelScorer(size, get_decoder("mh4-hybrid").roles, hidden, dropout=0.0)
    weight = scorer.mlp.linear.weight.detach()
    bound = (6 / (size + hidden)) ** 0.5
    for role in range(len(weight) // hidden):
        assert 0.95 * bound < weight[role * hidden : (role + 1) * hidden].abs().max() <= bound


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("name", ["mst", "mh4-hybrid"])
@pytest.mark.parametrize("length", [1, 9, COLUMNS - 2, COLUMNS + 7])
@pytest.mark.parametrize("hidden", [COLUMNS, COLUMNS + 1])  # constant alone after whole tiles, or not
def test_scores_without_gradient_are_those_with_it(name, length, hidden):
    """Without gradients, scores are computed by compiled kernels where these pay, a few sentences at a time."""
    torch.manual_seed(4)
    scorer = ChannelScorer(6, get_decoder(name).roles, hidden, dropout=0.0)
    lengths = torch.tensor([length, 1, length, *[length] * (2 * POSITIONS // (length + 2))])
    vectors = scorer.role_vectors(torch.randn(len(lengths), length + 1, 6), lengths)
    products, scores = scorer.products_and_scores(vectors)
    with torch.no_grad():
        own_products, own_scores = scorer.products_and_scores(vectors)
        torch.testing.assert_close(scorer(vectors), own_scores, atol=0, rtol=0)
    torch.testing.assert_close(own_products, products, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(own_scores, scores, atol=1e-4, rtol=1e-4)


def test_end_position_follows_each_sentence():
    torch.manual_seed(2)
    scorer = ChannelScorer(6, [("s0", "b0")], hidden=5, dropout=0.0).eval()
    states = torch.randn(2, 4, 6)
    vectors = scorer.role_vectors(states, torch.tensor([3, 1]))
    torch.testing.assert_close(vectors[0, 4], vectors[1, 2])  # both at position n + 1, the end
    alone = scorer.role_vectors(states[1:, :2], torch.tensor([1]))
    torch.testing.assert_close(vectors[1:, :3], alone)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("hidden", [5, COLUMNS + 1])
def test_single_parts_equal_the_full_matrices_and_their_gradients(hidden):
    torch.manual_seed(3)
    roles = get_decoder("mh4-hybrid").roles
    scorer = ChannelScorer(6, roles, hidden, dropout=0.0)
    states = torch.randn(3, 5, 6, requires_grad=True)
    lengths = torch.tensor([4, 2, 3])
    sentences = torch.tensor([0, 1, 2, 0, 0])
    parts = torch.tensor([[0, 0, 5], [0, 1, 2], [3, 2, 1], [3, 2, 1], [12, 4, 5]])
    weights = torch.tensor([1.0, -1.0, 2.0, -1.0, 0.5])
    # Add more parts of one channel than a tile has columns.
    sentences, weights = (
        torch.cat([sentences, torch.zeros(60, dtype=torch.long)]),
        torch.cat([weights, torch.randn(60)]),
    )
    parts = torch.cat([parts, torch.tensor([[12, i, j] for i in range(1, 6) for j in range(6)] * 2)])

    def gradients(total):
        return torch.autograd.grad(total, [states, *scorer.parameters()], retain_graph=True)

    vectors = scorer.role_vectors(states, lengths)
    single = scorer.score_parts(vectors, scorer.products_and_scores(vectors)[0], sentences, parts)
    full = scorer(vectors)[sentences, parts[:, 0], parts[:, 1], parts[:, 2]]
    torch.testing.assert_close(single, full)
    for one, other in zip(gradients((single * weights).sum()), gradients((full * weights).sum()), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_no_parts_no_score():
    scorer = ChannelScorer(6, [("head", "dependent")], hidden=5, dropout=0.0)
    vectors = scorer.role_vectors(torch.randn(1, 3, 6), torch.tensor([2]))
    products, _ = scorer.products_and_scores(vectors)
    none = scorer.score_parts(vectors, products, torch.zeros(0, dtype=torch.long), torch.zeros(0, 3, dtype=torch.long))
    assert none.shape == (0,)
    none.sum().backward()
    assert not scorer.matrices.grad.any()


def test_forms_begin_orthogonal_and_the_end_small():
    scorer = ChannelScorer(100, [("s0", "b0"), ("s1", "b0")], hidden=60, dropout=0.0)
    matrices = scorer.matrices.detach()
    torch.testing.assert_close(matrices @ matrices.transpose(1, 2), torch.eye(61).expand(2, -1, -1), rtol=0, atol=1e-4)
    assert not scorer.mlp.linear.bias.any()
    assert 0.1 < float(scorer.end.detach().abs().max()) <= 0.15
