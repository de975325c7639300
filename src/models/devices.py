"""Devices: transfers to and from a GPU that nothing waits for, and the threads of the CPU.

Tensors in transfer lie in pinned memory of the host, which PyTorch caches and reuses once the transfer is over.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock, local
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from mh4.machine import available_threads

DEVICES = ("auto", "cpu", "cuda")
HOST = torch.device("cpu")

SHAPES_ONLY = "meta"  # a device where tensors take no memory and hold no numbers

_thread = local()
_taken = Lock()
_ALIGNED = 16  # bytes; tensors in a block start at multiples of it

# MKL chooses its kernel for each of these functions in the first call. If several threads make that call at once,
# one of them can get low accuracy, so that equal seeds give different models
# (https://github.com/pytorch/pytorch/issues/188792). So a single thread makes it here.
VECTOR_FUNCTIONS = (torch.erf, torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.tanh)
for _function in VECTOR_FUNCTIONS:
    _function(torch.ones(1, dtype=torch.float32, device="cpu"))

if hasattr(os, "register_at_fork"):  # a fork would wait for ever for OpenMP's threads, which only its parent has
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def check_device(device: str) -> None:
    """Raise ValueError unless ``device`` names a device that parsers can run on, on this machine or another."""
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")


def choose_device(device: str) -> torch.device:
    """Return the named device; ``auto`` is CUDA if there is a GPU, else the CPU.

    Raises
    ------
    ValueError
        An unknown name, or CUDA where there is none.
    """
    check_device(device)
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError('no CUDA device here; use device="cpu" or device="auto"')
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for bfloat16; without them, a CPU takes ten times as long as in float32."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a host tensor to ``device``. A copy to a GPU may still be under way; only work on that GPU waits for it."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def send_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """`send` several host tensors in one transfer."""
    if device.type == "cpu":
        return list(tensors)
    sizes = [-(-tensor.nbytes // _ALIGNED) * _ALIGNED for tensor in tensors]
    starts = [0, *itertools.accumulate(sizes)]
    block = torch.empty(starts.pop(), dtype=torch.uint8, pin_memory=True)

    def place(block: Tensor, start: int, tensor: Tensor) -> Tensor:
        return block[start : start + tensor.nbytes].view(tensor.dtype).view(tensor.shape)

    for start, tensor in zip(starts, tensors, strict=True):
        place(block, start, tensor).copy_(tensor)
    there = block.to(device, non_blocking=True)
    return [place(there, start, tensor) for start, tensor in zip(starts, tensors, strict=True)]


class HostCopy:
    """Copies of tensors on their way to the host, which a GPU sends while it goes on with other work."""

    def __init__(self, *tensors: Tensor) -> None:
        self._hosts = [tensor.detach() for tensor in tensors]
        self._sent: torch.cuda.Event | None = None
        if any(tensor.device.type == "cuda" for tensor in tensors):
            self._hosts = [torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True) for tensor in tensors]
            for host, tensor in zip(self._hosts, tensors, strict=True):
                host.copy_(tensor.detach(), non_blocking=True)
            self._sent = torch.cuda.Event()
            self._sent.record()

    def tensors(self) -> list[Tensor]:
        """Wait for the copies and return them."""
        if self._sent is not None:
            self._sent.synchronize()
            self._sent = None
        return self._hosts

    def numpy(self) -> np.ndarray:
        """Wait for the copies and return the first one as an array."""
        return self.tensors()[0].numpy()


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Set the number of PyTorch's threads inside the block; None caps the present number at `available_threads`."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or min(before, available_threads()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Inside, compiled loops and decoders called by this thread use no other cores, which have work of their own."""
    _thread.on_one_core = True
    try:
        yield
    finally:
        _thread.on_one_core = False


def decoder_threads(threads: int | None) -> int | None:
    """The number of threads for a decoder: ``threads``, but 1 inside `on_one_core`."""
    return 1 if _is_on_one_core() else threads


def _is_on_one_core() -> bool:
    return getattr(_thread, "on_one_core", False)


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Inside, a GPU computes deterministically, so that a seed determines the model; the CPU does in any case.

    PyTorch's deterministic mode would also fill all memory that it allocates, several hundred small operations a step.
    This is turned off, since no uninitialised memory is read here.
    """
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        memory.fill_uninitialized_memory = fills
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


class _FullPrecision:
    """Context manager in which LSTMs on a GPU multiply in float32, instead of TF32, which is cuDNN's default.

    TF32 rounds factors to 10 bits; with it, gradients differ from the CPU's by up to 0.05 % of the largest. The setting
    holds for all threads: the first one to enter makes it, the last one to leave restores it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._restore: Callable[[], None] = lambda: None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restore = _forbid_tf32()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()


def _forbid_tf32() -> Callable[[], None]:
    """Forbid TF32 in cuDNN; return a function that restores the setting."""
    cudnn: Any = torch.backends.cudnn
    try:
        before = cudnn.allow_tf32
    except RuntimeError:  # the program has used the newer name, after which PyTorch refuses the older one
        before = cudnn.rnn.fp32_precision
        cudnn.rnn.fp32_precision = "ieee"
        return partial(setattr, cudnn.rnn, "fp32_precision", before)
    cudnn.allow_tf32 = False
    return partial(setattr, cudnn, "allow_tf32", before)


full_precision = _FullPrecision()


@contextmanager
def compiled_threads() -> Iterator[int]:
    """Yield the number of threads for a parallel loop: PyTorch's number, or 1 if others must be left alone.

    It is 1 inside `on_one_core`, and while another thread is inside such a block. Where Numba and PyTorch share
    OpenMP's threads, as on Linux, these need not be woken. Numba's own threads, its fallback elsewhere, must not be
    used from two places at a time.
    """
    threads = torch.get_num_threads()
    if threads == 1 or _is_on_one_core() or not _taken.acquire(blocking=False):
        yield 1
        return
    # The first call starts Numba's threads, which changes the number of OpenMP's and so PyTorch's threads.
    before = numba.get_num_threads()
    try:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        threads = min(threads, before)
        numba.set_num_threads(threads)  # OpenMP keeps its threads alive if their number stays the same
        yield threads
    finally:
        numba.set_num_threads(before)
        _taken.release()
