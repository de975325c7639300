"""Between host and device, without waiting: from and to pinned memory, which a GPU reads and writes by itself."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor of the host on ``device``; on a GPU it may still be on its way, which the work there waits for."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class HostCopy:
    """A tensor on its way to the host, which a GPU sends while it goes on with other work."""

    def __init__(self, tensor: Tensor) -> None:
        self._host = tensor
        self._sent: torch.cuda.Event | None = None
        if tensor.device.type == "cuda":
            self._host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            self._host.copy_(tensor, non_blocking=True)
            self._sent = torch.cuda.Event()
            self._sent.record()

    def numpy(self) -> np.ndarray:
        """The tensor as an array, once it is there."""
        if self._sent is not None:
            self._sent.synchronize()
        return self._host.numpy()
