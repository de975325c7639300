"""Layers: our BiLSTM against PyTorch's, dropout masks that are constant over a sequence, activations."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from mh4.models.layers import BiLSTM, Packed, activated, packed_lstm, packed_order
from mh4.models.recurrence import Recurrence, Sequences

LENGTHS = torch.tensor([6, 1, 4, 6, 2])


def reference(ours: BiLSTM, input_size: int, hidden: int, layers: int) -> nn.LSTM:
    """PyTorch's bidirectional LSTM with the weights of ours."""
    lstm = nn.LSTM(input_size, hidden, layers, bidirectional=True)
    for number, layer in enumerate(ours.layers):
        for direction, suffix in enumerate(("", "_reverse")):
            getattr(lstm, f"weight_ih_l{number}{suffix}").data.copy_(layer.input_weight[direction])
            getattr(lstm, f"weight_hh_l{number}{suffix}").data.copy_(layer.recurrent_weight[direction])
            getattr(lstm, f"bias_ih_l{number}{suffix}").data.copy_(layer.bias[direction])
            getattr(lstm, f"bias_hh_l{number}{suffix}").data.zero_()
    return lstm


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("hidden", [7, 16])
def test_equals_packed_lstm(hidden):
    torch.manual_seed(3)
    ours = BiLSTM(5, hidden, 2, dropout=0.3).eval()
    for layer in ours.layers:
        layer.bias.data.uniform_(-1, 1)
    x = torch.randn(int(LENGTHS.sum()), 5)
    (_, states), last = ours(x, LENGTHS)
    packed, (final, _) = reference(ours, 5, hidden, 2)(pack_sequence(x.split(LENGTHS.tolist()), enforce_sorted=False))
    torch.testing.assert_close(states, torch.cat(unpack_sequence(packed)), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last, torch.cat([final[-2], final[-1]], dim=-1), atol=1e-5, rtol=1e-5)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("scale", [0.3, 30.0])
def test_gradients_equal_those_of_packed_lstm(scale):
    torch.manual_seed(4)
    size, hidden = 9, 6
    sequences = Sequences.one_after_the_other(LENGTHS.numpy())
    arguments = [
        (scale * torch.randn(shape)).requires_grad_()
        for shape in ((int(LENGTHS.sum()), size), (2, 4 * hidden, size), (2, 4 * hidden, hidden), (2, 4 * hidden))
    ]
    weights = torch.randn(int(LENGTHS.sum()), 2 * hidden)
    rows, batch_sizes = map(torch.from_numpy, packed_order(sequences))
    packed = Packed(rows, rows.argsort(), batch_sizes)
    results = [Recurrence.apply(*arguments, sequences), packed_lstm(*arguments, packed)]
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)
    ours, theirs = (torch.autograd.grad((states * weights).sum(), arguments) for states in results)
    for mine, other in zip(ours, theirs, strict=True):  # large weights multiply rounding errors at every step
        torch.testing.assert_close(mine, other, atol=1e-4 * float(other.abs().max()), rtol=1e-4)


RUN_A_LAYER = """
import sys, torch
from mh4.models.layers import BiLSTM
torch.set_num_threads(int(sys.argv[1]))
assert torch.get_num_threads() == int(sys.argv[1])
BiLSTM(5, 4, 1, dropout=0.0)(torch.randn(4, 5), torch.tensor([3, 1]))[1].sum().backward()
print(torch.get_num_threads())
"""


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_pytorch_keeps_its_number_of_threads(threads):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", RUN_A_LAYER, threads]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == threads


def test_several_threads_may_run_layers_at_once():
    torch.manual_seed(7)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    lstm = BiLSTM(5, 16, 2, dropout=0.0).eval()
    inputs = torch.randn(64, int(LENGTHS.sum()), 5)
    alone = [lstm(x, LENGTHS)[0][-1] for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda x: lstm(x, LENGTHS)[0][-1], inputs)
        for one, other in zip(alone, together, strict=True):
            torch.testing.assert_close(one, other)
    torch.set_num_threads(before)


def test_sequences_do_not_see_each_other():
    torch.manual_seed(5)
    lstm = BiLSTM(3, 4, 2, dropout=0.0).eval()
    x = torch.randn(7, 3)
    together, last = lstm(x, torch.tensor([5, 2]))
    alone, last_alone = lstm(x[5:], torch.tensor([2]))
    for states, states_alone in zip(together, alone, strict=True):
        torch.testing.assert_close(states[5:], states_alone)
    torch.testing.assert_close(last[1:], last_alone)


def test_one_mask_a_sequence():
    torch.manual_seed(6)
    lstm = BiLSTM(8, 4, 1, dropout=0.5)
    lstm.layers[0].dropout.rate = 0.0
    seen = []
    lstm.layers[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].view(3, 9, 8)))
    lstm(torch.ones(27, 8), torch.tensor([9, 9, 9]))
    assert (seen[0] == seen[0][:, :1]).all()
    assert (seen[0] == 0).any()
    assert not (seen[0][0, 0] == seen[0][1, 0]).all()


def test_activations_are_the_hyperbolic_tangent():
    x = torch.cat([torch.linspace(-12, 12, 999), torch.tensor([0.0, -1e4, 1e4])]).view(3, 2, -1)
    wanted = torch.tanh(x.double())
    with torch.no_grad():
        for own in (x.clone(), x.transpose(0, 2).contiguous().transpose(0, 2)):
            torch.testing.assert_close(activated(own).double(), wanted, atol=6e-8, rtol=0)
    learnt = x.clone().requires_grad_()
    found = activated(learnt)
    found.sum().backward()
    torch.testing.assert_close(learnt.grad.double(), 1 - wanted**2, atol=1e-6, rtol=0)
    torch.testing.assert_close(learnt.detach(), x)  # not overwritten, as autograd needs it


def test_each_gate_begins_as_a_layer_of_its_own():
    """The Glorot range follows the sizes of the input and one gate, not of all gates and directions."""
    (layer,) = BiLSTM(100, 60, 1, dropout=0.0).layers
    for weight, inputs in ((layer.input_weight, 100), (layer.recurrent_weight, 60)):
        most = weight.detach().view(8, -1).abs().amax(1)
        torch.testing.assert_close(most, torch.full((8,), (6 / (inputs + 60)) ** 0.5), rtol=0.01, atol=0)
    assert not layer.bias.any()
