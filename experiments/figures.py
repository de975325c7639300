"""Shared by the figure scripts: axes without a display, and the files for numbers and plots."""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from grid_results import write_result
from provenance import made_today

matplotlib.use("Agg")  # no display needed
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def new_figure(x: str, y: str, logarithmic: bool = True) -> tuple[Figure, Axes]:
    """An empty figure with these labels; ``logarithmic``: whether the y axis is logarithmic."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options of a figure script to keep in its results: names of treebanks without folders, and no output path."""
    kept = {name: value for name, value in vars(options).items() if name != "output"}
    return kept | {"treebanks": [Path(path).name for path in options.treebanks]}


def mean_time(calculate: Callable[[], object], seconds: float) -> float:
    """Seconds of CPU time of one call, in this thread; calls are repeated for ``seconds``, after one to compile."""
    calculate()
    rounds, start = 0, time.thread_time()
    while rounds == 0 or time.thread_time() - start < seconds:
        calculate()
        rounds += 1
    return (time.thread_time() - start) / rounds


def means_near_80(records: Sequence[Mapping[str, float]], names: Iterable[str]) -> dict[str, float]:
    """Print and return the mean microseconds by name over k + m from 76 to 84; nothing if no record is so long."""
    near = [record for record in records if 76 <= record["length"] <= 84]
    means = {name: 1000 * sum(record[name] for record in near) / len(near) for name in names} if near else {}
    if means:
        print("k + m from 76 to 84:", ", ".join(f"{name} {mean:.1f} µs" for name, mean in means.items()))
    return means


def write_numbers(numbers: Any, name: Path, **settings: Any) -> Path:
    """Write NAME.json: the numbers with date, commit, machine and settings; return its path."""
    path = name.with_name(f"{name.name}.json")
    write_result(path, made_today() | {"settings": settings, "numbers": numbers})
    return path


def write_figure(figure: Figure, name: Path) -> list[Path]:
    """Write NAME.png and NAME.svg; return their paths."""
    paths = [name.with_name(f"{name.name}.{ending}") for ending in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=200)
    return paths
