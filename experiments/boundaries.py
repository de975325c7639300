"""What `--boundaries joint` is worth: sentences, trees and time on the raw text of gold trees.

    python experiments/boundaries.py MODEL DEV.conllu -o experiments/results/boundaries/NAME.json

Both ways of finding boundaries parse the text in turn; processor time is the median of three runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import get_args

import torch
from provenance import describe_commit, describe_hardware
from scripting import run_script

from mh4.data.conllu import read_conllu
from mh4.data.files import atomic_output
from mh4.data.text import text_of
from mh4.parsers.registry import load
from mh4.parsers.request import Boundaries
from mh4.trees.evaluation import evaluate

METRICS = ("Words", "Sentences", "UAS", "LAS")
RUNS = 3


def main() -> None:
    """Write the result and print it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("dev", type=Path, metavar="DEV")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    gold = list(read_conllu(arguments.dev))
    model = load(arguments.model, device="cpu", threads=1)
    seconds: dict[str, list[float]] = {ways: [] for ways in get_args(Boundaries)}
    result = {"model": arguments.model.name, "dev": arguments.dev.name, "commit": describe_commit()}
    result |= describe_hardware("cpu")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as text:
        text.write("".join(text_of(gold)))
        text.flush()
        for _ in range(RUNS + 1):  # the first may compile kernels
            for boundaries, own in seconds.items():
                start = time.process_time()
                parsed = list(model.parse(text.name, format="text", boundaries=boundaries))
                own.append(time.process_time() - start)
                scores = evaluate(gold, parsed).scores
                result[boundaries] = {metric: round(100 * scores[metric].f1, 2) for metric in METRICS}
    for boundaries, own in seconds.items():
        result[boundaries]["cpu_seconds"] = round(statistics.median(own[1:]), 3)
    with atomic_output(arguments.output) as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
