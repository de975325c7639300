"""Figures 9 and 10 of Nederhof (2019): mean time of the optimal shift-reduce step, and critical words, by k + m.

    pip install "mh4[plots]"
    python experiments/figure9_step_time.py de-ud-train.conllu -o figures

Writes figure9.json, .png, .svg and figure10.png, .svg into a folder. For every total length k + m of stack and
remaining input: the mean time (of the CPU, one thread) of the scores of all three transitions, with the algorithms of
sections 4, 5 and 6 for projectivised trees and that of section 4 for the trees as they are; and the mean of k + m',
where only critical words of the remaining input count. As in the paper, the scores of all algorithms for projectivised
trees are compared on the way.

The configurations are those that a parser trained on a treebank visits there (`visited_configurations.py`; some minutes
each) or, with ``--stray SHARE``, come from walks of best steps with a share of arbitrary ones. The paper
(Java, a laptop with an i7-7500U, de GSD of UD 2.2) prints no table; it says that at k + m = 80 the algorithm of section
4, on critical words, takes about 65 times as long as that of section 6. How much the two differ depends on how many
words are critical, so on how far the configurations are from the gold tree.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from deterministic.training import Settings
from figures import mean_time, means_near_80, new_figure, settings_of, write_figure, write_numbers
from scripting import run_script
from visited_configurations import visit

from mh4.data.conllu import read_conllu
from mh4.decoders.closest import closest_tree
from mh4.oracles.arc_standard import flat_configurations, optimal_step, step_scores_batch
from mh4.oracles.arc_standard.projective import components
from mh4.transitions.arc_standard import POLICIES, ArcStandard, Configuration

Visit = tuple[Configuration, np.ndarray]  # with the gold heads of its sentence

CURVES = {  # name in the records: (algorithm, whether on projectivised trees, label)
    "cubic_unprojectivised": ("cubic", False, "section 4 (unproj)"),
    "cubic_projectivised": ("critical-cubic", True, "section 4 (proj)"),
    "quadratic": ("quadratic", True, "section 5"),
    "linear": ("linear", True, "section 6"),
}


def straying_walks(golds: Iterable[np.ndarray], policy: str, share: float, seed: int = 0) -> Iterator[Visit]:
    """Configurations of one computation per tree, without the final one, each with its tree.

    Each step is a best one for the projectivised tree or, with probability ``share``, any that applies.
    """
    system, generator = ArcStandard(), random.Random(seed)
    for gold in golds:
        target = closest_tree(gold, "projective", single_root=False)
        configuration = system.initial(len(gold) - 1)
        while not system.is_final(configuration):
            yield configuration, gold
            stray = generator.random() < share
            steps = system.legal(configuration) if stray else optimal_step(configuration, target, policy).best
            configuration = system.apply(configuration, generator.choice(steps))


def trained_visits(path: str, settings: Settings) -> Iterator[Visit]:
    """Configurations that a parser trained on a treebank visits there, each with its gold tree."""
    (stacks, _, offsets, fronts, sentences), golds = visit(path, settings)
    for row, (front, sentence) in enumerate(zip(fronts.tolist(), sentences.tolist(), strict=True)):
        stack = tuple(stacks[offsets[row] : offsets[row + 1]].tolist())
        yield Configuration(stack, front, len(golds[sentence]) - 1), golds[sentence]


def length(configuration: Configuration) -> int:
    """k + m for the stack a_0 … a_k and m words of remaining input."""
    return len(configuration.stack) + configuration.n - configuration.front


def measure(
    visits: Iterable[Visit], policy: str, count: int = 100, seconds: float = 0.1, seed: int = 0
) -> list[dict[str, float]]:
    """One record per k + m that occurs: configurations, mean k + m', and mean milliseconds of each of `CURVES`.

    Parameters
    ----------
    visits : iterable of (Configuration, int (n + 1,))
        Configurations and gold heads, projective or not.
    policy : str
    count : int
        Most configurations to measure for each length, drawn at random.
    seconds : float
        How long to repeat the calculation for them.
    """
    by_length = defaultdict(list)
    for configuration, gold in visits:
        by_length[length(configuration)].append((configuration, gold))
    generator = random.Random(seed)
    records = []
    for total, found in sorted(by_length.items()):
        chosen = generator.sample(found, min(count, len(found)))
        # Long batches keep the share of the fixed costs per batch small.
        times = 1 + 1000 // len(chosen)
        batch = flat_configurations([(configuration, row) for row, (configuration, _) in enumerate(chosen)] * times)
        golds = [gold for _, gold in chosen]
        trees = {False: golds, True: [closest_tree(gold, "projective", single_root=False) for gold in golds]}
        critical = 0
        for (configuration, _), tree in zip(chosen, trees[True], strict=True):
            _, _, words = components(np.array(configuration.stack, np.int32), configuration.front, tree)
            critical += len(configuration.stack) - 1 + np.count_nonzero(words[0])
        record = {"length": total, "configurations": len(found), "critical": critical / len(chosen)}
        scores = {}
        for name, (algorithm, projective, _) in CURVES.items():
            arguments = (*batch, trees[projective], policy, algorithm)
            scores[name] = step_scores_batch(*arguments)
            record[name] = 1000 * mean_time(partial(step_scores_batch, *arguments), seconds) / times / len(chosen)
        for name in ("quadratic", "cubic_projectivised"):
            if not np.array_equal(scores[name], scores["linear"]):
                raise AssertionError(f"{name} and linear scores differ at k + m = {total}")
        records.append(record)
    return records


def draw(records: list[dict[str, float]], folder: Path) -> None:
    """Plot Figures 9 and 10."""
    lengths = [record["length"] for record in records]
    figure, axes = new_figure("k + m", "milliseconds for all three transitions (mean)")
    for name, (_, _, label) in CURVES.items():
        axes.plot(lengths, [record[name] for record in records], marker=".", label=label)
    axes.legend()
    other, critical = new_figure("k + m", "k + m' (mean)", logarithmic=False)
    critical.plot(lengths, [record["critical"] for record in records], marker=".")
    write_figure(figure, folder / "figure9")
    write_figure(other, folder / "figure10")


def main() -> None:
    """Collect configurations, measure, write and plot the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder of the files (default: this one)")
    parser.add_argument("--policy", choices=POLICIES, default=POLICIES[0])
    parser.add_argument("--stray", type=float, help="walk with such a share of arbitrary steps, train no parser")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    visits: list[Visit] = []
    for path in options.treebanks:
        if options.stray is None:
            visits += trained_visits(path, Settings("shift-reduce", options.policy, seed=options.seed))
        else:
            golds = [sentence.padded_heads for sentence in read_conllu(path, trees="required")]
            visits += straying_walks(golds, options.policy, options.stray, options.seed)
    records = measure(visits, options.policy)
    options.output.mkdir(parents=True, exist_ok=True)
    write_numbers(records, options.output / "figure9", **settings_of(options))
    draw(records, options.output)
    if means := means_near_80(records, CURVES):
        for name in ("cubic_projectivised", "cubic_unprojectivised"):
            print(f"{CURVES[name][2]} takes {means[name] / means['linear']:.0f} times as long as section 6")
        print("the paper says about 65 times for section 4 (proj)")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
