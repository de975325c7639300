"""A moving average of a network's weights, which usually parses better than the weights of any one step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential moving average of the parameters of a network (Polyak and Juditsky 1992).

    Parameters
    ----------
    network : nn.Module
    decay : float
        What the average keeps of itself at each update, 0 to 1; about 1 / (1 − decay) steps count. The first steps
        keep less, so that the random start is soon forgotten. With 0 nothing is averaged, and nothing kept.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = [parameter.detach() for parameter in network.parameters()]
        self.averages = [parameter.clone() for parameter in self.parameters] if decay else []

    def update(self, step: int) -> None:
        """Take in the weights after ``step``, counted from 1."""
        if not self.decay:
            return
        keep = min(self.decay, step / (step + 9))
        torch._foreach_lerp_(self.averages, self.parameters, 1.0 - keep)

    def restart(self, weights: list[Tensor]) -> None:
        """Let the network and its average go on from other weights, one tensor a parameter."""
        torch._foreach_copy_(self.parameters, weights)
        if self.decay:
            torch._foreach_copy_(self.averages, weights)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The network has the averaged weights inside, its own again afterwards."""
        if not self.decay:
            yield
            return
        own = [parameter.clone() for parameter in self.parameters]
        torch._foreach_copy_(self.parameters, self.averages)
        try:
            yield
        finally:
            torch._foreach_copy_(self.parameters, own)
