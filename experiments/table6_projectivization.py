"""Table 6 of Nederhof (2019): optimal and pseudo-projectivisation of UD 2.2 training files, ours beside the paper's.

    python experiments/table6_projectivization.py grc_proiel-ud-train.conllu de_gsd-ud-train.conllu ... -o table6.json

The accuracy is the share of arcs kept by a projective tree: an optimal one, and the one that Nivre and Nilsson (2005)
make by lifting. Files are recognised by their names in UD; cells that differ from the published ones in a printed digit
are marked. The paper used the pseudo-projectivisation of MaltParser 1.9.0, which may choose differently among arcs of
the same length. The paper gives a mean time of 0.342 ms per tree over all UD 2.2 training sets, in Java on a laptop;
our time is for the optimal trees on one thread, without reading.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from grid_results import write_result
from provenance import made_today
from rich.console import Console
from rich.table import Table
from scripting import run_script

from mh4.data.conllu import read_conllu
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import checked_tree, is_projective

PUBLISHED = {  # pseudo-projectivisation, optimal projectivisation
    "grc_proiel-ud-train": ("91.41", "92.50"),
    "de_gsd-ud-train": ("98.89", "98.97"),
    "ja_bccwj-ud-train": ("99.99", "99.99"),
}
COLUMNS = ("sent.", "words", "non-proj. sent. %", "optimal", "paper", "pseudo", "paper", "ms per tree")


def dominates(heads: np.ndarray, above: int, word: int) -> bool:
    """Whether ``word`` is ``above`` or one of its descendants."""
    while word > 0 and word != above:
        word = heads[word]
    return word == above


def lifted(heads: np.ndarray) -> np.ndarray:
    """Pseudo-projectivisation (Nivre and Nilsson 2005): lift the shortest non-projective arc until there is none.

    An arc h → d is non-projective if a word between h and d is not a descendant of h; lifting it makes the head of h
    the head of d. Of several shortest arcs, the leftmost is lifted.

    Parameters
    ----------
    heads : int (n + 1,)
        ValueError unless they are a tree.
    """
    heads = np.array(checked_tree(heads))
    while not is_projective(heads):
        crossing = []
        for word, head in enumerate(heads.tolist()):
            left, right = sorted((head, word))
            if not all(dominates(heads, head, between) for between in range(left + 1, right)):
                crossing.append((right - left, left, word))
        _, _, word = min(crossing)
        heads[word] = heads[heads[word]]
    return heads


def measure(path: str) -> dict[str, Any]:
    """Measure one treebank: sizes, arcs kept by optimal and by lifted trees, and the time for optimal ones."""
    trees = [sentence.padded_heads for sentence in read_conllu(path, trees="required")]
    start = time.perf_counter()
    closest = [closest_tree(heads, "projective", single_root=False) for heads in trees]
    milliseconds = (time.perf_counter() - start) / len(trees) * 1e3
    kept = [
        sum(int(np.count_nonzero((ours == heads)[1:])) for ours, heads in zip(found, trees, strict=True))
        for found in (closest, map(lifted, trees))
    ]
    return {
        "sentences": len(trees),
        "words": sum(len(heads) - 1 for heads in trees),
        "not projective": sum(not is_projective(heads) for heads in trees),
        "kept": {"optimal": kept[0], "pseudo": kept[1]},
        "ms per tree": milliseconds,
    }


def cells(name: str, found: dict[str, Any]) -> list[str]:
    """The cells of a row."""
    row = [str(found["sentences"]), str(found["words"]), f"{100 * found['not projective'] / found['sentences']:.2f}"]
    pseudo, optimal = PUBLISHED.get(name, ("", ""))
    for kept, published in ((found["kept"]["optimal"], optimal), (found["kept"]["pseudo"], pseudo)):
        accuracy = f"{100 * kept / found['words']:.2f}"
        row += [accuracy if published in ("", accuracy) else f"{accuracy} *", published]
    return [name, *row, f"{found['ms per tree']:.3f}"]


def main() -> None:
    """Print one row per treebank, and write the numbers if ``-o`` is given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK", help="CoNLL-U files with gold trees")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the numbers")
    options = parser.parse_args()
    table = Table(title="% of arcs that projectivisation keeps", box=None, pad_edge=False)
    table.add_column("treebank", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    closest_tree(np.array([-1, 3, 0, 2]), "projective", single_root=False)  # compile
    found = {Path(path).stem: measure(path) for path in options.treebanks}
    for name, numbers in found.items():
        table.add_row(*cells(name, numbers))
    Console().print(table)
    if options.output:
        write_result(options.output, made_today() | {"treebanks": found})


if __name__ == "__main__":
    raise SystemExit(run_script(main))
