"""Measurements behind ``mh4 bench serve``: words per second and response times with many clients at once."""

from __future__ import annotations

import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode

from rich.table import Table

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import DataError
from mh4.data.sample import write_sample
from mh4.data.sentence import Sentence
from mh4.parsers.base import Parser
from mh4.parsers.registry import load
from mh4.parsers.sources import words_alone

from .text import MIB

PAGE_WORDS = 400  # words of a long request
SAMPLES = 20  # measurements of memory
RUNS = 5
PARSED = 30_000  # words per run of `Parser.parse_file`, at least
_WORD = re.compile(r"^\d+\t([^\t\n]+)", re.MULTILINE)


def measure_serving(
    model: Path, treebank: Path | None, clients: Sequence[int], seconds: float, device: str, threads: int | None
) -> dict[str, Any]:
    """Measure a server in a process of its own, over the loopback interface, under full load.

    Each client sends its next request when the last one is answered: the words of one sentence, or of a page of about
    `PAGE_WORDS` words. It checks that the answer has the same words. A client whose request is refused, because the
    server's queue is full, waits as long as the server says.

    Returns
    -------
    dict
        ``parse``: words per second of `Parser.parse_file` on the same sentences; ``runs``: for each size of requests
        and number of clients, ``words_per_second``, ``p50`` and ``p99`` of the response times in milliseconds, the
        numbers of answered ``requests``, ``wrong`` answers and ``refused`` requests, and, over the second half of the
        time, the server's mean resident ``memory`` in bytes and the largest ``deviation`` from it, relative to the mean
        (None where ``/metrics`` does not report memory).
    """
    with tempfile.TemporaryDirectory() as folder:
        sentences = list(words_alone(read_conllu(treebank or write_sample(folder)["dev"])))
        if not sentences:
            raise DataError(f"{treebank}: holds no sentences")
        parsing = _parsing(load(model, device=device, threads=threads), sentences, Path(folder))
    with serving(model, device, threads) as port:
        runs = [
            {"requests_of": size, "clients": count, **asyncio.run(_load(port, requests, count, seconds))}
            for size, requests in (
                ("sentence", [_Asked.of([one]) for one in sentences]),
                ("page", list(map(_Asked.of, _pages(sentences)))),
            )
            for count in clients
        ]
    return {"parse": parsing, "runs": runs}


def _parsing(parser: Parser, sentences: Sequence[Sentence], folder: Path) -> float:
    """Words per second of parsing a file of words, as the median of `RUNS` runs of at least `PARSED` words."""
    times = 1 + PARSED // sum(map(len, sentences))
    words, parsed = folder / "words.conllu", folder / "parsed.conllu"
    write_conllu([*sentences] * times, words)
    found = []
    for _ in range(1 + RUNS):
        start = time.perf_counter()
        parser.parse_file(words, parsed, predict="heads")
        found.append(times * sum(map(len, sentences)) / (time.perf_counter() - start))
    return statistics.median(found[1:])


def _pages(sentences: Sequence[Sentence]) -> Iterator[list[Sentence]]:
    page: list[Sentence] = []
    for sentence in sentences:
        page.append(sentence)
        if sum(map(len, page)) >= PAGE_WORDS:
            yield page
            page = []
    if page:
        yield page


@contextmanager
def serving(model: Path, device: str, threads: int | None) -> Iterator[int]:
    """Run a server in a process of its own; yields its port."""
    options = ["--device", device, *(["--threads", str(threads)] if threads else [])]
    command = [sys.executable, "-m", "mh4", "serve", str(model), "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            while not (found := re.search(r"http://[^:]+:(\d+)", _content(log))):
                if process.poll() is not None:
                    raise DataError(f"the server exited: {_content(log).strip()}")
                time.sleep(0.1)
            yield int(found[1])
        finally:
            process.terminate()


def _content(log: Any) -> str:
    log.seek(0)
    return str(log.read())


class _Asked(NamedTuple):
    """A request, prepared before timing starts, and the words expected in its answer."""

    content: bytes
    forms: Sequence[str]

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Self:
        forms = [form for one in sentences for form in one.forms]
        lines = "".join(" ".join(one.forms) + "\n" for one in sentences)
        body = urlencode({"data": lines, "input": "horizontal", "parser": "", "output": "conllu"}).encode()
        header = (
            "POST /process HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return cls(header.encode() + body, forms)


async def _load(port: int, requests: Sequence[_Asked], clients: int, seconds: float) -> dict[str, Any]:
    """Measurements of all clients together over ``seconds`` seconds, after one second to warm up."""
    begin = time.perf_counter() + 1
    end = begin + seconds
    asked = asyncio.gather(*(_client(port, requests, seed, begin, end) for seed in range(clients)))
    memory = await _memory(port, end - seconds / 2, end)
    asked_by = await asked
    answers = [answer for own, _ in asked_by for answer in own]
    mean = statistics.mean(memory) if memory else None
    waits = sorted(wait for wait, _, _ in answers)
    return {
        "words_per_second": sum(words for _, words, _ in answers) / seconds,
        "requests": len(answers),
        "p50": 1000 * statistics.median(waits),
        "p99": 1000 * waits[min(len(waits) - 1, int(0.99 * len(waits)))],
        "wrong": sum(not right for _, _, right in answers),
        "refused": sum(refused for _, refused in asked_by),
        "memory": mean,
        "deviation": max(abs(own / mean - 1) for own in memory) if mean else None,
    }


async def _memory(port: int, begin: float, end: float) -> list[float]:
    """The server's resident memory in bytes, measured `SAMPLES` times from ``begin`` to ``end``."""
    found = []
    for i in range(SAMPLES):
        await asyncio.sleep(max(0, begin + (end - begin) * i / SAMPLES - time.perf_counter()))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        if told := re.search(rb"^process_resident_memory_bytes (\S+)", await reader.read(), re.MULTILINE):
            found.append(float(told[1]))
        writer.close()
    return found


async def _client(
    port: int, requests: Sequence[_Asked], seed: int, begin: float, end: float
) -> tuple[list[tuple[float, int, bool]], int]:
    """(seconds, words, correct) of each answer to a request from ``begin`` to ``end``; number of refused requests."""
    choose = random.Random(seed).choice
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    found, refused = [], 0
    while (start := time.perf_counter()) < end:
        asked = choose(requests)
        writer.write(asked.content)
        header = await reader.readuntil(b"\r\n\r\n")
        answer = await reader.readexactly(int(_field(header, b"content-length")))
        if header.startswith(b"HTTP/1.1 503"):
            refused += start >= begin
            await asyncio.sleep(float(_field(header, b"retry-after")))
            continue
        seconds = time.perf_counter() - start
        if start >= begin:
            right = header.startswith(b"HTTP/1.1 200") and _WORD.findall(json.loads(answer)["result"]) == asked.forms
            found.append((seconds, len(asked.forms), right))
    writer.close()
    return found, refused


def _field(header: bytes, name: bytes) -> bytes:
    """The value of a field in the header of an answer; the field must be there."""
    return next(line for line in header.split(b"\r\n") if line.lower().startswith(name + b":")).partition(b":")[2]


def serving_table(results: dict[str, Any]) -> Table:
    """A row for each size of requests and number of clients."""
    table = Table(title=f"mh4 serve (mh4 parse: {results['parse']:,.0f} words/s)", pad_edge=False)
    for column in (
        "requests of a",
        "clients",
        "words/s",
        "of parse",
        "p50 ms",
        "p99 ms",
        "answers",
        "wrong",
        "refused",
        "MiB",
        "±",
    ):
        table.add_column(column, justify="left" if column == "requests of a" else "right")
    for run in results["runs"]:
        share = f"{run['words_per_second'] / results['parse']:.0%}"
        waits = (f"{run[name]:.1f}" for name in ("p50", "p99"))
        numbers = (f"{run[name]:,}" for name in ("requests", "wrong", "refused"))
        speed = f"{run['words_per_second']:,.0f}"
        memory = (f"{run['memory'] / MIB:.0f}", f"{run['deviation']:.1%}") if run["memory"] else ("–", "–")
        table.add_row(run["requests_of"], str(run["clients"]), speed, share, *waits, *numbers, *memory)
    return table
