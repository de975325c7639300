"""Random numbers of one network, drawn from generators of its own.

PyTorch's global generators are left alone, and draws of the host program, in any thread, do not affect ours.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor
from torch.overrides import TorchFunctionMode

from .devices import HOST

_IN_PLACE = frozenset({"normal_", "uniform_"})


class Randomness:
    """A generator for the host and, if the network is on a GPU, one for the GPU.

    Parameters
    ----------
    seed : int
        From 0 to 2⁶³ − 1.
    device : torch.device
        The device of the network.
    """

    def __init__(self, seed: int, device: torch.device = HOST) -> None:
        places = ("cpu", "cuda") if device.type == "cuda" else ("cpu",)
        self._generators = {place: Generator(place) for place in places}
        self.start(seed)

    def start(self, seed: int) -> None:
        """Reseed all generators."""
        for generator in self._generators.values():
            generator.manual_seed(seed)

    def on(self, device: torch.device = HOST) -> Generator:
        """The generator for tensors on ``device``."""
        return self._generators[device.type]

    def states(self) -> dict[str, Tensor]:
        """The states of the generators, by device type."""
        return {place: generator.get_state() for place, generator in self._generators.items()}

    def restore(self, states: Mapping[str, Tensor]) -> None:
        """Restore generator states; a generator whose device type is missing from ``states`` is left as it is."""
        for place, generator in self._generators.items():
            if place in states:
                generator.set_state(states[place])


class Initial(TorchFunctionMode):
    """Context manager: layers created inside, in this thread, draw their initial weights from ``randomness``."""

    def __init__(self, randomness: Randomness) -> None:
        super().__init__()
        self._generator = randomness.on()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if "generator" in kwargs or getattr(func, "__name__", "") in _IN_PLACE:
            kwargs = {**kwargs, "generator": self._generator}
        return func(*args, **kwargs)


class Random:
    """Mixin for modules that draw random numbers, from PyTorch's global generator until `randomness` is set."""

    randomness: Randomness | None = None

    def generator(self, device: torch.device = HOST) -> Generator | None:
        """The generator to draw from on ``device``; None stands for PyTorch's global generator."""
        return None if self.randomness is None else self.randomness.on(device)
