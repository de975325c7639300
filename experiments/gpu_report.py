"""The GPU section of docs/results.md, from the results of `gpu.py`; stages without one are marked as not measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from results_sections import replace_section

from mh4.data.files import atomic_output

NOTHING = "Nothing has been measured on a GPU yet. Run `python experiments/gpu.py` on a machine with a GPU.\n"
STAGES = {
    "parity": "Agreement with the CPU",
    "training": "Training",
    "parsing": "Parsing",
    "accuracy": "Accuracy",
    "jobs": "Several trainings at once",
    "transformer": "With a transformer of XLM-R-base's size",
}


def gpu_markdown(results: Path) -> str:
    """The text of the section."""
    found = {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name in STAGES
        if (path := results / f"{name}.json").exists()
    }
    if not found:
        return NOTHING
    where = next(iter(found.values()))["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    lines = [
        f"`python experiments/gpu.py` on {where['cuda']}, {where['processor']}; Python {where['python']}, {versions}.",
        "",
    ]
    for name, title in STAGES.items():
        lines += [f"- {title}: {_LINES[name](found[name]) if name in found else 'not measured'}."]
    return "\n".join(lines) + "\n"


def _stages(row: dict[str, Any]) -> str:
    shares = ", ".join(f"{stage} {share:.0%}" for stage, share in row["share"].items())
    busy = "" if row.get("utilisation") is None else f", GPU busy {row['utilisation']:.0f}% of the time"
    return f"{row['words_per_second']:,.0f} words/s ({shares}{busy})"


def _parity(result: dict[str, Any]) -> str:
    return f"tests {'passed' if result['passed'] else 'FAILED'} ({result['output'][-1] if result['output'] else '–'})"


def _training(result: dict[str, Any]) -> str:
    rows = result["presets"].items()
    return "; ".join(f"`{name}` {_stages(row)}, {row['operations']:.0f} operations a step" for name, row in rows)


def _parsing(result: dict[str, Any]) -> str:
    return "; ".join(
        f"{threads} {'thread' if threads == '1' else 'threads'} {_stages(row)}"
        for threads, row in result["threads"].items()
    )


def _accuracy(result: dict[str, Any]) -> str:
    rows = [
        f"{name} {row['dev_uas']:.2f} UAS, {row['dev_las']:.2f} LAS on dev in {row['minutes']:.1f} minutes"
        for name, row in result["runs"].items()
    ]
    return "; ".join(rows + [f"{name} not measured" for name in result["unfinished"]])


def _jobs(result: dict[str, Any]) -> str:
    speeds = result["together"]
    alone = f"one alone {result['alone']:,.0f}"
    return f"`{result['preset']}`, {len(speeds)} of them {sum(speeds):,.0f} words/s together, {alone}"


def _transformer(result: dict[str, Any]) -> str:
    return "; ".join(f"{name} {_stages(row)}" for name, row in result["ways"].items())


_LINES = {
    "parity": _parity,
    "training": _training,
    "parsing": _parsing,
    "accuracy": _accuracy,
    "jobs": _jobs,
    "transformer": _transformer,
}


def write_report(results: Path, page: Path) -> None:
    """Write the section between its markers in ``page``."""
    text = replace_section(page.read_text(encoding="utf-8"), "gpu", gpu_markdown(results))
    with atomic_output(page) as stream:
        stream.write(text.encode())
