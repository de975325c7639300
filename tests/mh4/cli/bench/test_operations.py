"""Operations of a step are counted, those of LSTMs apart; views are none."""

import json

import torch
from pretend_gpu import PretendGPU
from typer.testing import CliRunner

from mh4.cli import app
from mh4.cli.bench.operations import OperationCounter


def test_operations_forwards_and_backwards():
    x = torch.ones(3, 4, requires_grad=True)
    with OperationCounter(torch.device("cpu")) as counter:
        (x.view(4, 3).t() * 2).sum().backward()
    assert counter.counts["mul"] == 2
    assert counter.counts["sum"] == 1
    assert not {"view", "t", "expand"} & counter.counts.keys()
    assert counter.per_step(2)["frequent"]["mul"] == 1.0


def test_only_what_is_on_the_device_counts():
    with PretendGPU(), OperationCounter(torch.device("cuda")) as counter:
        torch.ones(3) + 1
        torch.ones(3, device="cuda") + 1
    assert counter.counts["add"] == 1


def test_a_step_of_bench_train(small_treebanks):
    arguments = ["bench", "train", str(small_treebanks[1]), "--decoder", "mst", "--steps", "1", "--device", "cuda"]
    with PretendGPU():
        counted, shown = (CliRunner().invoke(app, [*arguments, "--count", *more]) for more in (["--json"], []))
    results = json.loads(counted.stdout)
    assert len(results["frequent"]) == 10
    assert sum(results["frequent"].values()) < results["operations"] < 400
    assert "operations a step" in shown.stdout
