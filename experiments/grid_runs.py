"""The runs of `grid.py`: systems and treebanks as named on the command line, and how runs are trained and scored."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from segmentation import MODEL_SUFFIX, segment_file

from mh4.machine import require
from mh4.parsers.base import Parser
from mh4.parsers.config import (
    ChartConfig,
    GreedyConfig,
    NetworkParserConfig,
    as_dict,
    from_dict,
    make_config,
    parse_settings,
)
from mh4.parsers.model_files import LOG
from mh4.training.job import TrainingJob
from mh4.training.presets import PRESETS as ANNOTATING
from mh4.training.running import run_training
from mh4.trees.evaluation import Evaluation, Score, evaluate

# The grid compares only trees. Before format 4, runs also had morphological features as an auxiliary task.
TREES_ALONE = {"tagger_weight": 0.2, "analysis_weight": 0.0, "lemma_weight": 0.0}
FORMER = {"best": {"patience": 8}}  # as in the runs that are done; the preset has become more patient
PRESETS = {
    name: settings | TREES_ALONE | FORMER.get(name, {}) if settings else settings
    for name, settings in ANNOTATING.items()
}
CHART_SYSTEMS = ("mst", "mh3", "mh4-two", "mh4-hybrid", "1ec")
# Transition system, the tokens whose vectors it reads (Tables 1 and 4 of Gómez-Rodríguez, Shi and Lee 2018), how these
# are scored (as in their toolkit), and the oracle. The paper names none; the toolkit trains MH4 by `chart-order`.
GREEDY_SYSTEMS = {
    "greedy-mh3": ("arc-hybrid", "s0,b0", "biaffine", "static"),
    "greedy-mh4": ("mh4", "s2,s1,s0,b0", "concatenated", "static"),
    "greedy-mh4-three": ("mh4", "s1,s0,b0", "concatenated", "static"),
    "greedy-mh4-two": ("mh4", "s0,b0", "concatenated", "static"),
    "greedy-mh4-chart": ("mh4", "s2,s1,s0,b0", "concatenated", "chart-order"),
    "greedy-mh4-three-chart": ("mh4", "s1,s0,b0", "concatenated", "chart-order"),
    "greedy-mh4-two-chart": ("mh4", "s0,b0", "concatenated", "chart-order"),
}
ENSEMBLE = ("mst", "mh4-hybrid", "1ec")  # the published one
SYSTEMS = (*CHART_SYSTEMS, *GREEDY_SYSTEMS, "ensemble")


@dataclass(frozen=True)
class Treebank:
    """Files of one treebank; ``segmented`` is the test file cut by a segmenter, or a UDPipe model that cuts it."""

    name: str
    train: Path
    dev: Path
    test: Path | None = None
    segmented: Path | None = None


@dataclass(frozen=True)
class Run:
    """One model to train and score."""

    treebank: Treebank
    system: str
    preset: str
    settings: Mapping[str, Any]
    seed: int

    @property
    def name(self) -> str:
        """The name of the run in file names."""
        return f"{self.treebank.name}-{self.system}-{self.preset}-{self.seed}"

    def members(self) -> list[Run]:
        """The runs that an ensemble combines, so it waits for them."""
        if self.system != "ensemble":
            return []
        return [Run(self.treebank, system, self.preset, self.settings, self.seed) for system in ENSEMBLE]


def config_of(system: str, settings: Mapping[str, Any], seed: int) -> NetworkParserConfig:
    """The configuration for training a system."""
    if system in GREEDY_SYSTEMS:
        name, positions, form, oracle = GREEDY_SYSTEMS[system]
        fixed = {"system": name, "oracle": oracle, "positions": positions, "form": form, "seed": seed}
        return make_config(GreedyConfig, {**fixed, **settings})
    return make_config(ChartConfig, {"decoder": system, "seed": seed, **settings})


def settings_of(run: Run) -> dict[str, Any]:
    """The settings that a result must have to count as the result of a run."""
    if run.system == "ensemble":
        return {"members": [member.name for member in run.members()], "combine": "votes", "decoder": "mst"}
    return as_dict(config_of(run.system, run.settings, run.seed))


def has_former_task(saved: dict[str, Any]) -> bool:
    """Whether a result was made with morphological features as an auxiliary task, as before format 4."""
    return any(part.get("feature_weight") for part in saved.values() if isinstance(part, dict))


def same_settings(run: Run, saved: dict[str, Any]) -> bool:
    """Whether a run has the settings of a result; settings newer than the result count as default there."""
    if run.system == "ensemble":
        return saved == settings_of(run)
    config = config_of(run.system, run.settings, run.seed)
    if has_former_task(saved):
        return False
    try:
        return from_dict(saved) == config
    except ValueError:
        return False


def has_settings_of(result: Mapping[str, Any]) -> bool:
    """Whether the result's preset still has the result's settings, so that today's code makes it again.

    Presets whose settings were given on the command line always have.
    """
    if result["preset"] not in PRESETS:
        return True
    treebank = Treebank(result["treebank"], Path(), Path())
    run = Run(treebank, result["system"], result["preset"], PRESETS[result["preset"]], result["seed"])
    return same_settings(run, result["settings"])


def train_run(run: Run, folder: Path, device: str, on_step: Callable[..., None]) -> dict[str, Any]:
    """Train, or resume; return the entries of the result about training.

    ``curve`` has a row per evaluation: step, seconds, dev UAS, dev LAS, loss per word.
    """
    config = config_of(run.system, run.settings, run.seed)
    treebank = run.treebank
    progress = run_training(
        TrainingJob(
            treebank.train, treebank.dev, folder, config, device=device, threads=1, resume=True, on_step=on_step
        )
    )
    reports = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    return {
        "dev_uas": progress.best_uas,
        "dev_las": progress.best_las,
        "best_step": progress.best_step,
        "steps": progress.step,
        "minutes": round(progress.seconds / 60, 2),
        "words_per_second": statistics.median(report["words_per_second"] for report in reports),
        "decoding_share": statistics.median(report["share"]["decode"] for report in reports),
        "curve": [[report[key] for key in ("step", "seconds", "dev_uas", "dev_las", "loss")] for report in reports],
    }


def score_run(parser: Parser, treebank: Treebank, folder: Path) -> dict[str, Any]:
    """Scores on the development file and, if given, on the test files; words per second of parsing."""

    def parse_and_score(gold: Path, source: Path, name: str) -> dict[str, Any]:
        parsed = folder / f"{name}.conllu"
        parser.parse_file(source, parsed)
        return summarize(evaluate(gold, parsed))

    start = time.perf_counter()
    words = parser.parse_file(treebank.dev, folder / "dev.conllu").words
    seconds = time.perf_counter() - start
    scores: dict[str, Any] = {
        "parsing_words_per_second": round(words / seconds, 1),
        "dev": summarize(evaluate(treebank.dev, folder / "dev.conllu")),
        "test": None,
        "test_segmented": None,
    }
    if treebank.test is not None:
        scores["test"] = parse_and_score(treebank.test, treebank.test, "test")
        segmented = treebank.segmented
        if segmented is not None:
            if segmented.suffix == MODEL_SUFFIX:
                segmented = segment_file(segmented, treebank.test, folder / "segmented.conllu")
            scores["test_segmented"] = parse_and_score(treebank.test, segmented, "test-segmented")
    return scores


def summarize(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation in percent: F1 of every metric; recall, precision, gold and system arcs by kind of arc."""

    def arcs(score: Score) -> list[float]:
        recall, precision = (round(100 * value, 4) for value in (score.recall, score.precision))
        return [recall, precision, score.gold_total, score.system_total]

    return {
        "f1": {name: round(100 * score.f1, 4) for name, score in evaluation.scores.items()},
        "crossing": arcs(evaluation.crossing),
        "by_length": {name: arcs(score) for name, score in evaluation.by_length.items()},
    }


def find_treebank(text: str) -> Treebank:
    """The treebank named by an argument of the command line; SystemExit if a file is missing."""
    name, equals, where = text.rpartition("=")
    if "," in where:
        paths = [Path(path) for path in where.split(",")]
        if not equals or not 2 <= len(paths) <= 4:
            raise SystemExit(f"{text}: a treebank is FOLDER, NAME=FOLDER or NAME=TRAIN,DEV[,TEST[,SEGMENTED]]")
    else:
        found = {part: sorted(Path(where).glob(f"*{part}.conllu")) for part in ("train", "dev", "test")}
        for part, files in found.items():
            if len(files) > 1 or (not files and part != "test"):
                raise SystemExit(f"{where}: {len(files)} files *{part}.conllu, need one")
        paths = [files[0] for files in found.values() if files]
        if not name:
            name, ud, _ = paths[0].name.partition("-ud-")
            name = name if ud else Path(where).resolve().name
    for path in paths:
        if not path.is_file():
            raise SystemExit(f"{path}: no such file")
    if paths[-1].suffix == MODEL_SUFFIX:
        try:
            require("ufal.udpipe", "text")
        except ValueError as error:
            raise SystemExit(str(error)) from None
    if not re.fullmatch(r"[\w.+]+", name):
        raise SystemExit(f"{name!r}: a treebank's name has letters, digits, '_', '.' and '+' only")
    return Treebank(name, *(path.resolve() for path in paths))


def make_grid(
    treebanks: Sequence[Treebank],
    systems: Sequence[str],
    presets: Sequence[str],
    settings: Sequence[str],
    seeds: Sequence[int],
) -> list[Run]:
    """All runs, ordered by seed first, so that every cell gets one run before any gets a second."""
    for system in systems:
        if system not in SYSTEMS:
            raise SystemExit(f"unknown system {system!r}; known: {', '.join(SYSTEMS)}")
    chosen: dict[str, Mapping[str, Any]] = {}
    for preset in presets:
        if preset in PRESETS and settings:
            raise SystemExit(f"the settings of preset {preset!r} are fixed; give yours another name")
        if preset not in PRESETS and not settings:
            raise SystemExit(f"unknown preset {preset!r}; known: {', '.join(PRESETS)}; or give its settings with --set")
        if not re.fullmatch(r"[\w.+]+", preset):
            raise SystemExit(f"{preset!r}: a preset's name has letters, digits, '_', '.' and '+' only")
        chosen[preset] = PRESETS.get(preset, parse_settings(settings))
    return [
        Run(treebank, system, preset, chosen[preset], seed)
        for seed, treebank, preset, system in product(seeds, treebanks, chosen, systems)
    ]
