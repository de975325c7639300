"""Measurements behind ``mh4 bench``: medians, and the share of time in each stage."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from mh4.decoders import get_decoder

from .config import Config
from .parser import Parser
from .sample import write_sample
from .training import Recent, Trainer, read_gold
from .treebank import read_treebank
from .vocabulary import Vocabulary

BLOCK = 10  # decodes in a row


def time_decoders(names: Sequence[str], lengths: Sequence[int], repeats: int) -> dict[str, dict[str, float]]:
    """Median milliseconds a sentence, by decoder and length: ``{"mst": {"10": 0.01, …}, …}``.

    One thread, random normal scores, `repeats` decodes a length. The decoders take turns, `BLOCK` decodes each, so that
    a drift in the machine's speed touches all of them; the first decode of a turn is not counted.
    """
    generator = np.random.default_rng(0)
    decoders = [get_decoder(name) for name in names]
    times: dict[str, dict[str, float]] = {name: {} for name in names}
    for n in lengths:
        scores = [
            generator.standard_normal((len(decoder.channels), n + 2, n + 2), dtype=np.float32) for decoder in decoders
        ]
        seconds: list[list[float]] = [[] for _ in decoders]
        for turn in range(0, repeats, BLOCK):
            for decoder, matrices, taken in zip(decoders, scores, seconds, strict=True):
                decoder.decode(matrices)
                for _ in range(min(BLOCK, repeats - turn)):
                    start = time.perf_counter()
                    decoder.decode(matrices)
                    taken.append(time.perf_counter() - start)
        for name, taken in zip(names, seconds, strict=True):
            times[name][str(n)] = 1e3 * statistics.median(taken)
    return times


def decoder_table(results: dict[str, dict[str, float]]) -> Table:
    """`time_decoders` as a table."""
    table = Table(title="decoding one sentence, median ms, one thread", box=None, pad_edge=False)
    table.add_column("decoder")
    for length in next(iter(results.values())):
        table.add_column(f"{length} words", justify="right")
    for name, times in results.items():
        table.add_row(name, *(f"{milliseconds:.3f}" for milliseconds in times.values()))
    return table


def _stages(words: int, seconds: float, shares: dict[str, float]) -> dict[str, Any]:
    return {"words": words, "seconds": seconds, "words_per_second": words / seconds, "share": shares}


def time_training(
    treebank: str | Path | None, decoder: str, steps: int, device: str = "auto", threads: int | None = None
) -> dict[str, Any]:
    """Words a second over `steps` minibatches, after a tenth as many to warm up, and the share of each stage."""
    with tempfile.TemporaryDirectory() as folder:
        sentences = read_gold(treebank or write_sample(folder)["train"], skip_bad=False)
        parser = Parser(Config(decoder=decoder), Vocabulary.from_sentences(sentences), device)
        parser.threads = threads
        trainer = Trainer(parser, sentences, sentences, Path(folder))
        order = [
            batch
            for epoch in range(1 + (steps + steps // 10) // len(trainer.batches(0)))
            for batch in trainer.batches(epoch)
        ]
        warm_up = max(1, steps // 10)
        for indices in order[:warm_up]:
            trainer.recent.times.start()
            trainer.step(trainer.collate(indices))
        trainer.recent = Recent()
        words = 0
        start = time.perf_counter()
        trainer.recent.times.start()
        for indices in order[warm_up : warm_up + steps]:
            batch = trainer.collate(indices)
            trainer.recent.times.stop("collate")
            trainer.step(batch)
            words += len(batch.dependent)
        seconds = time.perf_counter() - start
    times = trainer.recent.times
    return _stages(words, seconds, {stage: times.share(stage) for stage in times.seconds})


def time_parsing(
    model: str | Path | None,
    treebank: str | Path | None,
    decoder: str,
    repeats: int,
    device: str = "auto",
    threads: int | None = None,
) -> dict[str, Any]:
    """Words a second of parsing a treebank held in memory, the median of some runs, and the share of each stage."""
    with tempfile.TemporaryDirectory() as folder:
        sentences = list(read_treebank(treebank or write_sample(folder)["train"], gold=False))
    if model is None:
        parser = Parser(Config(decoder=decoder), Vocabulary.from_sentences(sentences), device)
    else:
        parser = Parser.load(model, device)
    parser.threads = threads
    words = sum(map(len, sentences))
    parser.predict(sentences)
    parser.times.seconds.clear()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        parser.predict(sentences)
        seconds.append(time.perf_counter() - start)
    return _stages(
        words, statistics.median(seconds), {stage: parser.times.share(stage) for stage in parser.times.seconds}
    )


def stage_table(results: dict[str, Any]) -> Table:
    """Words a second and shares as a table."""
    table = Table(title=f"{results['words_per_second']:.0f} words/s", box=None, pad_edge=False)
    table.add_column("stage")
    table.add_column("share", justify="right")
    for stage, share in results["share"].items():
        table.add_row(stage, f"{share:.1%}")
    return table
