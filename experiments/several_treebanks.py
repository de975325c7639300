"""Several treebanks in one model against a model of each: UAS and LAS on the dev set of every treebank.

    python experiments/several_treebanks.py UD/2.0/got UD/2.0/cu --work runs/several
    python experiments/several_treebanks.py --report        # writes the table of SEVERAL.md

The joint model also parses as an even mixture of its treebanks. The comparison is between the best models within the
same number of steps per treebank; logs of longer runs are read up to there, shorter runs resume. Results are in
``experiments/results/several``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

from grid_results import write_result
from kept_results import describe_files, part_path, read_folder, read_kept, shown
from provenance import made_with
from results_sections import LANGUAGES, markdown_rows, signed, write_tables
from scripting import positive, run_script

from mh4.data.conllu import read_conllu
from mh4.parsers.base import Parser
from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.model_files import LOG
from mh4.parsers.registry import load
from mh4.parsers.request import HEADS
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.trees.evaluation import attachment_scores

FOLDER = Path(__file__).parent / "results" / "several"
PAGE = Path(__file__).parent / "SEVERAL.md"


def score(parser: Parser, treebank: Path, name: str | None) -> list[float]:
    """UAS and LAS on dev, parsed as the treebank called ``name``."""
    dev = list(read_conllu(part_path(treebank, "dev"), trees="required"))
    return [round(own, 2) for own in attachment_scores(dev, parser.predict(dev, predict=HEADS, treebank=name))]


def best_line(train: Any, dev: Any, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The best evaluation of a training up to ``max_steps``; for several treebanks, by their mean LAS."""
    log, most = folder / LOG, settings["max_steps"]

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []

    if not any(line["step"] >= most for line in lines()):
        run_training(TrainingJob(train, dev, folder, make_config(ChartConfig, settings), threads=1, resume=True))
    return max((line for line in lines() if line["step"] <= most), key=lambda line: line["dev_las"])


def check_model(folder: Path, most: int) -> None:
    """SystemExit if an earlier, longer run has left the model of a step beyond ``most``, which cannot be scored."""
    log = folder / LOG
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines()) if log.exists() else ()
    step = max((line["step"] for line in lines if line["best"]), default=0)
    if step > most:
        raise SystemExit(f"{folder}: the model is that of step {step}, not the best of {most} (choose another --work)")


def report(results: list[dict[str, Any]]) -> list[str]:
    """Lines of Markdown: a row per treebank, with means and standard deviations over seeds."""
    columns = ["dev set, UAS / LAS", "seeds", "alone", "together, as itself", "together, as a mixture", "gain"]
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    groups: dict[str, list[dict[str, list[float]]]] = {}
    for result in results:
        for name in result["treebanks"]:
            groups.setdefault(name, []).append(result["uas, las"])
    for name, runs in groups.items():
        alone, together, mixture = (
            [[run[f"{name} {way}"][metric] for run in runs] for metric in (0, 1)]
            for way in ("alone", "together", "together, as a mixture")
        )
        gains = [mean(joint) - mean(own) for joint, own in zip(together, alone, strict=True)]
        cells = [" / ".join(map(shown, metrics)) for metrics in (alone, together, mixture)]
        lines.append([LANGUAGES[name], str(len(runs)), *cells, signed(gains)])
    return markdown_rows(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", nargs="*", type=Path, help="folders with train and dev files")
    parser.add_argument("--work", type=Path, default=Path("runs/several"), help="models, outside the repository")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=positive, default=4000, help="at most, for each treebank")
    parser.add_argument("--report", action="store_true", help="write the table of SEVERAL.md, train nothing")
    arguments = parser.parse_args()
    if arguments.report:
        write_tables(PAGE, {"several treebanks": report(read_folder(arguments.results))})
        return
    if len(arguments.treebanks) < 2:
        parser.error("two treebanks are needed to train")
    names = [treebank.name for treebank in arguments.treebanks]
    settings = {"treebanks": names, "preset": arguments.preset, "seed": arguments.seed, "steps": arguments.steps}
    path = arguments.results / f"{'-'.join(names)}-{arguments.preset}-{arguments.seed}.json"
    files = {part: {one.name: part_path(one, part) for one in arguments.treebanks} for part in ("train", "dev")}
    data = describe_files({f"{name} {part}": path for part, paths in files.items() for name, path in paths.items()})
    result: dict[str, Any] = read_kept(path, settings, data) or {**settings, "uas, las": {}, "best step": {}}
    own = {**PRESETS[arguments.preset], "seed": arguments.seed}
    check_model(arguments.work / path.stem, arguments.steps * len(names))
    for name in names:
        alone = {**own, "max_steps": arguments.steps}
        line = best_line(files["train"][name], files["dev"][name], arguments.work / f"{path.stem}-{name}", alone)
        result["uas, las"][f"{name} alone"] = [line["dev_uas"], line["dev_las"]]
        result["best step"][name] = line["step"]
    joint = {**own, "max_steps": arguments.steps * len(names)}
    line = best_line(files["train"], files["dev"], arguments.work / path.stem, joint)
    result["best step"]["together"] = line["step"]
    model = load(arguments.work / path.stem, device="cpu", threads=1)
    for treebank in arguments.treebanks:
        name = treebank.name
        result["uas, las"][f"{name} together"] = [line["dev"][name][metric] for metric in ("uas", "las")]
        result["uas, las"][f"{name} together, as a mixture"] = score(model, treebank, None)
    result |= {"data": data, **made_with("cpu")}
    arguments.results.mkdir(parents=True, exist_ok=True)
    write_result(path, result)
    for what, (uas, las) in result["uas, las"].items():
        print(f"{what}: {uas} {las}")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
