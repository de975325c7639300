"""``mh4 parse`` and ``mh4 eval``."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from .. import IMPORTED_AT
from .options import Device, DeviceOption, SkipBadOption, ThreadsOption, messages, output, set_threads


def parse(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    source: Annotated[str, typer.Argument(help="CoNLL-U to parse; - is standard input.", metavar="INPUT")] = "-",
    target: Annotated[str, typer.Option("--output", "-o", help="Where to write; - is standard output.")] = "-",
    keep_heads: Annotated[
        bool, typer.Option("--keep-heads", help="Keep the heads that are given, decode the rest exactly around them.")
    ] = False,
    search: Annotated[
        str, typer.Option(help="exact, beam:K or greedy (the last two with mh3 and mh4 models).")
    ] = "exact",
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Parse CoNLL-U: HEAD and DEPREL are predicted, every other byte stays as it was."""
    from ..files import DataError
    from ..loading import load_parser

    set_threads(threads)
    parser = load_parser(model, device.value, search, threads)
    sentences = words = 0
    skipped: list[DataError] = []
    ready = time.perf_counter()

    def on_progress(more_sentences: int, more_words: int) -> None:
        nonlocal sentences, words
        sentences += more_sentences
        words += more_words

    parser.parse(source, target, keep_heads, skip_bad, skipped.append, on_progress)
    seconds = time.perf_counter() - ready
    if skipped:
        messages.print(f"{len(skipped)} bad sentences skipped; the first: {skipped[0]}", markup=False, highlight=False)
    messages.print(
        f"{sentences} sentences, {words} words, {words / seconds:.0f} words/s; start-up {ready - IMPORTED_AT:.1f} s",
        highlight=False,
    )


def evaluate(
    gold: Annotated[Path, typer.Argument(help="Gold CoNLL-U.")],
    system: Annotated[Path, typer.Argument(help="CoNLL-U of the system; its words may be segmented differently.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """CoNLL shared-task metrics; LAS ignores relation subtypes. Also crossing arcs and arcs by length."""
    from rich.table import Table

    from ..evaluation import evaluate_files

    result = evaluate_files(gold, system)
    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=1))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for column in ("precision", "recall", "F1", "aligned", "gold"):
        table.add_column(column, justify="right")
    rows = [*result.scores.items(), ("crossing arcs", result.crossing)]
    rows += [(f"arcs of length {name}" if name != "root" else "root arcs", s) for name, s in result.by_length.items()]
    for name, score in rows:
        aligned = score.aligned_accuracy
        table.add_row(
            name,
            *(f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1)),
            "" if aligned is None else f"{100 * aligned:.2f}",
            str(score.gold_total),
        )
    output.print(table)
