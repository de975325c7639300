"""How many operations a training step starts on its device: a small one takes a GPU no longer than starting it does.

python experiments/operations.py TREEBANK --device cuda --preset large
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from scripting import run_script
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from mh4.cli.bench.stages import trainer_to_measure
from mh4.training.presets import PRESETS

RECURRENT = "rnn", "lstm"  # counted apart: cuDNN may start many kernels for one
FREQUENT = 10
COUNTED = 5  # steps


class OperationCounter(TorchDispatchMode):
    """Counts the operations on one device in its context, forward and backward.

    Views, which compute nothing, are not counted. Most operations start one kernel, some more. Compiled loops on the
    CPU are not seen.

    Attributes
    ----------
    counts : Counter
        Number of calls by name of the operation.
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
        """Operations per step, those of LSTMs separately, and the ten most frequent of the others."""
        recurrent = {name: count for name, count in self.counts.items() if any(part in name for part in RECURRENT)}
        others = Counter({name: count for name, count in self.counts.items() if name not in recurrent})
        return {
            "operations": others.total() / steps,
            "recurrent": sum(recurrent.values()) / steps,
            "frequent": {name: count / steps for name, count in others.most_common(FREQUENT)},
        }


def _is_view(func: Any) -> bool:
    """Whether an operator only returns views of its arguments."""
    aliases = [part.alias_info for part in func._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def _is_on(leaf: Any, device: torch.device) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.device.type == device.type


def count_operations(treebank: str | Path, decoder: str, device: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`OperationCounter.per_step` of the first steps of a training."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_to_measure(treebank, decoder, device, None, settings, Path(folder))
        with OperationCounter(trainer.parser.device) as counter:
            for indices in trainer.batches(0)[:COUNTED]:
                trainer.step(trainer.collate(indices))
            trainer.settle()
    return counter.per_step(min(COUNTED, len(trainer.batches(0))))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--decoder", default="mh4-hybrid")
    parser.add_argument("--preset", choices=list(PRESETS), default="paper")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    print(json.dumps(count_operations(given.treebank, given.decoder, given.device, PRESETS[given.preset]), indent=1))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
