"""The choice of the device, and the precision and determinism of computations on it."""

import re
import subprocess
import sys
import threading

import pytest
import torch
from paths import ROOT

from mh4.models.devices import choose_device, deterministic, full_precision


def test_devices():
    assert choose_device("cpu").type == "cpu"
    with pytest.raises(ValueError, match="known: auto, cpu, cuda"):
        choose_device("tpu")


FIRST_CALLS = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode

called = set()

class Calls(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        called.add(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))

with Calls():
    import mh4.models.devices
print(*sorted(called))
"""
LEFT_TO_MKL = [
    "acos",
    "asin",
    "atan",
    "cos",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "tan",
    "tanh",
]


def test_functions_of_mkl_are_called_first_by_one_thread():
    """If two threads made the first call of a function at the same time, their results could differ in accuracy."""
    printed = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=True).stdout
    called = set(printed.split())
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    used = {name for name in LEFT_TO_MKL if re.search(rf"torch\.{name}\(|[^p]\.{name}\(\)", sources)}
    assert {"exp", "tanh"} <= used <= called
    assert {"exp", "log1p"} <= called  # called inside losses


def test_full_precision_lasts_until_the_last_thread_leaves():
    """The setting is shared by all threads: the first one to leave must not switch TF32 back on for the other."""
    cudnn = torch.backends.cudnn
    inside, left = threading.Event(), threading.Event()
    seen = []

    def second():
        with full_precision:
            inside.set()
            assert left.wait(10)
            seen.append(cudnn.allow_tf32)

    thread = threading.Thread(target=second)
    with full_precision:
        thread.start()
        assert inside.wait(10)
        seen.append(cudnn.allow_tf32)
    left.set()
    thread.join()
    assert seen == [False, False]
    assert cudnn.allow_tf32


def test_deterministic_training_fills_no_memory_and_leaves_no_trace():
    """On a GPU, filling uninitialised memory would add several hundred operations to each step."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    with deterministic(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
    assert (torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory) == before
    assert before[1]
