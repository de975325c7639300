"""Settings that a host program has made for its own use of PyTorch, suspended while our code computes."""

from contextlib import AbstractContextManager, ExitStack

import torch

from .devices import HOST, full_precision


def settings_put_aside(learns: bool = False) -> AbstractContextManager[object]:
    """Inside, autocast is off, and tensors are created on the host unless a device is named.

    With ``learns``, gradients are enabled, too. Other threads are not affected, except by the precision of LSTMs on a
    GPU, see `full_precision`. The default dtype is left alone, because it is set for all threads; our code names the
    dtype of every floating-point tensor that it creates.
    """
    stack = ExitStack()
    if torch.cuda.is_available():
        stack.enter_context(full_precision)
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            stack.enter_context(torch.autocast(device, enabled=False))
    if torch.get_default_device() != HOST:
        stack.enter_context(HOST)
    if learns:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
    return stack
