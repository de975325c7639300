"""A moving average of a network's weights, which usually parses better than the weights of any one step."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


class WeightAverage:
    """Exponential moving average of the parameters that a network learns (Polyak and Juditsky 1992).

    ``decay``, 0 to 1, is the share of the old average that each update keeps; the average is over about 1 / (1 − decay)
    steps. The first updates keep less, so that the random start is soon forgotten. With 0 there is no averaging, and
    ``averages`` is empty. ``averages`` maps names of parameters to their averages, without frozen parameters.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = {name: own.detach() for name, own in network.named_parameters() if own.requires_grad}
        self.averages = {name: weight.clone() for name, weight in self._weights.items()} if decay else {}

    def update(self, step: int) -> None:
        """Add the weights after ``step``, counted from 1, to the average."""
        if not self.decay:
            return
        keep = min(self.decay, step / (step + 9))
        torch._foreach_lerp_([*self.averages.values()], [*self._weights.values()], 1.0 - keep)

    def restart(self) -> None:
        """Start a new average from the weights that the network has now."""
        if self.decay:
            torch._foreach_copy_([*self.averages.values()], [*self._weights.values()])

    def settle(self) -> None:
        """Give the network the averaged weights for good."""
        if self.decay:
            torch._foreach_copy_([*self._weights.values()], [*self.averages.values()])

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the network has the averaged weights; afterwards it has its own again."""
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
