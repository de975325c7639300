"""Measurements behind ``mh4 bench certainty``: the cost of margins, k-best trees and probabilities, in decodes."""

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
    """The methods of a decoder whose charts fit into memory, bound to ``scores``, by name; ``decode`` comes first."""
    n = scores.shape[1] - 2
    asked: dict[str, Callable[[], Any]] = {"decode": partial(decoder.decode, scores)}
    if decoder.outside_bytes(n) <= decoder.memory_limit:
        if decoder.has_outside_pass:
            asked["max_marginals"] = partial(decoder.max_marginals, scores)
        asked["margins"] = partial(decoder.margins, scores)
        asked["k_best"] = partial(decoder.k_best, scores, TREES)
    if decoder.has_marginals and decoder.sums_bytes(n) <= decoder.memory_limit:
        asked["part_marginals"] = partial(decoder.part_marginals, scores)
        asked["log_partition"] = partial(decoder.log_partition, scores)
    return asked


def measure_certainty(
    names: Sequence[str] = DECODERS, lengths: Sequence[int] = LENGTHS, repeats: int = 31, budget: float = 1.0
) -> dict[str, Any]:
    """Measure CPU time (one thread) and memory of a decoder's methods, see `COLUMNS`, on random normal scores.

    The methods of a decoder take turns, so that a drift in the machine's speed affects all of them. Lengths and methods
    whose charts do not fit into memory are left out; ValueError if no length fits.

    Parameters
    ----------
    names
        Names of decoders.
    lengths
        Sentence lengths in words.
    repeats : int
        Maximum number of calls of each method at each length.
    budget : float
        Seconds after which a method is called no more (but three times at least).

    Returns
    -------
    dict
        By decoder and by length, as a string: ``milliseconds``, the median time of ``decode``; ``ratios`` of the other
        methods' times to it; and ``memory``, the chart bytes of max-marginals divided by those of decoding (None
        without an outside pass).
    """
    generator = np.random.default_rng(0)
    results: dict[str, Any] = {name: {} for name in names}
    for n in track(lengths, "asking"):
        for name in names:
            decoder = get_decoder(name)
            if not decoder.fits(n):
                continue
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
    if not any(results.values()):
        raise ValueError("no chart of these lengths fits into memory")
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
