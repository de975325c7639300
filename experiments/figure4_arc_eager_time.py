"""Figure 4 of Nederhof (2021): mean time of the exact calculation of the optimal arc-eager step, by k + m.

    pip install "mh4[plots]"
    python experiments/figure4_arc_eager_time.py hu_szeged-ud-train.conllu got_proiel-ud-train.conllu ... -o figure4

Writes figure4.json, figure4.png and figure4.svg: for every total length k + m of stack and remaining input, the mean
time (of the CPU, one thread) of the scores of all transitions, exact and in linear time. The other linear-time
calculations, without reduce-correct and for normalized parsing, are timed with projectivised trees; in normalized
parsing, one word of the remaining input is shifted first, so that most transitions apply. The configurations are
those that a parser trained on a treebank visits there (`visited_configurations.py`; some minutes each) or, with
``--stray SHARE``, come from walks of best steps with a share of arbitrary ones that still lead to a tree. The
paper shows a curve without numbers, measured in Java on a laptop (i7-7500U), with de GSD of UD 2.2.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from deterministic.training import Settings
from figures import mean_time, means_near_80, new_figure, settings_of, write_figure, write_numbers
from scripting import run_script
from straying_configurations import straying_configurations
from visited_configurations import visit

from mh4.data.conllu import read_conllu
from mh4.decoders.closest import closest_tree
from mh4.oracles.arc_eager import normalized, step_scores_batch
from mh4.transitions.arc_eager import LABELS

Scoring = Callable[[Sequence[np.ndarray], Sequence[np.ndarray], str], np.ndarray]


def _unnormalized(algorithm: str, reduce_correct: bool = True) -> Scoring:
    return lambda batch, golds, policy: step_scores_batch(*batch, golds, policy, algorithm, reduce_correct)


def _normalized(reduce_correct: bool) -> Scoring:
    return lambda batch, golds, policy: normalized.step_scores_batch(*batch, golds, "linear", reduce_correct)


CURVES = {  # name in the records: (scores, whether of normalized parsing, whether on projectivised trees, label)
    "exact": (_unnormalized("exact"), False, False, "exact"),
    "linear": (_unnormalized("linear"), False, False, "linear"),
    "linear_uncorrected": (_unnormalized("linear", False), False, True, "linear, without reduce-correct"),
    "linear_normalized": (_normalized(True), True, True, "linear, normalized"),
    "linear_normalized_uncorrected": (_normalized(False), True, True, "linear, normalized, without reduce-correct"),
}


def select(configurations: Sequence[np.ndarray], rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """The configurations in the given rows."""
    stacks, labels, offsets, fronts, sentences = configurations
    elements = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
    depths = np.diff(offsets)[rows]
    return stacks[elements], labels[elements], np.cumsum([0, *depths]), fronts[rows], sentences[rows]


def shifted(configurations: Sequence[np.ndarray], words: np.ndarray) -> tuple[np.ndarray, ...]:
    """Configurations of normalized parsing: the same with the next word, if there is one, on top and undecided."""
    stacks, labels, offsets, fronts, sentences = configurations
    rows = np.flatnonzero(fronts <= words[sentences])
    stacks = np.insert(stacks, offsets[rows + 1], fronts[rows])
    labels = np.insert(labels, offsets[rows + 1], LABELS.index("N"))
    more = np.isin(np.arange(len(fronts)), rows)
    return stacks, labels, offsets + np.cumsum([0, *more]), fronts + more, sentences


def mean_times(
    configurations: Sequence[np.ndarray],
    golds: Sequence[np.ndarray],
    policy: str,
    count: int = 100,
    seconds: float = 0.05,
) -> list[dict[str, float]]:
    """One record per k + m that occurs: number of configurations, and mean milliseconds of each of `CURVES`.

    Parameters
    ----------
    configurations
        stacks, labels, offsets, fronts and sentences, as `mh4.oracles.arc_eager.step_scores_batch` takes them.
    golds : sequence of int (n + 1,)
    policy : str
    count : int
        Most configurations to measure for each length.
    seconds : float
        How long to repeat the calculation for them.
    """
    _, _, offsets, fronts, sentences = configurations
    words = np.array([len(gold) - 1 for gold in golds])
    lengths = np.diff(offsets) + words[sentences] + 1 - fronts
    projective = [closest_tree(gold, "projective", single_root=False) for gold in golds]
    records = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        rows = rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int)]
        # Long batches keep the share of the fixed costs per batch small.
        *chosen, chosen_sentences = select(configurations, np.repeat(rows, 1 + 1000 // len(rows)))
        used, chosen_sentences = np.unique(chosen_sentences, return_inverse=True)
        batch = [*chosen, chosen_sentences]
        record = {"length": int(length), "configurations": int(np.count_nonzero(lengths == length))}
        for name, (scores, is_normalized, on_projective, _) in CURVES.items():
            trees = [(projective if on_projective else golds)[s] for s in used]
            own = shifted(batch, words[used]) if is_normalized else batch
            taken = mean_time(partial(scores, own, trees, policy), seconds)
            record[name] = 1000 * taken / len(chosen_sentences)
        records.append(record)
    return records


def joined(
    walks: Sequence[tuple[Sequence[np.ndarray], list[np.ndarray]]],
) -> tuple[tuple[np.ndarray, ...], list[np.ndarray]]:
    """The configurations and gold trees of several treebanks, concatenated."""
    golds = [gold for _, some in walks for gold in some]
    first_sentence = np.cumsum([0, *(len(some) for _, some in walks)])
    first_element = np.cumsum([0, *(len(configurations[0]) for configurations, _ in walks)])
    stacks, labels, _, fronts = (np.concatenate([c[part] for c, _ in walks]) for part in range(4))
    offsets = [c[2][:-1] + start for (c, _), start in zip(walks, first_element[:-1], strict=True)]
    sentences = [c[4] + start for (c, _), start in zip(walks, first_sentence[:-1], strict=True)]
    return (stacks, labels, np.concatenate([*offsets, first_element[-1:]]), fronts, np.concatenate(sentences)), golds


def main() -> None:
    """Collect configurations, measure, write and plot the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK")
    parser.add_argument("-o", "--output", type=Path, default=Path("figure4"), help="name of the files, without ending")
    parser.add_argument(
        "--policy", choices=("shift-before-reduce", "reduce-before-shift"), default="shift-before-reduce"
    )
    parser.add_argument("--stray", type=float, help="walk with such a share of arbitrary steps, train no parser")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    walks = []
    for path in options.treebanks:
        if options.stray is None:
            settings = Settings("arc-eager", options.policy, vector_size=0, seed=options.seed)
            walks.append(visit(path, settings))
        else:
            golds = [sentence.padded_heads for sentence in read_conllu(path, trees="required")]
            walks.append((straying_configurations(golds, options.policy, options.stray, options.seed), golds))
    records = mean_times(*joined(walks), options.policy)
    numbers = write_numbers(records, options.output, **settings_of(options))

    figure, axes = new_figure("k + m", "milliseconds for all transitions (mean)")
    lengths = [record["length"] for record in records]
    for name, (*_, label) in CURVES.items():
        axes.plot(lengths, [record[name] for record in records], marker=".", label=label)
    axes.legend()
    print(numbers, *write_figure(figure, options.output), sep="\n")
    means_near_80(records, CURVES)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
