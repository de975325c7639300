"""Networks draw random numbers from their own generators, which can be saved and restored."""

import pytest
import torch

from mh4.models.layers import BiLSTM, Classifier
from mh4.models.randomness import Initial, Randomness


def weights(seed):
    with Initial(Randomness(seed)):
        modules = (Classifier(4, 3, 2, 0.1), BiLSTM(4, 3, 2, 0.1), torch.nn.Embedding(5, 4), torch.nn.LSTM(3, 2))
        orthogonal = torch.nn.init.orthogonal_(torch.empty(4, 4))
    return [orthogonal, *(own.detach() for module in modules for own in module.parameters())]


def test_layers_start_where_the_seed_says():
    before = torch.get_rng_state()
    first, again, other = weights(1), weights(1), weights(2)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(one, same) for one, same in zip(first, again, strict=True))
    drawn = [own for own in first if own.unique().numel() > 1]
    assert len(drawn) > 10
    different = [own for own, another in zip(first, other, strict=True) if not torch.equal(own, another)]
    assert len(different) == len(drawn)
    torch.manual_seed(1)  # the same numbers as from PyTorch's global generator
    assert torch.equal(Classifier(4, 3, 2, 0.1).hidden.linear.weight, first[1])


def test_states_are_restored():
    randomness = Randomness(3)
    torch.rand(5, generator=randomness.on())
    states = randomness.states()
    assert set(states) == {"cpu"}
    expected = torch.rand(5, generator=randomness.on())
    other = Randomness(4)
    other.restore(states | {"cuda": torch.zeros(1)})  # for a device that may be missing
    assert torch.equal(torch.rand(5, generator=other.on()), expected)
    other.start(3)
    torch.rand(5, generator=other.on())
    assert torch.equal(torch.rand(5, generator=other.on()), expected)


@pytest.mark.parametrize("rate", [0.3])
def test_what_a_network_draws_does_not_depend_on_others(rate):
    layer = BiLSTM(4, 3, 2, rate)
    drawn = []
    for disturbed in (False, True):
        for module in layer.modules():
            if hasattr(module, "randomness"):
                module.randomness = Randomness(5)
        before = torch.get_rng_state()
        states, _ = layer(torch.ones(6, 4), torch.tensor([4, 2]))
        if disturbed:
            torch.rand(7)
        drawn.append((states[-1].detach(), torch.get_rng_state().equal(before)))
    assert torch.equal(drawn[0][0], drawn[1][0])
    assert [untouched for _, untouched in drawn] == [True, False]
