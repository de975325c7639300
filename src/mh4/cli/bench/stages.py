"""Measurements behind ``mh4 bench train`` and ``mh4 bench parse``: words per second, and the share of each stage."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.table import Table

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sample import write_sample
from mh4.data.sentence import Sentence
from mh4.models.devices import deterministic
from mh4.models.host_settings import settings_put_aside
from mh4.parsers.base import Parser
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, make_config
from mh4.parsers.definition import Definition
from mh4.parsers.network import NetworkParser
from mh4.parsers.profiling import Profile, stage
from mh4.parsers.registry import load, new_parser
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

from ..progress import track


def _stages(words: int, seconds: float, shares: dict[str, float]) -> dict[str, Any]:
    return {"words": words, "seconds": seconds, "words_per_second": words / seconds, "share": shares}


def trainer_to_measure(
    treebank: str | Path | None,
    decoder: str,
    device: str,
    threads: int | None,
    settings: Mapping[str, Any],
    folder: Path,
) -> Trainer:
    """A trainer with a new parser; it may write into ``folder``."""
    config = make_config(ChartConfig, {"decoder": decoder, **settings})
    sentences = read_gold(treebank or write_sample(folder)["train"])
    parser = new_parser(Definition.learn(config, sentences), device)
    parser.threads = threads
    return Trainer(parser, sentences, sentences, folder)


def time_training(
    treebank: str | Path | None,
    decoder: str,
    steps: int,
    device: str = "auto",
    threads: int | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Words per second over `steps` minibatches, after `steps` // 10 to warm up, and the share of each stage."""
    with tempfile.TemporaryDirectory() as folder, settings_put_aside(learns=True), ExitStack() as stack:
        trainer = trainer_to_measure(treebank, decoder, device, threads, settings, Path(folder))
        stack.enter_context(deterministic(trainer.parser.device))
        order = [
            batch
            for epoch in range(1 + (steps + steps // 10) // len(trainer.batches(0)))
            for batch in trainer.batches(epoch)
        ]
        warm_up = max(1, steps // 10)
        for indices in order[:warm_up]:
            trainer.step(*trainer.prepare(indices))
        trainer.settle()
        profile, words = Profile(), 0
        start = time.perf_counter()
        with profile.recording():
            for indices in track(order[warm_up : warm_up + steps], "training"):
                with stage("collate"):
                    parts = trainer.prepare(indices)
                with stage("backward"):
                    trainer.step(*parts)
                words += sum(len(part.dependent) for part in parts)
            with stage("backward"):
                trainer.settle()
        seconds = time.perf_counter() - start
    return {"steps": steps} | _stages(words, seconds, profile.shares)


def parser_to_measure(
    model: str | Path | None, sentences: Iterable[Sentence], decoder: str, device: str, threads: int | None
) -> Parser:
    """Load a model or, without one, make an untrained one of the published size, with the words of ``sentences``."""
    if model is not None:
        return load(model, device=device, threads=threads)
    parser = ChartParser(Definition.learn(ChartConfig(decoder=decoder), list(sentences)), device)
    parser.threads = threads
    return parser


def time_parsing(
    model: str | Path | None,
    treebank: str | Path | None,
    decoder: str,
    repeats: int,
    device: str = "auto",
    threads: int | None = None,
) -> dict[str, Any]:
    """Words per second of parsing a treebank in memory, as the median of ``repeats`` runs, and the share of each stage.

    Before each run, the encoder forgets the words of the one before.
    """
    with tempfile.TemporaryDirectory() as folder:
        sentences = list(read_conllu(treebank or write_sample(folder)["train"]))
    parser = parser_to_measure(model, sentences, decoder, device, threads)
    if not isinstance(parser, NetworkParser):
        raise ValueError(f"{model}: a model without a network has no stages to measure")
    words = sum(map(len, sentences))
    if not words:
        raise DataError(f"{treebank}: holds no sentences")
    parser.predict(sentences)
    profile, seconds = Profile(), []
    with profile.recording():
        for _ in track(range(repeats), "parsing"):
            parser.network.encoder.forget()
            start = time.perf_counter()
            parser.predict(sentences)
            seconds.append(time.perf_counter() - start)
    return _stages(words, statistics.median(seconds), profile.shares)


def stage_table(results: dict[str, Any]) -> Table:
    """Words per second and shares as a table."""
    table = Table(title=f"{results['words_per_second']:.0f} words/s", box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("share", justify="right")
    for name, share in results["share"].items():
        table.add_row(name, f"{share:.1%}")
    return table
