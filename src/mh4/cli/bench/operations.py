"""How many operations a training step starts on its device: a small one takes a GPU no longer than starting it does."""

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

RECURRENT = "rnn", "lstm"  # cuDNN starts as many kernels for one as it sees fit
FREQUENT = 10


class OperationCounter(TorchDispatchMode):
    """Counts what runs inside, forwards and backwards, on one device.

    Views, which compute nothing, are left out; an operation may start more than one kernel, and most start one. On the
    CPU compiled loops are not seen.

    Attributes
    ----------
    counts : Counter
        By the name of the operation.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = tree_leaves((args, result))
        if not _is_view(func) and any(_is_on(leaf, self.device) for leaf in leaves):
            self.counts[func._schema.name.removeprefix("aten::")] += 1
        return result

    def per_step(self, steps: int) -> dict[str, Any]:
        """Operations a step, those of LSTMs apart, and the ten most frequent of the others."""
        recurrent = {name: count for name, count in self.counts.items() if any(part in name for part in RECURRENT)}
        others = Counter({name: count for name, count in self.counts.items() if name not in recurrent})
        return {
            "operations": others.total() / steps,
            "recurrent": sum(recurrent.values()) / steps,
            "frequent": {name: count / steps for name, count in others.most_common(FREQUENT)},
        }


def _is_view(func: Any) -> bool:
    """Whether what an operator returns is part of what it was given, unchanged."""
    aliases = [part.alias_info for part in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _is_on(leaf: Any, device: torch.device) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.device.type == device.type
