"""Tables 5 and 6 of Gómez-Rodríguez, Shi and Lee (2018): LAS on the UD 2.0 test files, ours beside theirs.

    python experiments/tables56_test_las.py

Reads results of `grid.py` only. LAS is computed as in the CoNLL shared task (`mh4 eval`). The published numbers are for
files segmented by the task's baseline UDPipe. They are comparable to the column "segmented", for which `grid.py` needs
such a file or a UDPipe model; LAS with gold segmentation is higher and has no counterpart in the paper. If only some
seeds have been scored, their number is given in brackets. The paper's ensemble (MST, MH4-hybrid and 1EC, an unstated
number of models of each) has one number; ours combines one model of each for every seed.

For treebanks of Table 6 without test files here, a third table has LAS on the development files and each system's gain
over MST there, beside its gain on the test files in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable

from grid_results import ReportTable, Result, compare, group_runs, in_order, mean_deviation, run_table
from published import REFERENCES, TEST_LAS_NONPROJECTIVE, TEST_LAS_PROJECTIVE, TEST_SYSTEMS, Cell
from scripting import run_script
from segmentation import MODEL_SUFFIX


def las_table(
    results: list[Result], preset: str, title: str, theirs: dict[str, dict[str, Cell]], others: bool
) -> ReportTable:
    """A row per system and treebank in ``theirs``; with ``others``, also treebanks in neither published table."""
    groups = {key: runs for key, runs in group_runs(results, preset).items() if any(run["test"] for run in runs)}
    known = TEST_LAS_NONPROJECTIVE.keys() | TEST_LAS_PROJECTIVE.keys()
    rows = []
    for treebank in in_order((name for name, _ in groups), tuple(theirs)):
        if treebank not in theirs and (not others or treebank in known):
            continue
        published = theirs.get(treebank, {})
        for system in in_order((system for name, system in groups if name == treebank), TEST_SYSTEMS):
            runs = groups[treebank, system]
            whole, cut = ([run for run in runs if run[key]] for key in ("test", "test_segmented"))
            gold, segmented = mean_las(whole, "test"), mean_las(cut, "test_segmented")
            comparison = compare(segmented, published.get(system)) if segmented else ("", "", "")
            paper = str(published.get(system, ""))
            some, most = (f" ({len(own)})" if 0 < len(own) < len(runs) else "" for own in (cut, whole))
            cells = [f"{segmented or ''}{some}", paper, *comparison[1:], f"{gold}{most}"]
            rows.append([treebank, system, str(len(runs)), *cells])
        rows.extend([treebank, name, "", "", str(published[name]), "", "", ""] for name in REFERENCES if published)
    columns = ["treebank", "system", "seeds", "segmented", "paper", "difference", "in paper's sd", "gold segmentation"]
    notes = segmentation_notes(groups, dict.fromkeys(row[0] for row in rows))
    if not rows:
        notes = ["Not yet run: no run has scored a test file of these treebanks."]
    command = f"python experiments/tables56_test_las.py --preset {preset}"
    return ReportTable(f"{title}, preset {preset}", columns, rows, notes, command)


def segmentation_notes(groups: dict[tuple[str, str], list[Result]], treebanks: Iterable[str]) -> list[str]:
    """Notes on the segmentation, which all systems share: its F1, and the commands that made it."""
    notes = []
    for treebank in treebanks:
        scored = [
            run for (name, _), runs in groups.items() if name == treebank for run in runs if run["test_segmented"]
        ]
        for segmenter, run in {run["files"]["segmented"]: run for run in scored}.items():
            files, f1 = run["files"], run["test_segmented"]["f1"]
            words, sentences = f1["Words"], f1["Sentences"]
            note = f"Segmentation of {treebank} ({segmenter}): F1 of words {words:.2f}, of sentences {sentences:.2f}."
            if segmenter.endswith(MODEL_SUFFIX):
                train, dev, test = (files[name] for name in ("train", "dev", "test"))
                note += (
                    f" `python experiments/segmentation.py train {train} {dev} -o {segmenter}`, and then "
                    f"`python experiments/grid.py --score --treebanks {treebank}={train},{dev},{test},{segmenter} …`."
                )
            notes.append(note)
    return notes


def mean_las(runs: list[Result], key: str) -> Cell | None:
    """The mean LAS of runs on ``key``: ``dev``, ``test`` or ``test_segmented``; None without runs."""
    return mean_deviation([run[key]["f1"]["LAS"] for run in runs]) if runs else None


def dev_table(results: list[Result], preset: str) -> ReportTable:
    """A row per treebank of Table 6 and system, for runs scored on a development file but no test file."""
    groups = {key: runs for key, runs in group_runs(results, preset).items() if not any(run["test"] for run in runs)}
    rows = []
    for treebank, published in TEST_LAS_PROJECTIVE.items():
        mst = groups.get((treebank, "mst"))
        for system in in_order((system for name, system in groups if name == treebank), TEST_SYSTEMS):
            las = mean_las(groups[treebank, system], "dev")
            above, paper_above = "", ""
            if mst and system != "mst":
                above = f"{las.mean - mean_las(mst, 'dev').mean:+.2f}"
                paper_above = f"{published[system].mean - published['mst'].mean:+.2f}" if system in published else ""
            rows.append([treebank, system, str(len(groups[treebank, system])), str(las), above, paper_above])
    columns = ["treebank", "system", "seeds", "LAS, dev", "above mst", "above mst in the paper, test"]
    notes = [] if rows else ["Not yet run."]
    command = f"python experiments/tables56_test_las.py --preset {preset}"
    title = f"Table 6 on development files, gold segmentation, preset {preset}"
    return ReportTable(title, columns, rows, notes, command)


def make_tables(results: list[Result], preset: str) -> list[ReportTable]:
    """All three tables."""
    return [
        las_table(results, preset, "Table 5: test LAS, most non-projective", TEST_LAS_NONPROJECTIVE, others=True),
        las_table(results, preset, "Table 6: test LAS, most projective", TEST_LAS_PROJECTIVE, others=False),
        dev_table(results, preset),
    ]


if __name__ == "__main__":
    raise SystemExit(run_script(run_table, make_tables, __doc__.split("\n")[0]))
