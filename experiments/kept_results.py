"""Results of earlier runs, used again only if everything they depend on is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from mh4.data.errors import ErrorPolicy
from mh4.decoders.trees import is_projective
from mh4.training.treebanks import read_gold

Data = Mapping[str, Mapping[str, Any]]  # what is known of each part of a treebank


def read_kept(
    path: Path, settings: Mapping[str, Any], data: Data | None = None, later: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The result in a file, if there is one; SystemExit if it was made with other settings or from other data.

    ``data`` is that of `describe_data`, and ``later`` has settings that results of earlier versions do not tell. These
    results are accepted unless what they tell differs.
    """
    if not path.exists():
        return None
    result = json.loads(path.read_text(encoding="utf-8"))
    own = dict(settings) | {name: value for name, value in (later or {}).items() if name in result}
    if {name: result.get(name) for name in own} != own:
        raise SystemExit(f"{path}: was made with other settings (remove it, or choose another output folder)")
    check_data(path, _data_of(result), data or {})
    return result


def check_data(path: Path, kept: Data, data: Data) -> None:
    """SystemExit if the result in ``path`` was made from other data; parts and numbers that only one has may differ."""
    for part, known in kept.items():
        now = data.get(part, {})
        if any(now.get(name, value) != value for name, value in known.items()):
            raise SystemExit(f"{path}: was made from other {part} data (remove it, or choose another output folder)")


def _data_of(result: Mapping[str, Any]) -> Data:
    """What a result tells of its data, in the form of `describe_data`."""
    if "data" in result:
        return result["data"]
    data: dict[str, dict[str, Any]] = {"train": {}}
    if "tokens" in result:
        sentences = result["sentences"]
        data["train"] = {"sentences": sentences, "words": result["tokens"]}
        data["train"]["not_projective"] = round(result["nonprojective_percent"] * sentences / 100)
    if "not_projective" in result:
        data["train"]["not_projective"] = result["not_projective"]
    if "words" in result and "scored" in result:
        data[result["scored"]] = {"sentences": len(result["UAS"]), "words": result["words"]}
    return data


def describe_data(folder: Path, *parts: str, errors: ErrorPolicy = "raise") -> dict[str, dict[str, Any]]:
    """`describe_files` for parts of the treebank in a folder; empty if it is missing."""
    return describe_files({part: part_path(folder, part) for part in parts} if folder.is_dir() else {}, errors)


def describe_files(paths: Mapping[str, Path], errors: ErrorPolicy = "raise") -> dict[str, dict[str, Any]]:
    """Of each part, the numbers of sentences, words and non-projective trees, and the file's SHA-256.

    DataError if a sentence is not valid, unless ``errors`` says otherwise.
    """
    return {part: _describe_file(path, errors, path.stat().st_mtime_ns) for part, path in paths.items()}


@cache  # the same for all runs of a script
def _describe_file(path: Path, errors: ErrorPolicy, modified: int) -> dict[str, Any]:
    sentences = read_gold(path, errors)
    return {
        "sentences": len(sentences),
        "words": sum(map(len, sentences)),
        "not_projective": sum(not is_projective(sentence.padded_heads) for sentence in sentences),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def part_path(folder: Path, part: str) -> Path:
    """The file for ``train``, ``dev`` or ``test`` in a treebank's folder; SystemExit unless there is exactly one."""
    paths = sorted(folder.glob(f"*-{part}.conllu"))
    if len(paths) != 1:
        raise SystemExit(f"{folder}: {len(paths)} files *-{part}.conllu, need one")
    return paths[0]


def all_parts(folder: Path) -> tuple[str, ...]:
    """``train``, ``dev`` and, if the treebank has one, ``test``."""
    return ("train", "dev", "test") if any(folder.glob("*-test.conllu")) else ("train", "dev")


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
