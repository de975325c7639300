"""Results of earlier runs, used again only if everything they depend on is the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any


def read_kept(path: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result in a file, if there is one; SystemExit if it was made with other settings."""
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    if {name: result.get(name) for name in settings} != dict(settings):
        raise SystemExit(f"{path}: was made with other settings (remove it, or choose another output folder)")
    return result


def part_path(folder: Path, part: str) -> Path:
    """The file for ``train``, ``dev`` or ``test`` in a treebank's folder; SystemExit unless there is exactly one."""
    paths = sorted(folder.glob(f"*-{part}.conllu"))
    if len(paths) != 1:
        raise SystemExit(f"{folder}: {len(paths)} files *-{part}.conllu, need one")
    return paths[0]


def scored_part(folder: Path) -> dict[str, str]:
    """The setting ``scored``: the part to score, ``test`` or else ``dev``; empty if the treebank is missing."""
    if not folder.is_dir():
        return {}
    return {"scored": "test" if any(folder.glob("*-test.conllu")) else "dev"}


def shown(values: list[float], digits: int = 2) -> str:
    """The mean and standard deviation as text."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def read_grouped(folder: Path, *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """All results in a folder, by the values of these entries."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for result in read_folder(folder):
        groups.setdefault(tuple(result[name] for name in names), []).append(result)
    return groups


def read_folder(folder: Path) -> list[dict[str, Any]]:
    """All results in a folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
