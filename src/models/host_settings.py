"""What a host program has set for its own use of PyTorch, put aside while ours computes."""

from contextlib import AbstractContextManager, ExitStack

import torch

from .devices import HOST, full_precision


def settings_put_aside(learns: bool = False) -> AbstractContextManager[object]:
    """Inside, nothing is cast automatically, and tensors are made on the host unless a device is named.

    If what is inside ``learns``, it has gradients, too. All of this is of this thread alone, but for the precision of
    LSTMs on a GPU, see `full_precision`. What types tensors have by default is set for all threads: that is left alone,
    and no tensor of floating-point numbers is made without a type.
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
