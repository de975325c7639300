"""The stages of `gpu.py`, the most informative first; each returns the content of its JSON file."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from benchmark import machine
from operations import count_operations
from provenance import describe_commit

from mh4.cli.bench.stages import time_parsing, time_training
from mh4.data.sample import read_sample
from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.model_files import write_json
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS
from mh4.training.running import run_training
from mh4.training.treebanks import read_gold

ROOT = Path(__file__).resolve().parents[1]
DECODER = "mh4-hybrid"
TRANSFORMER_BATCH = 2_000  # words


@dataclass(frozen=True)
class Size:
    """The sizes of all stages.

    ``steps`` is by preset, plus precision unless fp32; ``settings`` is for networks, ``sentences`` counts those taken
    from the sample treebank, and ``transformer`` has the sizes of a BERT.
    """

    tests: tuple[str, ...]
    steps: Mapping[str, int]
    repeats: int
    threads: tuple[int, ...]
    jobs: int
    presets: tuple[str, ...]
    settings: Mapping[str, Any]
    sentences: int
    transformer: Mapping[str, int]
    transformer_steps: int


FULL = Size(
    tests=("tests/mh4/gpu", "-m", "cuda"),
    steps={"paper": 300, "balanced": 300, "large": 60, "large bf16": 60},
    repeats=5,
    threads=(1, 4, 16),
    jobs=8,
    presets=("large", "balanced"),
    settings={},
    sentences=10_000,
    transformer={  # XLM-R-base
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "max_position_embeddings": 512,
    },
    transformer_steps=40,
)
REHEARSAL = Size(
    tests=("tests/mh4/gpu/test_pretend_gpu.py", "-k", "refuses"),
    steps={"paper": 3, "balanced": 3, "large": 1, "large bf16": 1},
    repeats=1,
    threads=(1, 2),
    jobs=2,
    presets=("large",),
    settings={
        **dict.fromkeys(("hidden", "mlp", "word_size", "character_hidden"), 16),
        "batch_words": 60,
        "max_steps": 2,
        "evaluation_steps": 1,
    },
    sentences=30,
    transformer={},
    transformer_steps=1,
)


@dataclass(frozen=True)
class Setting:
    """Arguments of all stages; ``treebanks`` are folders by name, or empty for the sample treebank."""

    size: Size
    treebanks: Mapping[str, Path]
    work: Path
    deadline: float

    def files(self) -> dict[str, tuple[Path, Path]]:
        """The training and development file of each treebank."""
        found = {}
        for name, folder in self.treebanks.items():
            parts = [sorted(folder.glob(f"*{part}.conllu")) for part in ("train", "dev")]
            if all(parts):
                found[name] = parts[0][0], parts[1][0]
        if found:
            return found
        paths = self.work / "train.conllu", self.work / "dev.conllu"
        for path, sentences in zip(paths, (read_sample()[part] for part in ("train", "dev")), strict=True):
            path.write_text("".join(sentences[: self.size.sentences]), encoding="utf-8")
        return {"sample": paths}


class OutOfTimeError(Exception):
    """The time is over; the training so far is kept."""


def parity(setting: Setting) -> dict[str, Any]:
    """Run the tests that compare a GPU with the CPU, on several cores if pytest-xdist is installed."""
    spread = ["-n", "auto"] if importlib.util.find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *spread, *setting.size.tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    return {"passed": not done.returncode, "output": lines[-40:], "errors": done.stderr.strip().splitlines()[-10:]}


def training(setting: Setting) -> dict[str, Any]:
    """Words per second, shares of a step, and operations per step, by preset."""
    treebank = next(iter(setting.files().values()))[0]
    measured = {}
    for name, steps in setting.size.steps.items():
        preset, _, precision = name.partition(" ")
        settings = {**PRESETS[preset], **setting.size.settings, "precision": precision or "fp32"}
        with Utilisation() as utilisation:
            measured[name] = time_training(treebank, DECODER, steps, "cuda", None, settings)
        measured[name] |= count_operations(treebank, DECODER, "cuda", settings)
        measured[name]["utilisation"] = utilisation.mean
    return {"presets": measured}


def parsing(setting: Setting) -> dict[str, Any]:
    """Words per second of an untrained model of the published size, by number of decoding threads."""
    treebank = next(iter(setting.files().values()))[0]
    measured = {}
    for threads in setting.size.threads:
        with Utilisation() as utilisation:
            measured[str(threads)] = time_parsing(None, treebank, DECODER, setting.size.repeats, "cuda", threads)
        measured[str(threads)]["utilisation"] = utilisation.mean
    return {"threads": measured}


def accuracy(setting: Setting) -> dict[str, Any]:
    """Train to the end: dev UAS and LAS, to compare with the CPU, and the names of trainings not finished in time."""

    def on_step(*_: object) -> None:
        if time.time() > setting.deadline:
            raise OutOfTimeError

    scores: dict[str, Any] = {}
    unfinished = []
    for preset in setting.size.presets:
        for name, (treebank, dev) in setting.files().items():
            config = make_config(ChartConfig, {"decoder": DECODER, **PRESETS[preset], **setting.size.settings})
            folder = setting.work / f"{name}-{preset}"
            job = TrainingJob(treebank, dev, folder, config, device="cuda", resume=True, on_step=on_step)
            try:
                progress = run_training(job)
            except OutOfTimeError:
                unfinished.append(f"{name} {preset}")
                continue
            scores[f"{name} {preset}"] = {
                "dev_uas": round(progress.best_uas, 2),
                "dev_las": round(progress.best_las, 2),
                "steps": progress.step,
                "minutes": round(progress.seconds / 60, 2),
            }
    return {"runs": scores, "unfinished": unfinished}


_WORKER = """
import json, sys
if sys.argv[1]:
    sys.path.insert(0, sys.argv[1])
    from pretend_gpu import PretendGPU
    PretendGPU().__enter__()
from mh4.cli.bench.stages import time_training
print(json.dumps(time_training(sys.argv[2], sys.argv[3], int(sys.argv[4]), "cuda", 1, json.loads(sys.argv[5]))))
"""


def jobs(setting: Setting) -> dict[str, Any]:
    """Words per second of one training alone on a GPU, and of each of several at once."""
    size, preset = setting.size, "balanced"
    treebank = next(iter(setting.files().values()))[0]
    pretended = str(ROOT / "tests" / "support") if size is REHEARSAL else ""
    settings = json.dumps({**PRESETS[preset], **size.settings})
    command = [sys.executable, "-c", _WORKER, pretended, str(treebank), DECODER, str(size.steps[preset]), settings]

    def together(count: int) -> list[float]:
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        outputs = [process.communicate()[0] for process in started]
        return [json.loads(output)["words_per_second"] for output in outputs]

    return {"preset": preset, "alone": together(1)[0], "together": together(size.jobs)}


def transformer(setting: Setting) -> dict[str, Any]:
    """Words per second with a transformer of random weights: fine-tuned, frozen, and in parsing."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from tiny_bert import make_bert

    size, (treebank, dev) = setting.size, next(iter(setting.files().values()))
    encoder = make_bert(setting.work / "bert", (sentence.text for sentence in read_gold(treebank)), **size.transformer)
    chosen = {**PRESETS["pretrained"], "batch_words": TRANSFORMER_BATCH, **size.settings}
    chosen |= {"encoder": "transformer", "pretrained": str(encoder), "encoder_layers": 2}
    ways = {"fine-tuned": {}, "fine-tuned bf16": {"precision": "bf16"}, "frozen": {"encoder_freeze": True}}
    measured = {}
    for name, settings in ways.items():
        with Utilisation() as utilisation:
            found = time_training(treebank, DECODER, size.transformer_steps, "cuda", None, {**chosen, **settings})
        measured[name] = {**found, "utilisation": utilisation.mean}
    config = make_config(ChartConfig, {"decoder": DECODER, **chosen, "max_steps": 1, "evaluation_steps": 1})
    run_training(TrainingJob(treebank, dev, setting.work / "transformer", config, device="cuda", overwrite=True))
    with Utilisation() as utilisation:
        found = time_parsing(setting.work / "transformer", treebank, DECODER, size.repeats, "cuda")
    measured["parsing"] = {**found, "utilisation": utilisation.mean}
    return {"ways": measured}


STAGES: dict[str, Callable[[Setting], dict[str, Any]]] = {
    "parity": parity,
    "training": training,
    "parsing": parsing,
    "accuracy": accuracy,
    "jobs": jobs,
    "transformer": transformer,
}


class Utilisation:
    """Context that measures the mean utilisation of the GPU, in percent, by nvidia-smi; None without that."""

    mean: float | None = None

    def __enter__(self) -> Utilisation:
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--loop-ms=200"]
        self._lines = tempfile.TemporaryFile("w+")
        try:
            self._process = subprocess.Popen(command, stdout=self._lines, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            self._process = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._lines.seek(0)
            values = [float(line) for line in self._lines if line.strip().isdigit()]
            self.mean = round(sum(values) / len(values), 1) if values else None
        self._lines.close()


def _is_finished(path: Path) -> bool:
    """Whether there is a complete result; failed tests do not count, so that they are run again."""
    if not path.exists():
        return False
    found = json.loads(path.read_text(encoding="utf-8"))
    return found.get("passed", True) and not found.get("unfinished")


def run_stages(
    size: Size, treebanks: Mapping[str, Path], results: Path, work: Path, minutes: float, names: Sequence[str] | None
) -> list[str]:
    """Run the stages without a complete result; return those that failed, or were not reached or not finished."""
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here (--rehearse tries everything without one)")
    unknown = set(names or ()) - STAGES.keys()
    if unknown:
        raise SystemExit(f"unknown stages {', '.join(sorted(unknown))}; known: {', '.join(STAGES)}")
    for folder in (results, work):
        folder.mkdir(parents=True, exist_ok=True)
    setting = Setting(size, treebanks, work, time.time() + 60 * minutes)
    missed = []
    for name in names or STAGES:
        path = results / f"{name}.json"
        if _is_finished(path):
            continue
        if time.time() > setting.deadline:
            missed.append(name)
            continue
        print(f"{name} …", flush=True)
        start = time.time()
        try:
            found = STAGES[name](setting)
        except Exception:  # a failing stage must not stop the others
            traceback.print_exc()
            missed.append(name)
            continue
        seconds = round(time.time() - start, 1)
        write_json(path, {**found, "seconds": seconds, "commit": describe_commit(), "machine": machine(None)})
        print(f"{name}: {time.time() - start:.0f} s, {path}", flush=True)
        if found.get("passed") is False:
            print("\n".join([*found["output"], *found["errors"]]), flush=True)
            missed.append(name)
        if unfinished := found.get("unfinished"):
            print(f"{name}: out of time for {', '.join(unfinished)}; the next call goes on", flush=True)
            missed.append(name)
    return missed
