"""Dropout: masks have the right rate and no pattern, and repeat with the seed; `Dropout.share` scales the rate."""

import pytest
import torch

from mh4.models.dropout import Dropout, dropout_mask

LIKE = torch.zeros(1)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_values_and_mean(p):
    torch.manual_seed(5)
    mask = dropout_mask((200, 500), p, LIKE)
    assert set(mask.unique().tolist()) == {0.0, torch.tensor(1.0).div(1.0 - p).item()}
    deviation = (p / (1.0 - p) / mask.numel()) ** 0.5  # standard deviation of the mean
    assert abs(mask.mean().item() - 1.0) < 5 * deviation


def test_extremes():
    assert (dropout_mask((1000,), 0.0, LIKE) == 1.0).all()


def test_neither_neighbours_nor_masks_are_correlated():
    torch.manual_seed(6)
    masks = torch.stack([dropout_mask((2000,), 0.3, LIKE) for _ in range(300)]) - 1.0
    variance = masks.square().mean()
    standard_error = masks.numel() ** -0.5
    for lag in (1, 2, 4, 32, 96, 384):
        assert abs((masks[:, lag:] * masks[:, :-lag]).mean() / variance) < 5 * standard_error
    assert abs((masks[1:] * masks[:-1]).mean() / variance) < 5 * standard_error
    # means over positions and over masks vary as they do for independent draws
    assert float(masks.mean(0).std()) == pytest.approx(float(variance / 300) ** 0.5, rel=0.1)
    assert float(masks.mean(1).std()) == pytest.approx(float(variance / 2000) ** 0.5, rel=0.2)


def test_a_seed_means_the_same_masks():
    torch.manual_seed(7)
    first = dropout_mask((40, 3), 0.4, LIKE)
    second = dropout_mask((40, 3), 0.4, LIKE)
    torch.manual_seed(7)
    assert (dropout_mask((40, 3), 0.4, LIKE) == first).all()
    assert (first != second).any()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_rate_is_in_force_in_training(share):
    torch.manual_seed(8)
    dropout = Dropout(0.4)
    dropout.share = share
    x = torch.ones(400, 50)
    sequence_of = torch.tensor([0] * 150 + [1] * 250)
    assert (dropout.eval()(x) == x).all()
    assert (dropout.by_sequence(x, sequence_of, 2) == x).all()
    dropped = dropout.train()(x) == 0
    assert dropped.float().mean().item() == pytest.approx(0.4 * share, abs=0.02)
    masks = dropout.by_sequence(x, sequence_of, 2)
    assert (masks[:150] == masks[0]).all()
    assert (masks[150:] == masks[-1]).all()
    assert ((masks[0] == masks[-1]).all()) == (share == 0.0)
