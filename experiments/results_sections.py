"""The generated sections of docs/results.md: performance and accuracy, from the committed results.

    python experiments/results_sections.py            # writes each section between its two markers
    python experiments/results_sections.py --check    # exit status 1 if docs/results.md has others

Performance comes from `benchmark.py`, accuracy from `grid.py`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmark import RESULTS as PERFORMANCE
from benchmark import performance_markdown
from grid_results import RESULTS, Result, group_runs, mean_deviation, read_results
from published import DEV_UAS
from scripting import run_script
from table4_systems import systems_of, treebanks_of

from mh4.data.errors import DataError
from mh4.data.files import atomic_output

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = {
    "hu": "Hungarian",
    "got": "Gothic",
    "cu": "Old Church Slavonic",
    "el": "Greek",
    "lv": "Latvian",
    "vi": "Vietnamese",
}
OTHER_PRESETS = ("fast", "balanced", "best")


def accuracy_markdown(results: list[Result]) -> str:
    """Dev UAS by system and treebank, ours and the paper's, then dev UAS of the other presets."""
    published = group_runs(results, "paper")
    treebanks = treebanks_of(published, ())
    systems = [name for name in systems_of(published) if any(name in DEV_UAS.get(key, {}) for key in treebanks)]
    rows = [
        [f"`{system}`", *(_cell(published.get((treebank, system), []), treebank, system) for treebank in treebanks)]
        for system in systems
    ]
    for preset in OTHER_PRESETS:
        groups = group_runs(results, preset)
        for system in systems_of(groups):
            cells = [_cell(groups.get((treebank, system), [])) for treebank in treebanks]
            rows.append([f"`{system}`, `--preset {preset}`", *cells])
    columns = ["", *(LANGUAGES.get(treebank, treebank) for treebank in treebanks)]
    rule = ["---", *("---:" for _ in treebanks)]
    return "\n".join(markdown_rows((columns, rule, *rows))) + "\n"


def _cell(runs: list[Result], treebank: str = "", system: str = "") -> str:
    theirs = DEV_UAS.get(treebank, {}).get(system)
    ours = str(mean_deviation([run["dev_uas"] for run in runs])) if runs else "–"
    return f"{ours} ({theirs})" if theirs else ours


def replace_section(text: str, name: str, section: str) -> str:
    """``text`` with ``section`` between the marker lines ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    Raises
    ------
    DataError
        A marker is missing or repeated, or they are in the wrong order.
    """
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = text.partition(first + "\n")
    _, end, after = rest.partition(last)
    if not begin or not end or first in rest or last in before + after:
        raise DataError(f"the markers {first} and {last} must stand in the text once each, in this order")
    return f"{before}{begin}\n{section}\n{end}{after}"


def markdown_rows(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    return [f"| {' | '.join(cells)} |" for cells in rows]


def signed(gains: Iterable[float]) -> str:
    """Gains of UAS and LAS as text, with their signs."""
    return " / ".join(f"{gain:+.2f}" for gain in gains).replace("-", "\N{MINUS SIGN}")


def with_tables(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """``text`` with the lines of Markdown tables between the markers of their names."""
    for name, lines in tables.items():
        text = replace_section(text, name, "\n".join(lines) + "\n")
    return text


def write_tables(page: Path, tables: Mapping[str, Sequence[str]]) -> None:
    """Write tables between their markers in a page, leaving the rest unchanged."""
    text = with_tables(page.read_text(encoding="utf-8"), tables)
    with atomic_output(page) as stream:
        stream.write(text.encode())


def with_sections(text: str, performance: Path, results: Path) -> str:
    """The page's text with both sections updated from the results."""
    measured = json.loads(performance.read_text(encoding="utf-8"))
    text = replace_section(text, "performance", performance_markdown(measured))
    return replace_section(text, "accuracy", accuracy_markdown(read_results(results)))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--performance", type=Path, default=ROOT / "experiments/results/performance" / PERFORMANCE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=ROOT / "docs/results.md")
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    text = arguments.page.read_text(encoding="utf-8")
    wanted = with_sections(text, arguments.performance, arguments.results)
    if arguments.check:
        if text != wanted:
            raise SystemExit(f"{arguments.page} is out of date; run this program without --check")
        return
    with atomic_output(arguments.page) as stream:
        stream.write(wanted.encode())


if __name__ == "__main__":
    raise SystemExit(run_script(main))
