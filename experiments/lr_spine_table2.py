"""Table 2 and the computational analysis of Sartorio, Satta and Nivre (2013): LR-spine parsing and what it is made of.

    python experiments/lr_spine_table2.py UD/2.0/{hu,el,cu} -o experiments/results/greedy

Every folder holds one ``*-train.conllu``, one ``*-dev.conllu`` and perhaps one ``*-test.conllu``, which is then scored
instead of dev. Each run (treebank, parser, seed) leaves a JSON file in the output folder, and runs that have one are
not repeated; give ``--table`` to print without running.

The first five rows are the paper's: three systems and their oracles. *arc-standard + easy-first* is trained with all
correct transitions and follows the best-scored one; *arc-standard + spine* is LR-spine parsing trained to build every
arc as soon as possible, *this work* LR-spine parsing trained with all correct transitions. None explores wrong
predictions.

Three more rows are not in the paper: *this work* with exploration, which the paper leaves to future work; *this work*
without the templates of s3, whose definition is our interpretation; and arc-eager parsing with the merged templates,
where it has their tokens, instead of those of Zhang and Nivre (2011).

As in the paper: labelled parsers, the iteration that is best on dev (here by LAS), no punctuation in UAS, LAS and UEM
(exactly right sentences); all parsers attach the root at the end. Not as in the paper: treebanks of Universal
Dependencies, all of their parts projectivised, with gold parts of speech, instead of the Penn Treebank, whose files can
be given as well once they are CoNLL-U.

The analysis counts gamma, the number of attachments to choose from, in each decision of the trained LR-spine parser;
the paper has 2.98 (variance 2.15) on training sentences and 2.95 (1.96) on dev, 22 at most, growing with the length of
the sentence up to 40 words. On training sentences, it also counts the decisions with two correct transitions (42 % in
the paper). Slow-downs are for parsing sentences into trees, features included: in the paper, 2.8 against arc-eager and
2.2 against arc-standard.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
from candidate_counts import count_attachments, share_of_ambiguous
from kept_results import Data, describe_data, part_path, read_kept, scored_part
from provenance import made_with
from rich.console import Console
from rich.table import Table
from scripting import positive, run_script

from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.decoders.closest import closest_tree
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.perceptron.parser import PerceptronParser
from mh4.parsers.systems import GREEDY_SYSTEMS
from mh4.parsers.template_sets import MERGED, renamed, select
from mh4.training.perceptron import PerceptronTrainer, fit
from mh4.training.treebanks import read_gold
from mh4.transitions.arrays import arc_eager

OURS = "this work"


class Row(NamedTuple):
    """A parser: system and oracle, published UAS, LAS and UEM, and differences from the paper's parsers."""

    system: str
    oracle: str
    published: tuple[float, float, float] | None = None
    exploration: float = 0.0
    templates: tuple[str, ...] = ()  # empty: the templates of the system


_EAGER_NAMES = {"s3": "s1", "s2": "s0", "s1": "n0", "q1": "n1", "q2": "n2", "gp": "s0h", "gg": "s0h2"}
ROWS = {
    "arc-standard": Row("arc-standard", "static", (90.02, 87.69, 38.33)),
    "arc-eager": Row("arc-eager", "static", (90.18, 87.83, 40.02)),
    OURS: Row("lr-spine", "dynamic", (91.33, 89.16, 42.38)),
    "arc-standard + easy-first": Row("arc-standard", "dynamic", (90.49, 88.22, 39.61)),
    "arc-standard + spine": Row("lr-spine", "static", (90.44, 88.23, 40.27)),
    f"{OURS} + exploration": Row("lr-spine", "dynamic", exploration=0.9),
    f"{OURS} without s3": Row(
        "lr-spine", "dynamic", templates=select(MERGED, [t for t in GREEDY_SYSTEMS["lr-spine"].tokens if t != "s3"])
    ),
    "arc-eager + merged templates": Row(
        "arc-eager", "static", templates=select(renamed(MERGED, _EAGER_NAMES), arc_eager.TOKENS)
    ),
}
METRICS = ("uas", "las", "uem")
PUNCTUATION = "PUNCT"
BINS = (10, 20, 30, 40, 1000)  # longest sentence in each


def read_part(folder: Path, part: str) -> list[Sentence]:
    """The sentences of ``train``, ``dev`` or ``test``, projectivised."""
    return [
        sentence.replace(heads=closest_tree(sentence.padded_heads, "projective", len(sentence.roots) == 1)[1:])
        for sentence in read_gold(part_path(folder, part))
    ]


def scores(parser: PerceptronParser, sentences: Sequence[Sentence]) -> dict[str, float]:
    """UAS, LAS and UEM in percent, without punctuation."""
    words = heads_right = both_right = exact = 0
    for sentence, prediction in zip(sentences, parser.predict(sentences), strict=True):
        counted = np.array(sentence.upos) != PUNCTUATION
        head_right = sentence.heads == prediction.heads
        relation_right = np.array(sentence.relations) == np.array(prediction.relations)
        words += int(counted.sum())
        heads_right += int((head_right & counted).sum())
        both_right += int((head_right & relation_right & counted).sum())
        exact += bool(head_right[counted].all())
    values = heads_right / words, both_right / words, exact / len(sentences)
    return {name: 100.0 * value for name, value in zip(METRICS, values, strict=True)}


def training_speed(config: PerceptronConfig, sentences: Sequence[Sentence]) -> float:
    """Words per second of CPU time in the second epoch, which runs in its own thread."""
    trainer = PerceptronTrainer(config, sentences)
    trainer.train_epoch()
    began = time.process_time()
    trainer.train_epoch()
    return sum(map(len, sentences)) / (time.process_time() - began)


def parsing_speed(parser: PerceptronParser, sentences: Sequence[Sentence], times: int = 5) -> float:
    """Words per second of CPU time of the parsing thread, the best of several passes."""
    seconds = []
    for _ in range(times + 1):  # the first one compiles and fills caches
        began = time.thread_time()
        parser.predict(sentences)
        seconds.append(time.thread_time() - began)
    return sum(map(len, sentences)) / min(seconds[1:])


def gamma(parser: PerceptronParser, sentences: Sequence[Sentence]) -> dict:
    """Mean, variance and maximum of gamma, and its maximum for each sentence length."""
    lengths, counts = count_attachments(parser, sentences)
    worst = {int(length): int(counts[lengths == length].max()) for length in np.unique(lengths)}
    return {
        "decisions": len(counts),
        "mean": float(counts.mean()),
        "variance": float(counts.var()),
        "max": int(counts.max()),
        "worst_by_length": worst,
    }


@contextmanager
def using(row: Row) -> Iterator[None]:
    """Context in which the system of a row has the templates of the row."""
    own = GREEDY_SYSTEMS[row.system]
    GREEDY_SYSTEMS[row.system] = replace(own, templates=row.templates or own.templates)
    try:
        yield
    finally:
        GREEDY_SYSTEMS[row.system] = own


def run(folder: Path, name: str, options: argparse.Namespace, seed: int) -> dict:
    """Train and measure one parser."""
    row = ROWS[name]
    with using(row):
        return measure(folder, name, row, options, seed)


def measure(folder: Path, name: str, row: Row, options: argparse.Namespace, seed: int) -> dict:
    """Train and measure a parser with the present templates of its system."""
    train, dev = read_part(folder, "train"), read_part(folder, "dev")
    test = read_part(folder, scored_part(folder)["scored"])
    config = PerceptronConfig(
        row.system,
        row.oracle,
        iterations=options.iterations,
        seed=seed,
        exploration=row.exploration,
        tag_column=options.tags,
    )
    reports: list[dict] = []
    parser = fit(config, train, dev, on_epoch=lambda report, _: reports.append(report))
    result = settings(folder, name, options, seed) | scores(parser, test)
    result |= {
        "iteration": max(report["epoch"] for report in reports if report["best"]),
        "training_words_per_second": training_speed(config, train),
        "parsing_words_per_second": parsing_speed(parser, dev),
    }
    if row.system == "lr-spine":
        result |= {"gamma_train": gamma(parser, train), "gamma_dev": gamma(parser, dev)}
        result |= {"two_correct": share_of_ambiguous(parser, train)}
    return result | {"data": data_of(folder)} | made_with("cpu")


def data_of(folder: Path) -> Data:
    """What a parser is trained, chosen and scored on."""
    return describe_data(folder, "train", "dev", *scored_part(folder).values())


def settings(folder: Path, row: str, options: argparse.Namespace, seed: int) -> dict:
    """The settings that a result depends on, apart from the treebank's sentences."""
    given = {"parser": row, "iterations": options.iterations, "tags": options.tags, "seed": seed}
    return given | scored_part(folder)


def result_path(folder: Path, row: str, options: argparse.Namespace, seed: int) -> Path:
    """The file for the result of one run."""
    return options.output / f"lr-spine-{folder.resolve().name}-{row.replace(' ', '')}-seed{seed}.json"


def read_results(options: argparse.Namespace) -> dict[str, dict[str, list[dict]]]:
    """All existing results, by treebank and row."""
    results: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for folder in options.treebanks:
        for row in ROWS:
            for seed in range(1, options.seeds + 1):
                path = result_path(folder, row, options, seed)
                result = read_kept(path, settings(folder, row, options, seed), data_of(folder))
                if result is not None:
                    results[folder.resolve().name][row].append(result)
    return results


def table_2(results: dict[str, dict[str, list[dict]]]) -> Table:
    """Means over seeds for each treebank, the mean over treebanks with results in all rows, and the paper's numbers.

    Below them, the gains of *this work* over the other parsers.
    """
    table = Table(title="UAS, LAS, UEM without punctuation", box=None)
    table.add_column("parser")
    run_rows = {row for rows in results.values() for row in rows}
    complete = [name for name, rows in results.items() if len(rows) == len(run_rows)]
    for name in (*results, *(["mean"] if complete else []), "published (PTB)"):
        table.add_column(name, justify="right")
    lines: dict[str, list[np.ndarray | None]] = {}
    for row, given in ROWS.items():
        values = {
            name: np.array([mean(result[metric] for result in rows[row]) for metric in METRICS])
            if row in rows
            else None
            for name, rows in results.items()
        }
        average = np.mean([values[name] for name in complete], axis=0) if complete and row in run_rows else None
        published = None if given.published is None else np.array(given.published)
        lines[row] = [*values.values(), *([average] if complete else []), published]
        table.add_row(row, *("" if cell is None else " ".join(f"{x:.2f}" for x in cell) for cell in lines[row]))
    for row in ROWS:
        if row != OURS:
            pairs = zip(lines[OURS], lines[row], strict=True)
            gains = [None if a is None or b is None else a - b for a, b in pairs]
            table.add_row(
                f"{OURS} - {row}", *("" if cell is None else " ".join(f"{x:+.2f}" for x in cell) for cell in gains)
            )
    return table


def speeds(results: dict[str, dict[str, list[dict]]]) -> Table:
    """Words per second in training and parsing, the fastest of all runs."""
    table = Table(title="words per second, features included: training, parsing", box=None)
    for column in ("parser", *results):
        table.add_column(column, justify="left" if column == "parser" else "right")
    for row in ROWS:
        cells = [
            ", ".join(
                f"{max(r[f'{what}_words_per_second'] for r in rows[row]):.0f}" for what in ("training", "parsing")
            )
            if row in rows
            else ""
            for rows in results.values()
        ]
        table.add_row(row, *cells)
    return table


def analysis(results: dict[str, dict[str, list[dict]]]) -> Table:
    """Gamma and slow-downs of each treebank."""
    table = Table(title="gamma of LR-spine parsing (this work), and slow-down of parsing", box=None)
    ranges = [f"{low + 1}-{high}" for low, high in zip((0, *BINS[:-2]), BINS[:-1], strict=True)] + [f">{BINS[-2]}"]
    for column in (
        "treebank",
        "train: mean",
        "var",
        "dev: mean",
        "var",
        "words/s",
        "vs eager",
        "vs standard",
        "two correct, %",
        "worst by length:",
    ):
        table.add_column(column, justify="left" if column == "treebank" else "right")
    for column in ranges:
        table.add_column(column, justify="right")
    for name, rows in results.items():
        if OURS not in rows:
            continue
        ours = rows[OURS]
        worst = [0] * len(BINS)
        for result in ours:
            for part in ("gamma_train", "gamma_dev"):
                for length, value in result[part]["worst_by_length"].items():
                    i = next(i for i, longest in enumerate(BINS) if int(length) <= longest)
                    worst[i] = max(worst[i], value)
        speed = {row: mean(result["parsing_words_per_second"] for result in found) for row, found in rows.items()}
        table.add_row(
            name,
            *(
                f"{mean(r[part][what] for r in ours):.2f}"
                for part in ("gamma_train", "gamma_dev")
                for what in ("mean", "variance")
            ),
            f"{speed[OURS]:.0f}",
            *(f"{speed[row] / speed[OURS]:.2f}" if row in speed else "" for row in ("arc-eager", "arc-standard")),
            f"{100 * mean(r['two_correct'] for r in ours):.1f}",
            "",
            *map(str, worst),
        )
    table.add_row(
        "published", "2.98", "2.15", "2.95", "1.96", "", "2.8", "2.2", "42", "", *[""] * (len(ranges) - 1), "22"
    )
    return table


def main() -> None:
    """Do the missing runs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("treebanks", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/lr-spine"))
    parser.add_argument("--iterations", type=positive, default=30, help="as published (default: 30)")
    parser.add_argument("--seeds", type=positive, default=1, help="seeds 1 to N (default: 1)")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--tags", choices=("upos", "xpos"), default="upos")
    parser.add_argument("--table", action="store_true", help="only print")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    read_results(options)  # fail early on results with other settings
    for seed in range(1, options.seeds + 1):
        for folder in options.treebanks:
            for row in options.rows:
                path = result_path(folder, row, options, seed)
                if options.table or path.exists():
                    continue
                result = run(folder, row, options, seed)
                with atomic_output(path) as stream:
                    stream.write((json.dumps(result, indent=1) + "\n").encode())
                print(f"{path}: " + ", ".join(f"{name.upper()} {result[name]:.2f}" for name in METRICS), flush=True)
    results = read_results(options)
    console = Console(width=170)
    console.print(table_2(results))
    console.print(analysis(results))
    console.print(speeds(results))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
