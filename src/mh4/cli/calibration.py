"""``mh4 calibrate``, ``mh4 uncertain`` and ``mh4 eval --calibration``: confidences and their reliability."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mh4.data.files import atomic_output
from mh4.machine import require

from .options import (
    Device,
    DeviceOption,
    SkipBadOption,
    ThreadsOption,
    check_conllu,
    error_policy,
    named_files,
    output,
    print_whole,
    report_skipped,
    request_option,
    say,
    set_threads,
)

if TYPE_CHECKING:
    from mh4.parsers.request import ParseOptions
    from mh4.trees.reliability import CalibrationReport

_WIDEST = 30  # columns for a word or the name of a sentence


def calibrate(
    model: Annotated[Path, typer.Argument(help="Model folder, with an exact decoder.")],
    treebank: Annotated[
        list[str],
        typer.Argument(
            help="CoNLL-U with gold trees that the model was not trained on; of several treebanks, NAME=FILE for each.",
            metavar="DEV...",
        ),
    ],
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Calibrate the margins of a model, for mh4 parse --confidence; mh4 train does this automatically."""
    from mh4.training.calibrating import calibrate as run

    set_threads(threads)
    files = named_files(treebank)
    calibration, report = run(model, files, device=device.value, threads=threads, errors=error_policy(skip_bad))
    if report is None:
        say(f"{calibration.words} words, too few to measure the calibration error")
        return
    both = f", of heads and relations {report.both.ece:.2%}" if report.both.words else ""
    say(
        f"{calibration.words} words; expected calibration error of heads {report.heads_before.ece:.2%} → "
        f"{report.heads.ece:.2%}{both} (each half of the file calibrated on the other)"
    )


def uncertain(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    source: Annotated[str, typer.Argument(help="CoNLL-U to parse; - is standard input.", metavar="INPUT")] = "-",
    count: Annotated[int, typer.Option("--number", "-n", min=1, help="Number of words to list.")] = 100,
    keep_heads: Annotated[
        bool, typer.Option("--keep-heads", help="Keep the heads of the input, and list only other words.")
    ] = False,
    treebank: Annotated[str | None, request_option("treebank")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one word per line.")] = False,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """List the words with the least certain heads first, for annotators to check."""
    from rich.table import Table

    from mh4.data.confidence_columns import least_certain
    from mh4.data.drawing import cut, printable
    from mh4.parsers.registry import load

    set_threads(threads)
    errors = error_policy(skip_bad)
    if not skip_bad:
        check_conllu(source, "for text, take what mh4 parse --text writes")
    parser = load(model, device=device.value, threads=threads)
    options: ParseOptions = {"keep_heads": keep_heads, "predict": "heads", "confidence": True, "treebank": treebank}
    parsed = parser.parse(source, errors=errors, **options)
    words = least_certain(parsed, count)
    report_skipped(errors)
    if as_json:
        for word in words:
            typer.echo(json.dumps(word.as_dict(), ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for column in ("place", "sentence", "word", "form", "head", "relation", "confidence", "next head"):
        table.add_column(column, justify="right" if column in ("word", "confidence") else "left", no_wrap=True)
    for word in words:
        texts = word.sentence, word.form, word.head, word.deprel, word.next_head
        sentence, form, head, relation, next_head = (cut(printable(text), _WIDEST) for text in texts)
        place, confidence = f"{printable(word.source)}:{word.line}", f"{word.confidence:.3f}"
        table.add_row(place, sentence, str(word.id), form, head, relation, confidence, next_head)
    print_whole(table)


def evaluate_calibration(gold: str, system: str, as_json: bool, plot: Path | None) -> None:
    """Print, and optionally plot, the reliability of the confidences of a parsed file."""
    from mh4.trees.reliability import measure_calibration

    if plot is not None:
        require("matplotlib", "plots")
    report = measure_calibration(gold, system)
    if plot is not None:
        _draw(report, plot)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=1))
    else:
        _print(report)


def _print(report: CalibrationReport) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("", "words", "confidence", "right"):
        table.add_column(column, justify="right" if column else "left")
    for name, one in (
        ("heads, raw margin", report.heads_before),
        ("heads", report.heads),
        ("heads and relations", report.both),
    ):
        if not one.words:
            table.add_row(f"{name}: ECE –", "0", "", "–")
            continue
        table.add_row(f"{name}: ECE {one.ece:.2%}", str(one.words), "", f"{one.right:.1%}")
        for part in one.bins:
            table.add_row("", str(part.words), f"{part.confidence:.1%}", f"{part.right:.1%}")
    print_whole(table)
    curve = Table(box=None, pad_edge=False)
    for column in ("least certain words looked at", "wrong heads found", "wrong words found"):
        curve.add_column(column, justify="right")
    for share, heads in report.wrong_heads.items():
        curve.add_row(f"{share:.0%}", f"{heads:.1%}", f"{report.wrong_words[share]:.1%}")
    output.print()
    print_whole(curve)


def _draw(report: CalibrationReport, path: Path) -> None:
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    kinds = {".svg", ".png", ".pdf"}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"{path}: the name of a plot must end in {', '.join(sorted(kinds))}")
    rcParams["svg.hashsalt"] = "mh4"  # equal reports give equal files
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="0.8", linewidth=1)
    for name, one in (
        ("heads, raw", report.heads_before),
        ("heads", report.heads),
        ("heads and relations", report.both),
    ):
        points = [part.confidence for part in one.bins], [part.right for part in one.bins]
        left.plot(*points, marker="o", label=f"{name} (ECE {one.ece:.1%})")
    left.set(xlabel="confidence", ylabel="share of words that are right", title="Reliability")
    left.legend()
    for name, curve in (("heads", report.wrong_heads), ("heads and relations", report.wrong_words)):
        right.plot([0, *curve], [0, *curve.values()], marker="o", label=name)
    looked = [0, *report.wrong_heads]
    right.plot(looked, looked, color="0.8", linewidth=1)
    right.set(xlabel="share of words looked at", ylabel="share of errors found", title="Least certain words first")
    right.legend()
    with atomic_output(path) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), metadata={"Date": None} if path.suffix == ".svg" else {})
