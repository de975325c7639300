"""Table 2 of Gómez-Rodríguez and Fernández-González (2015): Covington's parser trained with static and dynamic oracles.

    python experiments/covington_dynamic.py UD/2.0/{hu,el,cu,got} -o experiments/results/greedy

Every folder holds one ``*-train.conllu`` and one ``*-test.conllu``, or else one ``*-dev.conllu``, which is scored.
Nothing is chosen on it: the parser of the last epoch is used. Each run (treebank, oracle, seed) leaves a JSON file in
the output folder, and runs that have one are not repeated; give ``--table`` to print without running.

The paper does not say whether its static oracle reads the next word as soon as it can (``static``) or after all pairs
of words (``all-pairs``), nor how its dynamic one explores; ours follows wrong predictions with probability 0.9 from the
second epoch on. In the paper, words left without a head are attached to the root. If all training trees have one word
below the root, as in Universal Dependencies, we attach only the first such word to the root, and the others to it.

Scores include punctuation. p-values come from a paired randomisation test over sentences, on the number of correct
words in all runs; in the last row, over the sentences of all treebanks.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kept_results import Data, describe_data, part_path, read_kept, scored_part
from provenance import made_with
from rich.console import Console
from rich.table import Table
from scipy.stats import permutation_test
from scripting import positive, run_script

from mh4.data.errors import ErrorPolicy
from mh4.data.files import atomic_output
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import fit
from mh4.training.treebanks import read_gold

DYNAMIC = "dynamic"
ORACLES = ("static", "all-pairs", DYNAMIC)
METRICS = ("UAS", "LAS")
PUBLISHED = {"static": (82.72, 78.39), DYNAMIC: (83.52, 79.13)}  # averages over 19 treebanks of CoNLL-X and CoNLL-XI

Runs = dict[str, list[dict[str, Any]]]  # results of each oracle, one per seed


def run(folder: Path, oracle: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Train a parser; count its correct words in each sentence."""
    train = read_gold(part_path(folder, "train"), policy(options))
    evaluation = read_gold(part_path(folder, scored_part(folder)["scored"]), policy(options))
    config = PerceptronConfig("covington", oracle, iterations=options.iterations, seed=seed)
    start = time.process_time()
    parser = fit(config, train)
    seconds = time.process_time() - start
    right: dict[str, list[int]] = {metric: [] for metric in METRICS}
    for gold, predicted in zip(evaluation, parser.predict(evaluation), strict=True):
        head_right = gold.heads == predicted.heads
        relation_right = np.array(gold.relations) == np.array(predicted.relations)
        right["UAS"].append(int(head_right.sum()))
        right["LAS"].append(int((head_right & relation_right).sum()))
    words = sum(map(len, evaluation))
    result = settings(folder, oracle, seed, options) | {"words": words, "seconds": round(seconds, 1)} | right
    return result | {"data": data_of(folder, options)} | made_with("cpu")


def policy(options: argparse.Namespace) -> ErrorPolicy:
    """What to do with sentences that are not valid."""
    return "skip" if options.skip_bad else "raise"


def data_of(folder: Path, options: argparse.Namespace) -> Data:
    """What a parser is trained and scored on."""
    return describe_data(folder, "train", *scored_part(folder).values(), errors=policy(options))


def settings(folder: Path, oracle: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """The settings that a result depends on, apart from the treebank's sentences."""
    return {"oracle": oracle, "iterations": options.iterations, "seed": seed} | scored_part(folder)


def result_path(folder: Path, oracle: str, seed: int, options: argparse.Namespace) -> Path:
    """The file for the result of one run."""
    return options.output / f"covington-{folder.resolve().name}-{oracle}-seed{seed}.json"


def read_results(options: argparse.Namespace) -> dict[str, Runs]:
    """All existing results, by treebank and oracle."""
    results: dict[str, Runs] = {}
    for folder in options.treebanks:
        runs: Runs = defaultdict(list)
        for oracle in options.oracles:
            for seed in range(1, options.seeds + 1):
                path = result_path(folder, oracle, seed, options)
                result = read_kept(path, settings(folder, oracle, seed, options), data_of(folder, options))
                if result is not None:
                    runs[oracle].append(result)
        if DYNAMIC in runs:
            results[f"{folder.resolve().name} {runs[DYNAMIC][0]['scored']}"] = runs
    return results


def scores(runs: Runs, oracle: str, metric: str) -> np.ndarray:
    """The score of each seed, in percent."""
    return np.array([100.0 * sum(result[metric]) / result["words"] for result in runs[oracle]])


def right_words(runs: Runs, oracle: str, metric: str) -> np.ndarray:
    """The number of correct words in each sentence, summed over all runs."""
    return np.array([result[metric] for result in runs[oracle]]).sum(axis=0)


def with_shared_seeds(runs: Runs, one: str, other: str) -> Runs:
    """The runs of two oracles, without seeds that only one of them has."""
    seeds = {run["seed"] for run in runs[one]} & {run["seed"] for run in runs[other]}
    return {name: [run for run in runs[name] if run["seed"] in seeds] for name in (one, other)}


def p_value(one: np.ndarray, other: np.ndarray) -> float:
    """The two-sided p-value of a paired randomisation test for the difference of the sums over sentences."""

    def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return (y - x).sum(axis=axis)

    test = permutation_test(
        (one, other), difference, permutation_type="samples", vectorized=True, batch=500, n_resamples=9999, rng=1
    )
    return float(test.pvalue)


def gain(runs: Sequence[Runs], oracle: str, metric: str) -> str:
    """The mean gain of the dynamic oracle over another one, with its p-value over the sentences of all treebanks.

    Only seeds that both oracles have count; "" without any.
    """
    differences, pairs = [], []
    for treebank in runs:
        both = with_shared_seeds(treebank, oracle, DYNAMIC)
        if both[oracle]:
            differences.append(scores(both, DYNAMIC, metric).mean() - scores(both, oracle, metric).mean())
            pairs.append([right_words(both, name, metric) for name in (oracle, DYNAMIC)])
    if not pairs:
        return ""
    one, other = (np.concatenate(sides) for sides in zip(*pairs, strict=True))
    return f"{np.mean(differences):+.2f} ({p_value(one, other):.4f})"


def table_2(results: dict[str, Runs], oracles: Sequence[str], metric: str) -> Table:
    """A row per treebank, averages over treebanks with results of all oracles, and the paper's averages."""
    others = [oracle for oracle in oracles if oracle != DYNAMIC]
    table = Table(title=f"{metric}: mean of the seeds ± standard deviation", box=None)
    for column in ("", *oracles, *(f"{DYNAMIC} - {oracle} (p)" for oracle in others)):
        table.add_column(column, justify="right" if column else "left")
    for name, runs in results.items():
        cells = []
        for oracle in oracles:
            values = scores(runs, oracle, metric)
            deviation = f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.2f}{deviation}" if len(values) else "")
        table.add_row(name, *cells, *(gain([runs], oracle, metric) for oracle in others))
    complete = [runs for runs in results.values() if all(runs[oracle] for oracle in oracles)]
    if complete:
        means = [np.mean([scores(runs, oracle, metric).mean() for runs in complete]) for oracle in oracles]
        table.add_row(
            f"average of {len(complete)}",
            *(f"{value:.2f}" for value in means),
            *(gain(complete, oracle, metric) for oracle in others),
        )
    theirs = {oracle: values[METRICS.index(metric)] for oracle, values in PUBLISHED.items()}
    published = [f"{theirs[oracle]:.2f}" if oracle in theirs else "" for oracle in oracles]
    difference = f"{theirs[DYNAMIC] - theirs['static']:+.2f}"
    table.add_row("paper, average of 19", *published, *(difference if o == "static" else "" for o in others))
    return table


def main() -> None:
    """Do the missing runs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/covington"))
    parser.add_argument("--oracles", nargs="+", choices=ORACLES, default=list(ORACLES))
    parser.add_argument("--seeds", type=positive, default=5, help="seeds 1 to N (default: 5)")
    parser.add_argument("--iterations", type=positive, default=15, help="as published (default: 15)")
    parser.add_argument("--skip-bad", action="store_true", help="leave out sentences that are not valid")
    parser.add_argument("--table", action="store_true", help="only print")
    options = parser.parse_args()
    options.oracles = [oracle for oracle in ORACLES if oracle in (*options.oracles, DYNAMIC)]
    options.output.mkdir(parents=True, exist_ok=True)
    read_results(options)  # fail early on results with other settings
    for folder in options.treebanks:
        for seed in range(1, options.seeds + 1):
            for oracle in options.oracles:
                path = result_path(folder, oracle, seed, options)
                if options.table or path.exists():
                    continue
                result = run(folder, oracle, seed, options)
                with atomic_output(path) as stream:
                    stream.write((json.dumps(result) + "\n").encode())
                values = (f"{100 * sum(result[metric]) / result['words']:.2f} {metric}" for metric in METRICS)
                print(f"{path}: {', '.join(values)}, {result['seconds']:.0f} s", flush=True)
    console = Console(width=170)
    for metric in METRICS:
        console.print(table_2(read_results(options), options.oracles, metric))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
