"""Ensembles that share an encoder: what several members give, and the CPU time that they take.

    python experiments/members.py UD/2.0/hu --members 1 3 --work runs/members
    python experiments/members.py --report        # writes the table of SEVERAL.md

Measures UAS and LAS on dev, CPU milliseconds per training step, evaluations included, and CPU seconds of parsing dev.
Numbers of members already in a result are not trained again; results are in ``experiments/results/members``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import mean
from typing import Any

from grid_results import write_result
from kept_results import describe_data, part_path, read_folder, read_kept, shown
from provenance import made_with
from results_sections import LANGUAGES, markdown_rows, write_tables
from scripting import positive, run_script

from mh4.data.conllu import read_conllu
from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.registry import load
from mh4.parsers.request import HEADS
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.trees.evaluation import attachment_scores

FOLDER = Path(__file__).parent / "results" / "members"
PAGE = Path(__file__).parent / "SEVERAL.md"


def measure(treebank: Path, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Train a parser and parse dev; return scores and times."""
    train, dev = (part_path(treebank, part) for part in ("train", "dev"))
    start = time.process_time()
    config = make_config(ChartConfig, settings)
    progress = run_training(TrainingJob(train, dev, folder, config, threads=1, overwrite=True))
    training = time.process_time() - start
    parser = load(folder, device="cpu", threads=1)
    gold = list(read_conllu(dev, trees="required"))
    parser.predict(gold[:20], predict=HEADS)  # compile
    start = time.process_time()
    found = parser.predict(gold, predict=HEADS)
    parsing = time.process_time() - start
    return {
        "uas, las": [round(score, 2) for score in attachment_scores(gold, found)],
        "steps": progress.step,
        "best step": progress.best_step,
        "cpu ms per step": round(1000 * training / progress.step, 1),
        "cpu s of parsing": round(parsing, 2),
    }


def report(results: list[dict[str, Any]]) -> list[str]:
    """Lines of Markdown: a row per treebank, preset and number of members, with means over seeds."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for result in results:
        for members, numbers in result["members"].items():
            groups.setdefault((result["treebank"], result["preset"], int(members)), []).append(numbers)
    columns = ["", "preset", "members", "seeds", "UAS", "LAS", "training steps", "CPU ms per step", "CPU s of parsing"]
    lines = [columns, ["---", "---", *["---:"] * (len(columns) - 2)]]
    in_order = sorted(groups, key=lambda group: (list(PRESETS).index(group[1]), group))
    for treebank, preset, members in in_order:
        runs = groups[treebank, preset, members]
        uas, las = (shown([run["uas, las"][metric] for run in runs]) for metric in (0, 1))
        steps, training, parsing = (
            mean(run[name] for run in runs) for name in ("steps", "cpu ms per step", "cpu s of parsing")
        )
        own = [LANGUAGES[treebank], f"`{preset}`", str(members), str(len(runs)), uas, las]
        lines.append([*own, f"{steps:,.0f}", f"{training:.0f}", f"{parsing:.2f}"])
    return markdown_rows(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, nargs="?", help="folder with train and dev files")
    parser.add_argument("--members", nargs="+", type=positive, default=[1, 3])
    parser.add_argument("--work", type=Path, default=Path("runs/members"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--steps", type=positive, default=3000, help="at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="write the table of SEVERAL.md, train nothing")
    arguments = parser.parse_args()
    if arguments.report:
        write_tables(PAGE, {"members": report(read_folder(arguments.results))})
        return
    if arguments.treebank is None:
        parser.error("a treebank is needed to train")
    name = f"{arguments.treebank.name}-{arguments.preset}-{arguments.seed}"
    settings = {"treebank": arguments.treebank.name, "preset": arguments.preset, "steps": arguments.steps}
    path = arguments.results / f"{name}.json"
    data = describe_data(arguments.treebank, "train", "dev")
    result: dict[str, Any] = (read_kept(path, settings, data) or {**settings, "members": {}}) | {"data": data}
    arguments.results.mkdir(parents=True, exist_ok=True)
    own = {**PRESETS[arguments.preset], "seed": arguments.seed, "max_steps": arguments.steps}
    for members in arguments.members:
        if str(members) not in result["members"]:
            folder = arguments.work / f"{name}-{members}"
            result["members"][str(members)] = measure(arguments.treebank, folder, {**own, "members": members})
            write_result(path, {**result, **made_with("cpu")})
    for members, numbers in result["members"].items():
        print(members, *numbers.values())


if __name__ == "__main__":
    raise SystemExit(run_script(main))
