"""The report on all runs of `grid.py`: Markdown with plots beside it, and one HTML file that holds everything.

    python experiments/report.py

Reads ``experiments/results/ud``, ``short-dev`` beside it (the same runs scored on dev without the sentences that the
published code leaves out), if it exists, and, for decoding times, ``experiments/results/performance``; writes
``experiments/RESULTS.md``, ``experiments/plots/*.svg`` and ``runs/report.html``. Every table and plot comes with the
command that prints it; runs in `grid_results.PLAN` without a result are listed as missing. Plots need matplotlib
(``pip install 'mh4[plots]'``).
"""

from __future__ import annotations

import argparse
import html
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import table1_features
import table2_features
import table4_systems
import tables56_test_las
from benchmark import RESULTS as BENCHMARKS
from benchmark import plot_decoders
from grid_results import (
    PLAN,
    RESULTS,
    SHORT_DEV,
    ReportTable,
    Result,
    group_runs,
    owed_runs,
    read_results,
    read_unfinished,
)
from grid_runs import has_settings_of
from preset_speed import StepSeconds, read_step_seconds
from published import DEV_UAS, Cell
from report_plots import plot_curves, plot_recall, plot_uas
from scripting import run_script
from table4_systems import mean_uas, systems_of, treebanks_of

from mh4.data.files import atomic_output
from mh4.parsers.config import ChartConfig, as_dict

FORMER = "`feature_weight` was the weight of morphological features as an auxiliary task, which has been removed."
EARLIER = "Runs whose settings no longer exist need the code of their time, checked out and installed again."
NAMED_IN = {"b8b3509698f6": "eb4ea22feb49"}  # for runs of a preset that had no name yet: the commit that named it
SEARCHED = ("hu",)  # the treebanks that preset `best` was chosen on
LEVEL = 0.05  # of significance
BENCH_COMMAND = "python experiments/benchmark.py -o experiments/results/performance MODEL TREEBANK"
WITHOUT_LONG = (
    r"awk -v RS= -F'\n' -v ORS='\n\n' '{n = 0; for (i = 1; i <= NF; i++) n += $i ~ /^[0-9]+\t/} n < 99' DEV > SHORT"
)
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; } h3 { margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #ddd; white-space: nowrap; text-align: right; }
th.text, td.text { text-align: left; } figure { margin: 1.5rem 0; } svg { max-width: 100%; height: auto; }
code { font-size: 13px; background: #f4f4f4; padding: .1rem .3rem; } figcaption { color: #444; }
"""


@dataclass(frozen=True)
class Plot:
    """A plot; ``name`` is its file name without suffix."""

    name: str
    caption: str
    svg: str


@dataclass
class Section:
    """A section: heading, sentences, list items, tables and plots."""

    title: str
    text: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)


def claims_table(results: list[Result], step_seconds: StepSeconds, short: Sequence[Result] = ()) -> ReportTable:
    """The project's claims about its accuracy and speed, and whether the results support them.

    Comparisons of ``paper`` with published scores are made twice: with all ``results``, and with those in ``short``,
    scored on the dev sentences that the published code scores, in place of the same cells.
    """
    rows = [row for preset in PLAN for row in _published_level(results, preset)] + _published_means(results)
    if short:
        replaced = {_cell(run) for run in short}
        compared = [run for run in results if _cell(run) not in replaced] + list(short)
        cells = " and ".join(sorted(f"{treebank} {system}" for treebank, system, _ in replaced))
        again = _published_level(compared, "paper") + _published_means(compared)
        rows += [[f"{claim}; {cells} without dev sentences of 99 words or more", *found] for claim, *found in again]
    rows += [
        [f"{row[0]}, on average", f"{row[2]} UAS", row[1]] for row in table4_systems.order_table(results, "paper").rows
    ]
    rows += _time_claims(results, step_seconds)
    best = group_runs(results, "best")
    gains = {
        name: mean_uas(best, name, "mh4-hybrid") - DEV_UAS[name]["mh4-hybrid"].mean
        for name in treebanks_of(best, ["mh4-hybrid"])
        if name in DEV_UAS
    }
    untouched = {name: gain for name, gain in gains.items() if name not in SEARCHED}
    if "hu" in gains:
        claim = "best: +1.0 UAS or more over the published MH4-hybrid on hu"
        rows.append([claim, f"{gains['hu']:+.2f} ({len(best['hu', 'mh4-hybrid'])} seeds)", _yes(gains["hu"] >= 1.0)])
    if untouched:
        claim = f"best: +0.5 UAS or more on average over treebanks it was not chosen on ({', '.join(untouched)})"
        average = mean(untouched.values())
        rows.append([claim, f"{average:+.2f}", _yes(average >= 0.5)])
    notes = [
        "Time is the number of steps times the time of a step, measured side by side (`python "
        "experiments/preset_speed.py TREEBANK…`); for fast, until dev UAS reaches the mean of paper's models or, if it "
        "never does, until the best model."
    ]
    return ReportTable("Claims", ["claim", "found", "holds"], rows, notes, "python experiments/report.py", left=3)


def _cell(run: Result) -> tuple[str, str, str]:
    return run["treebank"], run["system"], run["preset"]


def _beside_published(results: list[Result], preset: str) -> Iterator[tuple[str, list[float], Cell]]:
    """The name of each cell of Table 4 with a published deviation, our dev UAS of all seeds, and the published one."""
    for (treebank, system), runs in sorted(group_runs(results, preset).items()):
        theirs = DEV_UAS.get(treebank, {}).get(system)
        if theirs is not None and theirs.deviation is not None:
            yield f"{treebank} {system}", [run["dev_uas"] for run in runs], theirs


def _claim_of_cells(claim: str, cells: int, exceptions: list[str]) -> list[list[str]]:
    """A row for a claim about so many cells, or no row if there are none."""
    found = f"{cells - len(exceptions)} of {cells} cells" + (f"; not {', '.join(exceptions)}" if exceptions else "")
    return [[claim, found, _yes(not exceptions)]] if cells else []


def _published_level(results: list[Result], preset: str) -> list[list[str]]:
    """A row for the claim that a preset's mean UAS is at most one published deviation below the paper's, or no row."""
    cells = {name: (mean(values), theirs) for name, values, theirs in _beside_published(results, preset)}
    short = [
        f"{name} {(ours - theirs.mean) / theirs.deviation:+.1f} sd"
        for name, (ours, theirs) in cells.items()
        if theirs.deviation and ours < theirs.mean - theirs.deviation
    ]
    return _claim_of_cells(f"{preset}: mean dev UAS within one published sd, or better", len(cells), short)


def _published_means(results: list[Result]) -> list[list[str]]:
    """A row for the claim that means of ``paper`` differ from the published ones by chance alone, or no row."""
    differences = {
        name: (p, mean(values) - theirs.mean)
        for name, values, theirs in _beside_published(results, "paper")
        if (p := table4_systems.p_value([(values, theirs)])) is not None
    }
    differ = [f"{name} {difference:+.2f}" for name, (p, difference) in differences.items() if p < LEVEL]
    claim = f"paper: dev UAS differs from the published mean by chance alone (Welch's t-test, p ≥ {LEVEL})"
    return _claim_of_cells(claim, len(differences), differ)


def _time_claims(results: list[Result], step_seconds: StepSeconds) -> list[list[str]]:
    """The claims comparing the presets for short training with ``paper``, a row per treebank."""
    slow_groups = group_runs(results, "paper")
    fast = "within 0.2 UAS of paper, and as good as paper in a third of its time"
    balanced = "above paper, in less than its time"
    rows = []
    for preset, promise, least_gain, most_time in (("fast", fast, -0.2, 1 / 3), ("balanced", balanced, 0.0, 1.0)):
        for (treebank, system), runs in sorted(group_runs(results, preset).items()):
            slow = slow_groups.get((treebank, system), [])
            if not slow or system != "mh4-hybrid":
                continue
            uas = mean(run["dev_uas"] for run in slow)
            gain = mean(run["dev_uas"] for run in runs) - uas
            ours, theirs = (
                mean(steps_to(run, uas) if preset == "fast" else run["steps"] for run in some) for some in (runs, slow)
            )
            found = f"{gain:+.2f} UAS ({len(runs)} and {len(slow)} seeds), {ours / theirs:.2f} of the steps"
            holds = "?" if gain >= least_gain else "no"
            if {preset, "paper"} <= step_seconds.get(treebank, {}).keys():
                time = ours / theirs * step_seconds[treebank][preset] / step_seconds[treebank]["paper"]
                found, holds = f"{found}, {time:.2f} of the time", _yes(gain >= least_gain and time <= most_time)
            rows.append([f"{preset}, {treebank} {system}: {promise}", found, holds])
    return rows


def steps_to(run: Result, uas: float) -> int:
    """Training steps until dev UAS reached ``uas`` or the model was the run's best, whichever came first."""
    return next(row[0] for row in run["curve"] if row[2] >= uas or row[0] >= run["best_step"])


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def runs_table(results: list[Result], preset: str) -> ReportTable:
    """Time and hardware of the runs."""
    groups = group_runs(results, preset)
    rows = []
    for treebank in treebanks_of(groups, ()):
        for system in systems_of(groups):
            runs = groups.get((treebank, system), [])
            if not runs:
                continue
            seeds = ", ".join(str(run["seed"]) for run in runs)
            rows.append(
                [
                    *(treebank, system, seeds),
                    *(_mean_of(runs, key, digits) for key, digits in (("steps", 0), ("best_step", 0), ("minutes", 0))),
                    *(_mean_of(runs, key, 0) for key in ("words_per_second", "parsing_words_per_second")),
                    "; ".join(sorted({describe_machine(run["hardware"]) for run in runs})),
                    ", ".join(sorted({str(run["commit"]) for run in runs})),
                    str(sum(len(run["failures"]) + len(run["interruptions"]) for run in runs)),
                ]
            )
    columns = ["treebank", "system", "seeds", "steps", "best step", "minutes", "words/s training", "words/s parsing"]
    columns += ["machine", "commit", "failures and interruptions"]
    notes = [
        "Means over seeds. One CPU thread per run, with several runs side by side, so times depend on what else the "
        "machine did. Parsing: the development file, reading and writing included.",
        *sorted({f"Versions: {_versions(result)}." for result in results if result["preset"] == preset}),
    ]
    return ReportTable(f"Runs, preset {preset}", columns, rows, notes, "python experiments/report.py", left=3)


def _versions(result: Result) -> str:
    return ", ".join(f"{name} {version}" for name, version in result["versions"].items())


def _mean_of(runs: list[Result], key: str, digits: int) -> str:
    return f"{mean(run[key] for run in runs):.{digits}f}" if all(key in run for run in runs) else ""


def describe_machine(hardware: dict[str, Any]) -> str:
    """A short description of a machine."""
    return f"{hardware['gpu']}, " * bool(hardware["gpu"]) + f"{hardware['cpu']}, {hardware['cores']} cores"


def grid_commands(results: list[Result], preset: str) -> list[str]:
    """The commands for the runs of a preset, one per combination of systems and seeds that treebanks share."""
    wanted: dict[tuple[tuple[str, ...], tuple[int, ...]], list[str]] = {}
    groups = group_runs(results, preset)
    for treebank in treebanks_of(groups, ()):
        by_seeds: dict[tuple[int, ...], list[str]] = {}
        for system in systems_of(groups):
            if (treebank, system) in groups:
                seeds = tuple(sorted(run["seed"] for run in groups[treebank, system]))
                by_seeds.setdefault(seeds, []).append(system)
        for seeds, systems in by_seeds.items():
            wanted.setdefault((tuple(systems), seeds), []).append(treebank)
    return [
        f"python experiments/grid.py --work runs/grid --treebanks {' '.join(f'ud-2.0/{name}' for name in names)} "
        f"--systems {' '.join(systems)} --presets {preset} --seeds {' '.join(map(str, seeds))}"
        for (systems, seeds), names in wanted.items()
    ]


def regenerating(runs: list[Result]) -> list[str]:
    """List items with the commands for runs of a preset, by the version of the code that has their settings."""
    versions: dict[str, list[Result]] = {}
    for run in runs:
        commit = NAMED_IN.get(run["commit"], run["commit"])
        versions.setdefault("" if has_settings_of(run) else commit, []).append(run)
    return [
        f"`git checkout {version}`, then `{command}`" if version else f"`{command}`"
        for version, made in sorted(versions.items())
        for command in grid_commands(made, made[0]["preset"])
    ]


def short_dev_table(short: Sequence[Result], preset: str) -> ReportTable:
    """Table 4's rows for runs scored on dev without the sentences that the published code leaves out."""
    table = table4_systems.uas_table(list(short), preset)
    notes = [
        "While training, the published code scores only dev sentences of fewer than 99 words, and its parsers MH4 and "
        "1EC give longer ones no heads, so the published scores leave them out. Of these treebanks, only Gothic's dev "
        "set has such a sentence, of 115 words. In comparisons of single cells under Claims, these runs replace those "
        "above; in the averages above, they do not. They are trained as above, with `got=TRAIN,SHORT` as treebank and "
        f"`--results experiments/results/short-dev`, after `{WITHOUT_LONG}`."
    ]
    command = f"{table.command} --results experiments/results/short-dev"
    rows = [row for row in table.rows if not row[0].startswith("average")]
    title = f"Table 4 without sentences of 99 words or more, preset {preset}"
    return replace(table, title=title, rows=rows, notes=notes, command=command)


def preset_section(results: list[Result], preset: str, short: Sequence[Result]) -> Section:
    """The section about one preset."""
    section = Section(f"Preset {preset}")
    section.text += _changed_settings([result for result in results if result["preset"] == preset])
    section.items = regenerating([result for result in results if result["preset"] == preset])
    section.text += [EARLIER] * any("git checkout" in item for item in section.items)
    uas, *others = table4_systems.make_tables(results, preset)
    section.tables = [
        *(uas, *([short_dev_table(short, preset)] if short else []), *others),
        table1_features.make_table(results, preset),
        table2_features.make_table(results, preset),
        *tables56_test_las.make_tables(results, preset),
        runs_table(results, preset),
    ]
    for name, caption, svg in (
        (
            "uas",
            "Development UAS: ours (dots, a standard deviation), the paper's (open diamonds)",
            plot_uas(results, preset),
        ),
        ("curves", "Development UAS in training, a line per run", plot_curves(results, preset)),
        ("recall", "Recall of gold arcs by length, and of crossed arcs", plot_recall(results, preset)),
    ):
        if svg is not None:
            section.plots.append(Plot(f"{preset}-{name}", f"{caption}; preset {preset}.", svg))
    return section


def _changed_settings(results: list[Result]) -> list[str]:
    """Sentences about the network and training settings of runs that differ from the defaults."""
    defaults = _by_name(as_dict(ChartConfig())) | {"feature_weight": 0.0}  # a setting of earlier versions
    del defaults["seed"]
    runs: dict[frozenset[str], list[str]] = defaultdict(list)
    for result in results:
        settings = _by_name(result["settings"]).items()
        changed = {f"{name}={value}" for name, value in settings if name in defaults and defaults[name] != value}
        runs[frozenset(changed)].append("{treebank} {system} {seed}".format(**result))
    if not any(runs):
        return ["Published settings."]
    shared = frozenset.intersection(*runs)
    sentences = [f"Settings that differ from the published ones: {', '.join(sorted(shared)) or 'none in all runs'}."]
    *few, most = sorted(runs, key=lambda changed: len(runs[changed]))
    for changed, which in [*((changed, ", ".join(runs[changed])) for changed in few), (most, "the others")]:
        if few and changed > shared:
            sentences.append(f"In addition, {', '.join(sorted(changed - shared))}: {which}.")
    return [*sentences, FORMER] if "feature_weight" in str(runs) else sentences


def _by_name(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings by name, without their parts, which differ between formats."""
    return {name: value for part in settings.values() if isinstance(part, dict) for name, value in part.items()}


def owed_section(results: list[Result], unfinished: dict[str, str]) -> Section:
    """The section about planned runs without a result, and failed runs."""
    section = Section("Not yet run")
    for preset in PLAN:
        for treebank, system, seeds in owed_runs(results, preset):
            section.items.append(f"{treebank}, {system}, preset {preset}: seeds {', '.join(map(str, seeds))}")
    section.items += [f"`{name}` is not done: {error}" for name, error in unfinished.items()]
    if not any(result["test_segmented"] for result in results):
        section.items.append("Tables 5 and 6 with predicted segmentation: no segmented test file was given to a run")
    if not section.items:
        section.text.append("Nothing: every run of the plan is done.")
    return section


def decoding_section(path: Path) -> Section:
    """The section about decoding times by sentence length, if measured."""
    section = Section("Decoding time", [f"`{BENCH_COMMAND}`"])
    if not path.exists():
        section.text.append("Not measured yet.")
        return section
    measured = json.loads(path.read_text(encoding="utf-8"))["decoders"]
    lengths = sorted({length for row in measured["decoders"].values() for length in row["milliseconds"]}, key=int)
    rows = [
        [name, *(f"{row['milliseconds'][n]:.3f}" if n in row["milliseconds"] else "" for n in lengths)]
        for name, row in measured["decoders"].items()
    ]
    title = "Decoding one sentence, median ms, one thread"
    section.tables = [
        ReportTable(title, ["decoder", *(f"{n} words" for n in lengths)], rows, [], BENCH_COMMAND, left=1)
    ]
    section.plots = [Plot("decoding", "Time to decode one sentence by its length.", plot_decoders(measured))]
    return section


def make_report(
    results: list[Result], unfinished: dict[str, str], performance: Path, short: Sequence[Result] = ()
) -> list[Section]:
    """All sections; ``performance`` is the file of decoding times, and step times are in the same folder.

    ``short``: runs scored on dev without the sentences that the published code leaves out.
    """
    presets = sorted({result["preset"] for result in results}, key=lambda name: (name != "paper", name))
    overview = Section(
        "Published results, reproduced",
        [
            "Gómez-Rodríguez, Shi and Lee (2018), Global Transition-based Non-projective Dependency Parsing, on UD "
            "2.0. Written by `python experiments/report.py` from the runs in `experiments/results/ud`. Coverage (Table "
            "3): `python experiments/table3_coverage.py *-ud-train.conllu`.",
            f"{len(results)} runs are done." if results else "No run is done yet.",
        ],
        tables=[claims_table(results, read_step_seconds(performance.parent), short)] if results else [],
    )
    sections = [
        overview,
        *(preset_section(results, preset, short) for preset in presets),
        decoding_section(performance),
    ]
    return [*sections, owed_section(results, unfinished)]


def to_markdown(sections: Iterable[Section], plots: str) -> str:
    """The report as Markdown, with links to plots in the folder ``plots``."""
    lines: list[str] = []
    for level, section in enumerate(sections):
        lines += [f"{'#' * (2 if level else 1)} {section.title}", ""]
        for text in section.text:
            lines += [text, ""]
        if section.items:
            lines += [*(f"- {item}" for item in section.items), ""]
        lines += [table.markdown() for table in section.tables if table.rows]
        for plot in section.plots:
            lines += [f"![{plot.caption}]({plots}/{plot.name}.svg)", "", f"*{plot.caption}*", ""]
    return "\n".join(lines).rstrip() + "\n"


def to_html(sections: Iterable[Section]) -> str:
    """The report as one self-contained HTML page."""
    parts = [f"<!doctype html><html lang='en'><meta charset='utf-8'><title>mh4: results</title><style>{STYLE}</style>"]
    parts.append("<meta name='viewport' content='width=device-width'>")
    for level, section in enumerate(sections):
        heading = "h2" if level else "h1"
        parts.append(f"<{heading}>{html.escape(section.title)}</{heading}>")
        parts += [f"<p>{_inline(text)}</p>" for text in section.text]
        if section.items:
            parts.append("<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in section.items) + "</ul>")
        parts += [_html_table(table) for table in section.tables if table.rows]
        for plot in section.plots:
            parts.append(f"<figure>{plot.svg}<figcaption>{html.escape(plot.caption)}</figcaption></figure>")
    return "\n".join(parts) + "\n</html>\n"


def _html_table(table: ReportTable) -> str:
    def row(tag: str, cells: list[str]) -> str:
        marks = [" class='text'" if number < table.left else "" for number in range(len(cells))]
        pairs = zip(cells, marks, strict=True)
        return "<tr>" + "".join(f"<{tag}{mark}>{html.escape(cell)}</{tag}>" for cell, mark in pairs) + "</tr>"

    body = "".join(row("td", cells) for cells in table.rows)
    notes = "".join(f"<p>{_inline(note)}</p>" for note in table.notes)
    return (
        f"<h3>{html.escape(table.title)}</h3><p><code>{html.escape(table.command)}</code></p>"
        f"<div class='scroll'><table>{row('th', table.columns)}{body}</table></div>{notes}"
    )


def _inline(text: str) -> str:
    """HTML for a text with `code` in backticks."""
    pieces = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


def main() -> None:
    """Write the report."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    performance = here / "results" / "performance" / BENCHMARKS
    parser.add_argument("--performance", type=Path, default=performance, help="file with decoding times")
    parser.add_argument("-o", "--output", type=Path, default=here / "RESULTS.md", help="Markdown; plots go beside it")
    parser.add_argument("--html", type=Path, default=here.parent / "runs" / "report.html", help="the page")
    arguments = parser.parse_args()
    if not arguments.results.is_dir():
        parser.error(f"{arguments.results}: no such folder")
    results = read_results(arguments.results)
    short = read_results(arguments.results.parent / SHORT_DEV.name)
    sections = make_report(results, read_unfinished(arguments.results), arguments.performance, short)
    plots = arguments.output.parent / "plots"
    written = {plots / f"{plot.name}.svg": plot.svg for section in sections for plot in section.plots}
    written[arguments.output] = to_markdown(sections, plots.name)
    written[arguments.html] = to_html(sections)
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(path) as stream:
            stream.write(text.encode())
        print(path)


if __name__ == "__main__":
    raise SystemExit(run_script(main))
