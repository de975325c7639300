"""Tables 5 and 6 of Gómez-Rodríguez, Shi and Lee (2018): LAS on the UD 2.0 test files, ours beside theirs.

    python experiments/tables56_test_las.py

Reads results of `grid.py` only. LAS is that of the CoNLL shared task's evaluation (`mh4 eval`). The published numbers
are for files segmented by the task's baseline UDPipe: they compare with the column "segmented", for which `grid.py`
needs such a file; LAS with gold segmentation is higher and compares with nothing in the paper. The paper's ensemble
(MST, MH4-hybrid and 1EC; how many models of each it does not say) has one number; ours combines one model of each, a
seed at a time.
"""

from __future__ import annotations

from typing import Any

from grid_results import ReportTable, Result, compare, group_runs, in_order, mean_deviation, run_table
from published import REFERENCES, TEST_LAS_NONPROJECTIVE, TEST_LAS_PROJECTIVE, TEST_SYSTEMS, Cell


def las_table(
    results: list[Result], preset: str, title: str, theirs: dict[str, dict[str, Cell]], others: bool
) -> ReportTable:
    """A row a treebank of ``theirs`` and system; with ``others`` also treebanks that neither table has."""
    groups = {key: runs for key, runs in group_runs(results, preset).items() if runs[0]["test"]}
    known = TEST_LAS_NONPROJECTIVE.keys() | TEST_LAS_PROJECTIVE.keys()
    rows = []
    for treebank in in_order((name for name, _ in groups), tuple(theirs)):
        if treebank not in theirs and (not others or treebank in known):
            continue
        published = theirs.get(treebank, {})
        for system in in_order((system for name, system in groups if name == treebank), TEST_SYSTEMS):
            runs = groups[treebank, system]
            gold, segmented = (test_las(runs, key) for key in ("test", "test_segmented"))
            comparison = compare(segmented, published.get(system)) if segmented else ("", "", "")
            paper = str(published.get(system, ""))
            cells = [str(segmented or ""), paper, *comparison[1:], str(gold or "")]
            rows.append([treebank, system, str(len(runs)), *cells])
        rows.extend([treebank, name, "", "", str(published[name]), "", "", ""] for name in REFERENCES if published)
    columns = ["treebank", "system", "seeds", "segmented", "paper", "difference", "in paper's sd", "gold segmentation"]
    notes = [] if rows else ["Owed: no run has scored a test file of these treebanks."]
    command = f"python experiments/tables56_test_las.py --preset {preset}"
    return ReportTable(f"{title}, preset {preset}", columns, rows, notes, command)


def test_las(runs: list[Result], key: str) -> Cell | None:
    """Mean LAS of some runs on a test file, None unless all were scored on it."""
    scores: list[dict[str, Any] | None] = [run[key] for run in runs]
    return mean_deviation([score["f1"]["LAS"] for score in scores if score]) if all(scores) else None


def make_tables(results: list[Result], preset: str) -> list[ReportTable]:
    """Both."""
    return [
        las_table(results, preset, "Table 5: test LAS, most non-projective", TEST_LAS_NONPROJECTIVE, others=True),
        las_table(results, preset, "Table 6: test LAS, most projective", TEST_LAS_PROJECTIVE, others=False),
    ]


if __name__ == "__main__":
    run_table(make_tables, __doc__.split("\n")[0])
