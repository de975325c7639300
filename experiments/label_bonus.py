"""What relations in the decision change in parsing: UAS, LAS and CPU time of one model with several weights.

    python experiments/label_bonus.py UD/2.0/hu --model models/hu --name hu-fast-zoo-1
    python experiments/label_bonus.py --report        # writes the tables of LABELS.md

Nothing is trained: `label_bonus` of the model is set before it parses the dev set. Weights already in a result are not
measured again; results are in ``experiments/results/labels``. The report reads those named ``TREEBANK-fast-zoo-SEED``,
for a model trained without a bonus, and ``TREEBANK-fast-trained-0.25-SEED``, for one trained with it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from grid_results import write_result
from kept_results import describe_data, part_path, read_kept, shown
from provenance import made_with
from results_sections import LANGUAGES, markdown_rows, signed, write_tables
from scripting import run_script

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.parsers.chart import ChartParser
from mh4.parsers.request import HEADS
from mh4.trees.evaluation import attachment_scores

FOLDER = Path(__file__).parent / "results" / "labels"
PAGE = Path(__file__).parent / "LABELS.md"
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
WITHOUT, WITH = "zoo", "trained-0.25"  # how the models were trained, in the names of results
TREEBANKS = ("hu", "vi", "lv", "el", "cu", "got")

# UAS and LAS with each weight in parsing, by training, treebank and seed.
Scores = Mapping[str, Mapping[str, Mapping[int, Mapping[float, tuple[float, float]]]]]


def measure(parser: ChartParser, dev: list[Sentence], weight: float) -> list[float]:
    """UAS, LAS, and CPU seconds of this process, with one weight."""
    parser.label_bonus = weight
    start = time.process_time()
    found = parser.predict(dev, predict=HEADS)
    seconds = time.process_time() - start
    return [round(score, 2) for score in attachment_scores(dev, found)] + [round(seconds, 2)]


def read_scores(folder: Path) -> Scores:
    """The results for the report."""
    scores: dict[str, dict[str, dict[int, dict[float, tuple[float, float]]]]] = {WITHOUT: {}, WITH: {}}
    for training, treebanks in scores.items():
        for treebank in TREEBANKS:
            for path in folder.glob(f"{treebank}-fast-{training}-*.json"):
                measured = json.loads(path.read_text(encoding="utf-8"))["uas, las, cpu seconds"]
                by_weight = {float(weight): (uas, las) for weight, (uas, las, _) in measured.items()}
                treebanks.setdefault(treebank, {})[int(path.stem.rpartition("-")[2])] = by_weight
    return scores


def weights_table(scores: Scores, training: str) -> list[str]:
    """Lines of Markdown: seed 1 of every treebank with each weight in parsing, and the means over treebanks.

    Models trained with a bonus are compared with models trained and used without one.
    """
    trained = training == WITH
    header = ["", *(f"{weight:g}" for weight in WEIGHTS), *(["0.25, compared with none"] if trained else [])]
    rows = {}
    for treebank, seeds in scores[training].items():
        rows[LANGUAGES[treebank]] = [seeds[1][weight] for weight in WEIGHTS]
        if trained:
            rows[LANGUAGES[treebank]].append(_minus(seeds[1][0.25], scores[WITHOUT][treebank][1][0.0]))
    columns = list(zip(*rows.values(), strict=True))
    rows["mean"] = [tuple(map(mean, zip(*column, strict=True))) for column in columns]
    lines = [header, ["---"] * len(header)]
    for name, pairs in rows.items():
        last = [signed(pairs.pop())] if trained else []
        lines.append([name, *(f"{uas:.2f} / {las:.2f}" for uas, las in pairs), *last])
    return markdown_rows(lines)


def seeds_table(scores: Scores) -> list[str]:
    """Lines of Markdown: means and standard deviations for treebanks with several seeds of both trainings."""
    header = ["", "trained without", "0.25 in parsing alone", "0.25 in both"]
    header += ["gain of training and parsing with it", "gain of parsing with it"]
    lines = [header, ["---"] * len(header)]
    gains = []
    for treebank, without in scores[WITHOUT].items():
        trained = scores[WITH].get(treebank, {})
        if len(without) < 2 or without.keys() != trained.keys():
            continue
        cells = [
            list(zip(*(seeds[weight] for seeds in models.values()), strict=True))
            for models, weight in ((without, 0.0), (without, 0.25), (trained, 0.25))
        ]
        none, parsing, both = [(mean(uas), mean(las)) for uas, las in cells]
        gains.append([_minus(both, none), _minus(parsing, none)])
        scores_shown = [f"{shown(list(uas))} / {shown(list(las))}" for uas, las in cells]
        lines.append([LANGUAGES[treebank], *scores_shown, *map(signed, gains[-1])])
    means = [tuple(map(mean, zip(*column, strict=True))) for column in zip(*gains, strict=True)]
    lines.append(["mean", "", "", "", *map(signed, means)])
    return markdown_rows(lines)


def _minus(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    return left[0] - right[0], left[1] - right[1]


def make_tables(folder: Path) -> dict[str, list[str]]:
    """The three tables of the page, by name."""
    scores = read_scores(folder)
    return {
        "trained without": weights_table(scores, WITHOUT),
        "trained with": weights_table(scores, WITH),
        "three seeds": seeds_table(scores),
    }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, nargs="?", help="folder with a dev file")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--name", help="of the result")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--weights", nargs="+", type=float, default=WEIGHTS)
    parser.add_argument("--report", action="store_true", help="write the tables of LABELS.md, measure nothing")
    arguments = parser.parse_args()
    if arguments.report:
        write_tables(PAGE, make_tables(arguments.results))
        return
    if None in (arguments.treebank, arguments.model, arguments.name):
        parser.error("a treebank, --model and --name are needed to measure")
    model = ChartParser.load(arguments.model, device="cpu", threads=1)
    dev = list(read_conllu(part_path(arguments.treebank, "dev"), trees="required"))
    log = arguments.model / "log.jsonl"
    settings = {
        "treebank": arguments.treebank.name,
        "decoder": model.config.decoder,
        "trained_with": model.config.label_bonus,
        "steps": max(json.loads(line)["step"] for line in log.read_text().splitlines() if json.loads(line)["best"]),
    }
    path = arguments.results / f"{arguments.name}.json"
    data = describe_data(arguments.treebank, "dev")
    result: dict[str, Any] = read_kept(path, settings, data) or {**settings, "uas, las, cpu seconds": {}}
    measured = result["uas, las, cpu seconds"]
    model.predict(dev[:20], predict=HEADS)  # compile
    for weight in arguments.weights:
        if str(weight) not in measured:
            measured[str(weight)] = measure(model, dev, weight)
    result |= {"data": data} | made_with("cpu")
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_result(path, result)
    for weight, numbers in measured.items():
        print(weight, *numbers)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
