"""All benchmarks in one go (``mh4 bench all``): JSON, a plot, and the speed section of docs/results.md."""

import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from mh4.data.errors import require
from mh4.data.files import atomic_output

from .certainty import COLUMNS
from .decoders import FITTED
from .memory import MIB

RESULTS, PLOT, SNIPPET = "benchmark.json", "decoders.svg", "performance.md"
PACKAGES = ("mh4", "numpy", "numba", "torch")
_SHOWN = (10, 20, 40, 60, 80, 100, 200, 400)


def machine(threads: int | None) -> dict[str, Any]:
    """What the numbers depend on."""
    import torch

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def processor() -> str:
    """Name of this machine's processor."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def run_all(
    folder: str | Path,
    options: Mapping[str, Sequence[str]],
    threads: int | None,
    on_start: Callable[[str], None] = lambda name: None,
) -> dict[str, Any]:
    """Run every benchmark in a process of its own, so that none pays for another's memory, and write the report.

    ``folder`` is made if need be, and gets ``benchmark.json``, ``decoders.svg`` and ``performance.md``. ``options`` are
    those of the command line, for each benchmark to run; ``threads`` are noted in the report. ValueError: matplotlib is
    missing, or a benchmark fails.
    """
    require("matplotlib", "plots")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"machine": machine(threads)}
    for name, arguments in options.items():
        on_start(name)
        command = [sys.executable, "-m", "mh4", "bench", name, "--json", *arguments]
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if finished.returncode:
            raise ValueError(f"mh4 bench {name} failed with exit status {finished.returncode}")
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
    """The performance section of docs/results.md, from the results of `run_all`; nothing else goes into it."""
    where = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    lines = [
        f"`mh4 bench all` on {where['processor']}, {where['cores']} cores"
        + (f", {where['cuda']}" if where["cuda"] else "")
        + f"; Python {where['python']}, {versions}.",
        "",
        "Decoding one sentence of random scores with one root child, one thread, preparation and backtrace included: "
        f"median ms, growth of time and of the chart's memory fitted over {FITTED[0]}–{FITTED[1]} words.",
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
        f"What it takes to say how sure a decoder is, in decodes of the same sentence, at {', '.join(lengths)} words "
        "(CPU time of one thread), and the memory of max-marginals, in charts:",
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
    return [f"- `mh4 bench read`: reads {speeds['read']:,.0f} and writes {speeds['write']:,.0f} words per CPU second."]


def _stage_line(name: str, results: dict[str, Any]) -> str:
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in results["share"].items())
    return f"- `mh4 bench {name}`: {results['words_per_second']:,.0f} words/s ({shares})."


def _memory_lines(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    peaks = ", ".join(f"{row['bytes'] / MIB:.1f} MiB: {row['peak_rss'] / MIB:.0f} MiB" for row in rows)
    return [
        f"- `mh4 bench memory`: {rows[-1]['words_per_second']:,.0f} words/s from disk to disk; peak resident memory by "
        f"size of the input: {peaks}."
    ]


def _milliseconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if value < 1 else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _power(exponent: float | None) -> str:
    return "–" if exponent is None else f"n<sup>{exponent:.1f}</sup>"
