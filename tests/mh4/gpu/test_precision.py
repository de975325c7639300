"""Training in bfloat16 on a pretended or real GPU: which numbers are bfloat16, and which stay float32."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from on_gpu import CONFIGS, certain, trainer_on
from safetensors.torch import load_file
from small import log_of, same_weights, small_config, train
from typer.testing import CliRunner

from mh4.cli import app
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.models import layers
from mh4.models.devices import HostCopy
from mh4.models.layers import Linear
from mh4.parsers.registry import load
from mh4.training import trainer as training

SEVERAL = {
    **{name: CONFIGS[name] for name in ("mh4-hybrid", "arc-hybrid", "mh4 greedy", "preset paper", "preset large")},
    "crf": replace(CONFIGS["mst"], loss="crf"),
}


def short(config):
    return replace(config, training=replace(config.training, precision="bf16"))


@pytest.mark.parametrize("name", SEVERAL)
def test_scores_that_the_decoder_reads_losses_and_gradients_are_float32(
    name, gpu, small_treebanks, tmp_path, monkeypatch
):
    config, losses, read, products = certain(SEVERAL[name]), [], set(), set()
    arrive = HostCopy.tensors

    def note(copy):
        read.update(tensor.dtype for tensor in arrive(copy))
        return arrive(copy)

    monkeypatch.setattr(HostCopy, "tensors", note)
    for own in (config, short(config)):
        trainer = trainer_on("cuda", own, small_treebanks, tmp_path)
        network = trainer.parser.network.train()
        for module in network.modules():
            if own != config and isinstance(module, Linear):
                module.register_forward_hook(lambda _, inputs, output: products.add(output.dtype))
        batch = trainer.collate(trainer.batches(0)[0])
        loss = trainer.batch_loss(batch, 0)
        assert loss.dtype == torch.float32
        losses.append(loss.item())
        trainer.step(batch)
        trainer.settle()
        kept = [value for state in trainer.optimizer.state.values() for value in state.values()]
        gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        assert {tensor.dtype for tensor in (*kept, *gradients, *network.parameters())} == {torch.float32}
    assert read == {torch.float32}
    assert torch.bfloat16 in products
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.03)


def test_a_model_is_learnt_and_parses_anywhere(gpu, small_treebanks, tmp_path):
    config = certain(small_config(max_steps=40, learning_rate=0.005))
    for folder, own in ((tmp_path / "fp32", config), (tmp_path, short(config))):
        train(*small_treebanks, folder, own, device="cuda")
    usual, losses = ([line["loss"] for line in log_of(folder)] for folder in (tmp_path / "fp32", tmp_path))
    assert losses == pytest.approx(usual, rel=0.03)
    assert losses != usual
    assert losses[-1] < 0.92 * losses[0]
    assert json.loads((tmp_path / "config.json").read_text())["training"]["precision"] == "bf16"
    assert {weight.dtype for weight in load_file(tmp_path / "weights.safetensors").values()} == {torch.float32}
    dev = list(read_conllu(small_treebanks[1]))
    for ours, theirs in zip(*(load(tmp_path, device=device).predict(dev) for device in ("cuda", "cpu")), strict=True):
        np.testing.assert_array_equal(ours.heads, theirs.heads)


def test_resumed_training_keeps_its_precision(gpu, small_treebanks, tmp_path):
    """With every column, so that all classifiers are trained."""
    config = short(CONFIGS["preset best"])

    def interrupt(report):
        if report["step"] == 3:
            raise KeyboardInterrupt

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(*small_treebanks, whole, config, device="cuda")
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, parts, config, device="cuda", on_evaluation=interrupt)
    with pytest.raises(DataError, match="was made with other settings"):
        train(*small_treebanks, parts, CONFIGS["preset best"], device="cuda", resume=True)
    train(*small_treebanks, parts, config, device="cuda", resume=True)
    assert same_weights(whole, parts)
    assert [line["loss"] for line in log_of(whole)] == [line["loss"] for line in log_of(parts)]


@pytest.mark.parametrize("wide", [False, True])
def test_a_cpu_that_multiplies_bfloat16_may_train_so(wide, small_treebanks, tmp_path, monkeypatch):
    config = certain(small_config(max_steps=12, learning_rate=0.005))
    monkeypatch.setattr(layers, "WIDE_REGISTERS", wide)  # with AVX-512, mh4 multiplies float32 itself
    train(*small_treebanks, tmp_path / "fp32", config, device="cpu")
    monkeypatch.setattr(training, "multiplies_bfloat16", lambda device: device.type == "cpu")
    for name in ("once", "again"):
        train(*small_treebanks, tmp_path / name, short(config), device="cpu")
    assert same_weights(tmp_path / "once", tmp_path / "again")
    usual, losses = ([line["loss"] for line in log_of(tmp_path / name)] for name in ("fp32", "once"))
    assert losses == pytest.approx(usual, rel=0.03)
    assert losses != usual
    assert {weight.dtype for weight in load_file(tmp_path / "once" / "weights.safetensors").values()} == {torch.float32}


def test_a_cpu_that_does_not_says_so(small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "multiplies_bfloat16", lambda device: device.type != "cpu")
    train(*small_treebanks, tmp_path, small_config(max_steps=4), device="cpu")
    with pytest.raises(ValueError, match='no instructions for bfloat16; train with precision="fp32"'):
        train(*small_treebanks, tmp_path, short(small_config()), device="cpu", overwrite=True)
    assert json.loads((tmp_path / "config.json").read_text())["training"]["precision"] == "fp32"
    assert log_of(tmp_path)
    treebank, dev = map(str, small_treebanks)
    command = ["train", treebank, "--dev", dev, "-o", str(tmp_path / "m"), "--precision", "bf16", "--no-segmenter"]
    result = CliRunner().invoke(app, [*command, "--device", "cpu"])
    assert result.exit_code == 1
    assert "no instructions for bfloat16" in str(result.exception)
    assert not (tmp_path / "m" / "config.json").exists()
