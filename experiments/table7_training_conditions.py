"""Table 7 of Nederhof (2019): a shift-reduce parser trained under five conditions, ours beside the published results.

    python experiments/table7_training_conditions.py UD/2.2/{hu,cu,got,el} -o experiments/results/optimal-steps
    python experiments/table7_training_conditions.py --report        # writes the tables of OPTIMAL_STEPS.md

Every folder holds one ``*-ud-train.conllu`` and one ``*-ud-dev.conllu``, whose names start with the language code. Each
run (treebank, condition, seed) leaves a JSON file in the output folder, and runs that have one are not repeated; give
``--table`` to print without running. ``--visited`` also saves what Figure 9 (and, with ``--system arc-eager``, Figure 4
of Nederhof 2021) is measured on: the configurations that the parser of condition 2 visits on the training sentences.

As in the paper: UD 2.2, gold parts of speech, five conditions (`deterministic.training`), 256 hidden units, batches
of 100, 20 epochs, word vectors of 100 dimensions, optimal steps for left-before-right computations, any number of words
below the root. Not as in the paper, or not stated there: scores on the development files (the paper does not name the
file; UD's test files are another); word2vec by gensim on the training file alone; PyTorch, rectifiers and Adam with
learning rate 0.0003 instead of DL4J's; ``root`` is the relation of words below the root and of no others; sets of
optimal steps are learned as sets; relations are scored without subtypes.
"""

import argparse
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from statistics import mean

import numpy as np
import torch
from deterministic.parser import DeterministicParser, visited_configurations
from deterministic.training import CONDITIONS, Condition, Settings, train_condition
from kept_results import describe_data, part_path, read_folder, read_kept, shown
from provenance import made_with
from results_sections import LANGUAGES, markdown_rows, write_tables
from rich.console import Console
from rich.table import Table
from scripting import positive, run_script

from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.decoders.trees import is_projective
from mh4.training.treebanks import read_gold
from mh4.trees.evaluation import attachment_scores

FOLDER = Path(__file__).parent / "results" / "optimal-steps"
PAGE = Path(__file__).parent / "OPTIMAL_STEPS.md"
SYSTEMS = ("shift-reduce", "arc-eager")
PUBLISHED = {  # LAS and UAS of conditions 1 to 5
    "de": ((71.15, 71.33, 71.69, 72.57, 72.55), (78.09, 78.14, 78.96, 79.78, 79.77)),
    "da": ((69.11, 71.42, 69.95, 72.18, 72.25), (75.13, 76.98, 76.30, 78.00, 78.21)),
    "eu": ((54.69, 58.27, 54.11, 57.49, 57.81), (67.49, 70.07, 67.71, 70.07, 70.13)),
    "el": ((71.62, 72.78, 70.49, 72.66, 72.34), (77.45, 78.34, 77.14, 78.91, 78.36)),
    "cu": ((56.25, 59.09, 56.31, 58.78, 59.52), (68.08, 69.95, 69.07, 70.10, 70.94)),
    "got": ((51.96, 55.00, 53.44, 55.94, 56.20), (64.48, 66.58, 65.85, 67.85, 68.09)),
    "hu": ((52.70, 56.20, 54.09, 57.37, 57.62), (65.72, 68.96, 67.55, 70.20, 70.30)),
}


def treebank_code(folder: Path) -> str:
    """The language code at the start of the training file's name."""
    return re.split(r"[-_]", part_path(folder, "train").name)[0]


def result_path(output: Path, code: str, condition: int, settings: Settings) -> Path:
    """The file for the result of one run."""
    return output / f"{settings.system}-{code}-{condition}-seed{settings.seed}.json"


def kept(output: Path, folder: Path, condition: int, settings: Settings) -> dict | None:
    """The result of an earlier run on a treebank, if there is one."""
    path = result_path(output, treebank_code(folder), condition, settings)
    return read_kept(path, asdict(settings), describe_data(folder, "train", "dev"))


def save_visited(path: Path, parser: DeterministicParser, sentences: list[Sentence]) -> None:
    """Write the visited configurations and the original gold trees as numpy arrays (``golds`` concatenated)."""
    configurations = visited_configurations(parser, sentences)
    golds = [sentence.padded_heads for sentence in sentences]
    lengths = np.array([len(gold) for gold in golds])
    with atomic_output(path) as stream:
        np.savez_compressed(stream, **configurations._asdict(), golds=np.concatenate(golds), gold_lengths=lengths)


def run_treebank(folder: Path, conditions: list[int], settings: Settings, output: Path, visited: bool) -> None:
    """Do the missing runs of one treebank and seed, sharing the parsers of the first pass."""
    code = treebank_code(folder)
    dump = output / f"{settings.system}-{code}-visited-seed{settings.seed}.npz"
    missing = [number for number in conditions if kept(output, folder, number, settings) is None]
    dumping = visited and not dump.exists()
    if not missing and not dumping:
        return
    train, dev = (read_gold(part_path(folder, part)) for part in ("train", "dev"))
    firsts: dict[Condition, tuple[DeterministicParser, float]] = {}

    def first_pass(condition: Condition) -> tuple[DeterministicParser, float]:
        if condition not in firsts:
            start = time.perf_counter()
            firsts[condition] = train_condition(train, condition, settings), time.perf_counter() - start
        return firsts[condition]

    for number in missing:
        condition = CONDITIONS[number]
        parser, seconds = first_pass(condition.first)
        if condition != condition.first:
            start = time.perf_counter()
            parser = train_condition(train, condition, settings, first=parser)
            seconds += time.perf_counter() - start
        uas, las = attachment_scores(dev, parser.predict(dev))
        result = {
            "treebank": code,
            "condition": number,
            "las": las,
            "uas": uas,
            "seconds": round(seconds, 1),
            "sentences": len(train),
            "tokens": sum(map(len, train)),
            "nonprojective_percent": 100 * mean(not is_projective(sentence.padded_heads) for sentence in train),
            **asdict(settings),
            "data": describe_data(folder, "train", "dev"),
            **made_with("cpu"),
        }
        with atomic_output(result_path(output, code, number, settings)) as stream:
            stream.write((json.dumps(result, indent=1) + "\n").encode())
        print(
            f"{code} condition {number} seed {settings.seed}: LAS {las:.2f} UAS {uas:.2f} {seconds:.0f} s", flush=True
        )
    if dumping:
        save_visited(dump, first_pass(CONDITIONS[2])[0], train)


def results_table(folders: list[Path], runs: list[Settings], output: Path) -> Table:
    """Means over the finished seeds, with the paper's results below."""
    system = runs[0].system
    table = Table(title=f"LAS and UAS of {system}, % (mean over seeds)", box=None, pad_edge=False)
    for column in ("treebank", "", "score"):
        table.add_column(column, no_wrap=True)
    for number in CONDITIONS:
        table.add_column(f"({number})", justify="right")
    for folder in folders:
        code = treebank_code(folder)
        for score, name in enumerate(("las", "uas")):
            cells, counts = [], set()
            for number in CONDITIONS:
                results = [kept(output, folder, number, settings) for settings in runs]
                values = [result[name] for result in results if result is not None]
                cells.append(f"{mean(values):.2f}" if values else "–")
                counts.add(len(values))
            done = "–".join(str(count) for count in sorted({min(counts), max(counts)}))
            table.add_row(code, f"ours, {done} seeds", name.upper(), *cells)
            if system == SYSTEMS[0] and code in PUBLISHED:
                table.add_row("", "paper", name.upper(), *(f"{value:.2f}" for value in PUBLISHED[code][score]))
    return table


def report(results: list[dict], system: str) -> list[str]:
    """Lines of Markdown: mean and standard deviation over the seeds; published numbers of shift-reduce in brackets."""
    lines = [["", "", *(f"({number})" for number in CONDITIONS)], ["---"] * (2 + len(CONDITIONS))]
    for code, language in LANGUAGES.items():
        own = [result for result in results if (result["treebank"], result["system"]) == (code, system)]
        for score, metric in enumerate(("las", "uas")) if own else ():
            cells = []
            for number in CONDITIONS:
                values = [result[metric] for result in own if result["condition"] == number]
                published = f" ({PUBLISHED[code][score][number - 1]:.2f})" if system == SYSTEMS[0] else ""
                cells.append((shown(values) if values else "–") + published)
            lines.append(["" if score else language, metric.upper(), *cells])
    return markdown_rows(lines)


def tables(folder: Path) -> dict[str, list[str]]:
    """The tables of OPTIMAL_STEPS.md, by name."""
    results = [result for result in read_folder(folder) if "condition" in result]
    return {f"table 7, {system}": report(results, system) for system in SYSTEMS}


def main() -> None:
    """Do the missing runs, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="TREEBANK_FOLDER")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/table7"))
    parser.add_argument("--conditions", type=int, nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--system", choices=SYSTEMS, default=SYSTEMS[0])
    parser.add_argument("--epochs", type=positive, default=Settings.epochs)
    parser.add_argument("--visited", action="store_true", help="save the configurations that condition 2 visits")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument("--report", action="store_true", help="write the tables of OPTIMAL_STEPS.md, run nothing")
    arguments = parser.parse_args()
    if arguments.report:
        write_tables(PAGE, tables(FOLDER))
        return
    if not arguments.folders:
        parser.error("a treebank is needed to train")
    torch.set_num_threads(1)  # the matrices are small; run several processes instead
    runs = [Settings(system=arguments.system, seed=seed, epochs=arguments.epochs) for seed in arguments.seeds]
    if not arguments.table:
        arguments.output.mkdir(parents=True, exist_ok=True)
        for settings in runs:
            for folder in arguments.folders:
                run_treebank(folder, arguments.conditions, settings, arguments.output, arguments.visited)
    Console().print(results_table(arguments.folders, runs, arguments.output))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
