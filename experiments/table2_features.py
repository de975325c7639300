"""Table 2 of Gómez-Rodríguez, Shi and Lee (2018): features of global MH4 models, ours beside theirs.

    python experiments/table2_features.py

Reads results of `grid.py` only: average development UAS over the treebanks for which we have every column. For columns
also in Table 4, the published average over the same treebanks is given below the average over ten.
"""

from __future__ import annotations

from statistics import mean

from grid_results import ReportTable, Result, group_runs, run_table
from published import DEV_UAS, GLOBAL_FEATURES, Cell
from scripting import run_script
from table4_systems import mean_uas, treebanks_of


def features_table(
    results: list[Result], preset: str, title: str, columns: dict[str, tuple[str, Cell]], command: str
) -> ReportTable:
    """The averages of the systems for each feature set, over treebanks with results for all of them."""
    groups = group_runs(results, preset)
    systems = [system for system, _ in columns.values()]
    names = treebanks_of(groups, systems)
    rows = []
    if names:
        averages = [mean(mean_uas(groups, name, system) for name in names) for system in systems]
        rows.append([f"ours, {', '.join(names)}", *(f"{average:.2f}" for average in averages)])
    rows.append(["paper, ten treebanks", *(f"{cell.mean:.2f}" for _, cell in columns.values())])
    if names and all(name in DEV_UAS for name in names):
        cells = [[DEV_UAS[name].get(system) for name in names] for system in systems]
        rows.append(
            [
                f"paper, {', '.join(names)}",
                *("" if None in column else f"{mean(cell.mean for cell in column if cell):.2f}" for column in cells),
            ]
        )
    notes = [] if names else [f"Not yet run: no treebank has results of all of {', '.join(systems)}."]
    return ReportTable(f"{title}, preset {preset}", ["UAS", *columns], rows, notes, command, left=1)


def make_table(results: list[Result], preset: str) -> ReportTable:
    """The table."""
    command = f"python experiments/table2_features.py --preset {preset}"
    return features_table(results, preset, "Table 2: features of global MH4 models", GLOBAL_FEATURES, command)


if __name__ == "__main__":
    raise SystemExit(run_script(run_table, make_table, __doc__.split("\n")[0]))
