"""A GPU gives the same results as the CPU. Each test runs on a pretended GPU, and on a real one if available."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from on_gpu import CONFIGS, assert_close, certain, loss_and_gradients
from pretend_gpu import PretendGPU
from small import log_of, same_weights, small_config, train
from typer.testing import CliRunner

from mh4.cli import app
from mh4.data.conllu import read_conllu
from mh4.models import layers
from mh4.parsers.registry import load
from mh4.parsers.request import Request

ALL = pytest.mark.parametrize("name", CONFIGS)


@pytest.fixture(scope="module")
def models(small_treebanks, tmp_path_factory) -> Path:
    """Two chart parsers, trained on the CPU."""
    folder = tmp_path_factory.mktemp("models")
    for decoder in ("mst", "mh4-hybrid"):
        train(*small_treebanks, folder / decoder, small_config(decoder), device="cpu")
    return folder


def assert_same_trees(one, other, sentences, keep_heads=False):
    """Check that two parsers find the same trees or, where given heads allow none, give the same errors."""
    ours, theirs = (parser.attempt(sentences, Request(keep_heads=keep_heads)) for parser in (one, other))
    assert len(ours.errors) < len(sentences) // 2
    assert {i: str(error) for i, error in ours.errors.items()} == {i: str(e) for i, e in theirs.errors.items()}
    for i in range(len(sentences)):
        if i not in ours.errors:
            np.testing.assert_array_equal(ours.annotations[i].tree[0], theirs.annotations[i].tree[0])
            assert ours.annotations[i].tree[1] == theirs.annotations[i].tree[1]


@ALL
def test_trains_and_parses_like_the_cpu(name, gpu, small_treebanks, tmp_path):
    progress = train(*small_treebanks, tmp_path, CONFIGS[name], device="cuda")
    assert progress.step == CONFIGS[name].training.max_steps
    dev = list(read_conllu(small_treebanks[1]))
    assert_same_trees(*(load(tmp_path, device=device) for device in ("cuda", "cpu")), dev)


@ALL
def test_losses_and_gradients_are_those_of_the_cpu(name, gpu, small_treebanks, tmp_path):
    on_cpu, on_gpu = (
        loss_and_gradients(device, certain(CONFIGS[name]), small_treebanks, tmp_path) for device in ("cpu", "cuda")
    )
    assert_close(on_gpu, on_cpu, gpu.tolerance)


@pytest.mark.parametrize("name", ["mh4-hybrid", "arc-hybrid", "preset best"])
def test_training_goes_on_where_it_was_interrupted(name, gpu, small_treebanks, tmp_path):
    def interrupt(report):
        if report["step"] == 3:
            raise KeyboardInterrupt

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    train(*small_treebanks, whole, CONFIGS[name], device="cuda")
    with pytest.raises(KeyboardInterrupt):
        train(*small_treebanks, parts, CONFIGS[name], device="cuda", on_evaluation=interrupt)
    train(*small_treebanks, parts, CONFIGS[name], device="cuda", resume=True)
    assert same_weights(whole, parts)
    assert [line["loss"] for line in log_of(whole)] == [line["loss"] for line in log_of(parts)]


def test_one_seed_means_one_model(gpu, small_treebanks, tmp_path):
    for folder in ("one", "other"):
        train(*small_treebanks, tmp_path / folder, CONFIGS["preset balanced"], device="cuda")
    assert same_weights(tmp_path / "one", tmp_path / "other")


def test_a_model_moves_between_the_devices_in_training(gpu, small_treebanks, tmp_path):
    for device in ("cpu", "cuda"):
        config = small_config(max_steps=4 if device == "cpu" else 8)
        train(*small_treebanks, tmp_path, config, device=device, resume=device == "cuda")
    assert [line["step"] for line in log_of(tmp_path)] == [4, 8]


def test_ensembles_and_given_heads(gpu, models, small_treebanks):
    folders = [models / "mst", models / "mh4-hybrid"]
    dev = list(read_conllu(small_treebanks[1]))
    for combine in ("votes", "scores"):
        assert_same_trees(*(load(*folders, device=d, combine=combine) for d in ("cuda", "cpu")), dev)
    for folder in folders:
        assert_same_trees(*(load(folder, device=device) for device in ("cuda", "cpu")), dev, keep_heads=True)


def test_commands(gpu, models, small_treebanks, tmp_path):
    runner = CliRunner()
    treebank, dev = map(str, small_treebanks)

    def run(*arguments):
        result = runner.invoke(app, [*arguments, "--device", "cuda"], catch_exceptions=False)
        assert not result.exit_code, result.output
        return result.stdout

    trained = json.loads(run("bench", "train", treebank, "--decoder", "mst", "--steps", "2", "--json"))
    parsed = json.loads(run("bench", "parse", str(models / "mst"), dev, "--repeats", "1", "--json"))
    for measured in (trained, parsed):
        assert measured["words_per_second"] > 0
        assert sum(measured["share"].values()) == pytest.approx(1.0)
    shutil.copytree(models / "mst", tmp_path / "m")
    run("parse", str(tmp_path / "m"), dev, "-o", str(tmp_path / "parsed.conllu"))
    assert (tmp_path / "parsed.conllu").read_text(encoding="utf-8").count("\n\n") == 12


@pytest.mark.parametrize("newer_names", [False, True])
def test_lstms_are_rounded_neither_in_training_nor_in_parsing(
    newer_names, models, small_treebanks, tmp_path, monkeypatch
):
    """cuDNN's default for LSTMs is TF32; the program's own setting is restored afterwards."""
    cudnn, lstm, allowed = torch.backends.cudnn, layers.packed_lstm, []
    setting = (cudnn.rnn, "fp32_precision", "tf32") if newer_names else (cudnn, "allow_tf32", True)
    monkeypatch.setattr(*setting)

    def noting(*arguments):
        allowed.append(cudnn.rnn.fp32_precision == "tf32")
        return lstm(*arguments)

    monkeypatch.setattr(layers, "packed_lstm", noting)
    with PretendGPU():
        train(*small_treebanks, tmp_path, CONFIGS["mst"], device="cuda")
        in_training = len(allowed)
        load(models / "mst", device="cuda").predict(list(read_conllu(small_treebanks[1])))
    assert in_training
    assert len(allowed) > in_training
    assert not any(allowed)
    assert getattr(*setting[:2]) == setting[2]
