"""Results of the runs of `grid.py`, one JSON file per run, and helpers for tables of them.

Every run that was begun has a file. ``"status"`` is ``done``, ``failed`` or ``open`` (not finished so far); errors and
interruptions stay in the file of a run that succeeded in the end.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from published import Cell
from rich.console import Console
from rich.table import Table

from mh4.data.files import atomic_output

RESULTS = Path(__file__).parent / "results" / "ud"
SHORT_DEV = RESULTS.parent / "short-dev"  # runs scored on dev without the sentences that the published code leaves out
DONE, FAILED, OPEN = "done", "failed", "open"
FORMAT = 1

# The runs that the report should have, for each preset: treebanks, systems, seeds.
_ALL = ("mst", "mh3", "mh4-two", "mh4-hybrid", "1ec", "greedy-mh3", "greedy-mh4")
PLAN: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...]], ...]] = {
    "paper": (
        (("hu", "got", "cu", "el"), _ALL, (1, 2, 3)),
        (("hu", "got", "cu", "el"), ("greedy-mh4-two", "greedy-mh4-three"), (1,)),
        (("hu", "got", "cu", "el"), ("greedy-mh4-chart", "greedy-mh4-two-chart", "greedy-mh4-three-chart"), (1,)),
        (("hu", "cu"), ("ensemble",), (1,)),  # their test files are available
        (("lv", "vi"), ("mh3", "mst", "mh4-hybrid", "1ec", "ensemble"), (1,)),  # Table 6
    ),
    "fast": (
        (("hu", "got"), _ALL, (1,)),
        (("cu", "el"), ("mst", "mh4-hybrid", "1ec"), (1,)),
        (("hu", "got", "cu", "el"), ("mh4-hybrid",), (1, 2, 3)),
    ),
    "balanced": (
        (("hu",), _ALL, (1, 2, 3)),
        (("got", "cu", "el"), _ALL, (1,)),
    ),
    "best": ((("hu", "got", "cu", "el"), ("mh4-hybrid",), (1, 2, 3)),),
}

Result = dict[str, Any]


def write_result(path: Path, result: Result) -> None:
    """Write one result atomically, one entry per line; create its folder if needed."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in result.items())
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_output(path) as stream:
        stream.write(f"{{\n{lines}\n}}\n".encode())


def read_result(path: Path) -> Result | None:
    """One result, or None if there is none."""
    if not path.exists():
        return None
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SystemExit(f"{path}: not valid JSON: {error}") from None
    if not isinstance(result, dict):
        raise SystemExit(f"{path}: not a result")
    if result.get("format") != FORMAT:
        raise SystemExit(f"{path}: format {result.get('format')!r}; this version reads format {FORMAT}")
    return result


def attempts(result: Result | None) -> int:
    """The number of vain attempts: failures, or interruptions at one and the same step, whichever is larger."""
    if result is None:
        return 0
    steps = Counter(entry["step"] for entry in result["interruptions"])
    return max(len(result["failures"]), *steps.values(), 0)


def read_results(folder: Path = RESULTS) -> list[Result]:
    """The results of all finished runs, sorted by treebank, system, preset and seed."""
    results = [read_result(path) for path in sorted(folder.glob("*.json"))]
    done = [result for result in results if result is not None and result["status"] == DONE]
    return sorted(done, key=lambda result: [result[key] for key in ("treebank", "system", "preset", "seed")])


def read_unfinished(folder: Path = RESULTS) -> dict[str, str]:
    """Runs that were begun but are not done, with their last error."""
    results = {path.stem: read_result(path) for path in sorted(folder.glob("*.json"))}
    return {
        name: result["failures"][-1]["error"] if result["failures"] else "interrupted"
        for name, result in results.items()
        if result is not None and result["status"] != DONE
    }


def owed_runs(results: Iterable[Result], preset: str) -> list[tuple[str, str, list[int]]]:
    """Treebank, system and seeds of the runs in `PLAN` that have no result."""
    groups = group_runs(results, preset)
    owed = []
    for treebanks, systems, seeds in PLAN.get(preset, ()):
        for treebank in treebanks:
            for system in systems:
                done = {result["seed"] for result in groups.get((treebank, system), ())}
                if missing := [seed for seed in seeds if seed not in done]:
                    owed.append((treebank, system, missing))
    return owed


def group_runs(results: Iterable[Result], preset: str) -> dict[tuple[str, str], list[Result]]:
    """Runs of one preset by treebank and system; the runs of a group differ in their seeds."""
    groups: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        if result["preset"] == preset:
            groups[result["treebank"], result["system"]].append(result)
    return dict(groups)


def mean_deviation(values: Sequence[float]) -> Cell:
    """Mean and standard deviation (of a sample, n − 1) over seeds; one value has no deviation."""
    return Cell(statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None)


def in_order(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """The names, sorted by ``order``; names not in it follow alphabetically."""
    places = {name: place for place, name in enumerate(order)}
    return sorted(set(names), key=lambda name: (places.get(name, len(order)), name))


def compare(ours: Cell, theirs: Cell | None) -> tuple[str, str, str]:
    """The published value, and our difference to it in points and in published standard deviations."""
    if theirs is None:
        return "", "", ""
    difference = ours.mean - theirs.mean
    deviations = f"{difference / theirs.deviation:+.1f}" if theirs.deviation else ""
    return str(theirs), f"{difference:+.2f}", deviations


@dataclass
class ReportTable:
    """A table for the terminal, for Markdown and for HTML; columns of text come first.

    Attributes
    ----------
    title, columns, rows
        Strings; every row has a cell per column.
    notes : list of str
        Sentences below the table.
    command : str
        The command that prints the table.
    left : int
        Number of left-aligned columns.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str]
    command: str
    left: int = 2

    def render(self) -> None:
        """Print the table to the terminal."""
        table = Table(title=self.title, box=None, pad_edge=False)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number < self.left else "right", no_wrap=number < self.left)
        for row in self.rows:
            table.add_row(*row)
        console = Console(width=140)
        console.print(table)
        for note in self.notes:
            console.print(note, highlight=False, markup=False)

    def markdown(self) -> str:
        """The table as Markdown, under a heading."""
        rule = [":--" if number < self.left else "--:" for number in range(len(self.columns))]
        lines = ["| " + " | ".join(cells) + " |" for cells in (self.columns, rule, *self.rows)]
        return "\n".join([f"### {self.title}", "", f"`{self.command}`", "", *lines, "", *self.notes, ""])


def run_table(make: Callable[[list[Result], str], ReportTable | list[ReportTable]], description: str) -> None:
    """Run the command line of a table script, which only reads results: options ``--results`` and ``--preset``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    parser.add_argument("--preset", default="paper", help="settings of the runs (default: %(default)s)")
    arguments = parser.parse_args()
    if not arguments.results.is_dir():
        parser.error(f"{arguments.results}: no such folder")
    tables = make(read_results(arguments.results), arguments.preset)
    for table in [tables] if isinstance(tables, ReportTable) else tables:
        table.render()
