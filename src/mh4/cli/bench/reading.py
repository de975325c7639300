"""Measurements behind ``mh4 bench read``: words per CPU second in reading CoNLL-U, and in writing parsed sentences."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.table import Table

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.files import atomic_output
from mh4.data.sample import write_sample

from ..progress import track


def time_reading(treebank: str | Path | None, repeats: int) -> dict[str, Any]:
    """Words per CPU second, medians over some runs.

    Returns
    -------
    dict
        ``words``, and ``words_per_cpu_second`` with ``read``: a file into sentences; ``write``: sentences with new
        heads and relations, as a parser makes them, into a file.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = treebank or write_sample(folder)["train"]
        sentences = list(read_conllu(path))
        words = sum(map(len, sentences))
        if not words:
            raise DataError(f"{path}: holds no sentences")

        def read() -> None:
            for _ in read_conllu(path):
                pass

        def write() -> None:
            with atomic_output(os.devnull) as stream:
                for sentence in sentences:
                    parsed = sentence.replace(heads=sentence.heads, relations=sentence.relations)
                    stream.write(parsed.to_bytes())

        seconds: dict[str, list[float]] = {"read": [], "write": []}
        for _ in track(range(repeats), "reading and writing"):
            seconds["read"].append(_cpu_seconds(read))
            seconds["write"].append(_cpu_seconds(write))
    speeds = {name: words / statistics.median(times) for name, times in seconds.items()}
    return {"words": words, "words_per_cpu_second": speeds}


def _cpu_seconds(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def reading_table(results: dict[str, Any]) -> Table:
    """`time_reading` as a table."""
    table = Table(title=f"{results['words']:,} words of CoNLL-U", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("words per CPU second", justify="right")
    for name, speed in results["words_per_cpu_second"].items():
        table.add_row(name, f"{speed:,.0f}")
    return table
