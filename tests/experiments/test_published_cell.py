"""The LSTM cell of the published toolkit, against the formulas of its library applied step by step."""

import json
import sys
from functools import partial

import published_cell
import pytest
import torch
from coupled_lstm import CoupledBiLSTM, CoupledLayer
from published_cell import use_published_adam, use_published_cell
from small import small_config

from mh4.models.layers import Steps
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.definition import Definition
from mh4.training.schedule import Progress
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold


def one_direction(layer, back, x, state_mask, cell_mask):
    """The states (n, H) of one sequence; its inputs x (n, I) are already masked."""
    of_input, of_state, of_gates = layer.input_weight[back], layer.state_weight[back], layer.cell_weights[:, back]
    hidden = of_state.shape[0]
    state = cell = torch.zeros(hidden, dtype=x.dtype)
    states = {}
    for t in reversed(range(len(x))) if back else range(len(x)):
        a_input, a_output, a_candidate = (of_input @ x[t] + layer.bias[back] + (state * state_mask) @ of_state).chunk(3)
        share = torch.sigmoid(a_input + (cell * cell_mask) @ of_gates[0])
        cell = share * torch.tanh(a_candidate) + (1 - share) * cell
        state = torch.sigmoid(a_output + (cell * cell_mask) @ of_gates[1]) * torch.tanh(cell)
        states[t] = state
    return torch.stack([states[t] for t in range(len(x))])


@pytest.mark.parametrize("lengths", [[1], [4], [2, 5, 1, 3]])
def test_states_and_gradients_are_those_of_the_formulas(lengths, monkeypatch):
    torch.manual_seed(sum(lengths))
    hidden, total = 16, sum(lengths)
    layer = CoupledLayer(24, hidden, 0.3)
    steps = Steps.one_after_the_other(torch.tensor(lengths), torch.device("cpu"))
    x = torch.randn(total, 24, requires_grad=True)
    weights = torch.randn(total, 2 * hidden)
    masks = [torch.randint(3, (total, size)).float() / 2 for size in (24, 24, 2 * hidden, 2 * hidden)]
    masks = [mask[steps.first][steps.sequence_of] for mask in masks]  # one mask per sequence
    drawn = iter(masks)
    monkeypatch.setattr(layer.dropout, "by_sequence", lambda y, sequence_of, count: y * next(drawn))
    found = layer(x, steps)
    inputs = [x, *layer.parameters()]
    gradients = torch.autograd.grad((found * weights).sum(), inputs)

    twin = []
    for back in range(2):
        columns = slice(back * hidden, (back + 1) * hidden)
        parts = [mask.split(lengths) for mask in (x * masks[back], masks[2][:, columns], masks[3][:, columns])]
        sequences = zip(*parts, strict=True)
        twin.append(torch.cat([one_direction(layer, back, own, h[0], c[0]) for own, h, c in sequences]))
    expected = torch.cat(twin, 1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for own, theirs in zip(gradients, torch.autograd.grad((expected * weights).sum(), inputs), strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-3, atol=1e-4)


def test_masks_differ_between_sequences_and_directions_and_are_equal_within_one():
    torch.manual_seed(1)
    layer = CoupledLayer(24, 16, 0.5)
    steps = Steps.one_after_the_other(torch.tensor([3, 3]), torch.device("cpu"))
    ahead, back = (layer._masked(torch.ones(6, 24), steps) for _ in range(2))
    assert set(ahead.flatten().tolist()) == {0.0, 2.0}
    assert (ahead[0] == ahead[2]).all()
    assert (ahead[0] != ahead[3]).any()
    assert (ahead != back).any()
    layer.eval()
    assert (layer._masked(torch.ones(6, 24), steps) == 1).all()


def test_layers_see_inputs_that_were_dropped_once():
    stack = CoupledBiLSTM(24, 16, 2, 0.3)
    assert stack.dropout.rate == 0
    assert [layer.dropout.rate for layer in stack.layers] == [0.3, 0.3]
    assert [layer.input_weight.shape[2] for layer in stack.layers] == [24, 32]


def test_every_model_has_the_cell(monkeypatch):
    from mh4.models import bilstm_encoder, word_encoder
    from mh4.models.bilstm_config import BiLSTMConfig

    for module in (bilstm_encoder, word_encoder):
        monkeypatch.setattr(module, "BiLSTM", module.BiLSTM)
    use_published_cell()
    assert isinstance(bilstm_encoder.SentenceEncoder(BiLSTMConfig()).lstm, CoupledBiLSTM)
    assert word_encoder.BiLSTM is CoupledBiLSTM


def test_settings_are_handed_on_and_kept_with_the_result(monkeypatch, tmp_path):
    jobs = []

    def trained(job):
        jobs.append(job)
        return Progress(best_uas=83.0, best_las=77.0)

    monkeypatch.setattr(published_cell, "run_training", trained)
    replaced = []
    parts = {name: partial(replaced.append, name) for name in ("cell", "adam")}
    monkeypatch.setattr(published_cell, "REPLACED", parts)
    treebank = tmp_path / "xx"
    treebank.mkdir()
    for part in ("train", "dev"):
        (treebank / f"xx-ud-{part}.conllu").write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    command = ["published_cell.py", str(treebank), "--results", str(tmp_path), "--seeds", "2"]
    settings = ["--set", "length_noise=20", "--set", "single_root=false"]
    monkeypatch.setattr(sys, "argv", [*command, *settings])
    published_cell.main()
    published_cell.main()  # finds the result
    (job,) = jobs
    published = {"decoder": "mst", "seed": 2, "single_root": False, "length_noise": 20.0}  # the others are the defaults
    assert job.config == make_config(ChartConfig, published)
    result = json.loads((tmp_path / "xx-mst-2.json").read_text())
    assert result["settings"] == {"length_noise": "20", "single_root": "false"}
    assert replaced == ["cell", "cell"]
    for other in ([], [*settings, "--replace", "adam"]):
        monkeypatch.setattr(sys, "argv", [*command, *other])
        with pytest.raises(SystemExit, match="other settings"):
            published_cell.main()
    assert replaced == ["cell", "cell", "cell", "adam"]
    (treebank / "xx-ud-dev.conllu").write_text("1\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    monkeypatch.setattr(sys, "argv", [*command, *settings])
    with pytest.raises(SystemExit, match="other dev data"):
        published_cell.main()


def test_moments_start_anew_when_the_rate_falls(monkeypatch, small_treebanks, tmp_path):
    monkeypatch.setattr(Trainer, "__init__", Trainer.__init__)
    use_published_adam()
    sentences = read_gold(small_treebanks[0])
    config = small_config("mst", patience=1, decays=1, evaluation_steps=2, max_steps=400, learning_rate=0.02)
    trainer = Trainer(ChartParser(Definition.learn(config, sentences), "cpu"), sentences, sentences, tmp_path)
    seen = [0]

    def look(report):
        states, progress = list(trainer.optimizer.state.values()), trainer.progress
        largest = max(float(state[name].abs().max()) for state in states for name in ("exp_avg", "exp_avg_sq"))
        assert (largest == 0) == (progress.decays > seen[-1])
        assert {float(state["step"]) for state in states} == {progress.step}  # not counted anew
        seen.append(progress.decays)

    trainer.on_evaluation = look
    trainer.run()
    assert seen[-1] == 2
