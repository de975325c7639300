"""Where tensors are computed."""

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
    """Otherwise two threads can make the first call together, and get different accuracy."""
    printed = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, check=True).stdout
    called = set(printed.split())
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    used = {name for name in LEFT_TO_MKL if re.search(rf"torch\.{name}\(|[^p]\.{name}\(\)", sources)}
    assert {"exp", "tanh"} <= used <= called
    assert {"exp", "log1p"} <= called  # inside of losses


def test_full_precision_lasts_until_the_last_thread_leaves():
    """The setting is of all threads: the first one to leave must not allow TF32 to the other."""
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
    """Filling all memory that is given out would be several hundred operations a step on a GPU."""
    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    with deterministic(torch.device("cuda")):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
    assert (torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory) == before
    assert before[1]
