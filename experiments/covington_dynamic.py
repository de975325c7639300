"""Table 2 of Gómez-Rodríguez and Fernández-González (2015): Covington's parser trained with static and dynamic oracles.

    python experiments/covington_dynamic.py --treebank hu-ud-train.conllu hu-ud-dev.conllu --treebank ... -o covington

Trains a parser on the first file of each pair, with every oracle and seed, and scores it on the second. Nothing is
chosen on the second file: the parser is that of the last epoch. Prints mean UAS and LAS (punctuation included) and
writes covington.json, from which a later call goes on where this one was stopped.

The paper does not say whether its static oracle reads the next word as soon as it can (``static``) or after all pairs
of words (``all-pairs``). Both are here, and p-values of the dynamic one against each: of a paired randomisation test
over sentences, on the number of right words in all runs.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import permutation_test

from mh4.evaluation import attachment_scores
from mh4.files import atomic_output
from mh4.perceptron.config import PerceptronConfig
from mh4.perceptron.training import fit
from mh4.training import read_gold
from mh4.treebank import Sentence

DYNAMIC = "dynamic"
ORACLES = ("static", "all-pairs", DYNAMIC)
METRICS = ("UAS", "LAS")
PUBLISHED = {"static": (82.72, 78.39), DYNAMIC: (83.52, 79.13)}  # averages over 19 treebanks of CoNLL-X and CoNLL-XI

Runs = dict[str, Any]  # "oracle seed" -> seconds and, for each sentence, how many words are right by either metric


def run(config: PerceptronConfig, train: list[Sentence], evaluation: list[Sentence]) -> dict[str, Any]:
    """Train a parser; count its right words, sentence by sentence."""
    start = time.perf_counter()
    parser = fit(config, train)
    seconds = time.perf_counter() - start
    right: dict[str, list[int]] = {metric: [] for metric in METRICS}
    for gold, predicted in zip(evaluation, parser.predict(evaluation), strict=True):
        scores = attachment_scores([gold.heads], [gold.relations], [predicted.heads], [predicted.relations])
        for metric, score in zip(METRICS, scores, strict=True):
            right[metric].append(round(score * len(gold) / 100))
    return {"seconds": round(seconds, 1), "words": [len(gold) for gold in evaluation], **right}


def of_oracle(runs: Runs, oracle: str, metric: str) -> np.ndarray:
    """Right words: int (seeds, sentences)."""
    return np.array([result[metric] for name, result in runs.items() if name.split()[0] == oracle])


def mean_score(runs: Runs, oracle: str, metric: str) -> float:
    """In percent."""
    words = sum(next(iter(runs.values()))["words"])
    return 100 * float(of_oracle(runs, oracle, metric).sum(axis=1).mean()) / words


def p_value(one: np.ndarray, other: np.ndarray) -> float:
    """Two-sided, that the seeds' right words differ by so much if the oracle is no matter; each (seeds, sentences)."""

    def difference(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:
        return (y - x).sum(axis=axis)

    samples = one.sum(axis=0), other.sum(axis=0)
    test = permutation_test(samples, difference, permutation_type="samples", vectorized=True, batch=500, rng=1)
    return float(test.pvalue)


def show(results: dict[str, Runs], oracles: tuple[str, ...], console: Console) -> None:
    """Print a row a treebank, averages, and the paper's."""
    for metric in METRICS:
        table = Table(title=f"{metric}, mean of the seeds", box=None)
        table.add_column("")
        for column in (*oracles, *(f"{DYNAMIC} − {oracle} (p)" for oracle in oracles if oracle != DYNAMIC)):
            table.add_column(column, justify="right")
        rows = []
        for name, runs in results.items():
            scores = [mean_score(runs, oracle, metric) for oracle in oracles]
            rows.append(scores)
            gains = []
            for oracle, score in zip(oracles, scores, strict=True):
                if oracle != DYNAMIC:
                    p = p_value(of_oracle(runs, oracle, metric), of_oracle(runs, DYNAMIC, metric))
                    gains.append(f"{scores[-1] - score:+.2f} ({p:.4f})")
            table.add_row(name, *(f"{score:.2f}" for score in scores), *gains)
        means = np.mean(rows, axis=0)
        differences = [f"{means[-1] - mean:+.2f}" for mean in means[:-1]]
        table.add_row("average", *(f"{mean:.2f}" for mean in means), *differences)
        theirs = {oracle: scores[METRICS.index(metric)] for oracle, scores in PUBLISHED.items()}
        published = [f"{theirs[oracle]:.2f}" if oracle in theirs else "" for oracle in oracles]
        gain = f"{theirs[DYNAMIC] - theirs['static']:+.2f}"
        table.add_row("paper, average", *published, *(gain if o == "static" else "" for o in oracles[:-1]))
        console.print(table)


def main() -> None:
    """Train what is missing, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--treebank", nargs=2, action="append", required=True, metavar=("TRAIN", "EVALUATION"))
    parser.add_argument("-o", "--output", type=Path, default=Path("covington"), help="name of the file, without ending")
    parser.add_argument("--oracles", nargs="+", choices=ORACLES, default=ORACLES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--skip-bad", action="store_true", help="leave out sentences that are not valid")
    options = parser.parse_args()
    oracles = tuple(oracle for oracle in ORACLES if oracle in (*options.oracles, DYNAMIC))
    console = Console()
    target = options.output.with_name(f"{options.output.name}.json")
    settings = {"iterations": options.iterations}
    results: dict[str, Runs] = {}
    if target.exists():
        stored = json.loads(target.read_text(encoding="utf-8"))
        if stored["settings"] != settings:
            parser.error(f"{target} has results with other settings: {stored['settings']}")
        results = stored["results"]
    for paths in options.treebank:
        train, evaluation = (read_gold(path, options.skip_bad) for path in paths)
        runs = results.setdefault(Path(paths[1]).stem, {})
        for seed in range(1, options.seeds + 1):
            for oracle in oracles:
                if f"{oracle} {seed}" in runs:
                    continue
                config = PerceptronConfig("covington", oracle, iterations=options.iterations, seed=seed)
                result = run(config, train, evaluation)
                runs[f"{oracle} {seed}"] = result
                scores = (f"{100 * sum(result[metric]) / sum(result['words']):.2f} {metric}" for metric in METRICS)
                console.print(f"{Path(paths[1]).stem} {oracle} {seed}: {', '.join(scores)}, {result['seconds']:.0f} s")
                with atomic_output(target) as stream:
                    stream.write(json.dumps({"settings": settings, "results": results}).encode())
    show({Path(paths[1]).stem: results[Path(paths[1]).stem] for paths in options.treebank}, oracles, console)


if __name__ == "__main__":
    main()
