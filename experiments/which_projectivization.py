"""Which optimal projectivisation (Nederhof 2019, section 8.1): one tree for good, or another one in every epoch?

    python experiments/which_projectivization.py UD/2.0/{hu,got} -o experiments/results/optimal-steps

An arc-standard perceptron is trained on optimal projectivised trees: those of `closest_tree` (``fixed``), which prefers
to lift; one drawn uniformly from all optimal ones, once (``once``); or in every epoch anew (``anew``). Dynamic oracle,
gold parts of speech, 15 epochs; the last parser is scored, on the test set if there is one. Each run (treebank, way,
seed) leaves a JSON file, and runs that have one are not repeated. p-values come from a paired randomisation test over
sentences, on the number of correct words in all seeds.
"""

from __future__ import annotations

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from covington_dynamic import METRICS, Runs, p_value, right_words, scores, with_shared_seeds
from grid_results import write_result
from kept_results import Data, describe_data, part_path, read_kept, scored_part
from provenance import made_with
from scripting import positive, run_script

from mh4.decoders import get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import arc_matrix, is_projective
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import PerceptronTrainer
from mh4.training.treebanks import read_gold

WAYS = ("fixed", "once", "anew")
WEIGHT = 30.0  # of a gold arc: trees that lose one more are e³⁰ times less likely, and rejected if drawn


def optimal_trees(heads: np.ndarray, count: int, single_root: bool, rng: np.random.Generator) -> list[np.ndarray]:
    """Projective trees that keep most arcs of a tree, drawn uniformly and independently.

    Eisner's algorithm draws trees with probabilities that depend only on the number of arcs they keep; trees that do
    not keep the most are rejected.

    Parameters
    ----------
    heads : int (n + 1,)
    count : int
    single_root : bool
        Whether exactly one word is attached to the root, or at least one.
    rng : numpy.random.Generator
    """
    best = closest_tree(heads, "projective", single_root)
    if np.array_equal(best, heads):
        return [best] * count
    most = np.count_nonzero(best[1:] == heads[1:])
    forest = get_decoder("eisner", single_root=single_root).forest(WEIGHT * arc_matrix(heads)[None])
    found: list[np.ndarray] = []
    while len(found) < count:
        drawn = (derivation.heads for derivation in forest.sample(count - len(found), rng))
        found += [tree for tree in drawn if np.count_nonzero(tree[1:] == heads[1:]) == most]
    return found


def run(folder: Path, own: dict[str, Any]) -> dict[str, Any]:
    """Train a parser; count its correct words in each sentence."""
    train = read_gold(part_path(folder, "train"))
    evaluation = read_gold(part_path(folder, own["scored"]))
    config = PerceptronConfig("arc-standard", "dynamic", iterations=own["iterations"], seed=own["seed"])
    trainer = PerceptronTrainer(config, train)
    rng = np.random.default_rng(own["seed"])
    start = time.process_time()
    draws = {"fixed": 0, "once": 1, "anew": config.iterations}[own["way"]]
    trees = [optimal_trees(s.padded_heads, draws, len(s.roots) == 1, rng) for s in train] if draws else []
    for epoch in range(config.iterations):
        if epoch < draws:
            trainer.learn_from(train, [of_sentence[epoch] for of_sentence in trees])
        trainer.train_epoch()
    right: dict[str, list[int]] = {metric: [] for metric in METRICS}
    for gold, predicted in zip(evaluation, trainer.parser().predict(evaluation), strict=True):
        head_right = gold.heads == predicted.heads
        right["UAS"].append(int(head_right.sum()))
        right["LAS"].append(int((head_right & (np.array(gold.relations) == np.array(predicted.relations))).sum()))
    sizes = {
        "words": sum(map(len, evaluation)),
        "not_projective": sum(not is_projective(s.padded_heads) for s in train),
        "seconds": round(time.process_time() - start, 1),
    }
    return own | sizes | right | {"data": data_of(folder)} | made_with("cpu")


def data_of(folder: Path) -> Data:
    """What a parser is trained and scored on."""
    return describe_data(folder, "train", *scored_part(folder).values())


def show(name: str, runs: Runs) -> None:
    """One line per way and metric: the mean, and the gain over the fixed trees with its p-value."""
    for metric, way in product(METRICS, WAYS):
        if runs[way]:
            values = scores(runs, way, metric)
            line = f"{name} {metric} {way}: {values.mean():.2f} ± {values.std(ddof=1) if len(values) > 1 else 0:.2f}"
            shared = with_shared_seeds(runs, WAYS[0], way)
            if way != WAYS[0] and shared[way]:
                one, other = (right_words(shared, each, metric) for each in (WAYS[0], way))
                gain = scores(shared, way, metric).mean() - scores(shared, WAYS[0], metric).mean()
                line += f" ({gain:+.2f}, p = {p_value(one, other):.3f})"
            print(f"{line}, {len(values)} seeds")


def main() -> None:
    """Do the missing runs and print the means."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/which-projectivization"))
    parser.add_argument("--seeds", type=positive, default=3, help="seeds 1 to N (default: 3)")
    parser.add_argument("--iterations", type=positive, default=15)
    parser.add_argument("--table", action="store_true", help="only print")
    options = parser.parse_args()
    for folder in options.treebanks:
        name = folder.resolve().name
        runs: Runs = {way: [] for way in WAYS}
        for seed, way in product(range(1, options.seeds + 1), WAYS):
            own = {"way": way, "seed": seed, "iterations": options.iterations} | scored_part(folder)
            path = options.output / f"projectivization-{name}-{way}-seed{seed}.json"
            result = read_kept(path, own, data_of(folder))
            if result is None and not options.table:
                result = run(folder, own)
                write_result(path, result)
                print(f"{path}: {result['seconds']:.0f} s", flush=True)
            if result is not None:
                runs[way].append(result)
        show(name, runs)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
