"""Table 1 of Gómez-Rodríguez, Shi and Lee (2018): features of local (greedy) MH4 models, ours beside theirs.

    python experiments/table1_features.py

Reads results of `grid.py` only; see table2_features.py. The second row of ours has the oracle `chart-order`, with which
the paper's parsers were trained.
"""

from __future__ import annotations

from grid_results import ReportTable, Result, run_table
from published import LOCAL_FEATURES
from scripting import run_script
from table2_features import features_table

SMALLER = (
    "Runs of our own oracle with {s0, b0} and {s1, s0, b0}, except {s0, b0} on Hungarian, had smaller batches (see "
    "experiments/results/ud/README.md) and are to be repeated."
)


def make_table(results: list[Result], preset: str) -> ReportTable:
    """The table."""
    command = f"python experiments/table1_features.py --preset {preset}"
    table = features_table(results, preset, "Table 1: features of local MH4 models", LOCAL_FEATURES, command)
    by_chart = {name: (f"{system}-chart", cell) for name, (system, cell) in LOCAL_FEATURES.items()}
    ours, *_ = features_table(results, preset, "", by_chart, command).rows
    if ours[0].startswith("ours"):
        place = 1 if table.rows[0][0].startswith("ours") else 0
        table.rows.insert(place, [f"{ours[0]}: oracle chart-order", *ours[1:]])
        table.notes.append(SMALLER)
    return table


if __name__ == "__main__":
    raise SystemExit(run_script(run_table, make_table, __doc__.split("\n")[0]))
