"""Threads for compiled loops: those that PyTorch has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numba
import torch

_taken = Lock()

if hasattr(os, "register_at_fork"):  # a forked process waits for ever for OpenMP's threads, which it does not have
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


@contextmanager
def compiled_threads() -> Iterator[int]:
    """How many threads a parallel loop may take inside: as many as PyTorch, but one while another thread is in here.

    Where Numba and PyTorch share OpenMP's threads, as on Linux, they need not be woken. Numba's own threads, its last
    resort elsewhere, must not be called from two places at a time.
    """
    threads = torch.get_num_threads()
    if threads == 1 or not _taken.acquire(blocking=False):
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
