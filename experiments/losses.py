"""Hinge, softmax-margin and crf, and what half of the heads are worth: one JSON result a run, and a report.

    python experiments/losses.py ../shared/ud/2.0/{hu,got} --seeds 1 2 3 --work runs/losses
    python experiments/losses.py ../shared/ud/2.0/hu --known half sentences --losses hinge crf --work runs/losses
    python experiments/losses.py --report

What is done is not done again; what was interrupted continues. ``--known half`` hides half of all heads of the training
treebank at random, ``--known sentences`` leaves half of its sentences, drawn at random, with as many heads; the
relations go with them. ``--report`` writes ``LOSSES.md`` from the results.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from kept_results import part_path, read_kept
from provenance import describe_commit, describe_hardware, describe_versions

from mh4.api import configure
from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.files import atomic_output
from mh4.data.sentence import Sentence
from mh4.training.trainer import train

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "losses"
LOSSES = ("hinge", "softmax-margin", "crf")
KNOWN = ("all", "half", "sentences")


def hide(sentence: Sentence, hidden: np.ndarray) -> Sentence:
    """The sentence without the heads and relations of some words, bool (n,)."""
    relations = ["_" if gone else name for gone, name in zip(hidden, sentence.relations, strict=True)]
    return sentence.replace(heads=[-1, *np.where(hidden, -1, sentence.heads[1:])], relations=relations)


def training_file(treebank: Path, known: str, seed: int, work: Path) -> Path:
    """The training treebank, or what is left of it."""
    whole = part_path(treebank, "train")
    if known == "all":
        return whole
    generator = np.random.default_rng(seed)
    sentences = list(read_conllu(whole, trees="required"))
    if known == "half":
        sentences = [hide(sentence, generator.random(len(sentence)) < 0.5) for sentence in sentences]
    else:
        words, heads = sum(map(len, sentences)), 0
        kept = []
        for i in generator.permutation(len(sentences)):
            if 2 * heads >= words:
                break
            kept.append(sentences[i])
            heads += len(sentences[i])
        sentences = kept
    path = work / f"{treebank.name}-{known}-{seed}.conllu"
    write_conllu(sentences, path)
    return path


def run(treebank: Path, decoder: str, loss: str, known: str, seed: int, work: Path) -> None:
    """Train, unless there is a result already, and write one."""
    name = f"{treebank.name}-{decoder}-{loss}-{known}-{seed}"
    settings = {"treebank": treebank.name, "decoder": decoder, "loss": loss, "known": known, "seed": seed}
    path = RESULTS / f"{name}.json"
    if read_kept(path, settings) is not None:
        return
    config = configure(decoder=decoder, preset="balanced", seed=seed, settings={"loss": loss})
    source = training_file(treebank, known, seed, work)
    progress = train(source, part_path(treebank, "dev"), work / name, config, device="cpu", threads=1, resume=True)
    result: dict[str, Any] = {
        **settings,
        "dev_uas": progress.best_uas,
        "dev_las": progress.best_las,
        "steps": progress.step,
        "seconds": round(progress.seconds),
        "commit": describe_commit(),
        "versions": describe_versions(),
        "hardware": describe_hardware("cpu"),
    }
    with atomic_output(path) as stream:
        stream.write((json.dumps(result, indent=1) + "\n").encode())
    print(f"{name}: UAS {progress.best_uas:.2f}, LAS {progress.best_las:.2f}, {progress.seconds:.0f} s", flush=True)


def report() -> str:
    """Markdown: a row a cell, with the mean over its seeds."""
    cells = defaultdict(list)
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        cells[result["treebank"], result["decoder"], result["known"], result["loss"]].append(result)

    def shown(values: list[float], digits: int = 2) -> str:
        deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
        return f"{mean(values):.{digits}f}{deviation}"

    rows = [
        f"| {treebank} | `{decoder}` | {known} | {loss} | {len(found)} | {shown([r['dev_uas'] for r in found])} "
        f"| {shown([r['dev_las'] for r in found])} | {mean(r['steps'] for r in found):.0f} "
        f"| {mean(1000 * r['seconds'] / r['steps'] for r in found):.0f} |"
        for (treebank, decoder, known, loss), found in sorted(cells.items())
    ]
    return "\n".join(
        [
            "# Losses, and treebanks with half of their heads",
            "",
            "Preset `balanced`, one thread, UAS and LAS on dev, mean and deviation over the seeds that have been run. "
            "*Heads*: all heads",
            "of the training treebank, a random half of them, or those of half of its sentences. Machines were busy: "
            "milliseconds per",
            "step are no benchmark. `python experiments/losses.py` makes the runs, and with `--report` this page.",
            "",
            "| treebank | decoder | heads | loss | seeds | UAS | LAS | steps | ms per step |",
            "|---|---|---|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "treebanks", type=Path, nargs="*", metavar="TREEBANK", help="folders with *train and *dev.conllu"
    )
    parser.add_argument("--decoders", nargs="+", default=["mst", "mh4-hybrid"])
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--known", nargs="+", choices=KNOWN, default=["all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--work", type=Path, default=Path("runs/losses"), help="folder of models")
    parser.add_argument("--report", action="store_true", help="write LOSSES.md")
    arguments = parser.parse_args()
    for seed in arguments.seeds:
        for treebank in arguments.treebanks:
            for decoder in arguments.decoders:
                for known in arguments.known:
                    for loss in arguments.losses:
                        arguments.work.mkdir(parents=True, exist_ok=True)
                        RESULTS.mkdir(parents=True, exist_ok=True)
                        run(treebank, decoder, loss, known, seed, arguments.work)
    if arguments.report:
        with atomic_output(HERE / "LOSSES.md") as stream:
            stream.write(report().encode())


if __name__ == "__main__":
    main()
