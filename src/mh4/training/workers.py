"""Training in several processes, as `torchrun` starts them: one per GPU, or one per CPU core."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed.nn  # before `join`: its functions would keep the process group alive
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from mh4.machine import available_threads
from mh4.models.randomness import Randomness

_meetings = itertools.count()


@cache
def _rendezvous() -> tuple[distributed.Store, int, int]:
    """The store through which the processes meet, this one's rank, and their number."""
    return next(distributed.rendezvous("env://"))


@dataclass(frozen=True)
class Workers:
    """The processes that train one model together, seen from one of them.

    Attributes
    ----------
    rank, count : int
        The index of this process, and the number of processes.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def join(cls, device: str) -> Workers:
        """Join the other processes, if `torchrun` started any; call `leave` afterwards."""
        count = int(os.environ.get("WORLD_SIZE", "1")) if distributed.is_torchelastic_launched() else 1
        if count == 1:
            return cls()
        cuda = device != "cpu" and torch.cuda.is_available()
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        store, rank, count = _rendezvous()
        place = distributed.PrefixStore(f"mh4-{next(_meetings)}", store)  # its own prefix: earlier meetings left keys
        distributed.init_process_group("nccl" if cuda else "gloo", store=place, rank=rank, world_size=count)
        workers = cls(rank, count)
        if not workers.lead:
            logging.getLogger("mh4").setLevel(logging.ERROR)  # the lead logs the same
        return workers

    def leave(self) -> None:
        """Leave the other processes; call it when nothing refers to a result of `together` any more.

        Such a result holds the process group, and a group that lives until the interpreter ends can abort the process:
        its threads may be freeing a tensor just then.
        """
        if self.count > 1:
            distributed.destroy_process_group()

    @property
    def threads(self) -> int | None:
        """Threads per process, so that all processes on this machine share its cores; None if there is only one."""
        if self.count == 1:
            return None
        return max(1, available_threads() // int(os.environ["LOCAL_WORLD_SIZE"]))

    @property
    def lead(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def share(self, lengths: Sequence[int]) -> list[int]:
        """This process's part of a batch, as indices of sentences; each process gets about the same number of words."""
        loads = np.zeros(self.count, np.int64)
        share = []
        for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
            lightest = int(loads.argmin())
            loads[lightest] += lengths[i]
            if lightest == self.rank:
                share.append(i)
        return sorted(share)

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes, by rank; waits for all processes."""
        if self.count == 1:
            return [value]
        values: list[Any] = [None] * self.count
        distributed.all_gather_object(values, value)
        return values

    def together(self, module: nn.Module) -> nn.Module:
        """Wrap a module so that its gradients are means over all processes."""
        if self.count == 1:
            return module
        constants = [name for name, _ in module.named_buffers()]  # equal in all processes from the start
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, constants)
        # Unused parameters: a share without rare words does not use the BiLSTM over characters.
        return DistributedDataParallel(module, gradient_as_bucket_view=True, find_unused_parameters=True)

    def apart(self, module: nn.Module) -> AbstractContextManager[Any]:
        """Inside, processes do not exchange the gradients of a module that `together` returned."""
        return module.no_sync() if isinstance(module, DistributedDataParallel) else nullcontext()

    def separate_random_numbers(self, randomness: Randomness, seed: int, step: int) -> None:
        """If there are several processes, reseed each differently, but always alike for the same ``step``."""
        if self.count > 1:
            randomness.start(int(np.random.SeedSequence([seed, step, self.rank]).generate_state(1)[0]))
