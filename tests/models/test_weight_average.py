import torch
from torch import nn

from mh4.models.weight_average import WeightAverage


def _network() -> nn.Linear:
    network = nn.Linear(1, 1, bias=False)
    network.weight.data.fill_(1.0)
    return network


def test_average_follows_its_formula():
    network = _network()
    average = WeightAverage(network, decay=0.5)
    expected = 1.0
    for step, weight in enumerate((3.0, 5.0, -2.0, 8.0, 8.0, 1.0, 0.0, 4.0, 9.0, 7.0, 3.0), start=1):
        network.weight.data.fill_(weight)
        average.update(step)
        keep = min(0.5, step / (step + 9))
        expected = keep * expected + (1 - keep) * weight
    torch.testing.assert_close(average.averages["weight"], torch.tensor([[expected]]))


def test_without_decay_the_weights_are_their_own_average():
    network = nn.Linear(7, 5)
    average = WeightAverage(network, decay=0.0)
    nn.init.normal_(network.weight)
    weight = network.weight.clone()
    average.update(1)
    with average.applied():
        assert torch.equal(network.weight, weight)
    assert torch.equal(network.weight, weight)


def test_the_network_has_its_own_weights_back_afterwards():
    network = _network()
    average = WeightAverage(network, decay=0.9)
    network.weight.data.fill_(2.0)
    with average.applied():
        assert network.weight.item() == 1.0
    assert network.weight.item() == 2.0
    assert average.averages["weight"].item() == 1.0


def test_restart_forgets_what_was_before():
    network = _network()
    average = WeightAverage(network, decay=0.9)
    network.weight.data.fill_(5.0)
    average.restart()
    assert network.weight.item() == 5.0
    with average.applied():
        assert network.weight.item() == 5.0


def test_frozen_weights_have_no_average():
    network = nn.Linear(2, 2)
    network.weight.requires_grad_(False)
    assert list(WeightAverage(network, decay=0.9).averages) == ["bias"]


def test_settled_weights_are_the_average():
    network = _network()
    average = WeightAverage(network, decay=0.9)
    network.weight.data.fill_(2.0)
    average.settle()
    assert network.weight.item() == 1.0
