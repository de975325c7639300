"""Measurements behind ``mh4 bench certainty``: what it takes, in decodes, to say how sure a decoder is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from mh4.decoders import Decoder, get_decoder

from ..progress import track
from .decoders import BLOCK, Timed

DECODERS = ("mst", "eisner", "mh3", "mh4-two", "mh4-hybrid")
LENGTHS = (20, 40, 60, 100)
TREES = 10  # for k_best
COLUMNS = {
    "max_marginals": "max-marginals",
    "margins": "margins",
    "k_best": f"{TREES} best trees",
    "part_marginals": "probabilities",
    "log_partition": "partition function",
}


def _questions(decoder: Decoder, scores: np.ndarray) -> dict[str, Callable[[], Any]]:
    """What this decoder answers at a price worth measuring, ``decode`` first."""
    asked: dict[str, Callable[[], Any]] = {"decode": partial(decoder.decode, scores)}
    if decoder.has_outside_pass:
        asked["max_marginals"] = partial(decoder.max_marginals, scores)
    asked["margins"] = partial(decoder.margins, scores)
    asked["k_best"] = partial(decoder.k_best, scores, TREES)
    if decoder.has_marginals:
        asked["part_marginals"] = partial(decoder.part_marginals, scores)
        asked["log_partition"] = partial(decoder.log_partition, scores)
    return asked


def measure_certainty(
    names: Sequence[str] = DECODERS, lengths: Sequence[int] = LENGTHS, repeats: int = 31, budget: float = 1.0
) -> dict[str, Any]:
    """Time and memory of `Decoder.max_marginals` and its like on random normal scores, in CPU time of one thread.

    All that is asked of a decoder takes turns with decoding, so that a drift in the machine's speed touches all of it.

    Parameters
    ----------
    names
        Decoders.
    lengths
        Words.
    repeats : int
        Times each is asked at each length, at most.
    budget : float
        Seconds after which it is asked no more (but three times at least).

    Returns
    -------
    dict
        For each decoder and length, as text: ``milliseconds`` (median) of ``decode``; ``ratios`` to it, by method; and
        ``memory``, the charts of max-marginals over those of decoding (None where there is no outside pass).
    """
    generator = np.random.default_rng(0)
    results: dict[str, Any] = {name: {} for name in names}
    for n in track(lengths, "asking"):
        for name in names:
            decoder = get_decoder(name)
            scores = generator.standard_normal((len(decoder.channels), n + 2, n + 2), dtype=np.float32)
            timed = [Timed(what, ask, clock=time.thread_time) for what, ask in _questions(decoder, scores).items()]
            for _ in range(0, repeats, BLOCK):
                for one in timed:
                    one.run_block(repeats, budget)
            medians = {one.name: statistics.median(one.seconds) for one in timed}
            decode = medians.pop("decode")
            results[name][str(n)] = {
                "milliseconds": 1e3 * decode,
                "ratios": {what: seconds / decode for what, seconds in medians.items()},
                "memory": decoder.outside_bytes(n) / decoder.chart_bytes(n) if decoder.has_outside_pass else None,
            }
    return results


def certainty_table(results: dict[str, Any]) -> Table:
    """`measure_certainty` as a table."""
    table = Table(title="CPU time of one decode, and of the rest in decodes", box=None, pad_edge=False)
    for column in ("decoder", "words", "decode, ms", *COLUMNS.values(), "memory, charts"):
        table.add_column(column, justify="left" if column == "decoder" else "right")
    for name, by_length in results.items():
        for length, row in by_length.items():
            ratios = (row["ratios"].get(what) for what in COLUMNS)
            table.add_row(
                name,
                length,
                f"{row['milliseconds']:.3f}",
                *("–" if ratio is None else f"{ratio:.1f}" for ratio in ratios),
                "–" if row["memory"] is None else f"{row['memory']:.1f}",
            )
    return table
