"""Training in two processes: the same model as in one, several models in a row, and fair shares of batches."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from tiny_bert import make_bert
from tiny_vectors import make_vectors

from mh4.cli import app
from mh4.models.randomness import Randomness
from mh4.training import workers
from mh4.training.treebanks import read_gold
from mh4.training.workers import Workers

# Only the initial weights are random, so that runs differ by rounding alone.
SETTINGS = {
    "hidden": 12,
    "mlp": 12,
    "word_size": 8,
    "character_size": 4,
    "character_hidden": 8,
    "lstm_dropout": 0.0,
    "mlp_dropout": 0.0,
    "block_dropout": 0.0,
    "epsilon": 0.01,  # a smaller one lets Adam turn rounding errors of tiny gradients into steps
    "word_unknown": 0.0,
    "character_unknown": 0.0,
    "batch_words": 60,
    "evaluation_steps": 10,
    "max_steps": 20,
}
CONFIGURATIONS = {
    "chart": ("--decoder", "mh3"),
    "greedy": ("--system", "arc-hybrid", "--oracle", "static"),
    "vectors": ("--decoder", "mst", "--vectors", "{folder}/v.vec", "--vectors-keep", "5"),
    "transformer": ("--decoder", "mst", "--encoder", "{folder}/bert", "--set", "encoder_dropout=0"),
    # A process whose share has no rare words does not use the character model, although another one may.
    "rare words": ("--decoder", "mst", "--set", "min_word_count=1", "--set", "word_unknown=0.05"),
}
# Runs commands, then checks that no gloo thread is left: one could abort the interpreter at its exit.
TRAIN_AND_LEAVE = """
import json
import sys
from pathlib import Path

from mh4.cli import app

for arguments in json.loads(sys.argv[1]):
    app(arguments, standalone_mode=False)
threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
assert not [name for name in threads if "gloo" in name], threads
"""


def arguments(name, treebanks, folder):
    settings = [word for setting, value in SETTINGS.items() for word in ("--set", f"{setting}={value}")]
    files = [str(path) for path in (treebanks[0], "--dev", treebanks[1], "-o", folder / name)]
    own = [word.format(folder=treebanks[0].parent) for word in CONFIGURATIONS[name]]
    return ["train", *files, "--no-segmenter", "--preset", "paper", *settings, *own]


@pytest.fixture(scope="module")
def pretrained(small_treebanks):
    """Make a transformer and word vectors beside the treebanks."""
    sentences = read_gold(small_treebanks[0])
    make_bert(small_treebanks[0].parent / "bert", [sentence.text for sentence in sentences])
    make_vectors(small_treebanks[0].parent / "v.vec", [form for one in sentences for form in one.forms][::2])


@pytest.fixture(scope="module")
def trained_by_two(small_treebanks, pretrained, tmp_path_factory):
    """The folder of the models that two processes trained, one after the other, and their stderr."""
    folder = tmp_path_factory.mktemp("two")
    script = folder / "train_and_leave.py"
    script.write_text(TRAIN_AND_LEAVE)
    commands = json.dumps([arguments(name, small_treebanks, folder) for name in CONFIGURATIONS])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    finished = subprocess.run(
        [*torchrun, script, commands], check=False, timeout=400, env=environment, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stderr
    return folder, finished.stderr


@pytest.mark.parametrize("name", ["chart", "greedy", "vectors", "transformer"])
def test_two_processes_train_the_model_of_one(name, trained_by_two, small_treebanks, tmp_path):
    app(arguments(name, small_treebanks, tmp_path), standalone_mode=False)
    folders = trained_by_two[0] / name, tmp_path / name
    ours, theirs = (load_file(folder / "training.safetensors") for folder in folders)
    assert ours.keys() == theirs.keys()
    for key in ours:
        if key.startswith("network/"):
            torch.testing.assert_close(ours[key], theirs[key], atol=1e-4, rtol=1e-3, msg=lambda text, n=key: n + text)
    logs = [[json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()] for folder in folders]
    assert [report["step"] for report in logs[0]] == [report["step"] for report in logs[1]]
    for report, other in zip(*logs, strict=True):
        assert report["loss"] == pytest.approx(other["loss"], rel=1e-3)


def test_one_of_two_processes_speaks(trained_by_two):
    folder, said = trained_by_two
    assert said.count("best: UAS") == len(CONFIGURATIONS)
    assert all((folder / name / "weights.safetensors").exists() for name in CONFIGURATIONS)


def test_shares_are_disjoint_and_even():
    lengths = [30, 4, 17, 17, 9, 22, 1]
    shares = [Workers(rank, 3).share(lengths) for rank in range(3)]
    assert sorted(i for share in shares for i in share) == list(range(len(lengths)))
    words = [sum(lengths[i] for i in share) for share in shares]
    assert sorted(words) == [32, 34, 34]
    assert Workers().share(lengths) == list(range(len(lengths)))
    assert Workers(1, 2).share([5]) == []


def test_workers_share_the_cores_of_their_machine(monkeypatch):
    monkeypatch.setattr(workers, "available_threads", lambda: 8)
    assert Workers().threads is None
    monkeypatch.setenv("WORLD_SIZE", "8")  # of two machines
    for local, expected in (("4", 2), ("16", 1)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
        assert Workers(0, 8).threads == expected


def test_workers_draw_differently_and_the_same_again():
    def drawn(rank, count, step, seed=1):
        randomness = Randomness(9)
        Workers(rank, count).separate_random_numbers(randomness, seed, step)
        return torch.rand(1, generator=randomness.on()).item()

    assert len({drawn(rank, 2, step) for rank in range(2) for step in (0, 4)}) == 4
    assert drawn(1, 2, 4) == drawn(1, 2, 4) != drawn(1, 2, 4, seed=2)
    assert drawn(0, 1, 0) == drawn(0, 1, 4)  # a single process draws the same at any step


def test_gradients_of_parts_stay_with_each_process(monkeypatch):
    class Together(torch.nn.Module):
        def no_sync(self):
            return "apart"

    monkeypatch.setattr(workers, "DistributedDataParallel", Together)
    assert Workers(0, 2).apart(Together()) == "apart"
    with Workers().apart(torch.nn.Linear(1, 1)):  # does nothing in a single process
        pass
