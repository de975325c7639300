"""Hinge, softmax-margin and crf, and what a part of the heads is worth: one JSON result a run, and a report.

    python experiments/losses.py UD/2.0/{hu,got} --trees-alone --seeds 1 2 3 --work runs/losses
    python experiments/losses.py UD/2.0/hu --known half sentences --losses hinge crf --work runs/losses
    python experiments/losses.py UD/2.0/hu --known uncertain quarter quarter-sentences --losses hinge
    python experiments/losses.py --report

Finished runs are not repeated; interrupted ones continue. If the preset has changed since a treebank's other runs, new
ones must go to another folder (``--results``). ``--known`` selects the heads of the training treebank that are kept,
together with their relations.

- ``half``, ``quarter``: this share of all heads, drawn at random.
- ``sentences``, ``quarter-sentences``: all heads of sentences drawn at random, as many as the half or the quarter.
- ``uncertain``: the quarter of which a model is least certain, by the margins of its trees, and for which it would have
  asked annotators. The model has the same decoder and seed, and is trained with hinge on the heads that ``--chooser``
  names (by default ``quarter-sentences``; with ``all`` it has seen the answers), unless ``--work`` contains it already.

``--trees-alone`` trains without the columns that presets predict beside the tree, which takes less time and leaves the
encoder to the loss of trees alone. ``--report`` writes ``LOSSES.md`` from the results, with a table of the cost of
other columns for trees; a missing seed of `balanced` with every column is taken from ``patience.py``, where it is the
same.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from grid_runs import TREES_ALONE
from kept_results import describe_data, part_path, read_folder, read_kept, shown
from patience import FOLDERS as LONG_RUNS
from patience import replay
from provenance import made_with
from scripting import run_script

from mh4.api import configure
from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.parsers.config import as_dict
from mh4.parsers.model_files import CALIBRATION
from mh4.parsers.registry import load
from mh4.training.job import TrainingJob
from mh4.training.running import run_training

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "losses"
LOSSES = ("hinge", "softmax-margin", "crf")
SHARES = {"half": 0.5, "sentences": 0.5, "quarter": 0.25, "quarter-sentences": 0.25, "uncertain": 0.25}
KNOWN = ("all", *SHARES)
CHOOSERS = ("all", "sentences", "quarter-sentences")


def hide(sentence: Sentence, hidden: np.ndarray) -> Sentence:
    """The sentence without the heads and relations of some words, bool (n,)."""
    relations = ["_" if gone else name for gone, name in zip(hidden, sentence.relations, strict=True)]
    return sentence.replace(heads=np.where(hidden, -1, sentence.heads), relations=relations)


def least_certain(sentences: list[Sentence], model: Path, share: float) -> list[Sentence]:
    """The sentences with only a share of their heads: those with the smallest margins by the model."""
    parsed = load(model, device="cpu", threads=1).parse(sentences, confidence=True)
    margins = np.concatenate([one.confidence.margins for one in parsed if one.confidence is not None])
    order = np.argsort(margins, kind="stable")  # NaN, for words without a margin, comes last
    hidden = np.ones(len(order), np.bool_)
    hidden[order[: round(share * len(order))]] = False
    ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
    return [hide(sentence, own) for sentence, own in zip(sentences, np.split(hidden, ends), strict=True)]


def training_file(treebank: Path, known: str, seed: int, path: Path, model: Path | None = None) -> Path:
    """The training file, or a copy at ``path`` with only the known heads; ``model`` decides what is uncertain."""
    whole = part_path(treebank, "train")
    if known == "all":
        return whole
    generator, share = np.random.default_rng(seed), SHARES[known]
    sentences = list(read_conllu(whole, trees="required"))
    if model is not None:
        sentences = least_certain(sentences, model, share)
    elif known in ("half", "quarter"):
        sentences = [hide(sentence, generator.random(len(sentence)) < 1 - share) for sentence in sentences]
    else:
        words, heads = sum(map(len, sentences)), 0
        kept = []
        for i in generator.permutation(len(sentences)):
            if heads >= share * words:
                break
            kept.append(sentences[i])
            heads += len(sentences[i])
        sentences = kept
    write_conllu(sentences, path)
    return path


def choosing_model(treebank: Path, decoder: str, chooser: str, seed: int, work: Path, results: Path) -> Path:
    """The folder of the model that decides which heads are uncertain; trains it if needed."""
    name = f"{treebank.name}-{decoder}-hinge-{chooser}-{seed}"
    folder = work / name
    if not (folder / CALIBRATION).exists():  # written at the end of training
        run(treebank, decoder, "hinge", chooser, seed, work, results)
    if not (folder / CALIBRATION).exists():
        raise SystemExit(f"{folder}: no model is there, only its result (remove {results / name}.json to train again)")
    return folder


def check_neighbours(treebank: str, settings: dict[str, Any], results: Path) -> None:
    """SystemExit unless all results of a treebank were made with the encoder and training of ``settings``."""
    for path in sorted(results.glob(f"{treebank}-*.json")):
        other = json.loads(path.read_text(encoding="utf-8")).get("settings")
        if other is None or _shared(other) != _shared(settings):
            told = "does not tell its settings" if other is None else "was made with other settings"
            raise SystemExit(f"{path}: {told}, so new runs on {treebank} belong elsewhere (choose another --results)")


def _shared(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that all runs have in common, whatever they learn by whichever loss."""
    return {"encoder": settings["encoder"], "training": settings["training"] | {"seed": None}}


def run(
    treebank: Path,
    decoder: str,
    loss: str,
    known: str,
    seed: int,
    work: Path,
    results: Path,
    *,
    chooser: str = "",
    alone: bool = False,
) -> None:
    """Train and write the result, unless there is one already."""
    name = f"{treebank.name}-{decoder}-{loss}-{known}{'-trees' if alone else ''}-{seed}"
    settings: dict[str, Any] = {
        "treebank": treebank.name,
        "decoder": decoder,
        "loss": loss,
        "known": known,
        "seed": seed,
    }
    settings["learns"] = "trees alone" if alone else "every column"
    model, left = None, f"{treebank.name}-{known}-{seed}.conllu"
    if known == "uncertain":
        settings["chooser"] = chooser
        left = f"{treebank.name}-{decoder}-{known}-{chooser}-{seed}.conllu"
    chosen = (TREES_ALONE if alone else {}) | {"loss": loss}
    config = configure(decoder=decoder, preset="balanced", seed=seed, settings=chosen)
    later, data = {"settings": as_dict(config)}, describe_data(treebank, "train", "dev")
    path = results / f"{name}.json"
    if read_kept(path, settings, data, later) is not None:
        return
    check_neighbours(treebank.name, as_dict(config), results)
    if known == "uncertain":
        model = choosing_model(treebank, decoder, chooser, seed, work, results)
    source = training_file(treebank, known, seed, work / left, model)
    progress = run_training(
        TrainingJob(source, part_path(treebank, "dev"), work / name, config, device="cpu", threads=1, resume=True)
    )
    result: dict[str, Any] = {
        **settings,
        "dev_uas": progress.best_uas,
        "dev_las": progress.best_las,
        "steps": progress.step,
        "seconds": round(progress.seconds),
        **later,
        "data": data,
        **made_with("cpu"),
    }
    with atomic_output(path) as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())
    print(f"{name}: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f}, {progress.seconds:.0f} s", flush=True)


def columns_table(results: list[dict[str, Any]], long_runs: list[dict[str, Any]]) -> list[str]:
    """Lines of Markdown: the accuracy of `mh4-hybrid` trees with and without learning all other columns.

    ``long_runs`` are results of `patience`.
    """
    scores: dict[str, dict[str, dict[int, tuple[float, float]]]] = {"every column": {}, "trees alone": {}}
    training = configure(decoder="mh4-hybrid", preset="balanced").training
    for run in long_runs:
        end, _ = replay(run, training.patience, training.patience_growth)
        scores["every column"].setdefault(run["treebank"], {})[run["seed"]] = end.best_uas, end.best_las
    for result in results:
        if (result["decoder"], result["known"], result["loss"]) == ("mh4-hybrid", "all", "hinge"):
            own = scores[result["learns"]].setdefault(result["treebank"], {})
            own[result["seed"]] = result["dev_uas"], result["dev_las"]
    rows = []
    for treebank in sorted(scores["every column"].keys() & scores["trees alone"].keys()):
        cells, las = [], []
        for learns in scores:
            found = list(scores[learns][treebank].values())
            cells += [str(len(found)), *(shown([pair[i] for pair in found]) for i in (0, 1))]
            las.append(mean(pair[1] for pair in found))
        rows.append(f"| {treebank} | {' | '.join(cells)} | {las[0] - las[1]:+.2f} |")
    head = "treebank | every column: seeds | UAS | LAS | trees alone: seeds | UAS | LAS | LAS gained"
    return [f"| {head} |", "|---|---:|---|---|---:|---|---|---:|", *rows]


def report(folder: Path = RESULTS) -> str:
    """The report in Markdown: a row per combination of settings, with means over its seeds."""
    cells = defaultdict(list)
    results = read_folder(folder)
    for result in results:
        known = result["known"] + (f" ({chooser})" if (chooser := result.get("chooser")) else "")
        cells[result["treebank"], result["decoder"], result["learns"], known, result["loss"]].append(result)
    rows = [
        f"| {treebank} | `{decoder}` | {learns} | {known} | {loss} | {len(found)} "
        f"| {shown([r['dev_uas'] for r in found])} | {shown([r['dev_las'] for r in found])} "
        f"| {mean(r['steps'] for r in found):.0f} | {mean(1000 * r['seconds'] / r['steps'] for r in found):.0f} |"
        for (treebank, decoder, learns, known, loss), found in sorted(cells.items())
    ]
    return "\n".join(
        [
            "# Losses, columns, and partially annotated treebanks",
            "",
            "Preset `balanced`, one thread; UAS and LAS on dev, mean and standard deviation over the seeds that were",
            "run. *Heads*: the heads of the training treebank that are given: all, a random half or quarter, those of",
            "half or a quarter of the sentences, or the quarter that another model is least certain about (in",
            "brackets, the heads that it was trained on). *Trees alone*: without the columns that the preset",
            "predicts beside the tree (`--trees-alone`), but with tags and, in earlier runs, morphological features",
            "as auxiliary tasks. The runs with half of the heads or sentences date from when UPOS, XPOS and FEATS",
            "were still learnt separately. The preset has changed: all runs on Hungarian, and those on Gothic with",
            "trees alone, date from before 25 November 2026 and have `patience=12` and no `patience_growth`. The",
            "machines were busy, so milliseconds per step are not a benchmark. `python experiments/losses.py` makes",
            "the runs (new ones on Hungarian and Gothic need another folder, `--results`) and, with `--report`, this",
            "page.",
            "",
            "| treebank | decoder | learns | heads | loss | seeds | UAS | LAS | steps | ms per step |",
            "|---|---|---|---|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "## What trees gain from learning other columns",
            "",
            "`mh4-hybrid` with hinge and all heads: UPOS, XPOS, FEATS and lemmas learnt beside the trees, or trees",
            "alone. Where a seed of the former was not run here, it is the run of `patience.py`",
            "([PRESETS.md](PRESETS.md)). On Gothic, the two have different patience (above).",
            "",
            *columns_table(results, read_folder(LONG_RUNS["balanced"])),
            "",
        ]
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "treebanks", type=Path, nargs="*", metavar="TREEBANK", help="folders with *train and *dev.conllu"
    )
    parser.add_argument("--decoders", nargs="+", default=["mst", "mh4-hybrid"])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--known", nargs="+", choices=KNOWN, default=["all"])
    parser.add_argument("--chooser", choices=CHOOSERS, default="quarter-sentences", help="see --known uncertain above")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--trees-alone", action="store_true", help="learn no other column")
    parser.add_argument("--work", type=Path, default=Path("runs/losses"), help="folder of models")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="write LOSSES.md")
    arguments = parser.parse_args()
    if not (arguments.treebanks or arguments.report):
        parser.error("a treebank is needed to train")
    for seed in arguments.seeds:
        for treebank in arguments.treebanks:
            for decoder in arguments.decoders:
                for known in arguments.known:
                    for loss in arguments.losses:
                        arguments.work.mkdir(parents=True, exist_ok=True)
                        arguments.results.mkdir(parents=True, exist_ok=True)
                        folders = arguments.work, arguments.results
                        chooser, alone = arguments.chooser, arguments.trees_alone
                        run(treebank, decoder, loss, known, seed, *folders, chooser=chooser, alone=alone)
    if arguments.report:
        with atomic_output(HERE / "LOSSES.md") as stream:
            stream.write(report(arguments.results).encode())


if __name__ == "__main__":
    raise SystemExit(run_script(main))
