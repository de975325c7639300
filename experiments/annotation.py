"""Train and score models that annotate every column, beside what is published for UDPipe 2.

    python experiments/annotation.py --work runs/annotation UD/2.0/hu UD/2.2/{got,cu} --seeds 1 2 3

Dev is parsed from its words alone: the model also predicts tags, features and lemmas. Each run leaves a JSON file in
``experiments/results/annotation``. Finished runs are not repeated; interrupted ones continue from their last
evaluation. ``--without`` trains the same preset without these columns, to compare the trees; ``--list`` prints the
table of the existing results and trains nothing.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from grid_runs import PRESETS as TREES_ALONE
from grid_runs import Run, find_treebank, settings_of, summarize, train_run
from kept_results import describe_files, read_kept
from provenance import made_with
from scripting import run_script

from mh4.data.files import atomic_output
from mh4.parsers.registry import load
from mh4.training.presets import PRESETS
from mh4.trees.evaluation import evaluate

FOLDER = Path(__file__).parent / "results" / "annotation"
METRICS = ("UPOS", "XPOS", "UFeats", "AllTags", "Lemmas", "UAS", "LAS", "MLAS", "BLEX")
# UDPipe 2, models of UD 2.6, gold tokens of the test sets (its documentation); it has multilingual BERT inside.
UDPIPE_2 = {
    "hu": (96.87, None, 94.45, 93.61, 95.09, 88.28, 84.73, 75.27, 78.26),
    "got_proiel": (96.81, 97.26, 91.12, 89.28, 94.77, 83.73, 77.93, 65.37, 70.85),
    "cu_proiel": (96.89, 97.09, 91.22, 89.97, 93.20, 87.95, 83.81, 73.92, 77.26),
}


def run_of(text: str, preset: str, seed: int, without: bool) -> Run:
    """The run of a treebank, named as on the command line, with the published decoder."""
    settings = (TREES_ALONE if without else PRESETS)[preset]
    return Run(find_treebank(text), "mh4-hybrid", f"{preset}.trees" if without else preset, settings, seed)


def score_words(folder: Path, dev: Path) -> dict[str, Any]:
    """Scores of a model on a treebank of which it sees only the words."""
    parsed = folder / "parsed.conllu"
    load(folder, device="cpu", threads=1).parse_file(dev, parsed, overwrite=True)
    return summarize(evaluate(dev, parsed))


def complete(run: Run, work: Path, results: Path) -> dict[str, Any]:
    """The result of a run: the existing one, or a new one."""
    path = results / f"{run.name}.json"
    settings = {"settings": settings_of(run)}
    data = describe_files({"train": run.treebank.train, "dev": run.treebank.dev})
    result = read_kept(path, settings, data)
    if result is None:
        folder = work / run.name
        folder.mkdir(parents=True, exist_ok=True)
        trained = train_run(run, folder, "cpu", lambda *_: None)
        about = {"treebank": run.treebank.name, "preset": run.preset, "seed": run.seed}
        dev = score_words(folder, run.treebank.dev)
        result = {**about, **settings, **trained, "dev": dev, "data": data, **made_with("cpu")}
        with atomic_output(path) as stream:
            stream.write((json.dumps(result, indent=1) + "\n").encode())
    return result


def metrics_of(preset: str) -> tuple[str, ...]:
    """The metrics that say something about models of a preset; those of trees alone leave the gold tags in place."""
    return ("UAS", "LAS") if preset.endswith(".trees") else METRICS


def table(results: Iterable[dict[str, Any]]) -> str:
    """A Markdown table: means over seeds, and published numbers. Models without tags have scores for trees only."""
    groups: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for result in results:
        groups[result["treebank"], result["preset"]].append(result["dev"]["f1"])
    lines = ["| | seeds | " + " | ".join(METRICS) + " |", "|" + "---|" * (2 + len(METRICS))]

    def row(name: str, seeds: int | str, values: Iterable[float | None]) -> str:
        cells = ("–" if value is None else f"{value:.2f}" for value in values)
        return f"| {name} | {seeds} | " + " | ".join(cells) + " |"

    for (treebank, preset), scores in sorted(groups.items()):
        shown = metrics_of(preset)
        values = (mean(one[metric] for one in scores) if metric in shown else None for metric in METRICS)
        lines.append(row(f"{treebank}, {preset}", len(scores), values))
    present = {treebank for treebank, _ in groups}
    lines += [row(f"{name}, UDPipe 2", "", values) for name, values in UDPIPE_2.items() if name in present]
    return "\n".join(lines)


def main() -> None:
    """Do the missing runs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("treebanks", nargs="*", metavar="TREEBANK", help="folders, or NAME=TRAIN,DEV, as of grid.py")
    add("--preset", choices=[name for name in PRESETS if name != "paper"], default="balanced")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3])
    add("--without", action="store_true", help="train trees alone")
    add("--work", type=Path, help="folder of models, outside the repository or ignored by it")
    add("--results", type=Path, default=FOLDER, help="folder of results (default: %(default)s)")
    add("--list", action="store_true", help="print the table, train nothing")
    arguments = parser.parse_args()
    if not arguments.list:
        if not arguments.treebanks or arguments.work is None:
            raise SystemExit("name treebanks and --work, or --list")
        torch.set_num_threads(1)
        arguments.results.mkdir(parents=True, exist_ok=True)
        for seed in arguments.seeds:
            for text in arguments.treebanks:
                run = run_of(text, arguments.preset, seed, arguments.without)
                scores = complete(run, arguments.work, arguments.results)["dev"]["f1"]
                print(run.name, *(f"{metric} {scores[metric]:.2f}" for metric in metrics_of(run.preset)), flush=True)
    print(table(json.loads(path.read_text(encoding="utf-8")) for path in sorted(arguments.results.glob("*.json"))))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
