"""A moving average of a network's weights, which usually parses better than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class WeightAverage:
    """Exponential moving average of what a network learns (Polyak and Juditsky 1992).

    ``decay``, 0 to 1, is what the average keeps of itself at each update; about 1 / (1 − decay) steps count. The first
    steps keep less, so that the random start is soon forgotten. With 0 nothing is averaged, and nothing kept.
    ``averages`` are by the names of the parameters, without those that are frozen.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = {name: own.detach() for name, own in network.named_parameters() if own.requires_grad}
        self.averages = {name: weight.clone() for name, weight in self._weights.items()} if decay else {}

    def update(self, step: int) -> None:
        """Take in the weights after ``step``, counted from 1."""
        if not self.decay:
            return
        keep = min(self.decay, step / (step + 9))
        torch._foreach_lerp_([*self.averages.values()], [*self._weights.values()], 1.0 - keep)

    def restart(self) -> None:
        """Forget what was before the weights that the network has now."""
        if self.decay:
            torch._foreach_copy_([*self.averages.values()], [*self._weights.values()])

    def settle(self) -> None:
        """Give the network the averaged weights for good."""
        if self.decay:
            torch._foreach_copy_([*self._weights.values()], [*self.averages.values()])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The network has the averaged weights inside, its own again afterwards."""
        if not self.decay:
            yield
            return
        weights = [*self._weights.values()]
        own = [weight.clone() for weight in weights]
        torch._foreach_copy_(weights, [*self.averages.values()])
        try:
            yield
        finally:
            torch._foreach_copy_(weights, own)
