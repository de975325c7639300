"""Table 4 of Gómez-Rodríguez, Shi and Lee (2018): dev UAS of all systems, ours beside theirs; and section 5's remarks.

    python experiments/table4_systems.py

Reads results of `grid.py` only. Shows UAS on the UD 2.0 development files with gold segmentation, for the model that is
best there by LAS; mean and standard deviation over seeds. Differences are also given in published standard deviations,
with Welch's t-test: how often chance alone, in our seeds and in the paper's five, would make a difference as large.
Two more tables check the paper's observations: the order of the systems, and which arcs each finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import mean

from grid_results import ReportTable, Result, compare, group_runs, in_order, mean_deviation, run_table
from published import DEV_UAS, GLOBAL_SYSTEMS, GREEDY_SYSTEMS, SEEDS, Cell
from scipy.stats import t as student
from scripting import run_script

ORDER = (*GLOBAL_SYSTEMS, *GREEDY_SYSTEMS, "ensemble")
TREEBANKS = tuple(name for name in DEV_UAS if name != "avg")
EXPECTED = [(better, worse) for better in ("mh4-hybrid", "1ec") for worse in ("mst", "mh3")]
SHORT, LONG = ("1", "2"), ("7+",)

Groups = dict[tuple[str, str], list[Result]]


def treebanks_of(groups: Groups, systems: Sequence[str]) -> list[str]:
    """The treebanks with runs of all these systems, in the paper's order."""
    names = {treebank for treebank, _ in groups}
    return in_order((name for name in names if all((name, system) in groups for system in systems)), TREEBANKS)


def systems_of(groups: Groups) -> list[str]:
    """The systems with runs, in the paper's order."""
    return in_order((system for _, system in groups), ORDER)


def mean_uas(groups: Groups, treebank: str, system: str) -> float:
    """The mean dev UAS over seeds."""
    return mean(result["dev_uas"] for result in groups[treebank, system])


def p_value(cells: Sequence[tuple[Sequence[float], Cell | None]]) -> float | None:
    """Two-sided p of Welch's t-test that our means over seeds are, on average over cells, the published ones.

    None if a cell has no deviation, ours or the published one.
    """
    difference, variances = 0.0, []  # of means, with their degrees of freedom
    for values, theirs in cells:
        ours = mean_deviation(values)
        if theirs is None or theirs.deviation is None or ours.deviation is None:
            return None
        difference += ours.mean - theirs.mean
        variances += [(ours.deviation**2 / len(values), len(values) - 1), (theirs.deviation**2 / SEEDS, SEEDS - 1)]
    total = sum(variance for variance, _ in variances)
    freedom = total**2 / sum(variance**2 / own for variance, own in variances)
    return float(2 * student.sf(abs(difference) / total**0.5, freedom))


def uas_table(results: list[Result], preset: str) -> ReportTable:
    """A row per treebank and system; then, per system, the average over treebanks with our and published results."""
    groups = group_runs(results, preset)
    rows = []
    for treebank in treebanks_of(groups, ()):
        for system in systems_of(groups):
            if (treebank, system) not in groups:
                continue
            runs = groups[treebank, system]
            uas = mean_deviation([run["dev_uas"] for run in runs])
            las = mean_deviation([run["dev_las"] for run in runs])
            theirs = DEV_UAS.get(treebank, {}).get(system)
            chance = _shown(p_value([([run["dev_uas"] for run in runs], theirs)]))
            rows.append([treebank, system, str(len(runs)), str(uas), *compare(uas, theirs), chance, str(las)])
    for system in systems_of(groups):
        both = [name for name in treebanks_of(groups, [system]) if system in DEV_UAS.get(name, {})]
        if both:
            ours = Cell(mean(mean_uas(groups, name, system) for name in both), None)
            theirs = Cell(mean(DEV_UAS[name][system].mean for name in both), None)
            cells = [([run["dev_uas"] for run in groups[name, system]], DEV_UAS[name][system]) for name in both]
            chance = _shown(p_value(cells))
            rows.append([f"average of {len(both)}", system, "", str(ours), *compare(ours, theirs), chance, ""])
    columns = ["treebank", "system", "seeds", "UAS", "paper", "difference", "in paper's sd", "p", "LAS"]
    notes = [
        "Averages, ours and the paper's, are over the treebanks for which we have results. p: Welch's t-test of our "
        "seeds against the paper's five, not corrected for the number of cells."
    ]
    return ReportTable(f"Table 4: development UAS, preset {preset}", columns, rows, notes, _command(preset))


def order_table(results: list[Result], preset: str) -> ReportTable:
    """Whether MH4-hybrid and 1EC are better than MST and MH3, on average and on each treebank."""
    groups = group_runs(results, preset)
    rows = []
    for better, worse in EXPECTED:
        names = [name for name in treebanks_of(groups, [better, worse]) if name in DEV_UAS]
        if not names:
            continue
        ours = {name: mean_uas(groups, name, better) - mean_uas(groups, name, worse) for name in names}
        theirs = mean(DEV_UAS[name][better].mean - DEV_UAS[name][worse].mean for name in names)
        average = mean(ours.values())
        against = ", ".join(f"{name} ({difference:+.2f})" for name, difference in ours.items() if difference <= 0)
        holds = "yes" if average > 0 else "no"
        rows.append([f"{better} above {worse}", holds, f"{average:+.2f}", f"{theirs:+.2f}", str(len(names)), against])
    columns = ["on average", "holds", "ours", "paper", "treebanks", "not so on"]
    notes = ["Differences of mean UAS in points, ours and the paper's, on the same treebanks."]
    return ReportTable(f"Order of the systems, preset {preset}", columns, rows, notes, _command(preset))


def recall_table(results: list[Result], preset: str) -> ReportTable:
    """Recall by length and on crossed arcs, averaged over treebanks with runs of all systems.

    Systems trained with another oracle, which only Table 1 compares, do not count.
    """
    groups = group_runs(results, preset)
    systems = [system for system in systems_of(groups) if not system.endswith("-chart")]
    names = treebanks_of(groups, systems)
    if not names:  # no treebank has all systems: use only those of the published comparison
        systems = [system for system in ("mst", "mh4-hybrid", "1ec") if system in systems]
        names = treebanks_of(groups, systems)

    def average(system: str, measure: Callable[[Result], float]) -> float:
        return mean(mean(measure(run) for run in groups[name, system]) for name in names)

    bins = ["root", "1", "2", "3-6", "7+"]
    rows, short, long = [], {}, {}
    for system in systems if names else ():
        by_length = [average(system, partial(pooled_recall, bins=[name])) for name in bins]
        short[system] = average(system, partial(pooled_recall, bins=SHORT))
        long[system] = average(system, partial(pooled_recall, bins=LONG))
        crossing = [average(system, partial(_crossing, which=which)) for which in (0, 1)]
        rows.append([system, *(f"{value:.2f}" for value in (*by_length, short[system], long[system], *crossing))])
    columns = ["system", *bins, "short (1, 2)", "long (7+)", "crossed arcs", "crossed, precision"]
    notes = [f"Recall in % of gold arcs by distance in words; averages over {', '.join(names) or 'no treebank'}."]
    if {"mh4-hybrid", "1ec"} <= short.keys():
        difference = [values["mh4-hybrid"] - values["1ec"] for values in (short, long)]
        notes.append(
            "Section 5 of the paper: MH4 finds more short arcs than 1EC "
            f"({_verdict(difference[0])}: {difference[0]:+.2f}), 1EC more long ones "
            f"({_verdict(-difference[1])}: {-difference[1]:+.2f})."
        )
    return ReportTable(f"Which arcs are found, preset {preset}", columns, rows, notes, _command(preset), left=1)


def pooled_recall(run: Result, bins: Sequence[str]) -> float:
    """Recall on dev over all gold arcs in some length bins."""
    arcs = [run["dev"]["by_length"][name] for name in bins]
    total = sum(gold for _, _, gold, _ in arcs)
    return sum(recall * gold for recall, _, gold, _ in arcs) / total if total else 0.0


def _crossing(run: Result, which: int) -> float:
    """Recall (0) or precision (1) on crossed arcs of dev."""
    return run["dev"]["crossing"][which]


def _shown(p: float | None) -> str:
    return "" if p is None else f"{p:.3f}"


def _verdict(difference: float) -> str:
    return "so do ours" if difference > 0 else "ours do not"


def _command(preset: str) -> str:
    return f"python experiments/table4_systems.py --preset {preset}"


def make_tables(results: list[Result], preset: str) -> list[ReportTable]:
    """All three tables."""
    return [uas_table(results, preset), order_table(results, preset), recall_table(results, preset)]


if __name__ == "__main__":
    raise SystemExit(run_script(run_table, make_tables, __doc__.split("\n")[0]))
