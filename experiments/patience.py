"""When training may end: what other settings of patience would have made of long runs of preset `balanced`.

    python experiments/patience.py UD/2.0/{hu,got,lv,vi,el,cu} --work runs/patience --steps 20000
    python experiments/patience.py --report        # writes the table of PRESETS.md

The learning rate of `balanced` never falls, so its patience decides only when a run ends, and one long run tells what
every patience would have chosen. Runs resume; each leaves its dev scores in ``experiments/results/patience``. The
report replays them through the schedule of the training itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grid_results import write_result
from kept_results import part_path, read_folder
from provenance import describe_commit, describe_hardware, describe_versions
from results_sections import write_tables

from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.model_files import LOG
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.training.schedule import Progress, Schedule

FOLDER = Path(__file__).parent / "results" / "patience"
PAGE = Path(__file__).parent / "PRESETS.md"
RULES = ((6, 0.4), (12, 0.0), (16, 0.4), (20, 0.4), (24, 0.4))  # patience, growth; 12 without growth was the former
ENDLESS = 1000  # evaluations, more than in any run
MOST_STEPS = 100_000


def config_of(seed: int, steps: int) -> ChartConfig:
    """The configuration of `balanced`, with every column, for ``steps`` steps."""
    return make_config(ChartConfig, {**PRESETS["balanced"], "patience": ENDLESS, "max_steps": steps, "seed": seed})


def run(treebank: Path, work: Path, seed: int, steps: int) -> dict[str, Any]:
    """Train, or resume; return the dev scores of all evaluations: step, seconds, UAS, LAS."""
    config = config_of(seed, steps)
    folder = work / f"{treebank.name}-{seed}"
    train, dev = (part_path(treebank, part) for part in ("train", "dev"))
    run_training(TrainingJob(train, dev, folder, config, threads=1, resume=True))
    reports = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    return {
        "treebank": treebank.name,
        "seed": seed,
        "epoch_steps": round(reports[-1]["step"] / reports[-1]["epoch"]),
        "curve": [[report[key] for key in ("step", "seconds", "dev_uas", "dev_las")] for report in reports],
        "commit": describe_commit(),
        "versions": describe_versions(),
        "hardware": describe_hardware("cpu"),
    }


def replay(result: dict[str, Any], patience: int, growth: float) -> tuple[Progress, bool]:
    """The progress at which this patience would have ended training, and whether that is before the run's end."""
    training = replace(config_of(result["seed"], MOST_STEPS).training, patience=patience, patience_growth=growth)
    schedule, progress = Schedule(training, result["epoch_steps"]), Progress(learning_rate=training.learning_rate)
    for step, seconds, uas, las in result["curve"]:
        progress.step, progress.seconds = step, seconds
        schedule.note(progress, uas, las)
        schedule.move_on(progress)
        if progress.finished:
            return progress, True
    return progress, False


def report(results: list[dict[str, Any]], rules: Sequence[tuple[int, float]] = RULES) -> list[str]:
    """Lines of Markdown: for each rule and treebank, UAS and LAS of the best model, its step, and the last step."""
    lines = [f"| patience, growth | {' | '.join(result['treebank'] for result in results)} |"]
    lines.append("|---" * (len(results) + 1) + "|")
    for patience, growth in rules:
        cells = []
        for result in results:
            end, ended = replay(result, patience, growth)
            last = f"{end.step:,}" if ended else f"{end.step:,}, cut off"
            cells.append(f"{end.best_uas:.2f} / {end.best_las:.2f} ({end.best_step:,} of {last})")
        lines.append(f"| {patience}, {growth:g} | {' | '.join(cells)} |")
    return lines


def _rule(text: str) -> tuple[int, float]:
    patience, _, growth = text.partition(",")
    return int(patience), float(growth or 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", nargs="*", type=Path, metavar="TREEBANK", help="folders with train and dev files")
    parser.add_argument("--work", type=Path, default=Path("runs/patience"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--report", action="store_true", help="write the table of PRESETS.md, train nothing")
    parser.add_argument("--rules", nargs="+", type=_rule, metavar="PATIENCE,GROWTH", default=RULES)
    arguments = parser.parse_args()
    for treebank in [] if arguments.report else arguments.treebanks:
        result = run(treebank, arguments.work, arguments.seed, arguments.steps)
        arguments.results.mkdir(parents=True, exist_ok=True)
        write_result(arguments.results / f"{treebank.name}-{arguments.seed}.json", result)
    table = report(read_folder(arguments.results), arguments.rules)
    if arguments.report:
        write_tables(PAGE, {"patience": table})
    else:
        print("\n".join(table))


if __name__ == "__main__":
    main()
