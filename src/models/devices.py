"""Where tensors are computed: on a GPU, to and from which they travel without waiting, or by the threads of the CPU.

What travels lies in pinned memory of the host, which PyTorch keeps and gives out again once its last journey is over.
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
_ALIGNED = 16  # bytes that the place of a tensor in a block is a multiple of

# Of the functions that PyTorch leaves to MKL, the first call decides which of MKL's kernels is taken. Made by several
# threads at once, that call can be of low accuracy for one of them, and equal seeds give different models
# (https://github.com/pytorch/pytorch/issues/188792). So it is made here, by one thread.
VECTOR_FUNCTIONS = (torch.erf, torch.exp, torch.expm1, torch.log, torch.log1p, torch.sqrt, torch.tanh)
for _function in VECTOR_FUNCTIONS:
    _function(torch.ones(1, dtype=torch.float32, device="cpu"))

if hasattr(os, "register_at_fork"):  # a forked process waits for ever for OpenMP's threads, which it does not have
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def check_device(device: str) -> None:
    """ValueError unless it is the name of a device that parsers run on, here or elsewhere."""
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; known: {', '.join(DEVICES)}")


def choose_device(device: str) -> torch.device:
    """``auto`` is CUDA when there is one, else the CPU.

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
    """Whether there are instructions for it; without them, a CPU takes ten times as long as in float32."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on ``device``; on a GPU it may still be on its way, which the work there waits for."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def send_together(tensors: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """What `send` does with each of some tensors of the host, in one transfer."""
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
    """Tensors on their way to the host, which a GPU sends while it goes on with other work."""

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
        """All of them, once they are there."""
        if self._sent is not None:
            self._sent.synchronize()
            self._sent = None
        return self._hosts

    def numpy(self) -> np.ndarray:
        """The first one as an array, once it is there."""
        return self.tensors()[0].numpy()


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Limit the threads of PyTorch inside the block; None keeps its default, within what this process may use."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or min(before, available_threads()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Inside, compiled loops and decoders of this thread take no other ones, which have work of their own."""
    _thread.on_one_core = True
    try:
        yield
    finally:
        _thread.on_one_core = False


def decoder_threads(threads: int | None) -> int | None:
    """How many threads a decoder may take here: as many as asked for, but one inside `on_one_core`."""
    return 1 if _is_on_one_core() else threads


def _is_on_one_core() -> bool:
    return getattr(_thread, "on_one_core", False)


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Inside, a GPU adds up in one order, so that a seed means the same model there, too; the CPU does in any case.

    PyTorch would also fill all memory that it gives out, several hundred small operations a step. No number that is not
    written first is read here, so it does not.
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
    """`with` it, LSTMs on a GPU multiply in float32; by default cuDNN rounds what it multiplies to 10 bits (TF32).

    So rounded, gradients differ from the CPU's by up to 0.05 % of the largest. The setting is of all threads:
    the first one to enter makes it, the last one to leave takes it back.
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
    """Forbid it in cuDNN; returns what allows it again, if it was allowed."""
    cudnn: Any = torch.backends.cudnn
    try:
        before = cudnn.allow_tf32
    except RuntimeError:  # a program that uses the newer name must not be asked by the older one
        before = cudnn.rnn.fp32_precision
        cudnn.rnn.fp32_precision = "ieee"
        return partial(setattr, cudnn.rnn, "fp32_precision", before)
    cudnn.allow_tf32 = False
    return partial(setattr, cudnn, "allow_tf32", before)


full_precision = _FullPrecision()


@contextmanager
def compiled_threads() -> Iterator[int]:
    """How many threads a parallel loop may take inside: as many as PyTorch, but one while another thread is in here.

    Where Numba and PyTorch share OpenMP's threads, as on Linux, they need not be woken. Numba's own threads, its last
    resort elsewhere, must not be called from two places at a time.
    """
    threads = torch.get_num_threads()
    if threads == 1 or _is_on_one_core() or not _taken.acquire(blocking=False):
        yield 1
        return
    # The first call starts Numba's threads, which changes the number of OpenMP's, and so of PyTorch's.
    before = numba.get_num_threads()
    try:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        threads = min(threads, before)
        numba.set_num_threads(threads)  # OpenMP keeps its threads if their number stays
        yield threads
    finally:
        numba.set_num_threads(before)
        _taken.release()
