"""Counts of the operations in a step; views do not count."""

import torch
from operations import OperationCounter, count_operations
from pretend_gpu import PretendGPU


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


def test_operations_of_a_step(small_treebanks):
    with PretendGPU():
        results = count_operations(small_treebanks[1], "mst", "cuda", {})
    assert len(results["frequent"]) == 10
    assert sum(results["frequent"].values()) < results["operations"] < 400
