"""Table 4 of Gómez-Rodríguez, Shi and Lee (2018): UAS on the UD 2.0 development sets, ours beside theirs.

    mh4 train hu-ud-train.conllu --dev hu-ud-dev.conllu --decoder mst --seed 1     (and so on)
    python experiments/table4_dev_uas.py models/*

Reads finished model folders whose names start with the language code, as `mh4 train` names them. The published numbers
are means and standard deviations over five seeds.
"""

import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mh4.model_folder import LOG, read_definition

DECODERS = ("mh3", "mst", "mh4-two", "mh4-hybrid", "1ec")
PUBLISHED = {
    "eu": "82.07±0.17 83.61±0.16 82.94±0.24 84.13±0.13 84.09±0.19",
    "ur": "86.89±0.18 86.78±0.13 86.84±0.26 87.06±0.24 87.11±0.11",
    "got": "83.72±0.19 84.74±0.28 83.85±0.19 84.59±0.38 84.77±0.27",
    "hu": "83.05±0.17 82.81±0.49 83.69±0.20 84.59±0.50 83.48±0.27",
    "cu": "86.70±0.30 88.02±0.25 87.57±0.14 88.09±0.28 88.27±0.32",
    "da": "85.09±0.16 84.68±0.36 85.45±0.43 85.77±0.39 85.77±0.16",
    "el": "87.82±0.24 87.27±0.22 87.77±0.20 87.83±0.36 87.95±0.23",
    "hi": "93.75±0.14 93.91±0.26 93.99±0.15 94.27±0.08 94.24±0.04",
    "de": "86.46±0.13 86.34±0.24 86.53±0.22 86.89±0.17 86.95±0.32",
    "ro": "89.34±0.27 88.79±0.43 89.25±0.15 89.53±0.20 89.52±0.25",
}


def published(language: str, decoder: str) -> tuple[float, float] | None:
    """Mean and standard deviation in the paper, None where it has no such cell."""
    if language not in PUBLISHED or decoder not in DECODERS:
        return None
    mean, deviation = PUBLISHED[language].split()[DECODERS.index(decoder)].split("±")
    return float(mean), float(deviation)


def main(folders: list[str]) -> None:
    """Print one row a treebank and decoder."""
    runs = defaultdict(list)
    for folder in map(Path, folders):
        reports = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
        best = [report for report in reports if report["best"]][-1]
        speed = statistics.median(report["words_per_second"] for report in reports)
        decoding = statistics.median(report["share"]["decode"] for report in reports)
        language = re.split(r"[-_]", folder.name)[0]
        config, _ = read_definition(folder)
        runs[language, config.decoder].append((best, reports[-1]["seconds"] / 60, speed, decoding))
    table = Table(title="best development UAS (model picked by LAS)", box=None)
    for column in ("treebank", "decoder", "seeds", "UAS", "LAS", "published UAS", "difference", "minutes", "words/s"):
        table.add_column(column, justify="left" if column in ("treebank", "decoder") else "right")
    table.add_column("decoding", justify="right")
    for (language, decoder), results in sorted(runs.items()):
        uas = statistics.mean(best["dev_uas"] for best, *_ in results)
        las = statistics.mean(best["dev_las"] for best, *_ in results)
        theirs = published(language, decoder)
        table.add_row(
            language,
            decoder,
            str(len(results)),
            f"{uas:.2f}",
            f"{las:.2f}",
            f"{theirs[0]:.2f} ± {theirs[1]:.2f}" if theirs else "",
            f"{uas - theirs[0]:+.2f} ({(uas - theirs[0]) / theirs[1]:+.1f} sd)" if theirs else "",
            f"{statistics.mean(minutes for _, minutes, *_ in results):.0f}",
            f"{statistics.median(speed for *_, speed, _ in results):.0f}",
            f"{statistics.median(decoding for *_, decoding in results):.1%}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
