"""What the figures share: axes drawn without a display, and the files that hold numbers and drawing."""

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # no display needed
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def new_figure(x: str, y: str, logarithmic: bool = True) -> tuple[Figure, Axes]:
    """An empty figure with these labels; ``logarithmic`` says how the y axis is divided."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    if logarithmic:
        axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def write_numbers(numbers: Any, name: Path) -> Path:
    """Write NAME.json; returns its path."""
    path = name.with_name(f"{name.name}.json")
    path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return path


def write_figure(figure: Figure, name: Path) -> list[Path]:
    """Write NAME.png and NAME.svg; returns their paths."""
    paths = [name.with_name(f"{name.name}.{ending}") for ending in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=200)
    return paths
