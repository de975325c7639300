"""All benchmarks in one go: JSON, a plot, and the speed section of docs/results.md.

    python experiments/benchmark.py -o experiments/results/performance [MODEL [TREEBANK]]

Runs the benchmarks of ``mh4 bench``, and those of this file for reading, writing and memory, each in its own process,
so that none is charged for another's memory. Takes minutes; needs the extra ``plots``.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from provenance import PACKAGES, describe_commit
from scripting import positive, run_script

from mh4.cli.bench.certainty import COLUMNS
from mh4.cli.bench.decoders import FITTED
from mh4.cli.bench.stages import parser_to_measure
from mh4.cli.bench.text import MIB, peak_rss
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.files import atomic_output, check_input
from mh4.data.sample import write_sample
from mh4.decoders.lanes import REGISTER
from mh4.machine import processor, require
from mh4.parsers.folder import ModelFolder
from mh4.parsers.network import NetworkParser

RESULTS, PLOT, SNIPPET = "benchmark.json", "decoders.svg", "performance.md"
COMMAND = "python experiments/benchmark.py"
_SHOWN = (10, 20, 40, 60, 80, 100, 200, 400)
_OWN = ("read", "memory")


def machine(threads: int | None) -> dict[str, Any]:
    """The machine and versions that the numbers depend on."""
    return {
        "processor": processor(),
        "register_bits": 32 * REGISTER,
        "cores": os.cpu_count(),
        "threads": threads,
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def time_reading(treebank: str | Path | None, repeats: int) -> dict[str, Any]:
    """Words read and written per CPU second, medians over several runs.

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
        for _ in range(repeats):
            seconds["read"].append(_cpu_seconds(read))
            seconds["write"].append(_cpu_seconds(write))
    speeds = {name: words / statistics.median(times) for name, times in seconds.items()}
    return {"words": words, "words_per_cpu_second": speeds}


def _cpu_seconds(run: Callable[[], None]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def measure_memory(
    model: str | Path | None,
    treebank: str | Path | None,
    decoder: str,
    copies: Sequence[int],
    device: str = "auto",
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Parse files with growing numbers of copies of a treebank; the output is discarded.

    A peak is the maximum of the process so far, so if memory does not grow with the input, all peaks are equal.

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
        for count in sorted(copies):
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


def run_all(
    folder: str | Path,
    options: Mapping[str, Sequence[str]],
    threads: int | None,
    on_start: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Run every benchmark and write the report.

    ``folder`` is created if needed, and gets ``benchmark.json``, ``decoders.svg`` and ``performance.md``. ``options``
    has the command-line arguments of each benchmark to run; ``threads`` is noted in the report. ValueError if
    matplotlib is missing or a benchmark fails.
    """
    require("matplotlib", "plots")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"commit": describe_commit(), "machine": machine(threads)}
    for name, arguments in options.items():
        on_start(name)
        script = [__file__, "--only", name] if name in _OWN else ["-m", "mh4", "bench", name, "--json"]
        finished = subprocess.run([sys.executable, *script, *arguments], stdout=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise ValueError(f"{name}: failed with exit status {finished.returncode}")
        results[name] = json.loads(finished.stdout)
    numbers = json.dumps(results, ensure_ascii=False, indent=1) + "\n"
    for name, text in (
        (RESULTS, numbers),
        (PLOT, plot_decoders(results["decoders"])),
        (SNIPPET, performance_markdown(results)),
    ):
        with atomic_output(folder / name) as stream:
            stream.write(text.encode())
    return results


def plot_decoders(results: dict[str, Any]) -> str:
    """Median times (`measure_decoders`) over length, both axes logarithmic, as the text of an SVG file."""
    mpl, figures = require("matplotlib", "plots"), require("matplotlib.figure", "plots")
    figure = figures.Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for kind, style in (("decoders", "o-"), ("peers", "x--")):
        for name, row in results[kind].items():
            lengths = [int(length) for length in row["milliseconds"]]
            exponent = "" if row["exponent"] is None else f"  (n^{row['exponent']:.1f})"
            axes.loglog(lengths, list(row["milliseconds"].values()), style, markersize=4, label=name + exponent)
    axes.set_xlabel("words")
    axes.set_ylabel("median ms per sentence, one thread")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend(fontsize="small")
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "mh4"}):  # the same numbers give the same file
        figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def performance_markdown(results: dict[str, Any]) -> str:
    """The performance section of docs/results.md, from nothing but the results of `run_all`."""
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    lines = [
        f"`{COMMAND}` on {where['processor']}, {where['cores']} cores, {where['register_bits']}-bit registers"
        + (f", {where['cuda']}" if where["cuda"] else "")
        + f"; Python {where['python']}, {versions}.",
        "",
        "Decoding one sentence of random scores with a single root, on one thread, preparation and backtrace included: "
        f"median ms, and growth of time and chart memory fitted over {FITTED[0]}–{FITTED[1]} words.",
        "",
        *_decoder_lines(results["decoders"]),
        "",
        *_certainty_lines(results.get("certainty")),
        *_reading_lines(results.get("read")),
        *(_stage_line(name, results[name]) for name in ("train", "parse") if name in results),
        *_memory_lines(results.get("memory", [])),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _decoder_lines(results: dict[str, Any]) -> list[str]:
    rows = results["decoders"] | results["peers"]
    measured = {int(length) for row in rows.values() for length in row["milliseconds"]}
    lengths = [str(length) for length in _SHOWN if length in measured]
    columns = ["words", *lengths, "time", "memory"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for name, row in rows.items():
        times = [_milliseconds(row["milliseconds"].get(length)) for length in lengths]
        cells = [f"`{name}`", *times, _power(row["exponent"]), _power(row.get("chart_exponent"))]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _certainty_lines(results: dict[str, Any] | None) -> list[str]:
    if not results:
        return []
    lengths = list(next(iter(results.values())))
    lines = [
        "Cost of margins and probabilities, in multiples of decoding the same sentence once, at "
        f"{', '.join(lengths)} words (CPU time of one thread), and memory of max-marginals, in multiples of the chart:",
        "",
        "| decoder | " + " | ".join(COLUMNS.values()) + " | memory |",
        "|---" * (len(COLUMNS) + 2) + "|",
    ]
    for name, by_length in results.items():
        cells = [", ".join(_ratio(row["ratios"].get(what)) for row in by_length.values()) for what in COLUMNS]
        cells.append(_ratio(max(row["memory"] or 0 for row in by_length.values()) or None))
        lines.append(f"| `{name}` | " + " | ".join("–" if "–" in cell else cell for cell in cells) + " |")
    return [*lines, ""]


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def _reading_lines(results: dict[str, Any] | None) -> list[str]:
    if results is None:
        return []
    speeds = results["words_per_cpu_second"]
    return [f"- Reads {speeds['read']:,.0f} and writes {speeds['write']:,.0f} words per CPU second."]


def _stage_line(name: str, results: dict[str, Any]) -> str:
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in results["share"].items())
    return f"- `mh4 bench {name}`: {results['words_per_second']:,.0f} words/s ({shares})."


def _memory_lines(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    peaks = ", ".join(f"{row['bytes'] / MIB:.1f} MiB: {row['peak_rss'] / MIB:.0f} MiB" for row in rows)
    return [
        f"- From disk to disk: {rows[-1]['words_per_second']:,.0f} words/s; peak resident memory by "
        f"size of the input: {peaks}."
    ]


def _milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _power(exponent: float | None) -> str:
    return "–" if exponent is None else f"n<sup>{exponent:.1f}</sup>"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("model", type=Path, nargs="?", help="model folder; an untrained model of the published size by default")
    add("treebank", type=Path, nargs="?", help="to train on and to parse; the sample by default")
    add("-o", "--output", type=Path, default=Path("report"), help="folder for JSON, a plot and a Markdown section")
    add("--decoder", default="mh4-hybrid", help="of the trained and the untrained model")
    add("--device", default="auto")
    add("--threads", type=positive)
    add("--quick", action="store_true", help="run each as briefly as possible, to see that all work")
    add("--only", choices=_OWN, help="one benchmark, as JSON on standard output")
    given = parser.parse_args()
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    if given.only == "read":
        print(json.dumps(time_reading(given.treebank, 1 if given.quick else 5)))
        return
    if given.only == "memory":
        copies = (1,) if given.quick else (1, 2, 4, 8)
        rows = measure_memory(given.model, given.treebank, given.decoder, copies, given.device, given.threads)
        print(json.dumps(rows))
        return
    if given.model is not None:
        _ = ModelFolder(given.model).config  # fail now, not after all other benchmarks
    if given.treebank is not None:
        check_input(given.treebank)
    decoder, common = ["--decoder", given.decoder], ["--device", given.device]
    common += [] if given.threads is None else ["--threads", str(given.threads)]
    parsed = [str(path) for path in (given.model, given.treebank) if path is not None]

    def short(*arguments: str) -> list[str]:
        return list(arguments) if given.quick else []

    options = {
        "decoders": short("--decoders", "mst", "--lengths", "4,20,22", "--repeats", "3"),
        "certainty": short("--decoders", "mst,mh3", "--lengths", "4", "--repeats", "3"),
        "read": [*parsed, *short("--quick")],
        "train": [*parsed[1:], *decoder, *common, *short("--steps", "1")],
        "parse": [*parsed, *([] if given.model else decoder), *common, *short("--repeats", "1")],
        "memory": [*parsed, *decoder, *common, *short("--quick")],
    }
    run_all(given.output, options, given.threads, lambda name: print(f"{name} …", file=sys.stderr))
    print(f"report in {given.output}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
