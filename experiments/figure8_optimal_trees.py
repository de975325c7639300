"""Figure 8 of Nederhof (2019): how many optimal projective trees there are, by sentence length.

    pip install "mh4[plots]"
    python experiments/figure8_optimal_trees.py grc_proiel-ud-train.conllu de_gsd-ud-train.conllu ... -o figure8

Writes figure8.json, figure8.png and figure8.svg: for each treebank the geometric mean, over the sentences of a length
(or of a range of lengths, ``--width``), of the number of projective trees that keep as many arcs of the gold tree as
possible. As in the paper, any number of words may be attached to the root; projective sentences count with one tree
(the paper does not say). The paper shows curves of roughly exponential growth, without numbers, for grc PROIEL, de GSD
and ja BCCWJ of UD 2.2.
"""

import argparse
import math
from collections import defaultdict
from pathlib import Path

from figures import new_figure, settings_of, write_figure, write_numbers
from scripting import positive, run_script

from mh4.data.conllu import read_conllu
from mh4.decoders.projectivization import count_optimal_trees


def mean_counts(path: str, width: int) -> list[dict[str, float]]:
    """One record per range of sentence lengths that occurs: its bounds, number of sentences and geometric mean."""
    logarithms = defaultdict(list)
    for sentence in read_conllu(path, trees="required"):
        _, count = count_optimal_trees(sentence.padded_heads)
        logarithms[(len(sentence) - 1) // width].append(math.log(count))
    return [
        {
            "shortest": at * width + 1,
            "longest": (at + 1) * width,
            "sentences": len(values),
            "geometric_mean": math.exp(math.fsum(values) / len(values)),
        }
        for at, values in sorted(logarithms.items())
    ]


def main() -> None:
    """Count trees, write and plot the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK")
    parser.add_argument("-o", "--output", type=Path, default=Path("figure8"), help="name of the files, without ending")
    parser.add_argument("--width", type=positive, default=1, help="lengths in one range (default: 1)")
    parser.add_argument(
        "--least", type=positive, default=5, help="sentences a range must have to be drawn (default: 5)"
    )
    options = parser.parse_args()
    results = {Path(path).stem: mean_counts(path, options.width) for path in options.treebanks}
    numbers = write_numbers(results, options.output, **settings_of(options))

    figure, axes = new_figure("sentence length (words)", "optimal projective trees (geometric mean)")
    for name, records in results.items():
        records = [record for record in records if record["sentences"] >= options.least]
        middles = [(record["shortest"] + record["longest"]) / 2 for record in records]
        axes.plot(middles, [record["geometric_mean"] for record in records], marker=".", linewidth=1, label=name)
    axes.legend()
    print(numbers, *write_figure(figure, options.output), sep="\n")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
