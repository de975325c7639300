"""Train and score a grid of parsers: treebanks × systems × presets × seeds, one JSON result a run.

    python experiments/grid.py --work runs/grid --treebanks UD/2.0/{hu,got} --systems mst mh4-hybrid \
        --seeds 1 2 3 --workers 2

Finished runs are not repeated; interrupted ones continue from their last evaluation, with the same result as without
the interruption. Any number of workers and machines may work on one grid, as long as they see the same two folders:
``--work`` (models and locks) and ``--results`` (JSON, to be committed). A run that fails is tried again, later, up to
``--attempts`` times, and its errors are kept in its result. ``--list`` shows the state of every run. ``--score`` trains
nothing: finished runs whose models are still in ``--work`` are scored on the given test files, for instance on a
segmented one added later.

A treebank is a folder with files ``*train.conllu``, ``*dev.conllu`` and perhaps ``*test.conllu``, named by the part of
their names before ``-ud-``; or ``NAME=FOLDER``; or ``NAME=TRAIN,DEV[,TEST[,SEGMENTED]]``. SEGMENTED is the test file as
cut by a segmenter, to be parsed and scored against TEST, or a UDPipe model, ``*.udpipe``, that cuts it (see
`segmentation.py`). ``ensemble`` combines ``mst``, ``mh4-hybrid`` and ``1ec`` of one seed. A preset is a known one, or a
new name with its settings: ``--presets tiny --set hidden=24``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from grid_results import DONE, FAILED, FORMAT, OPEN, RESULTS, Result, attempts, read_result, write_result
from grid_runs import PRESETS, SYSTEMS, Run, find_treebank, make_grid, same_settings, score_run, settings_of, train_run
from kept_results import Data, check_data, describe_files
from provenance import describe_commit, describe_hardware, describe_versions
from run_lock import STALE_SECONDS, LockLostError, RunLock, holder_of
from scripting import positive, run_script

from mh4.models.devices import choose_device
from mh4.parsers.base import Parser
from mh4.parsers.model_files import LOG, WEIGHTS
from mh4.parsers.registry import load

SAME_UAS = 1e-3  # largest difference, in points, between a result and its model scored again


class OutOfTimeError(Exception):
    """The time limit, ``--minutes``, has passed."""


@dataclass(frozen=True)
class Options:
    """Options of the work on a grid."""

    work: Path
    results: Path
    device: str
    attempts: int
    deadline: float  # seconds, as by time.time
    poll: float
    stale_seconds: float
    commit: str | None

    def result_path(self, run: Run) -> Path:
        """The JSON file of a run."""
        return self.results / f"{run.name}.json"

    def lock_path(self, run: Run) -> Path:
        """The lock file of a run."""
        return self.work / "locks" / f"{run.name}.lock"

    def model_folder(self, run: Run) -> Path:
        """The model folder of a run."""
        return self.work / "models" / run.name


def complete_run(run: Run, options: Options, lock: RunLock) -> dict[str, Any]:
    """Train and score a run; return the entries of its result."""

    def on_step(*_: object) -> None:
        lock.check()
        if time.time() > options.deadline:
            raise OutOfTimeError

    folder = options.model_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    if run.system == "ensemble":
        scores = score_run(load_run(run, options), run.treebank, folder)
        best = scores["dev"]["f1"]
        return {"dev_uas": best["UAS"], "dev_las": best["LAS"], **scores}
    trained = train_run(run, folder, options.device, on_step)
    return trained | score_run(load_run(run, options), run.treebank, folder)


def load_run(run: Run, options: Options) -> Parser:
    """The parser that a run has trained; for an ensemble, the combined one."""
    folders = [options.model_folder(member) for member in run.members()]
    if folders:
        return load(*folders, device=options.device, threads=1)
    return load(options.model_folder(run), device=options.device, threads=1)


def score_again(runs: Sequence[Run], options: Options) -> None:
    """Update the results of finished runs whose models exist with scores on the present test files."""
    for run in runs:
        path = options.result_path(run)
        result = read_result(path)
        models = [options.model_folder(member) / WEIGHTS for member in run.members() or [run]]
        if result is None or result["status"] != DONE:
            continue
        if not all(model.exists() for model in models):
            _say(run, "left as it is: its model is gone")
            continue
        scores = score_run(load_run(run, options), run.treebank, options.model_folder(run))
        if abs(scores["dev"]["f1"]["UAS"] - result["dev_uas"]) > SAME_UAS:
            _say(run, f"left as it is: its model is another one, with dev UAS {scores['dev']['f1']['UAS']:.2f}")
            continue
        added = {name: scores[name] for name in ("test", "test_segmented") if scores[name] is not None}
        write_result(path, result | added | {"files": result["files"] | _file_names(run)})
        _say(run, "scored")


def attempt(run: Run, options: Options, lock: RunLock) -> None:
    """Work on a run whose lock this worker holds, and write its result, even if it fails."""
    path = options.result_path(run)
    before = read_result(path)
    entry: Result = {
        "format": FORMAT,
        "treebank": run.treebank.name,
        "system": run.system,
        "preset": run.preset,
        "seed": run.seed,
        "status": OPEN,
        "settings": settings_of(run),
        "failures": [] if before is None else before["failures"],
        "interruptions": [] if before is None else before["interruptions"],
    }
    if lock.taken_over is not None:
        gone = {"step": _last_step(options.model_folder(run)), "found": _now(), "host": lock.taken_over.host}
        entry["interruptions"].append(gone)
    with lock.still_held():
        write_result(path, entry)
    if attempts(entry) >= options.attempts:
        entry |= {"status": FAILED}
        _say(run, "given up: its workers died")
    else:
        _say(run, "starts" if before is None else "continues")
        try:
            entry |= {"status": DONE, **complete_run(run, options, lock), **_provenance(run, options)}
        except (LockLostError, OutOfTimeError):
            raise
        except Exception as error:
            failure = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc(), "at": _now()}
            entry["failures"].append(failure)
            entry |= {"status": FAILED if attempts(entry) >= options.attempts else OPEN}
            _say(run, f"failed ({len(entry['failures'])} of {options.attempts}): {failure['error']}")
        else:
            _say(run, f"done: dev UAS {entry['dev_uas']:.2f}, LAS {entry['dev_las']:.2f}")
    with lock.still_held():
        write_result(path, entry)


def _provenance(run: Run, options: Options) -> dict[str, Any]:
    return {
        "files": _file_names(run),
        "data": data_of(run),
        "commit": options.commit,
        "versions": describe_versions(),
        "hardware": describe_hardware(options.device),
        "finished": _now(),
    }


def data_of(run: Run) -> Data:
    """What a run is trained and chosen on; test sets are added later, too."""
    return describe_files({"train": run.treebank.train, "dev": run.treebank.dev})


def _file_names(run: Run) -> dict[str, str]:
    files = {name: getattr(run.treebank, name) for name in ("train", "dev", "test", "segmented")}
    return {name: path.name for name, path in files.items() if path is not None}


def _last_step(folder: Path) -> int:
    log = folder / LOG
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["step"] if whole else 0


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _say(run: Run, what: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {run.name}: {what}", flush=True)


def is_over(run: Run, options: Options) -> bool:
    """Whether a run is done or given up; SystemExit if its result was made with other settings."""
    result = read_result(options.result_path(run))
    if result is None:
        return False
    path = options.result_path(run)
    if not same_settings(run, result["settings"]):
        raise SystemExit(f"{path}: was made with other settings (take another name of the preset)")
    if "data" in result:
        check_data(path, result["data"], data_of(run))
    return result["status"] == DONE or attempts(result) >= options.attempts


def is_done(run: Run, options: Options) -> bool:
    """Whether a run is done."""
    result = read_result(options.result_path(run))
    return result is not None and result["status"] == DONE


def work_on(runs: Sequence[Run], options: Options) -> None:
    """The loop of one worker: attempt open runs until none is left or time is over."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, _interrupt)
    while time.time() < options.deadline:
        taken = attempt_next(runs, options)
        if taken is None:
            return
        if not taken:  # others hold all open runs; if one of them dies, this worker can take over
            _stop_without_parent()
            time.sleep(options.poll)


def attempt_next(runs: Sequence[Run], options: Options) -> bool | None:
    """Attempt the first open run that no worker holds, runs with fewer failed attempts first.

    Returns whether there was one; None if nothing is left to wait for.
    """
    left = [run for run in runs if not is_over(run, options)]
    ready = [run for run in left if all(is_done(member, options) for member in run.members())]
    if not ready:  # all runs left wait for runs that are given up or not in the grid
        return None
    for run in sorted(ready, key=lambda run: attempts(read_result(options.result_path(run)))):
        lock = RunLock.acquire(options.lock_path(run), options.stale_seconds, _stop_without_parent)
        if lock is None:
            continue
        with lock:
            if not is_over(run, options):  # another worker may have finished it in the meantime
                try:
                    attempt(run, options, lock)
                except LockLostError:
                    _say(run, "left to another worker")
                except OutOfTimeError:
                    _say(run, "suspended: out of time")
        return True
    return False


def _stop_without_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _worker(runs: Sequence[Run], options: Options) -> None:
    try:
        work_on(runs, options)
    except KeyboardInterrupt:
        sys.exit(0)


def run_workers(runs: Sequence[Run], options: Options, workers: int) -> None:
    """Spawn workers and replace those that crash, until all have finished."""
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the workers' libraries as they start
    context = multiprocessing.get_context("spawn")

    def spawn() -> Any:
        process = context.Process(target=_worker, args=(runs, options))
        process.start()
        return process

    signal.signal(signal.SIGTERM, _interrupt)
    spare = options.attempts * len(runs)
    processes = [spawn() for _ in range(min(workers, len(runs)))]
    try:
        while processes:
            multiprocessing.connection.wait([process.sentinel for process in processes])
            for process in [process for process in processes if process.exitcode is not None]:
                processes.remove(process)
                if process.exitcode and spare:
                    print(f"a worker died with exit code {process.exitcode}; another takes its place", flush=True)
                    spare -= 1
                    processes.append(spawn())
    except KeyboardInterrupt:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
        raise SystemExit(130) from None


def list_runs(runs: Sequence[Run], options: Options) -> int:
    """Print the state of every run; return the number of runs that are not done."""
    states: dict[str, list[str]] = {DONE: [], "running": [], OPEN: [], FAILED: []}
    for run in runs:
        result = read_result(options.result_path(run))
        holder = holder_of(options.lock_path(run))
        if result is not None and result["status"] == DONE:
            states[DONE].append(run.name)
        elif attempts(result) >= options.attempts:
            last = result["failures"][-1]["error"] if result and result["failures"] else "its workers died"
            states[FAILED].append(f"{run.name} ({last})")
        elif holder is not None and not holder.is_gone():
            states["running"].append(f"{run.name} (process {holder.pid} on {holder.host})")
        else:
            states[OPEN].append(run.name)
    for state, names in states.items():
        print(f"{len(names)} {state}" + "".join(f"\n  {name}" for name in names if state != DONE))
    return len(runs) - len(states[DONE])


def main() -> None:
    """Do the missing runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--treebanks", nargs="+", required=True, metavar="TREEBANK", help="folders, or NAME=TRAIN,DEV[,TEST]")
    add("--systems", nargs="+", default=list(SYSTEMS), metavar="SYSTEM", help=", ".join(SYSTEMS))
    add("--presets", nargs="+", default=["paper"], metavar="PRESET", help=", ".join(PRESETS))
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of a preset that is not known")
    add("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    add("--work", type=Path, required=True, help="folder of models and locks, outside the repository or ignored by it")
    add("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    add("--workers", "--jobs", type=positive, default=1, help="processes, one CPU thread each; they may share a GPU")
    add("--device", choices=["auto", "cpu", "cuda"], default="auto")
    add("--attempts", type=positive, default=3, help="give a run up after so many failures (default: %(default)s)")
    add("--minutes", type=float, default=float("inf"), help="stop after so long; the next call continues")
    add("--poll", type=float, default=10.0, help="seconds between looks at runs that others are at")
    add("--stale-minutes", type=float, default=STALE_SECONDS / 60, help="when a silent worker counts as dead")
    add("--commit", default=None, help="of the code, where git cannot tell")
    add("--list", action="store_true", help="show where every run stands, do nothing")
    add("--score", action="store_true", help="score done runs on the test files, train nothing")
    arguments = parser.parse_args()
    treebanks = [find_treebank(text) for text in arguments.treebanks]
    runs = make_grid(treebanks, arguments.systems, arguments.presets, arguments.set, arguments.seeds)
    if len({run.name for run in runs}) < len(runs):
        raise SystemExit("two runs have the same name: a treebank, system, preset or seed is given twice")
    choose_device(arguments.device)
    for run in runs:  # report impossible ones before any work
        settings_of(run)
    (arguments.work / "locks").mkdir(parents=True, exist_ok=True)
    arguments.results.mkdir(parents=True, exist_ok=True)
    options = Options(
        arguments.work.resolve(),
        arguments.results.resolve(),
        arguments.device,
        arguments.attempts,
        time.time() + 60 * arguments.minutes,
        arguments.poll,
        60 * arguments.stale_minutes,
        arguments.commit or describe_commit(),
    )
    for run in runs:
        is_over(run, options)  # report results with other settings before any work
    if arguments.score:
        torch.set_num_threads(1)
        score_again(runs, options)
    elif not arguments.list:
        run_workers(runs, options, arguments.workers)
    sys.exit(1 if list_runs(runs, options) else 0)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
