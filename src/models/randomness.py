"""Random numbers of one network, from generators of its own: those of a host program stay as they are, and theirs do
not move ours, in whichever thread they are drawn."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from .devices import HOST

_IN_PLACE = frozenset({"normal_", "uniform_"})


class Randomness:
    """Generators of the host and, where the network is elsewhere, of its device.

    Parameters
    ----------
    seed : int
        From 0 to 2⁶³ − 1.
    device : torch.device
        Of the network.
    """

    def __init__(self, seed: int, device: torch.device = HOST) -> None:
        places = ("cpu", "cuda") if device.type == "cuda" else ("cpu",)
        self._generators = {place: Generator(place) for place in places}
        self.start(seed)

    def start(self, seed: int) -> None:
        """Begin with another seed."""
        for generator in self._generators.values():
            generator.manual_seed(seed)

    def on(self, device: torch.device = HOST) -> Generator:
        """What to draw from there."""
        return self._generators[device.type]

    def states(self) -> dict[str, Tensor]:
        """Where the generators stand, by the types of their devices."""
        return {place: generator.get_state() for place, generator in self._generators.items()}

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Go on from `states`; of a device that they do not name, from where it is."""
        for place, generator in self._generators.items():
            if place in states:
                generator.set_state(states[place])


class Initial(TorchFunctionMode):
    """``with Initial(randomness):`` the weights of layers that are made inside are drawn from it, in this thread."""

    def __init__(self, randomness: Randomness) -> None:
        super().__init__()
        self._generator = randomness.on()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if "generator" in kwargs or getattr(func, "__name__", "") in _IN_PLACE:
            kwargs = {**kwargs, "generator": self._generator}
        return func(*args, **kwargs)


class Random:
    """What draws random numbers: from PyTorch's own generator until `randomness` is set."""

    randomness: Randomness | None = None

    def generator(self, device: torch.device = HOST) -> Generator | None:
        """What to draw from on a device; None is PyTorch's own generator."""
        return None if self.randomness is None else self.randomness.on(device)
