"""What a training step takes with each preset, on one machine in turns: time for what runs count in steps.

    python experiments/preset_speed.py UD/2.0/{hu,got}

On one thread, like the runs of `grid.py`; medians go to ``experiments/results/performance/presets.json``, which keeps
those of other treebanks and presets, each with the code and the machine that it was measured with.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import torch
from kept_results import part_path
from provenance import made_with
from scripting import positive, run_script

from mh4.cli.bench.stages import time_training
from mh4.data.files import atomic_output
from mh4.training.presets import PRESETS

FOLDER = Path(__file__).parent / "results" / "performance"
NAME = "presets.json"

PROVENANCE = ("commit", "versions", "hardware")

StepSeconds = dict[str, dict[str, float]]  # by treebank and preset


def read_step_seconds(folder: Path) -> StepSeconds:
    """The seconds per step measured in a folder; empty if there are none."""
    path = folder / NAME
    return json.loads(path.read_text(encoding="utf-8"))["seconds_per_step"] if path.exists() else {}


def read_provenance(folder: Path) -> dict[str, dict[str, Any]]:
    """What each treebank and preset in a folder was measured with; in files of earlier versions, the same for all."""
    path = folder / NAME
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    of_all = {name: found[name] for name in PROVENANCE if name in found}
    measured = {treebank: dict.fromkeys(seconds, of_all) for treebank, seconds in found["seconds_per_step"].items()}
    return found.get("made_with", measured)


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
    parser.add_argument("treebanks", type=Path, nargs="+", metavar="TREEBANK", help="folders with a *-train.conllu")
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), default=list(PRESETS))
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--steps", type=positive, default=100)
    parser.add_argument("-o", "--output", type=Path, default=FOLDER / NAME)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        folder.name: measure(part_path(folder, "train"), arguments.presets, arguments.rounds, arguments.steps)
        for folder in arguments.treebanks
    }
    folder, kept = arguments.output.parent, arguments.output.name == NAME
    measured, made = (read_step_seconds(folder), read_provenance(folder)) if kept else ({}, {})
    now = made_with("cpu")
    for treebank, seconds in found.items():  # keep earlier measurements of other treebanks and presets
        measured[treebank] = measured.get(treebank, {}) | seconds
        made[treebank] = made.get(treebank, {}) | dict.fromkeys(seconds, now)
    with atomic_output(arguments.output) as stream:
        stream.write((json.dumps({"seconds_per_step": measured, "made_with": made}, indent=1) + "\n").encode())
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
