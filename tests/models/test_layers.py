"""Layers: our BiLSTM against PyTorch's packed one, masks that hold over a sequence."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mh4.models.layers import BiLSTM, dropout_mask


def reference(ours: BiLSTM, input_size: int, hidden: int, layers: int) -> nn.LSTM:
    """PyTorch's own bidirectional LSTM with the same weights."""
    lstm = nn.LSTM(input_size, hidden, layers, bidirectional=True)
    for layer in range(layers):
        for direction, suffix in ((ours.ahead, ""), (ours.back, "_reverse")):
            getattr(lstm, f"weight_ih_l{layer}{suffix}").data.copy_(direction[layer].input_weight)
            getattr(lstm, f"weight_hh_l{layer}{suffix}").data.copy_(direction[layer].recurrent_weight)
            getattr(lstm, f"bias_ih_l{layer}{suffix}").data.copy_(direction[layer].bias)
            getattr(lstm, f"bias_hh_l{layer}{suffix}").data.zero_()
    return lstm


def test_equals_packed_lstm():
    torch.manual_seed(3)
    ours = BiLSTM(5, 7, 2, dropout=0.3).eval()
    for layer in (*ours.ahead, *ours.back):
        layer.bias.data.uniform_(-1, 1)
    lengths = torch.tensor([6, 1, 4, 6])
    x = torch.randn(6, 4, 5)
    states, last = ours(x, lengths)
    packed, (final, _) = reference(ours, 5, 7, 2)(pack_padded_sequence(x, lengths, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed)
    real = (torch.arange(6)[:, None] < lengths)[..., None]
    torch.testing.assert_close(states * real, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(last, torch.cat([final[-2], final[-1]], dim=-1), atol=1e-5, rtol=1e-5)


def test_padding_does_not_matter():
    torch.manual_seed(4)
    lstm = BiLSTM(3, 4, 2, dropout=0.0).eval()
    x = torch.randn(5, 2, 3)
    lengths = torch.tensor([5, 2])
    noisy = x.clone()
    noisy[2:, 1] = 1e3
    torch.testing.assert_close(lstm(x, lengths)[0][:2, 1], lstm(noisy, lengths)[0][:2, 1])
    torch.testing.assert_close(lstm(x, lengths)[0][:2, 1:2], lstm(x[:2, 1:2], lengths[1:])[0])


def test_dropout_mask_keeps_the_mean():
    torch.manual_seed(5)
    mask = dropout_mask((200, 200), 0.3, torch.zeros(1))
    assert set(mask.unique().tolist()) == {0.0, torch.tensor(1.0).div(0.7).item()}
    assert abs(mask.mean().item() - 1.0) < 0.02


def test_one_mask_a_sequence():
    torch.manual_seed(6)
    lstm = BiLSTM(8, 4, 1, dropout=0.5)
    lstm.ahead[0].dropout = lstm.back[0].dropout = 0.0
    seen = []
    lstm.ahead[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    lstm(torch.ones(9, 3, 8), torch.tensor([9, 9, 9]))
    assert (seen[0] == seen[0][:1]).all()
    assert (seen[0][0] == 0).any()
    assert not (seen[0][0, 0] == seen[0][0, 1]).all()
