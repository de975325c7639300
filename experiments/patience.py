"""When training may end: what other settings of patience would have made of long runs of a preset.

    python experiments/patience.py UD/2.0/{hu,got,lv,vi,el,cu} --work runs/patience --steps 20000
    python experiments/patience.py --preset best UD/2.0/el --work runs/patience-best --steps 30000
    python experiments/patience.py --report        # writes the tables of PRESETS.md

The learning rate never falls in these runs: in `balanced` it never does, and in `best` patience decides when it falls
first. So one long run tells what every patience would have chosen. Runs resume; each leaves its dev scores in
``experiments/results/patience`` or ``patience-best``. The report replays them through the schedule of the training
itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grid_results import write_result
from grid_runs import TREES_ALONE
from kept_results import part_path, read_folder
from provenance import made_with
from results_sections import write_tables
from scripting import positive, run_script

from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.model_files import LOG
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.training.schedule import Progress, Schedule

RESULTS = Path(__file__).parent / "results"
FOLDERS = {"balanced": RESULTS / "patience", "best": RESULTS / "patience-best"}
PAGE = Path(__file__).parent / "PRESETS.md"
RULES = {  # patience, growth; for `balanced`, 12 without growth was the former
    "balanced": ((6, 0.4), (12, 0.0), (16, 0.4), (20, 0.4), (24, 0.4)),
    "best": ((8, 0.4), (10, 0.4), (12, 0.4), (16, 0.4), (20, 0.4)),
}
ENDLESS = 1000  # evaluations, more than in any run
MOST_STEPS = 100_000


def config_of(preset: str, trees_alone: bool, seed: int, steps: int) -> ChartConfig:
    """The configuration of a preset, with every column or with none, for ``steps`` steps at the first rate."""
    columns = TREES_ALONE if trees_alone else {}
    lasting = {"patience": ENDLESS, "decays": 0, "max_steps": steps, "seed": seed}
    return make_config(ChartConfig, {**PRESETS[preset], **columns, **lasting})


def run(treebank: Path, work: Path, preset: str, trees_alone: bool, seed: int, steps: int) -> dict[str, Any]:
    """Train, or resume; return the dev scores of all evaluations: step, seconds, UAS, LAS."""
    config = config_of(preset, trees_alone, seed, steps)
    train, dev = (part_path(treebank, part) for part in ("train", "dev"))
    run_training(TrainingJob(train, dev, work, config, threads=1, resume=True))
    reports = [json.loads(line) for line in (work / LOG).read_text(encoding="utf-8").splitlines()]
    return {
        "treebank": treebank.name,
        "preset": preset,
        "trees_alone": trees_alone,
        "seed": seed,
        "epoch_steps": round(reports[-1]["step"] / reports[-1]["epoch"]),
        "curve": [[report[key] for key in ("step", "seconds", "dev_uas", "dev_las")] for report in reports],
        **made_with("cpu"),
    }


def replay(result: dict[str, Any], patience: int, growth: float) -> tuple[Progress, bool]:
    """The progress at which this patience would have run out, and whether that is before the run's end."""
    config = config_of(result["preset"], result["trees_alone"], result["seed"], MOST_STEPS)
    training = replace(config.training, patience=patience, patience_growth=growth)
    schedule, progress = Schedule(training, result["epoch_steps"]), Progress(learning_rate=training.learning_rate)
    for step, seconds, uas, las in result["curve"]:
        progress.step, progress.seconds = step, seconds
        schedule.note(progress, uas, las)
        schedule.move_on(progress)
        if progress.finished:
            return progress, True
    return progress, False


def report(results: list[dict[str, Any]], rules: Sequence[tuple[int, float]]) -> list[str]:
    """Lines of Markdown: for each rule and run, UAS and LAS of the best model, its step, and the last step."""
    lines = [f"| patience, growth | {' | '.join(map(_title, results))} |"]
    lines.append("|---" * (len(results) + 1) + "|")
    for patience, growth in rules:
        cells = []
        for result in results:
            end, ended = replay(result, patience, growth)
            last = f"{end.step:,}" if ended else f"{end.step:,}, cut off"
            cells.append(f"{end.best_uas:.2f} / {end.best_las:.2f} ({end.best_step:,} of {last})")
        lines.append(f"| {patience}, {growth:g} | {' | '.join(cells)} |")
    return lines


def tables() -> dict[str, list[str]]:
    """The tables of PRESETS.md, by name."""
    return {folder.name: report(read_folder(folder), RULES[preset]) for preset, folder in FOLDERS.items()}


def _title(result: dict[str, Any]) -> str:
    return f"{result['treebank']}, seed {result['seed']}" + ", trees alone" * result["trees_alone"]


def _rule(text: str) -> tuple[int, float]:
    patience, _, growth = text.partition(",")
    return int(patience), float(growth or 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", nargs="*", type=Path, metavar="TREEBANK", help="folders with train and dev files")
    parser.add_argument("--preset", choices=sorted(FOLDERS), default="balanced")
    parser.add_argument("--trees-alone", action="store_true", help="train without the other columns")
    parser.add_argument("--work", type=Path, default=Path("runs/patience"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, help="folder of results (default: the one of the preset)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=positive, default=20_000)
    parser.add_argument("--report", action="store_true", help="write the tables of PRESETS.md, train nothing")
    parser.add_argument("--rules", nargs="+", type=_rule, metavar="PATIENCE,GROWTH")
    arguments = parser.parse_args()
    if arguments.report:
        write_tables(PAGE, tables())
        return
    preset, alone, seed = arguments.preset, arguments.trees_alone, arguments.seed
    folder = arguments.results or FOLDERS[preset]
    for treebank in arguments.treebanks:
        name = f"{treebank.name}-{seed}" + "-trees" * alone
        result = run(treebank, arguments.work / f"{preset}-{name}", preset, alone, seed, arguments.steps)
        folder.mkdir(parents=True, exist_ok=True)
        write_result(folder / f"{name}.json", result)
    print("\n".join(report(read_folder(folder), arguments.rules or RULES[preset])))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
