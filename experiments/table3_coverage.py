"""Table 3 of Gómez-Rodríguez, Shi and Lee (2018): coverage of the UD 2.0 training files, ours beside theirs.

    python experiments/table3_coverage.py hu-ud-train.conllu got-ud-train.conllu cu-ud-train.conllu el-ud-train.conllu

A file's name starts with the language code. Cells that differ from the published ones in a printed digit are marked.
"""

import argparse
import re
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scripting import run_script

from mh4.trees.coverage import Coverage, measure_coverage

COLUMNS = ("sent.", "words", "proj.", "MH4", "1EC", "proj. arcs", "MH4 arcs", "1EC arcs")
PUBLISHED = {
    "eu": "5396 72974 66.48 91.48 93.29 95.98 99.27 99.42",
    "ur": "4043 108690 76.97 95.89 95.77 98.89 99.83 99.81",
    "got": "3387 35024 78.42 97.25 97.58 97.04 99.73 99.75",
    "hu": "910 20166 79.01 98.35 97.69 98.51 99.92 99.89",
    "cu": "4123 37432 80.16 98.33 98.74 97.22 99.80 99.85",
    "da": "4383 80378 80.56 97.70 98.97 98.60 99.87 99.94",
    "el": "1662 41212 85.98 99.52 99.40 99.32 99.98 99.98",
    "hi": "13304 281057 86.16 98.38 98.95 99.26 99.92 99.94",
    "de": "14118 269626 87.07 99.19 99.27 99.15 99.95 99.96",
    "ro": "8043 185113 88.61 99.42 99.52 99.42 99.97 99.98",
}


def cells(coverage: Coverage) -> list[str]:
    """The cells of a row, as printed in the paper."""
    percents = [share(name) for share in (coverage.sentence_percent, coverage.arc_percent) for name in coverage.kept]
    return [str(coverage.sentences), str(coverage.words), *(f"{percent:.2f}" for percent in percents)]


def main() -> None:
    """Print two rows per treebank."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("treebanks", nargs="+", metavar="TREEBANK", help="CoNLL-U files with gold trees")
    table = Table(title="% of sentences inside the class, % of arcs the closest tree keeps", box=None, pad_edge=False)
    table.add_column("treebank", no_wrap=True)
    table.add_column("")
    for column in COLUMNS:
        table.add_column(column, justify="right", min_width=5)
    for path in parser.parse_args().treebanks:
        name = Path(path).stem
        ours = cells(measure_coverage(path))
        published = PUBLISHED.get(re.split(r"[-_]", name)[0])
        if published is None:
            table.add_row(name, "ours", *ours)
            continue
        theirs = published.split()
        marked = [cell if cell == other else f"{cell} *" for cell, other in zip(ours, theirs, strict=True)]
        table.add_row(name, "ours", *marked)
        table.add_row("", "paper", *theirs)
    Console().print(table)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
