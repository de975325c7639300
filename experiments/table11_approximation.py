"""Section 6.2 and Table 11 of Nederhof (2021): what the linear-time approximation gets wrong, ours beside the paper's.

    python experiments/table11_approximation.py hu_szeged-ud-train.conllu got_proiel-ud-train.conllu ... -o table11

Prints and writes to table11.json, for both policies: the share of configurations where some score differs between the
exact calculation and the approximation, the share where the sets of best transitions differ, the commonest confusions,
and how often the approximate set is contained in the true one. The configurations are those that a parser trained on a
treebank visits there (`visited_configurations.py`; some minutes each) or, with ``--stray SHARE``, come from walks of
best steps with a share of arbitrary ones that still lead to a tree. The paper has de GSD of UD 2.2.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from deterministic.training import Settings
from figures import write_numbers
from rich.console import Console
from rich.table import Table
from scripting import run_script
from straying_configurations import straying_configurations
from visited_configurations import visit

from mh4.data.conllu import read_conllu
from mh4.decoders.trees import is_projective
from mh4.oracles.arc_eager import step_scores_batch
from mh4.oracles.optimal_step import best_transitions

# Abbreviations of transitions: in the order of our scores, and in the order of the paper.
ABBREVIATIONS = ("SH", "LA", "RA", "RE")
WRITTEN = ("SH", "RA", "LA", "RE")

# Percentages: of all configurations, those where a score differs and those where the best transitions differ; of the
# latter, those whose approximate set is contained in the true one, and the commonest confusions (true, approximate).
PUBLISHED: dict[str, dict[str, Any]] = {
    "shift-before-reduce": {
        "scores differ": 8.0,
        "best differ": 0.4,
        "contained": 89.0,
        "confusions": {
            ("SH RA", "SH"): 29.4,
            ("SH LA", "SH"): 20.5,
            ("SH RA RE", "SH"): 10.8,
            ("SH RA RE", "RE"): 7.5,
            ("SH RA LA RE", "SH LA"): 6.0,
            ("SH RA LA RE", "LA RE"): 4.3,
            ("LA RE", "SH RA LA RE"): 3.2,
        },
    },
    "reduce-before-shift": {
        "scores differ": 8.1,
        "best differ": 0.5,
        "contained": 87.8,
        "confusions": {
            ("SH RA", "SH"): 31.4,
            ("SH LA RE", "SH"): 17.9,
            ("RA RE", "RE"): 16.2,
            ("RA LA RE", "LA RE"): 6.6,
            ("SH RA LA RE", "SH"): 4.0,
            ("LA RE", "SH RA LA RE"): 3.0,
            ("RE", "SH RA RE"): 2.9,
        },
    },
}


def set_name(best: np.ndarray) -> str:
    """The abbreviations of a set of transitions, bool (4,), in the paper's order."""
    return " ".join(name for name in WRITTEN if best[ABBREVIATIONS.index(name)])


def compare(configurations: Sequence[np.ndarray], golds: Sequence[np.ndarray], policy: str) -> dict[str, Any]:
    """Compare the approximation with the exact calculation.

    Parameters
    ----------
    configurations
        stacks, labels, offsets, fronts and sentences, as `mh4.oracles.arc_eager.step_scores_batch` takes them.
    golds : sequence of int (n + 1,)
    policy : str

    Returns
    -------
    dict
        The entries of `PUBLISHED`, with all confusions, the commonest first, and the number of configurations.
    """
    exact, linear = (step_scores_batch(*configurations, golds, policy, algorithm) for algorithm in ("exact", "linear"))
    true, approximate = best_transitions(exact), best_transitions(linear)
    wrong = np.flatnonzero((true != approximate).any(axis=1))
    contained = (approximate[wrong] <= true[wrong]).all(axis=1)
    confusions = Counter((set_name(true[row]), set_name(approximate[row])) for row in wrong)
    return {
        "configurations": len(exact),
        "scores differ": 100 * float((exact != linear).any(axis=1).mean()),
        "best differ": 100 * len(wrong) / len(exact),
        "contained": 100 * float(contained.mean()) if len(wrong) else None,
        "confusions": {pair: 100 * count / len(wrong) for pair, count in confusions.most_common()},
    }


def percent(value: float | None) -> str:
    """A percentage with one decimal, as in the paper."""
    return "–" if value is None else f"{value:.1f}"


def show(results: dict[str, dict[str, dict[str, Any]]], console: Console) -> None:
    """Print our numbers for each treebank beside the paper's."""
    for policy, published in PUBLISHED.items():
        table = Table(title=f"{policy} (%)", box=None)
        table.add_column("")
        for name in results:
            table.add_column(name, justify="right")
        table.add_column("paper, de GSD", justify="right")
        columns = [results[name][policy] for name in results]
        for key in ("scores differ", "best differ", "contained"):
            table.add_row(key, *(percent(column[key]) for column in columns), percent(published[key]))
        # The paper's seven confusions, then our common ones.
        pairs = dict.fromkeys(published["confusions"])
        for column in columns:
            pairs |= dict.fromkeys(list(column["confusions"])[:7])
        for pair in pairs:
            true, approximate = ("{" + name.replace(" ", ", ") + "}" for name in pair)
            ours = [percent(column["confusions"].get(pair)) for column in columns]
            table.add_row(f"{true} as {approximate}", *ours, percent(published["confusions"].get(pair)))
        console.print(table)


def main() -> None:
    """Collect configurations, compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK")
    parser.add_argument("-o", "--output", type=Path, default=Path("table11"), help="name of the file, without ending")
    parser.add_argument("--stray", type=float, help="walk with such a share of arbitrary steps, train no parser")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    console = Console()
    results: dict[str, dict[str, dict[str, Any]]] = {}
    for path in options.treebanks:
        golds = [sentence.padded_heads for sentence in read_conllu(path, trees="required")]
        share = 100 - 100 * sum(map(is_projective, golds)) / len(golds)
        results[Path(path).stem] = {}
        for policy in PUBLISHED:
            if options.stray is None:
                configurations, golds = visit(path, Settings("arc-eager", policy, vector_size=0, seed=options.seed))
            else:
                configurations = straying_configurations(golds, policy, options.stray, options.seed)
            results[Path(path).stem][policy] = compare(configurations, golds, policy)
        counts = ", ".join(str(result["configurations"]) for result in results[Path(path).stem].values())
        console.print(f"{Path(path).stem}: {share:.1f} % of the trees not projective; {counts} configurations")
    show(results, console)
    written = {
        name: {
            policy: result | {"confusions": {" / ".join(pair): value for pair, value in result["confusions"].items()}}
            for policy, result in policies.items()
        }
        for name, policies in results.items()
    }
    console.print(str(write_numbers(written, options.output, seed=options.seed, stray=options.stray)))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
