"""Plots of `report.py`, as SVG text; they need matplotlib (the extra ``plots``)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from statistics import mean
from typing import Any

from grid_results import Result, group_runs, mean_deviation
from published import DEV_UAS
from table4_systems import ORDER, systems_of, treebanks_of

# Okabe and Ito's colour-blind-safe palette; one colour per system, the same in every plot.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#000000")
COLOUR = dict(zip(ORDER, _COLOURS, strict=True))
OTHER_COLOUR = "#777777"


def _figure(count: int, width: float = 4.2, height: float = 3.2) -> tuple[Any, list[Any]]:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "mh4"  # the same numbers give the same file
    from matplotlib import pyplot

    columns = min(count, 2)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    panels = list(axes.flat)
    for panel in panels[count:]:
        panel.set_axis_off()
    for panel in panels[:count]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.set_axisbelow(True)
    return figure, panels


def _svg(figure: Any) -> str:
    from matplotlib import pyplot

    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    text = stream.getvalue()
    lines = (line.rstrip() for line in text[text.index("<svg") :].splitlines())
    return "\n".join(lines) + "\n"


def _shared_legend(figure: Any, panels: Sequence[Any]) -> None:
    handles: dict[str, Any] = {}
    for panel in panels:
        handles |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def plot_uas(results: list[Result], preset: str) -> str | None:
    """Dev UAS by treebank and system, ours and the paper's, each with its standard deviation."""
    groups = group_runs(results, preset)
    names = treebanks_of(groups, ())
    if not names:
        return None
    figure, panels = _figure(len(names))
    for panel, name in zip(panels, names, strict=False):
        systems = [system for system in systems_of(groups) if (name, system) in groups]
        for place, system in enumerate(systems):
            ours = mean_deviation([run["dev_uas"] for run in groups[name, system]])
            colour = COLOUR.get(system, OTHER_COLOUR)
            panel.errorbar(place - 0.12, ours.mean, ours.deviation or 0, fmt="o", color=colour, capsize=3, markersize=5)
            theirs = DEV_UAS.get(name, {}).get(system)
            if theirs:
                style = {"fmt": "D", "color": "#777777", "markerfacecolor": "white", "capsize": 3, "markersize": 4.5}
                panel.errorbar(place + 0.12, theirs.mean, theirs.deviation, **style)
        panel.set_xticks(range(len(systems)), systems, rotation=35, ha="right", fontsize=8)
        panel.set_xlim(-0.5, len(systems) - 0.5)
        panel.set_title(name, loc="left", fontsize=10)
        panel.set_ylabel("dev UAS, %", fontsize=8)
    return _svg(figure)


def plot_curves(results: list[Result], preset: str) -> str | None:
    """Dev UAS by step, a line per run, with a legend of systems."""
    groups = {key: runs for key, runs in group_runs(results, preset).items() if "curve" in runs[0]}
    names = treebanks_of(groups, ())
    if not names:
        return None
    figure, panels = _figure(len(names))
    for panel, name in zip(panels, names, strict=False):
        highest = 0.0
        for system in systems_of(groups):
            for run in groups.get((name, system), ()):
                steps = [row[0] / 1000 for row in run["curve"]]
                uas = [row[2] for row in run["curve"]]
                highest = max(highest, *uas)
                panel.plot(steps, uas, color=COLOUR.get(system, OTHER_COLOUR), linewidth=1, alpha=0.8, label=system)
        panel.set_ylim(highest - 12, highest + 1)
        panel.set_title(name, loc="left", fontsize=10)
        panel.set_xlabel("minibatches, thousands", fontsize=8)
        panel.set_ylabel("dev UAS, %", fontsize=8)
    _shared_legend(figure, panels[: len(names)])
    return _svg(figure)


def plot_recall(results: list[Result], preset: str) -> str | None:
    """Recall on dev by arc length, mean over seeds."""
    groups = group_runs(results, preset)
    names = treebanks_of(groups, ())
    if not names:
        return None
    figure, panels = _figure(len(names))
    for panel, name in zip(panels, names, strict=False):
        for system in systems_of(groups):
            runs = groups.get((name, system))
            if not runs:
                continue
            bins = list(runs[0]["dev"]["by_length"])
            recall = [mean(run["dev"]["by_length"][b][0] for run in runs) for b in bins]
            crossing = mean(run["dev"]["crossing"][0] for run in runs)
            colour = COLOUR.get(system, OTHER_COLOUR)
            panel.plot(bins, recall, color=colour, marker="o", markersize=3, linewidth=1.2, label=system)
            panel.plot(["crossed"], [crossing], color=colour, marker="o", markersize=4)
        panel.set_title(name, loc="left", fontsize=10)
        panel.set_xlabel("distance of head and dependent, words", fontsize=8)
        panel.set_ylabel("recall, %", fontsize=8)
    _shared_legend(figure, panels[: len(names)])
    return _svg(figure)
