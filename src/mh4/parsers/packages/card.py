"""The card of a model, README.md: treebank, licence, scores, speed, how it was trained, and checksums of its files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mh4.data.licences import is_non_commercial

from ..checksums import digest

CARD = "README.md"
SHOWN = ("Tokens", "Sentences", "Words", "UPOS", "XPOS", "UFeats", "Lemmas", "UAS", "LAS", "CLAS", "MLAS", "BLEX")
UNKNOWN = "The licence of the treebank is unknown"
_OPEN = re.compile(r"CC BY\S* \d\.\d|[AL]?GPL \d")  # licences that Hugging Face knows


def licence_line(licence: str | None) -> str:
    """A sentence or two about a treebank's licence."""
    if licence is None:
        return f"{UNKNOWN}: ask its authors before you use or share the model."
    forbids = " It forbids commercial use, and may do so for models trained on the treebank."
    return f"The licence of the treebank is {licence}.{forbids if is_non_commercial(licence) else ''}"


def make_card(name: str, meta: Mapping[str, Any], files: Mapping[str, bytes], load: str | None = None) -> bytes:
    """The card as Markdown, with the metadata that Hugging Face reads at its top.

    Parameters
    ----------
    name
        Name of the model.
    meta
        Contents of its meta.json.
    files
        Contents of its files, by name; the card lists their sizes and checksums.
    load
        The expression that loads it, by default `mh4.load` with its name.
    """
    body = _body(meta, load or f'mh4.load("{name}")')
    return "\n".join([*_metadata(meta), "", f"# {name}", "", *body, *_sums(files), ""]).encode()


def _metadata(meta: Mapping[str, Any]) -> Iterator[str]:
    licence = meta.get("licence")
    yield "---"
    yield "library_name: mh4"
    yield "pipeline_tag: token-classification"
    yield "tags: [dependency-parsing, universal-dependencies]"
    if meta.get("language"):
        yield f"language: {json.dumps(meta['language'])}"
    if licence is None:
        yield "license: unknown"
    elif _OPEN.fullmatch(licence):
        yield f"license: {licence.lower().replace(' ', '-')}{'.0' * ('GPL' in licence)}"
    else:
        yield "license: other"
        yield f"license_name: {json.dumps(licence, ensure_ascii=False)}"
    yield "---"


def _body(meta: Mapping[str, Any], load: str) -> Iterator[str]:
    treebank = meta.get("treebank", {})
    parts = [
        " and ".join(
            f"{one['file']} ({one['sentences']:,} sentences, {one['words']:,} words)"
            for one in (part if isinstance(part, list) else [part])
        )
        for part in treebank.values()
    ]
    data = ", chosen on ".join(parts) or "unknown data"
    yield f"A dependency parser, trained by mh4 {meta.get('version', '')} on {data}."
    yield from ("", "```python", "import mh4", "", f"parser = {load}", "```", "")
    yield from ("## Licence", "", licence_line(meta.get("licence")), "", "## Scores", "")
    for evaluation in meta.get("evaluation", ()):
        yield from _scores(evaluation)
    if "evaluation" not in meta and "dev" in meta:
        dev = meta["dev"]
        yield f"On the development treebank, gold tokens: UAS {dev['uas']}, LAS {dev['las']}."
        yield ""
    if command := meta.get("command"):
        yield from ("## Training", "", "```bash", str(command), "```", "", f"Finished {meta.get('created')}.", "")


def _scores(evaluation: Mapping[str, Any]) -> Iterator[str]:
    ways = {way: evaluation[way] for way in ("tokens", "text") if way in evaluation}
    titles = {"tokens": ", ".join(["gold tokens", *map(str.upper, evaluation.get("given", ()))]), "text": "raw text"}
    yield f"{evaluation['file']}, {evaluation['words']:,} words: F1 and its 95 % interval (bootstrap over sentences)"
    yield from ("", f"| | {' | '.join(titles[way] for way in ways)} |", f"|---|{'---|' * len(ways)}")
    for metric in SHOWN:
        if any(metric in scores for scores in ways.values()):
            yield f"| {metric} | {' | '.join(_cell(scores.get(metric)) for scores in ways.values())} |"
    speed = f"{evaluation['words_per_second']:,} words per second of processor time"
    yield from ("", f"Speed: {speed} ({evaluation['processor']}, gold tokens, {evaluation['measured']}).", "")


def _cell(score: list[float] | None) -> str:
    return "–" if score is None else "{:.2f} ({:.2f}–{:.2f})".format(*score)


def _sums(files: Mapping[str, bytes]) -> Iterator[str]:
    yield from ("## Files", "", "| file | bytes | SHA-256 |", "|---|---:|---|")
    for name, content in sorted(files.items()):
        yield f"| {name} | {len(content):,} | `{digest(content)}` |"
