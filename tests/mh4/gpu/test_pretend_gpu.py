"""The pretended GPU is as strict as a real one, and counts operations that would make the host wait."""

import gc

import pretend_gpu
import pytest
import torch
from pretend_gpu import PretendGPU

from mh4.models.devices import HostCopy, choose_device, send


@pytest.fixture
def gpu():
    with PretendGPU() as pretended:
        yield pretended


def test_tensors_say_where_they_are(gpu):
    device = choose_device("auto")
    assert device.type == "cuda"
    x = torch.ones(3).to(device)
    assert x.is_cuda
    for made in (x, x + 1, x.view(3, 1), torch.zeros(2, device=device), x.new_empty(4), x.double(), x.to(torch.int64)):
        assert made.device == torch.device("cuda", 0)
    for made in (torch.ones(3), x.cpu(), x.to("cpu"), x.tolist()):
        assert isinstance(made, list) or made.device.type == "cpu"


def test_what_a_gpu_refuses(gpu):
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    with pytest.raises(TypeError, match="numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="pin"):
        x.pin_memory()
    assert (x + torch.tensor(1.0)).sum().item() == 6.0  # PyTorch accepts single numbers of the host


def test_gradients_are_where_their_tensors_are(gpu):
    own = torch.ones(3, requires_grad=True)
    (own.to("cuda") * 2).sum().backward()
    assert own.grad.device.type == "cpu"
    weight = torch.nn.Parameter(torch.ones(3, device="cuda"))
    (weight * 2).sum().backward()
    assert weight.grad.is_cuda


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: torch.unique(x),
        lambda x: x.repeat_interleave((x * 2).long()),
        lambda x: torch.ones(2).to(x.device),
        lambda x: torch.ones(2).to(x.device, non_blocking=True),  # memory not pinned
        lambda x: HostCopy(x).numpy(),
        lambda x: torch.cuda.synchronize(),
    ],
)
def test_what_a_gpu_waits_for(wait, gpu):
    x = torch.ones(3, device="cuda")
    assert not gpu.waits
    wait(x)
    assert sum(gpu.waits.values()) == 1


def test_what_a_gpu_does_not_wait_for(gpu):
    x = send(torch.ones(3), torch.device("cuda"))
    index = send(torch.arange(2), torch.device("cuda"))
    x[index] + x.index_select(0, index) + x.sum()
    x.repeat_interleave(send(torch.tensor([1, 2, 1]), x.device), output_size=4)
    HostCopy(x)
    assert not gpu.waits


def test_what_is_gone_is_forgotten(gpu, monkeypatch):
    monkeypatch.setattr(pretend_gpu, "FEWEST", 20)
    gpu.places._limit = 20
    for _ in range(100):
        torch.ones(3, device="cuda") * 2
    gc.collect()
    assert len(gpu.places._storages) < 50
    torch.ones(3, device="cuda")
    assert torch.ones(3).device.type == "cpu"


def test_everything_is_as_before_afterwards():
    before = torch.cuda.is_available()
    with PretendGPU():
        inside = torch.ones(3, device="cuda")
        assert torch.cuda.is_available()
    assert torch.cuda.is_available() == before
    assert inside.device.type == "cpu"
