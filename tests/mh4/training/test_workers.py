"""Training in two processes: the same model as in one, and batches shared out fairly."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file

from mh4.training.workers import Workers

# Nothing drawn at random but the first weights, so that all that is left of the difference is rounding.
SETTINGS = {
    "hidden": 12,
    "mlp": 12,
    "word_size": 8,
    "character_size": 4,
    "character_hidden": 8,
    "lstm_dropout": 0.0,
    "mlp_dropout": 0.0,
    "block_dropout": 0.0,
    "epsilon": 0.01,  # Adam makes rounding errors in a tiny gradient as large as a step
    "word_unknown": 0.0,
    "character_unknown": 0.0,
    "batch_words": 60,
    "evaluation_steps": 10,
    "max_steps": 20,
}
# `python -m mh4`, and then a look at the threads: one of gloo's that is left may abort the interpreter when it ends.
TRAIN_AND_LEAVE = """
import sys
from pathlib import Path

from mh4.cli import app

app(sys.argv[1:], standalone_mode=False)
threads = {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}
assert not [name for name in threads if "gloo" in name], threads
"""


def train(command, treebanks, folder, *options):
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    arguments = ["train", treebanks[0], "--dev", treebanks[1], "-o", folder, "--preset", "paper", *settings, *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    words = [str(word) for word in (*command, *arguments)]
    finished = subprocess.run(words, check=False, timeout=300, env=environment, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stderr


def check_two_processes(options, small_treebanks, folder):
    script = folder / "train_and_leave.py"
    script.write_text(TRAIN_AND_LEAVE)
    two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
    train([sys.executable, "-m", "mh4"], small_treebanks, folder / "one", *options)
    messages = train(two, small_treebanks, folder / "two", *options)
    assert messages.count("best: UAS") == 1
    ours, theirs = (load_file(folder / name / "training.safetensors") for name in ("two", "one"))
    assert ours.keys() == theirs.keys()
    for name in ours:
        if name.startswith("network/"):
            torch.testing.assert_close(
                ours[name], theirs[name], atol=1e-4, rtol=1e-3, msg=lambda text, n=name: n + text
            )
    logs = [
        [json.loads(line) for line in (folder / name / "log.jsonl").read_text().splitlines()] for name in ("two", "one")
    ]
    assert [report["step"] for report in logs[0]] == [report["step"] for report in logs[1]]
    for report, other in zip(*logs, strict=True):
        assert report["loss"] == pytest.approx(other["loss"], rel=1e-3)


@pytest.mark.parametrize("options", [("--decoder", "mh3"), ("--system", "arc-hybrid", "--oracle", "static")])
def test_two_processes_train_the_model_of_one(options, small_treebanks, tmp_path):
    check_two_processes(options, small_treebanks, tmp_path)


def test_a_share_may_lack_rare_words(small_treebanks, tmp_path):
    """Then it does not use the model of characters, which another process may."""
    options = ("--decoder", "mst", "--set", "min_word_count=1", "--set", "word_unknown=0.05", "--set", "max_steps=10")
    two = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "mh4"]
    assert "best: UAS" in train(two, small_treebanks, tmp_path / "two", *options)


def test_shares_are_disjoint_and_even():
    lengths = [30, 4, 17, 17, 9, 22, 1]
    shares = [Workers(rank, 3).share(lengths) for rank in range(3)]
    assert sorted(i for share in shares for i in share) == list(range(len(lengths)))
    words = [sum(lengths[i] for i in share) for share in shares]
    assert max(words) - min(words) <= max(lengths)
    assert Workers().share(lengths) == list(range(len(lengths)))
    assert Workers(1, 2).share([5]) == []
