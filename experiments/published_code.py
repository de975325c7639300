"""The published code itself, trained on these treebanks: does it reach the published means?

    python -m venv runs/dynet
    runs/dynet/bin/pip install dyNET38==2.2 'cython<3' 'numpy<1.24' 'setuptools<70' fire
    git clone https://github.com/tzshi/mh4-parser-acl18 runs/published-code
    cd runs/published-code
    rm acl18/chu_liu_edmonds.cpp  # of an older Cython
    ../dynet/bin/python setup.py build_ext --inplace
    cd ../..
    python experiments/published_code.py UD/2.0/got --systems mst

Runs the training scripts of Gómez-Rodríguez, Shi and Lee (2018) with their settings and their decoders, on one thread.
Three edits let their code run with today's DyNet: an import that DyNet no longer provides, embeddings that start as in
DyNet 2.0 (2.1 draws them from a smaller range), and arcs picked only where the loss needs them, which takes less time
and changes nothing else. ``--log`` reads the log of a run that has ended, or that was stopped, instead of training. The
model with the best LAS counts, as in their code, which chooses random numbers anew in every run: a seed is only a name.
``--report`` prints the runs beside ours: final scores, and how both learn.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import correlation, linear_regression, mean
from typing import Any

from grid_results import DONE, RESULTS, SHORT_DEV, read_result, write_result
from kept_results import describe_data, part_path, read_grouped, read_kept, shown
from provenance import made_with
from scripting import run_script

FOLDER = Path(__file__).parent / "results" / "published-code"
SCRIPTS = {"mst": "cle.sh", "mh3": "ahdp.sh", "mh4-two": "mh4t-two.sh", "mh4-hybrid": "mh4t.sh", "1ec": "oneec.sh"}
EDITS = (
    ("cdparser.py", "import fire, json", "import sys, fire, json"),
    ("cdparser.py", ", self._cdims))\n", ", self._cdims), init=GlorotInitializer(True))\n"),
    ("cdparser.py", " + 3, self._wdims))\n", " + 3, self._wdims), init=GlorotInitializer(True))\n"),
    (
        "modules.py",
        "        exprs = np.array([[exprs[i][j] for j in range(len(carriers))] for i in range(len(carriers))])\n",
        "",
    ),
)
SCORES = re.compile(r"^[\w-]+-(UAS|LAS) ([\d.]+)$", re.MULTILINE)
PATIENCE = 5  # evaluations that are not the best so far
EARLY, AROUND = (5_000, 8_000, 11_000), 1_000  # steps: before any rate falls; on either side of these
EVALUATED, BATCH = 500, 100  # steps between evaluations, but at least a quarter of an epoch; words in a batch

Curve = list[list[float]]  # step, UAS and LAS of each evaluation


def edit(code: Path) -> None:
    """Make the edits in a clone of the published repository, as far as they are not made yet."""
    for name, old, new in EDITS:
        path = code / "acl18" / name
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(old, new), encoding="utf-8")


def train(treebank: Path, system: str, seed: int, code: Path, python: Path, work: Path) -> Path:
    """Train with the published script of a system; return its log."""
    if not (code / "acl18").is_dir():
        raise SystemExit(f"{code}: holds no clone of the published code (see the first lines of published_code.py)")
    edit(code)
    headers = [python, "-c", "import numpy; print(numpy.get_include())"]
    include = subprocess.run(headers, check=True, capture_output=True, text=True).stdout.strip()
    script = (code / "scripts" / SCRIPTS[system]).read_text(encoding="utf-8")
    for name, value in (
        ("LOG_FOLDER", work),
        ("TRAIN_FILE", part_path(treebank, "train")),
        ("DEV_FILE", part_path(treebank, "dev")),
    ):
        script = re.sub(rf"^{name}=.*$", f"{name}={Path(value).absolute()}", script, flags=re.MULTILINE)
    script = re.sub(r"^source .*$", "", script, flags=re.MULTILINE)
    script = script.replace(" python -m ", f" {python.absolute()} -u -W ignore -m ")
    name = f"{treebank.name}-{system}"
    ended = subprocess.run(
        ["bash", "-c", script, "bash", name, str(seed)],
        cwd=code,
        env=os.environ | {"CFLAGS": f"-I{include}", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{SCRIPTS[system]} failed with exit status {ended.returncode}")
    return work / f"{name}-{seed}" / "log.log"


def read_log(log: str, words: int) -> dict[str, Any]:
    """UAS and LAS of the best evaluation by LAS, and all evaluations, from a log; ``words`` are those of training."""
    every = max(int(words / BATCH / 4), EVALUATED)
    scores: dict[str, list[float]] = defaultdict(list)
    for metric, value in SCORES.findall(log):
        scores[metric].append(round(100 * float(value), 2))
    curve = [[every * i, *pair] for i, pair in enumerate(zip(scores["UAS"], scores["LAS"], strict=True), 1)]
    if not curve:
        raise SystemExit("the log has no evaluation")
    best = max(curve, key=lambda one: (one[2], one[0]))  # of equal ones, the last
    return {
        "uas": best[1],
        "las": best[2],
        "best step": best[0],
        "steps": curve[-1][0],
        "decays": log.count("Learning rate decayed!"),
        "curve": curve,
    }


def first_fall(curve: Curve) -> int:
    """The index of the evaluation after which the learning rate falls first: the fifth that is not the best so far."""
    best, waited = 0.0, 0
    for i, (_, _, las) in enumerate(curve):
        waited = 0 if las >= best else waited + 1
        best = max(best, las)
        if waited == PATIENCE:
            return i
    raise ValueError("the learning rate did not fall")


def gained(curve: Curve) -> float:
    """UAS gained when the rate falls first: five evaluations before it, and five after it without the first two."""
    i = first_fall(curve)
    before, after = ([uas for _, uas, _ in part] for part in (curve[i - 4 : i + 1], curve[i + 3 : i + 8]))
    return mean(after) - mean(before)


def _ours(treebank: str, system: str) -> list[dict[str, Any]]:
    """Our runs, on the same dev sentences."""
    for folder in (SHORT_DEV, RESULTS):
        runs = [read_result(folder / f"{treebank}-{system}-paper-{seed}.json") for seed in range(1, 10)]
        if done := [run for run in runs if run and run["status"] == DONE]:
            return done
    return []


def _curve(run: dict[str, Any]) -> Curve:
    """The evaluations of one of our runs, without the time and the loss."""
    return [[step, uas, las] for step, _, uas, las, _ in run["curve"]]


def first_step(curve: Curve) -> float:
    """The step at which the learning rate falls first."""
    return curve[first_fall(curve)][0]


def chance(results: Path) -> tuple[float, float, int]:
    """How final UAS depends on when the rate falls first, within cells of our runs with three seeds or more.

    Returns UAS per 10,000 steps, the correlation, and the number of runs.
    """
    falls, scores = [], []
    for runs in read_grouped(results, "treebank", "system", "preset").values():
        own = [
            (float(first_step(_curve(run))), float(run["dev_uas"]))
            for run in runs
            if run["preset"] == "paper" and run["status"] == DONE and "curve" in run
        ]
        if len(own) >= 3:
            middle = [mean(values) for values in zip(*own, strict=True)]
            falls += [fall - middle[0] for fall, _ in own]
            scores += [score - middle[1] for _, score in own]
    return 10_000 * linear_regression(falls, scores).slope, correlation(falls, scores), len(falls)


def _learning(name: str, curves: Sequence[Curve]) -> str:
    """A row: UAS around some steps, where the rate falls first, and what is gained then."""
    around = [
        shown([mean([uas for step, uas, _ in curve if abs(step - at) <= AROUND]) for curve in curves]) for at in EARLY
    ]
    falls = ", ".join(f"{step:,}" for step in sorted(map(first_step, curves)))
    return f"| {name} | {' | '.join(around)} | {falls} | {shown([gained(curve) for curve in curves])} |"


def report(results: Path) -> str:
    """Two tables in Markdown: final scores by treebank and system, and how the published code and ours learn."""
    rows, learning = [], []
    for (treebank, system), own in read_grouped(results, "treebank", "system").items():
        ours = _ours(treebank, system)
        rows.append(
            f"| {treebank} | `{system}` | {len(own)} | {shown([run['uas'] for run in own])} "
            f"| {shown([run['las'] for run in own])} | {max(run['steps'] for run in own):,} "
            f"| {shown([run['dev_uas'] for run in ours]) if ours else '–'} |"
        )
        learning.append(_learning(f"{treebank} `{system}`, published code", [run["curve"] for run in own]))
        if ours:
            learning.append(_learning(f"{treebank} `{system}`, ours", [_curve(run) for run in ours]))
    early = " | ".join(f"UAS around step {step:,}" for step in EARLY)
    return "\n".join(
        [
            "| treebank | system | runs | UAS | LAS | steps | our UAS |",
            "|---|---|---:|---|---|---:|---|",
            *rows,
            "",
            f"| | {early} | rate falls at step | UAS gained |",
            "|---|---|---|---|---|---|",
            *learning,
        ]
    )


def count_words(path: Path) -> int:
    """The number of words in a CoNLL-U file, without multiword tokens and empty nodes."""
    return len(re.findall(r"^\d+\t", path.read_text(encoding="utf-8"), re.MULTILINE))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("treebanks", type=Path, nargs="*", help="folders with train and dev files")
    parser.add_argument("--systems", nargs="+", choices=SCRIPTS, default=["mst"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--code", type=Path, default=Path("runs/published-code"), help="clone of the published code")
    parser.add_argument("--python", type=Path, default=Path("runs/dynet/bin/python"), help="Python with DyNet")
    parser.add_argument("--log", type=Path, help="read this log of the one run that is named")
    parser.add_argument("--work", type=Path, default=Path("runs/published-code-models"), help="models and logs")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.treebanks or arguments.report):
        parser.error("a treebank is needed to train")
    for treebank in arguments.treebanks:
        for system in arguments.systems:
            for seed in arguments.seeds:
                own = {"treebank": treebank.name, "system": system, "seed": seed}
                path = arguments.results / f"{treebank.name}-{system}-{seed}.json"
                data = describe_data(treebank, "train", "dev")
                if read_kept(path, own, data) is not None:
                    continue
                log = arguments.log or train(
                    treebank, system, seed, arguments.code, arguments.python, arguments.work.absolute()
                )
                found = read_log(log.read_text(encoding="utf-8"), count_words(part_path(treebank, "train")))
                write_result(path, {**own, **found, "data": data, **made_with("cpu")})
    if arguments.report:
        print(report(arguments.results))
        slope, r, runs = chance(RESULTS)
        print(f"\nIn {runs} runs of ours, {slope:+.2f} UAS for a first fall 10,000 steps later (correlation {r:.2f}).")


if __name__ == "__main__":
    raise SystemExit(run_script(main))
