"""Measurements behind ``mh4 bench decoders``: time, memory, how both grow, and other packages' decoders."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from rich.table import Table

from mh4.decoders import get_decoder

from ..progress import track

LENGTHS = (10, 20, 40, 60, 80, 100, 140, 200, 400)
FITTED = 20, 200  # shortest and longest lengths, in words, over which growth exponents are fitted
BLOCK = 10  # decodes in a row
FEWEST = 3  # minimum number of decodes for a median
PEER, OURS = "ufal.chu_liu_edmonds", "mst"  # in the peer's trees, the root may have several children


def peer(scores: np.ndarray) -> Callable[[], float] | None:
    """A function that decodes float32 scores (1, n + 2, n + 2), arcs [h, d], with `PEER`; None if not installed.

    The scores are converted here, so that this is not timed.
    """
    try:
        module = import_module(PEER)
    except ModuleNotFoundError:
        return None
    matrix = np.ascontiguousarray(scores[0, :-1, :-1].T, np.float64)  # [d, h]
    np.fill_diagonal(matrix, np.nan)  # no arc
    matrix[0] = np.nan
    return lambda: module.chu_liu_edmonds(matrix)[1]


@dataclass
class Timed:
    """Timed calls of a function, such as a decoder at one length; functions to compare take turns."""

    name: str
    decode: Callable[[], Any]
    seconds: list[float] = field(default_factory=list)
    clock: Callable[[], float] = time.perf_counter

    def run_block(self, repeats: int, budget: float) -> None:
        """Time up to `BLOCK` decodes, after an untimed one, while repeats and budget last."""
        if self.done(repeats, budget):
            return
        self.decode()
        for _ in range(BLOCK):
            if self.done(repeats, budget):
                return
            start = self.clock()
            self.decode()
            self.seconds.append(self.clock() - start)

    def done(self, repeats: int, budget: float) -> bool:
        """Whether repeats or budget are used up."""
        return len(self.seconds) >= repeats or (len(self.seconds) >= FEWEST and sum(self.seconds) > budget)


def growth_exponent(values: Mapping[str, float]) -> float | None:
    """Exponent b of the least-squares fit value = a · lengthᵇ over 20 to 200 words, in logarithms.

    Values must be positive; keys are lengths in words, as strings. None for fewer than two lengths in that range.
    """
    points = [(int(length), value) for length, value in values.items() if FITTED[0] <= int(length) <= FITTED[1]]
    if len(points) < 2:
        return None
    lengths, measured = np.log(np.array(points, float)).T
    return float(np.polyfit(lengths, measured, 1)[0])


def measure_decoders(
    names: Sequence[str], lengths: Sequence[int] = LENGTHS, repeats: int = 101, budget: float = 2.0
) -> dict[str, Any]:
    """Measure time and memory of decoding one sentence of random normal scores with one thread.

    The decoders, and the peer if it is installed, take turns, `BLOCK` decodes each, so that a drift in the machine's
    speed affects all of them. A length whose exact chart does not fit into memory is left out. Each decoder and length
    is timed ``repeats`` times, or fewer if that takes more than ``budget`` seconds, but at least three times.

    Returns
    -------
    dict
        ``decoders`` and ``peers``, by name: median ``milliseconds`` by length, and their ``exponent`` (see
        `growth_exponent`); for decoders also ``chart_bytes`` by length and ``chart_exponent``, for peers the
        ``decoder`` of mh4 to compare with.
    """
    generator = np.random.default_rng(0)
    decoders = {name: get_decoder(name) for name in names}
    has_peer = OURS in names and peer(np.zeros((1, 3, 3), np.float32)) is not None
    results: dict[str, dict[str, Any]] = {
        "decoders": {name: {"milliseconds": {}, "chart_bytes": {}} for name in names},
        "peers": {PEER: {"decoder": OURS, "milliseconds": {}}} if has_peer else {},
    }
    rows = results["decoders"] | results["peers"]
    for n in track(lengths, "decoding"):
        scores = {
            name: generator.standard_normal((len(decoder.channels), n + 2, n + 2), dtype=np.float32)
            for name, decoder in decoders.items()
            if decoder.fits(n)
        }
        timed = [Timed(name, partial(decoders[name].decode, matrices)) for name, matrices in scores.items()]
        if has_peer and OURS in scores and (decode := peer(scores[OURS])):
            timed.append(Timed(PEER, decode))
        for _ in range(0, repeats, BLOCK):
            for one in timed:
                one.run_block(repeats, budget)
        for one in timed:
            rows[one.name]["milliseconds"][str(n)] = 1e3 * statistics.median(one.seconds)
        for name in scores:
            rows[name]["chart_bytes"][str(n)] = decoders[name].chart_bytes(n)
    if not any(row["milliseconds"] for row in rows.values()):
        raise ValueError("no chart of these lengths fits into memory")
    for row in rows.values():
        row["exponent"] = growth_exponent(row["milliseconds"])
    for row in results["decoders"].values():
        row["chart_exponent"] = growth_exponent(row["chart_bytes"])
    return results


def decoder_table(results: dict[str, Any]) -> Table:
    """`measure_decoders` as a table."""
    rows = results["decoders"] | results["peers"]
    lengths = sorted({int(length) for row in rows.values() for length in row["milliseconds"]})
    table = Table(title="decoding one sentence, median ms, one thread", box=None, pad_edge=False)
    table.add_column("decoder")
    for length in lengths:
        table.add_column(f"{length} words", justify="right")
    table.add_column("grows with", justify="right")
    table.add_column(f"MiB at {lengths[-1]} words", justify="right")
    table.add_column("grows with", justify="right")
    for name, row in rows.items():
        times = (row["milliseconds"].get(str(length)) for length in lengths)
        size = row.get("chart_bytes", {}).get(str(lengths[-1]))
        table.add_row(
            name,
            *("–" if milliseconds is None else f"{milliseconds:.3f}" for milliseconds in times),
            power(row["exponent"]),
            "–" if size is None else f"{size / 2**20:.1f}",
            power(row.get("chart_exponent")),
        )
    return table


def power(exponent: float | None) -> str:
    """A growth exponent for display, such as ``n^2.97``."""
    return "–" if exponent is None else f"n^{exponent:.2f}"
