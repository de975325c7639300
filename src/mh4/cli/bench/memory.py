"""Measurements behind ``mh4 bench memory``: what parsing a file, from disk to disk, takes in memory and time."""

import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sample import write_sample
from mh4.parsers.network import NetworkParser

from ..progress import track
from .stages import parser_to_measure

MIB = 2**20
_STATUS = Path("/proc/self/status")


def peak_rss() -> int:
    """Most resident memory that this process has ever had, in bytes."""
    if _STATUS.exists() and (match := re.search(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)):
        return int(match[1]) * 1024  # unlike ru_maxrss it does not begin with that of the process that started us
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure_memory(
    model: str | Path | None,
    treebank: str | Path | None,
    decoder: str,
    copies: Sequence[int],
    device: str = "auto",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Parse a treebank written several times into one file, with growing numbers of copies; output is thrown away.

    A peak is that of the process so far: memory that does not grow with the input shows as equal peaks.

    Returns
    -------
    list of dict
        For each number of ``copies``: ``bytes``, ``words``, ``seconds``, ``words_per_second``, ``peak_rss`` and
        ``peak_cuda`` (bytes; None without CUDA).
    """
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        treebank = treebank or write_sample(folder)["train"]
        parser = parser_to_measure(model, read_conllu(treebank), decoder, device, threads)
        on_cuda = isinstance(parser, NetworkParser) and parser.device.type == "cuda"
        for count in track(sorted(copies), "parsing"):
            path = Path(folder) / "copies.conllu"
            with open(path, "wb") as stream:
                for _ in range(count):
                    for sentence in read_conllu(treebank):  # an error names the treebank, not the copies
                        stream.write(sentence.to_bytes())
            start = time.perf_counter()
            words = parser.parse_file(path, os.devnull).words
            seconds = time.perf_counter() - start
            if not words:
                raise DataError(f"{treebank}: holds no sentences")
            rows.append(
                {
                    "copies": count,
                    "bytes": path.stat().st_size,
                    "words": words,
                    "seconds": seconds,
                    "words_per_second": words / seconds,
                    "peak_rss": peak_rss(),
                    "peak_cuda": torch.cuda.max_memory_allocated() if on_cuda else None,
                }
            )
    return rows


def memory_table(rows: list[dict[str, Any]]) -> Table:
    """`measure_memory` as a table."""
    table = Table(title="parsing a file, from disk to disk", box=None, pad_edge=False)
    for column in ("copies", "input MiB", "words", "words/s", "peak RSS MiB", "peak CUDA MiB"):
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(
            str(row["copies"]),
            f"{row['bytes'] / MIB:.1f}",
            str(row["words"]),
            f"{row['words_per_second']:.0f}",
            f"{row['peak_rss'] / MIB:.0f}",
            "–" if row["peak_cuda"] is None else f"{row['peak_cuda'] / MIB:.0f}",
        )
    return table
