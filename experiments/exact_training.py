"""Does the exact arc-eager step improve accuracy (Nederhof 2021, section 7), and how should ties be broken (6.2)?

    python experiments/exact_training.py UD/2.0/{hu,got,cu} -o experiments/results/optimal-steps
    python experiments/exact_training.py UD/2.0/{hu,got,cu} -o experiments/results/optimal-steps --system arc-standard
    python experiments/exact_training.py UD/2.0/{hu,got,cu} -o experiments/results/optimal-steps --scorer bilstm

A perceptron is trained on the closest projective trees (``dynamic``), or on the original trees with optimal steps that
are calculated in linear time as if the trees were projective (``approximate``) or exactly (``exact``); each with three
rules for the update when several transitions are optimal (`PerceptronConfig.ties`). Gold parts of speech, 15 epochs;
wrong predictions are followed with probability 0.9 from the second epoch on; the last parser is scored, on the test set
if there is one. Each run (treebank, oracle, rule, seed) leaves a JSON file, and runs that have one are not repeated.

With ``--scorer bilstm``, a network is trained instead, with preset `fast` on trees alone, from the words alone. Its
update is about the best-scoring optimal transition, and the model that is best on the development set is scored.

p-values come from a paired randomisation test over sentences, on the number of correct words in all seeds.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from covington_dynamic import METRICS, p_value, right_words, scores, with_shared_seeds
from grid_results import write_result
from grid_runs import TREES_ALONE
from kept_results import Data, describe_data, part_path, read_kept, scored_part
from provenance import made_with
from rich.console import Console
from rich.table import Table
from scripting import positive, run_script

from mh4.parsers.base import Parser
from mh4.parsers.config import GreedyConfig, PerceptronConfig, Ties, make_config
from mh4.parsers.registry import load
from mh4.parsers.systems import get_system
from mh4.training.job import TrainingJob
from mh4.training.perceptron import fit
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.training.treebanks import read_gold

TIES = get_args(Ties)
PROJECTIVE = "dynamic"  # the oracle that others are compared with
BILSTM = {"scorer": "bilstm", "preset": "fast", "ties": "best"}
Runs = dict[str, list[dict[str, Any]]]  # results by way of training, one per seed


def settings(folder: Path, oracle: str, ties: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The settings that a result depends on, apart from the treebank's sentences."""
    of_scorer = BILSTM if options.scorer == "bilstm" else {"ties": ties, "iterations": options.iterations}
    return {"system": options.system, "oracle": oracle, "seed": seed} | of_scorer | scored_part(folder)


def train_parser(folder: Path, own: dict[str, Any], model: Path) -> Parser:
    """Train a perceptron, or a network in the folder ``model``, resuming if it was interrupted."""
    if "scorer" not in own:
        config = PerceptronConfig(**{name: value for name, value in own.items() if name != "scored"})
        return fit(config, read_gold(part_path(folder, "train")))
    choices = {name: own[name] for name in ("system", "oracle", "seed")}
    config = make_config(GreedyConfig, {**PRESETS[own["preset"]], **TREES_ALONE, **choices})
    train, dev = (part_path(folder, part) for part in ("train", "dev"))
    run_training(TrainingJob(train, dev, model, config, device="cpu", threads=1, resume=True))
    return load(model, device="cpu", threads=1)


def count_right(parser: Parser, folder: Path, own: dict[str, Any]) -> dict[str, Any]:
    """Count a parser's correct words in each sentence."""
    evaluation = read_gold(part_path(folder, own["scored"]))
    right: dict[str, list[int]] = {metric: [] for metric in METRICS}
    for gold, predicted in zip(evaluation, parser.predict(evaluation), strict=True):
        head_right = gold.heads == predicted.heads
        right["UAS"].append(int(head_right.sum()))
        right["LAS"].append(int((head_right & (np.array(gold.relations) == np.array(predicted.relations))).sum()))
    return own | {"words": sum(map(len, evaluation))} | right | {"data": data_of(folder, own)} | made_with("cpu")


def data_of(folder: Path, own: dict[str, Any]) -> Data:
    """What a result with these settings was trained and scored on."""
    parts = ("train", "dev") if "scorer" in own else ("train",)
    return describe_data(folder, *parts, *scored_part(folder).values())


def cell(treebanks: Sequence[Runs], own: str, other: str, metric: str) -> str:
    """The mean score of a way of training over treebanks, and its gain over another way with a p-value."""
    if not all(runs[own] for runs in treebanks):
        return "–"
    means = [scores(runs, own, metric).mean() for runs in treebanks]
    shared = [with_shared_seeds(runs, own, other) for runs in treebanks]
    if own == other or not all(runs[other] for runs in shared):
        return f"{np.mean(means):.2f}"
    one, another = (np.concatenate([right_words(runs, way, metric) for runs in shared]) for way in (other, own))
    difference = np.mean([scores(runs, own, metric).mean() - scores(runs, other, metric).mean() for runs in shared])
    return f"{np.mean(means):.2f} ({difference:+.2f}, {p_value(one, another):.3f})"


def table(results: dict[str, Runs], oracles: Sequence[str], metric: str) -> Table:
    """Each oracle's mean score, and its gain with a p-value; a row per rule for ties, of each treebank and of all.

    The gain is over the first oracle with the same rule and, in the first column of scores, over the first rule.
    """
    shown = Table(title=f"{metric}: mean of the seeds; (gain, p)", box=None)
    for column in ("", "ties", *oracles):
        shown.add_column(column, justify="left" if column in ("", "ties") else "right")
    rows = [(name, [runs]) for name, runs in results.items()]
    for name, treebanks in [*rows, ("all", list(results.values()))] if len(rows) > 1 else rows:
        for ties in (rule for rule in TIES if any(runs[f"{oracles[0]}-{rule}"] for runs in treebanks)):
            others = [f"{oracles[0]}-{ties if oracle != oracles[0] else TIES[0]}" for oracle in oracles]
            ways = zip((f"{oracle}-{ties}" for oracle in oracles), others, strict=True)
            cells = [cell(treebanks, own, other, metric) for own, other in ways]
            shown.add_row(name, ties, *cells)
    return shown


def main() -> None:
    """Do the missing runs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/exact-training"))
    parser.add_argument("--system", choices=["arc-eager", "arc-standard"], default="arc-eager")
    parser.add_argument("--scorer", choices=["perceptron", "bilstm"], default="perceptron")
    parser.add_argument("--work", type=Path, default=Path("runs/exact-training"), help="models of --scorer bilstm")
    parser.add_argument("--ties", nargs="+", choices=TIES, default=list(TIES))
    parser.add_argument("--seeds", type=positive, default=3, help="seeds 1 to N (default: 3)")
    parser.add_argument("--iterations", type=positive, default=15)
    parser.add_argument("--table", action="store_true", help="only print")
    options = parser.parse_args()
    rules = [BILSTM["ties"]] if options.scorer == "bilstm" else options.ties
    oracles = [name for name in (PROJECTIVE, "approximate", "exact") if name in get_system(options.system).oracles]
    results: dict[str, Runs] = {}
    for folder in options.treebanks:
        name = folder.resolve().name
        runs: Runs = {f"{oracle}-{ties}": [] for oracle in oracles for ties in TIES}
        for seed, ties, oracle in product(range(1, options.seeds + 1), rules, oracles):
            own = settings(folder, oracle, ties, seed, options)
            way = own.get("scorer", ties)
            path = options.output / f"{options.system}-{name}-{oracle}-{way}-seed{seed}.json"
            result = read_kept(path, own, data_of(folder, own))
            if result is None and not options.table:
                result = count_right(train_parser(folder, own, options.work / path.stem), folder, own)
                write_result(path, result)
                shares = (f"{100 * sum(result[metric]) / result['words']:.2f} {metric}" for metric in METRICS)
                print(f"{path}: {', '.join(shares)}", flush=True)
            if result is not None:
                runs[f"{oracle}-{ties}"].append(result)
        results[f"{name} {scored_part(folder).get('scored', '')}"] = runs
    console = Console(width=150)
    for metric in METRICS:
        console.print(table(results, oracles, metric))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
