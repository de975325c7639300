"""What a training step takes with each preset, on one machine in turns: time for what runs count in steps.

    python experiments/preset_speed.py UD/2.0/{hu,got}

On one thread, like the runs of `grid.py`; medians go to ``experiments/results/performance/presets.json``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

import torch
from provenance import describe_commit, describe_hardware, describe_versions

from mh4.cli.bench.stages import time_training
from mh4.data.files import atomic_output
from mh4.training.presets import PRESETS

FOLDER = Path(__file__).parent / "results" / "performance"
NAME = "presets.json"

StepSeconds = dict[str, dict[str, float]]  # by treebank and preset


def read_step_seconds(folder: Path) -> StepSeconds:
    """The seconds per step measured in a folder; empty if there are none."""
    path = folder / NAME
    return json.loads(path.read_text(encoding="utf-8"))["seconds_per_step"] if path.exists() else {}


def measure(treebank: Path, presets: list[str], rounds: int, steps: int) -> dict[str, float]:
    """Median seconds per step of `mh4-hybrid`."""
    seconds: dict[str, list[float]] = {preset: [] for preset in presets}
    for _ in range(rounds):
        for preset in presets:
            found = time_training(treebank, "mh4-hybrid", steps, "cpu", 1, PRESETS[preset])
            seconds[preset].append(found["seconds"] / found["steps"])
    return {preset: median(values) for preset, values in seconds.items()}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebanks", type=Path, nargs="+", metavar="TREEBANK", help="folders with a *-ud-train.conllu")
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER / NAME)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        folder.name: measure(
            next(folder.glob("*-ud-train.conllu")), arguments.presets, arguments.rounds, arguments.steps
        )
        for folder in arguments.treebanks
    }
    measured = read_step_seconds(arguments.output.parent) if arguments.output.name == NAME else {}
    for treebank, seconds in found.items():  # keep earlier measurements of other treebanks and presets
        measured[treebank] = measured.get(treebank, {}) | seconds
    made_with = {"commit": describe_commit(), "versions": describe_versions(), "hardware": describe_hardware("cpu")}
    with atomic_output(arguments.output) as stream:
        stream.write((json.dumps({"seconds_per_step": measured, **made_with}, indent=1) + "\n").encode())
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
