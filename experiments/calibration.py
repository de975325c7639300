"""How far confidences hold, and what unique relations cost: Hungarian, Gothic, Greek. Writes CALIBRATION.md.

    python experiments/calibration.py UD/hu UD/got UD/el --models models/calibration

A treebank's folder has one file each for train and dev, perhaps test. A model that is not in the folder of models is
trained there (mh4-hybrid, preset balanced, seed 1). Results are kept; a treebank that has one is not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kept_results import all_parts, describe_data, part_path, read_kept
from provenance import made_with
from scripting import run_script

import mh4
from mh4.data.conllu import read_conllu
from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.parsers.calibration import Calibration
from mh4.parsers.chart import ChartParser
from mh4.parsers.model_files import WEIGHTS
from mh4.training.calibrating import compared, cross_fitted
from mh4.trees.evaluation import attachment_scores
from mh4.trees.reliability import CalibrationReport, report_calibration

HERE = Path(__file__).parent
RESULTS, REPORT = HERE / "results" / "calibration", HERE / "CALIBRATION.md"
SETTINGS = {"decoder": "mh4-hybrid", "preset": "balanced", "seed": 1}
UNIQUE = ("nsubj", "csubj", "obj", "iobj", "expl")
AMONG = 5
NAMES = {"hu": "Hungarian", "got": "Gothic", "el": "Greek"}


def measure(treebank: Path, models: Path) -> dict[str, Any]:
    """All numbers of one treebank."""
    train, dev = part_path(treebank, "train"), part_path(treebank, "dev")
    folder = models / treebank.name
    if not (folder / WEIGHTS).exists():
        mh4.train(train, dev, folder, **SETTINGS)
    parser = ChartParser.load(folder)
    golds = list(read_conllu(dev, trees="required"))
    predictions = parser.predict_with_margins(golds)
    steps = [json.loads(line)["step"] for line in (folder / "log.jsonl").read_text().splitlines()]
    parser.calibration = Calibration.fit(predictions, golds)
    result: dict[str, Any] = {
        "treebank": treebank.name,
        **SETTINGS,
        "steps": steps[-1],
        "dev": scores(predictions, golds) | confidences(cross_fitted(predictions, golds)),
        "unique": unique_relations(parser, golds),
        "seconds": seconds(parser, golds),
    }
    if "test" in all_parts(treebank):
        tests = list(read_conllu(part_path(treebank, "test"), trees="required"))
        predictions = parser.predict_with_margins(tests)
        columns = zip(
            *(compared(parser.calibration, *pair) for pair in zip(predictions, tests, strict=True)), strict=True
        )
        report = report_calibration(*(np.concatenate(column) for column in columns))
        result["test"] = scores(predictions, tests) | confidences(report)
    return result | made_with("cpu")


def scores(predictions: Sequence[Any], golds: Sequence[Sentence]) -> dict[str, float]:
    """UAS and LAS."""
    uas, las = attachment_scores(golds, predictions)
    return {"uas": round(uas, 2), "las": round(las, 2)}


def confidences(report: CalibrationReport) -> dict[str, Any]:
    """Calibration errors, in percent, and the shares of errors found in given shares of least certain words."""
    return {
        "words": report.heads.words,
        "ece_before": round(100 * report.heads_before.ece, 2),
        "ece": round(100 * report.heads.ece, 2),
        "ece_words": round(100 * report.both.ece, 2),
        "wrong_heads": {str(share): round(100 * found, 1) for share, found in report.wrong_heads.items()},
        "wrong_words": {str(share): round(100 * found, 1) for share, found in report.wrong_words.items()},
    }


def unique_relations(parser: ChartParser, golds: Sequence[Sentence]) -> dict[str, Any]:
    """Violations of unique relations, and scores: plain, limited, and among several trees."""
    found = {}
    ways: dict[str, dict[str, Any]] = {
        "plain": {},
        "unique": {"unique": UNIQUE},
        f"among {AMONG}": {"unique": UNIQUE, "among": AMONG},
    }
    for name, wishes in ways.items():
        parsed = list(parser.parse(golds, predict="heads", **wishes))
        found[name] = {"violations": violations(parsed)} | scores(parsed, golds)
    return {"gold": violations(golds), **found}


def violations(sentences: Iterable[Sentence]) -> int:
    """The number of dependents that repeat a unique relation of their head."""
    total = 0
    for sentence in sentences:
        held = Counter((head, name.partition(":")[0]) for head, _, name in sentence.arcs() if head)
        total += sum(count - 1 for (_, name), count in held.items() if name in UNIQUE)
    return total


def seconds(parser: ChartParser, sentences: Sequence[Sentence], runs: int = 5) -> dict[str, float]:
    """Processor time of parsing into a file without and with confidence, each the shortest of several runs."""
    best = {"plain": np.inf, "confidence": np.inf}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            for name in best:
                start = time.process_time()
                target = Path(folder) / f"{name}.conllu"
                parser.parse_file(sentences, target, predict="heads", confidence=name == "confidence")
                best[name] = min(best[name], time.process_time() - start)
    return {name: round(value, 3) for name, value in best.items()}


def report(results: Sequence[dict[str, Any]]) -> str:
    """The text of CALIBRATION.md."""
    lines = [
        "# Confidence",
        "",
        "Made by `experiments/calibration.py`: one model per treebank of UD 2.0 (mh4-hybrid, preset `balanced`, "
        "seed 1; "
        + ", ".join(f"{name_of(one)} after {one['steps']:,} steps" for one in results)
        + "). On dev, the confidence of each half of the sentences is fitted on the other half; on test, it is fitted "
        "on dev. Expected calibration error (ECE, ten bins, percent) of heads before, with 1 / (1 + exp(−margin)), and "
        "after isotonic regression of the margin; then that of heads and relations together.",
        "",
        "| | words | UAS | LAS | ECE before | ECE after | ECE, heads and relations |",
        "|---|---|---|---|---|---|---|",
    ]
    parts = [(f"{name_of(one)} {part}", one[part]) for one in results for part in ("dev", "test") if part in one]
    for name, own in parts:
        numbers = own["uas"], own["las"], own["ece_before"], own["ece"], own["ece_words"]
        lines.append(f"| {name} | {own['words']:,} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |")
    shares = list(parts[0][1]["wrong_heads"])
    lines += [
        "",
        "Wrong heads found by looking only at the least certain words, in percent of all wrong heads:",
        "",
        "| words looked at | " + " | ".join(f"{float(share):.0%}" for share in shares) + " |",
        "|---" * (len(shares) + 1) + "|",
    ]
    lines += [
        f"| {name} | " + " | ".join(f"{own['wrong_heads'][share]:.1f}" for share in shares) + " |"
        for name, own in parts
    ]
    lines += [
        "",
        f"Unique relations (`--unique {','.join(UNIQUE)}`) on dev: the number of extra dependents with such a "
        f"relation, and LAS; `--among {AMONG}` takes the best pair of tree and relations among {AMONG} trees.",
        "",
        "| | gold | plain | `--unique` | `--among` | LAS plain | `--unique` | `--among` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results:
        own = one["unique"]
        ways = [own[name] for name in ("plain", "unique", f"among {AMONG}")]
        numbers = [str(own["gold"]), *(str(way["violations"]) for way in ways), *(f"{way['las']:.2f}" for way in ways)]
        lines.append(f"| {name_of(one)} | " + " | ".join(numbers) + " |")
    ratios = (f"{name_of(one)} {one['seconds']['confidence'] / one['seconds']['plain']:.2f}" for one in results)
    lines += [
        "",
        "CPU time of `mh4 parse --confidence` on dev, relative to `mh4 parse`, without start-up: "
        + ", ".join(ratios)
        + ".",
        "",
    ]
    return "\n".join(lines)


def name_of(result: dict[str, Any]) -> str:
    """The name of a result's language."""
    return NAMES.get(result["treebank"], result["treebank"])


def main() -> None:
    """Measure the treebanks without a result and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebanks", nargs="+", type=Path)
    parser.add_argument("--models", type=Path, required=True)
    arguments = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = []
    for treebank in arguments.treebanks:
        path = RESULTS / f"{treebank.name}.json"
        data = describe_data(treebank, *all_parts(treebank))
        result = read_kept(path, {"treebank": treebank.name, **SETTINGS}, data)
        if result is None:
            result = measure(treebank, arguments.models) | {"data": data}
            with atomic_output(path) as stream:
                stream.write((json.dumps(result, indent=1) + "\n").encode())
        results.append(result)
    with atomic_output(REPORT) as stream:
        stream.write(report(results).encode())
    print(report(results))


if __name__ == "__main__":
    raise SystemExit(run_script(main))
