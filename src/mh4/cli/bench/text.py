"""Measurements behind ``mh4 bench text``: words per second from raw text to CoNLL-U, compared with UDPipe 1."""

from __future__ import annotations

import hashlib
import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.files import atomic_output
from mh4.data.sample import write_sample
from mh4.data.text import text_of
from mh4.data.udpipe import EXTRA, UDPipeSegmenter
from mh4.machine import require
from mh4.parsers.network import NetworkParser

from ..options import say
from .stages import parser_to_measure
from .udpipe import train_udpipe

MIB = 2**20
_STATUS = Path("/proc/self/status")
# Speed does not depend on how long UDPipe was trained.
_TOKENIZER, _TAGGER, _PARSER = "epochs=5", "iterations=5", "iterations=2"


def peak_rss() -> int:
    """Peak resident memory of this process, in bytes."""
    if _STATUS.exists() and (match := re.search(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)):
        return int(match[1]) * 1024  # unlike ru_maxrss, not inherited from the parent process
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def measure_text(
    model: str | Path | None,
    treebank: str | Path | None,
    decoder: str,
    copies: int,
    device: str = "auto",
    threads: int | None = None,
) -> dict[str, Any]:
    """Measure annotating the text of a treebank: ``copies`` of it with mh4, from a file, and one with UDPipe 1.

    Loading models is not measured. UDPipe 1, which has one thread, is trained briefly on the treebank when the
    benchmark is first run on it. A model without a segmenter, and the untrained one, use UDPipe's.

    Returns
    -------
    dict
        ``bytes`` of the text; for ``mh4`` and ``udpipe`` ``words``, ``seconds`` and ``words_per_second``; for ``mh4``
        also ``peak_rss``, in bytes, of the process that parses.
    """
    udpipe = require("ufal.udpipe", EXTRA)
    with tempfile.TemporaryDirectory() as folder:
        treebank = Path(treebank or write_sample(folder)["train"])
        sentences = list(read_conllu(treebank))
        if not sentences:
            raise DataError(f"{treebank}: holds no sentences")
        peer_path = _trained_udpipe(treebank)
        text = "".join(text_of(sentences)) + "\n\n"
        short, long = Path(folder) / "short.txt", Path(folder) / "long.txt"
        short.write_text(text, encoding="utf-8")
        with long.open("w", encoding="utf-8") as stream:
            for _ in range(copies):
                stream.write(text)
        parser = parser_to_measure(model, sentences, decoder, device, threads)
        parser.segmenter = parser.segmenter or UDPipeSegmenter(peer_path, peer_path.read_bytes())
        parser.parse_file(short, os.devnull, format="text")  # compiles the kernels
        if isinstance(parser, NetworkParser):
            parser.network.encoder.forget()
        start = time.perf_counter()
        words = parser.parse_file(long, os.devnull, format="text").words
        ours = _speed(words, time.perf_counter() - start) | {"peak_rss": peak_rss()}
        peer = udpipe.Model.load(str(peer_path))
        pipeline = udpipe.Pipeline(peer, "tokenize", udpipe.Pipeline.DEFAULT, udpipe.Pipeline.DEFAULT, "conllu")
        start = time.perf_counter()
        annotated = pipeline.process(text)
        seconds = time.perf_counter() - start
        words = sum(line[:1].isdigit() and line.partition("\t")[0].isdigit() for line in annotated.split("\n"))
        size = long.stat().st_size
    return {"bytes": size, "mh4": ours, "udpipe": _speed(words, seconds)}


def _speed(words: int, seconds: float) -> dict[str, float]:
    return {"words": words, "seconds": seconds, "words_per_second": words / seconds}


def _trained_udpipe(treebank: Path) -> Path:
    """Path of a complete UDPipe model for a treebank, in the user's cache; the model is trained if it is missing."""
    content = treebank.read_bytes() + "|".join((_TOKENIZER, _TAGGER, _PARSER)).encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mh4"
    path = cache / f"{hashlib.sha256(content).hexdigest()[:16]}.udpipe"
    if not path.exists():
        say(f"training UDPipe 1 on {treebank}; it is kept for later runs as {path}")
        model = train_udpipe(treebank, treebank, _TOKENIZER, _TAGGER, _PARSER)
        cache.mkdir(parents=True, exist_ok=True)
        with atomic_output(path) as stream:
            stream.write(model)
    return path


def text_table(results: dict[str, Any]) -> Table:
    """`measure_text` as a table."""
    ours, peer = results["mh4"], results["udpipe"]
    table = Table(
        title=f"{results['bytes'] / MIB:.1f} MiB of text to CoNLL-U, peak memory {ours['peak_rss'] / MIB:.0f} MiB",
        box=None,
        pad_edge=False,
    )
    for column in ("", "words", "seconds", "words/s", "times UDPipe 1"):
        table.add_column(column, justify="right" if column else "left")
    for name, row in (("mh4", ours), ("UDPipe 1, one thread", peer)):
        ratio = row["words_per_second"] / peer["words_per_second"]
        cells = f"{row['words']:,}", f"{row['seconds']:.1f}", f"{row['words_per_second']:,.0f}", f"{ratio:.1f}"
        table.add_row(name, *cells)
    return table
