"""``mh4 eval``: evaluate files of systems, and models that parse the words of the gold file, against the gold file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .calibration import evaluate_calibration
from .options import (
    Device,
    DeviceOption,
    ThreadsOption,
    check_named_once,
    output,
    print_whole,
    request_option,
    say,
    set_threads,
)
from .progress import words_bar

if TYPE_CHECKING:
    from mh4.data.sentence import Sentence
    from mh4.trees.evaluation import Evaluation
    from mh4.trees.significance import Compared

CLASSES_OF_ARCS = (
    "crossing arcs, arc lengths: precision over the system's arcs of that class, recall over the gold ones"
)


def evaluate(
    gold: Annotated[str, typer.Argument(help="Gold CoNLL-U.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="One or more CoNLL-U files to score; they may split sentences and words differently from GOLD.",
            metavar="SYSTEM",
        ),
    ] = None,
    models: Annotated[
        list[Path] | None,
        typer.Option("--model", help="Parse the words of GOLD with this model and evaluate the result; repeatable."),
    ] = None,
    given: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...", help="With --model: gold columns to give the model: upos, xpos, feats, lemmas, tags."
        ),
    ] = None,
    treebank: Annotated[str | None, request_option("treebank")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration",
            help="Evaluate the confidences written by mh4 parse --confidence instead of the trees.",
        ),
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="With --calibration: plot to this file (SVG, PNG or PDF).")] = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
) -> None:
    """Evaluate parses: CoNLL shared-task metrics (LAS ignores relation subtypes), crossing arcs, arcs by length.

    Several systems are compared, with confidence intervals and a test of their differences from the first.
    """
    for path in filter(os.path.isdir, [gold, *(files or [])]):
        if os.path.isfile(os.path.join(path, "config.json")):
            raise ValueError(f"{path}: is a model folder (write mh4 eval --model {path} GOLD)")
    systems = [*(files or []), *map(str, models or [])]
    if not systems:
        raise ValueError("nothing to evaluate: name a system's CoNLL-U file, or a model with --model")
    check_named_once(systems, gold)
    if not models and (given, treebank, threads, device) != (None, None, None, Device.auto):
        raise ValueError("--given, --as, --device and --threads are for --model")
    if plot is not None and not calibration:
        raise ValueError("--plot draws what --calibration measures; add --calibration")
    if calibration:
        if models or len(systems) > 1:
            raise ValueError("--calibration takes the gold file and one file written by mh4 parse --confidence")
        evaluate_calibration(gold, systems[0], as_json, plot)
        return
    if models or len(systems) > 1:
        _evaluate_all(gold, files or [], models or [], given, treebank, device, threads, as_json)
        return
    from mh4.trees.evaluation import evaluate as score

    _tell_one(gold, systems[0], score(gold, systems[0]), as_json)


def _evaluate_all(
    gold: str,
    files: list[str],
    models: list[Path],
    given: str | None,
    treebank: str | None,
    device: Device,
    threads: int | None,
    as_json: bool,
) -> None:
    from mh4.data.conllu import read_conllu
    from mh4.trees.significance import compare

    sentences = list(read_conllu(gold))
    systems: dict[str, str | Iterable[Sentence]] = {path: path for path in files}
    if models:
        systems |= _parsed(models, sentences, gold, given, treebank, device.value, threads)
    results = compare(sentences, systems)
    if len(results) == 1:
        _tell_one(gold, str(models[0]), results[str(models[0])].evaluation, as_json, predicted=given is None)
    else:
        _tell_several(gold, results, as_json, set() if given else set(map(str, models)))


def _parsed(
    models: list[Path],
    sentences: list[Sentence],
    gold: str,
    given: str | None,
    treebank: str | None,
    device: str,
    threads: int | None,
) -> dict[str, Iterator[Sentence]]:
    """By model, an iterator over the sentences parsed from their words; it loads the model when it starts."""
    from mh4.parsers.base import Count
    from mh4.parsers.folder import ModelFolder
    from mh4.parsers.registry import load
    from mh4.parsers.request import Request
    from mh4.parsers.sources import words_alone

    set_threads(threads)
    bare = list(words_alone(sentences, given))
    for model in models:  # fail before the first one parses
        _ = ModelFolder.find(model).config
        if treebank is not None:
            try:
                load(model, device=device).check(Request(treebank=treebank))
            except ValueError as error:
                raise ValueError(f"{model}: {error}") from None

    def parsed(model: Path) -> Iterator[Sentence]:
        parser, count = load(model, device=device, threads=threads), Count(0, 0)
        with words_bar([gold]) as on_progress:
            for sentence in parser.parse(bare, treebank=treebank):
                yield sentence
                count = Count(count.sentences + 1, count.words + len(sentence))
                on_progress(count)

    return {str(model): parsed(model) for model in models}


def _tell_one(gold: str, system: str, result: Evaluation, as_json: bool, predicted: bool = False) -> None:
    from rich.table import Table

    if as_json:
        typer.echo(json.dumps(result.as_dict(), indent=1))
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    for column in ("precision", "recall", "F1", "aligned", "gold"):
        table.add_column(column, justify="right")
    for name, score in result.rows.items():
        if not _is_known(result, name):
            table.add_row(name, *"––––", str(score.gold_total))
            continue
        aligned = score.aligned_accuracy
        table.add_row(
            name,
            *(f"{100 * value:.2f}" for value in (score.precision, score.recall, score.f1)),
            "" if aligned is None else f"{100 * aligned:.2f}",
            str(score.gold_total),
        )
    print_whole(table)
    if result.crossing is not None:
        output.print(CLASSES_OF_ARCS)
    _tell_what_is_odd(gold, system, result, predicted)


def _tell_several(gold: str, results: Mapping[str, Compared], as_json: bool, predicted: set[str]) -> None:
    from rich.table import Table

    from mh4.trees.significance import LEVEL, SAMPLES

    if as_json:
        typer.echo(json.dumps({name: result.as_dict() for name, result in results.items()}, indent=1))
        return
    first = next(iter(results))
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("F1")
    shown = _without_shared_folder(results)
    for name in results:
        table.add_column(shown[name], justify="right")
        table.add_column(f"{LEVEL:.0%}", justify="right")
        if name != first:
            table.add_column("p", justify="right")
    for row in results[first].evaluation.rows:
        cells = [row]
        for name, result in results.items():
            known = _is_known(result.evaluation, row)
            cells += _cells(result, row) if known else ["–", ""]
            if name != first:
                tested = known and row in result.p_values and _is_known(results[first].evaluation, row)
                cells.append(_probability(result.p_values[row]) if tested else "")
        table.add_row(*cells)
    print_whole(table)
    output.print(
        f"{LEVEL:.0%}: confidence interval of F1 (bootstrap over sentences); p: probability of such a difference from "
        f"{shown[first]} by chance (paired randomisation test of sentences); {SAMPLES:,} samples"
    )
    for name, result in results.items():
        _tell_what_is_odd(gold, name, result.evaluation, name in predicted)


def _without_shared_folder(paths: Iterable[str]) -> dict[str, str]:
    """Each path without the folders that all of them begin with."""
    parents = {path: Path(path).parents for path in paths}
    nearest = next(iter(parents.values()))
    folder = next((one for one in nearest if all(one in others for others in parents.values())), Path())
    return {path: str(Path(path).relative_to(folder)) if folder.name else path for path in parents}


def _is_known(result: Evaluation, row: str) -> bool:
    """Whether a row has a score: the system has its columns, and either side has units to score."""
    score = result.rows.get(row)
    return score is not None and not result.counts_missing(row) and score.gold_total + score.system_total > 0


def _cells(result: Compared, row: str) -> list[str]:
    interval = "–".join(f"{100 * bound:.2f}" for bound in result.intervals.get(row, ()))
    return [f"{100 * result.evaluation.rows[row].f1:.2f}", interval]


def _probability(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "<0.001"


def _tell_what_is_odd(gold: str, system: str, result: Evaluation, predicted: bool) -> None:
    if columns := [name for name in result.missing if name != "HEAD"]:
        say(f'{system}: every {", ".join(columns)} is "_"')
    if result.crossing is None:
        say(f'{system if "HEAD" in result.missing else gold}: there are no trees (every HEAD is "_")')
    if result.copied and not predicted:
        say(
            f"{system}: {', '.join(result.copied)} equal those of {gold} everywhere; if the parser was given them, "
            "these scores mean nothing (mh4 eval --model MODEL parses the words alone)"
        )
