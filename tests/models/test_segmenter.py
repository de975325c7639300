"""The compiled segmenter against the PyTorch network that is trained, and against plain NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mh4.models import segmenter
from mh4.models.segmenter import CONTEXT, WINDOW, SegmenterNetwork, Tagger, windows_of

VECTORS, FEATURES = 30, 4


@pytest.fixture(scope="module", params=[(8, 8, 1), (5, 16, 2)], ids=["one layer", "two layers"])
def network(request):
    torch.manual_seed(1)
    size, hidden, layers = request.param
    network = SegmenterNetwork(VECTORS, size, hidden, layers, 0.3, [3])
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network.eval()


def ids(count, seed=1):
    return np.random.default_rng(seed).integers(0, VECTORS, (count, FEATURES)).astype(np.int32)


def plain(weights, features):
    """The log-odds of one window, in plain NumPy."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    x = below = weights["table"].astype(np.float64)[features].sum(1)
    layer = 0
    while f"bilstm.layers.{layer}.bias" in weights:
        inner, recurrent, bias = (
            weights[f"bilstm.layers.{layer}.{name}"].astype(np.float64)
            for name in ("input_weight", "recurrent_weight", "bias")
        )
        hidden = recurrent.shape[2]
        states = np.zeros((len(x), 2, hidden))
        for back in range(2):
            state, cell = np.zeros(hidden), np.zeros(hidden)
            for t in reversed(range(len(x))) if back else range(len(x)):
                i, f, g, o = np.split(inner[back] @ below[t] + recurrent[back] @ state + bias[back], 4)
                cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
                state = sigmoid(o) * np.tanh(cell)
                states[t, back] = state
        below = states.reshape(len(x), -1)
        layer += 1
    return np.concatenate([below, x], 1) @ weights["output.weight"].T + weights["output.bias"]


@pytest.mark.parametrize("count", [1, 2, 37])
def test_what_is_compiled_is_what_is_trained(network, count):
    features = ids(count)
    found = Tagger.of(network.weights(), VECTORS).tag(features, np.array([count]))
    trained, _ = network(torch.from_numpy(features), torch.tensor([count]))
    np.testing.assert_allclose(found, trained.detach().numpy(), atol=2e-5)
    np.testing.assert_allclose(found, plain(network.weights(), features), atol=2e-5)


@given(lengths=st.lists(st.integers(0, 2 * WINDOW), min_size=1, max_size=6))
def test_windows_cover_paragraphs(lengths):
    windows = windows_of(lengths)
    ends = np.cumsum(lengths)
    covered = []
    for start, stop, read_from, read_to in windows.tolist():
        covered += range(start, stop)
        own = np.searchsorted(ends, start, side="right")
        begin, end = ends[own] - lengths[own], ends[own]
        assert (read_from, read_to) == (max(begin, start - CONTEXT), min(end, stop + CONTEXT))
    assert covered == list(range(sum(lengths)))


def test_paragraphs_do_not_change_each_other(network):
    tagger = Tagger.of(network.weights(), VECTORS)
    lengths = np.array([3, WINDOW + 5, 1, 3 * WINDOW, 0, 40, 7] * 8)
    features = ids(lengths.sum())
    together = tagger.tag(features, lengths)
    for end, length in zip(np.cumsum(lengths)[:7], lengths[:7], strict=True):
        alone = tagger.tag(features[end - length : end], np.array([length]))
        np.testing.assert_array_equal(together[end - length : end], alone)


def test_a_long_paragraph_is_read_in_windows(network, monkeypatch):
    features = ids(1000)
    tagger = Tagger.of(network.weights(), VECTORS)
    found = tagger.tag(features, np.array([1000]))
    part = plain(network.weights(), features[WINDOW - CONTEXT : 2 * WINDOW + CONTEXT])
    np.testing.assert_allclose(found[WINDOW : 2 * WINDOW], part[CONTEXT : CONTEXT + WINDOW], atol=2e-5)
    monkeypatch.setattr(segmenter, "TOGETHER", 2)
    np.testing.assert_array_equal(tagger.tag(features, np.array([1000])), found)


def test_vectors_get_the_gradients_of_all_who_use_them(network):
    features = torch.from_numpy(ids(20))
    table = network.table.detach().clone().requires_grad_()
    factor = torch.randn(20, table.shape[1])
    (segmenter._Summed.apply(table, features) * factor).sum().backward()
    expected = torch.zeros_like(table).index_add_(0, features.flatten().long(), factor.repeat_interleave(FEATURES, 0))
    torch.testing.assert_close(table.grad, expected)


def test_what_is_known_of_a_letter_is_dropped_in_training_beside_the_states():
    torch.manual_seed(3)
    network = SegmenterNetwork(VECTORS, 8, 8, 1, 0.5)
    with torch.no_grad():
        network.output.weight[:, :16] = 0  # ignore the states
        found = {tuple(network.train()(torch.from_numpy(ids(1)), torch.tensor([1]))[0][0].tolist()) for _ in range(5)}
        assert len(found) > 1
        found = {tuple(network.eval()(torch.from_numpy(ids(1)), torch.tensor([1]))[0][0].tolist()) for _ in range(5)}
    assert len(found) == 1


def test_states_are_dropped_in_training_whatever_is_said_of_them(monkeypatch):
    torch.manual_seed(3)
    network, seen = SegmenterNetwork(VECTORS, 8, 8, 1, 0.5, [3]), []
    monkeypatch.setattr(network.bilstm, "forward", lambda x, lengths: ([torch.ones(len(x), 16)], None))
    network.output.register_forward_pre_hook(lambda _, given: seen.append(given[0][:, :16]))
    network.columns[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    for training in (True, False):
        network.train(training)(torch.from_numpy(ids(50)), torch.tensor([50]))
        said, learnt_along = seen[-2:]
        assert torch.equal(said, learnt_along)
        assert said.unique().tolist() == ([0.0, 2.0] if training else [1.0])


def test_weights_for_a_tagger_are_copies_without_the_auxiliary_tasks(network):
    found = network.weights()
    assert {name.partition(".")[0] for name in found} == {"table", "bilstm", "output"}
    before = network.output.bias.detach().clone()
    found["output.bias"][:] += 1
    assert torch.equal(network.output.bias, before)
