"""``mh4 eval --calibration``: how far stated confidences hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mh4.data.errors import require
from mh4.data.files import atomic_output

from .options import output

if TYPE_CHECKING:
    from mh4.trees.reliability import CalibrationReport


def evaluate_calibration(gold: Path, system: Path, as_json: bool, plot: Path | None) -> None:
    """Print, and perhaps draw, the reliability of the confidences of a parsed file."""
    from mh4.trees.reliability import measure_calibration

    if plot is not None:
        require("matplotlib", "plots")
    report = measure_calibration(gold, system)
    if plot is not None:
        _draw(report, plot)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=1))
    else:
        _print(report)


def _print(report: CalibrationReport) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("", "words", "confidence", "right"):
        table.add_column(column, justify="right" if column else "left")
    for name, one in (
        ("heads, raw margin", report.heads_before),
        ("heads", report.heads),
        ("heads and relations", report.both),
    ):
        table.add_row(f"{name}: ECE {one.ece:.2%}", str(one.words), "", f"{one.right:.1%}")
        for part in one.bins:
            table.add_row("", str(part.words), f"{part.confidence:.1%}", f"{part.right:.1%}")
    output.print(table)
    curve = Table(box=None, pad_edge=False)
    for column in ("least certain words looked at", "wrong heads found", "wrong words found"):
        curve.add_column(column, justify="right")
    for share, heads in report.wrong_heads.items():
        curve.add_row(f"{share:.0%}", f"{heads:.1%}", f"{report.wrong_words[share]:.1%}")
    output.print()
    output.print(curve)


def _draw(report: CalibrationReport, path: Path) -> None:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    kinds = {".svg", ".png", ".pdf"}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"{path}: a picture is one of {', '.join(sorted(kinds))}")
    rcParams["svg.hashsalt"] = "mh4"  # equal reports are equal files
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="0.8", linewidth=1)
    for name, one in (
        ("heads, raw", report.heads_before),
        ("heads", report.heads),
        ("heads and relations", report.both),
    ):
        points = [part.confidence for part in one.bins], [part.right for part in one.bins]
        left.plot(*points, marker="o", label=f"{name} (ECE {one.ece:.1%})")
    left.set(xlabel="confidence", ylabel="share of words that are right", title="Reliability")
    left.legend()
    for name, curve in (("heads", report.wrong_heads), ("heads and relations", report.wrong_words)):
        right.plot([0, *curve], [0, *curve.values()], marker="o", label=name)
    looked = [0, *report.wrong_heads]
    right.plot(looked, looked, color="0.8", linewidth=1)
    right.set(xlabel="share of words looked at", ylabel="share of errors found", title="Least certain words first")
    right.legend()
    with atomic_output(path) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), metadata={"Date": None} if path.suffix == ".svg" else {})
