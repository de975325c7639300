"""What relations in the decision change in parsing: UAS, LAS and CPU time of one model with several weights.

    python experiments/label_bonus.py UD/2.0/hu --model models/hu --name hu-fast-1

Nothing is trained: `label_bonus` of the model is set before it parses the dev set. Weights that a result has already
are not measured again; results are in ``experiments/results/labels``.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from grid_results import write_result
from kept_results import part_path, read_kept
from provenance import describe_commit, describe_hardware, describe_versions

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.parsers.chart import ChartParser
from mh4.parsers.request import HEADS
from mh4.trees.evaluation import attachment_scores

FOLDER = Path(__file__).parent / "results" / "labels"
WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


def measure(parser: ChartParser, dev: list[Sentence], weight: float) -> list[float]:
    """UAS, LAS, CPU seconds of this process."""
    parser.label_bonus = weight
    start = time.process_time()
    found = parser.predict(dev, predict=HEADS)
    seconds = time.process_time() - start
    return [round(score, 2) for score in attachment_scores(dev, found)] + [round(seconds, 2)]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebank", type=Path, help="folder with a dev file")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--name", required=True, help="of the result")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--weights", nargs="+", type=float, default=WEIGHTS)
    arguments = parser.parse_args()
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
    result: dict[str, Any] = read_kept(path, settings) or {**settings, "uas, las, cpu seconds": {}}
    measured = result["uas, las, cpu seconds"]
    model.predict(dev[:20], predict=HEADS)  # compiles
    for weight in arguments.weights:
        if str(weight) not in measured:
            measured[str(weight)] = measure(model, dev, weight)
    result |= {"commit": describe_commit(), "versions": describe_versions(), "hardware": describe_hardware("cpu")}
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_result(path, result)
    for weight, numbers in measured.items():
        print(weight, *numbers)


if __name__ == "__main__":
    main()
