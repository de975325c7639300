"""``mh4 parse``."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mh4 import IMPORTED_AT
from mh4.data.errors import counted, quote
from mh4.data.files import check_apart, check_input, check_output, named_path
from mh4.data.folders import is_folder_name, pair_files
from mh4.data.writing import output_format
from mh4.parsers.request import Request

from .options import (
    Device,
    DeviceOption,
    SkipBadOption,
    ThreadsOption,
    asking,
    check_conllu,
    error_policy,
    report_skipped,
    say,
    set_threads,
)
from .progress import words_bar

if TYPE_CHECKING:
    from mh4.parsers.base import Count, Parser


_TEXT = re.compile(r"(?!.*\.\w+$).*\S .*", re.DOTALL)  # holds a space and does not end like a file name


class InputFormat(StrEnum):
    """Input formats of `mh4 parse`."""

    conllu = "conllu"
    text = "text"
    horizontal = "horizontal"
    vertical = "vertical"


PathsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Model folder, then files to parse, or folders of files; - is standard input.",
        metavar="MODEL [INPUT]",
    ),
]
OutputOption = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="Output file, or a folder for several files; - is standard output. Files named .json or .jsonl are JSON; "
        "json is JSON on standard output.",
    ),
]
TextOption = Annotated[str | None, typer.Option(help="Raw text to segment and parse.", metavar="FILE|-")]
FormOption = Annotated[
    InputFormat,
    typer.Option(
        "--input", help="Format of INPUT: conllu, raw text, one sentence per line, or one word per line (vertical)."
    ),
]
MinConfidenceOption = Annotated[
    float | None, typer.Option(min=0, max=1, help="Write _ for HEAD and DEPREL of less certain words.")
]
SearchOption = Annotated[
    str, typer.Option(help="exact, beam:K or greedy (the last two for decoders mh3, mh4-two and mh4-hybrid only).")
]
EnsembleOption = Annotated[
    bool, typer.Option("--ensemble", help="Several model folders before the input; each model votes for its arcs.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        metavar="local|ADDRESS",
        help="Parse many files (MODEL INPUT...) on Dask workers: on this machine, or at a scheduler's address.",
    ),
]
BatchWordsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Collect at least this many words before parsing: faster, but standard input waits longer.",
        show_default="20,000 for files; for standard input, what has arrived",
    ),
]


@asking
def parse(
    paths: PathsArgument,
    target: OutputOption = "-",
    text: TextOption = None,
    form: FormOption = InputFormat.conllu,
    *,
    request: Request,
    min_confidence: MinConfidenceOption = None,
    search: SearchOption = "exact",
    ensemble: EnsembleOption = False,
    cluster: ClusterOption = None,
    batch_words: BatchWordsOption = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Parse CoNLL-U or text. Predicts HEAD and DEPREL, and UPOS, XPOS, FEATS and LEMMA where they are missing ("_")."""
    if text is not None:
        if form not in (InputFormat.conllu, InputFormat.text):
            raise ValueError(f"--text is for raw text; name the file of --input {form.value} without it")
        form, paths = InputFormat.text, [*paths, text]
    folders, sources = _split(paths, ensemble)
    errors = error_policy(skip_bad)
    loading: dict[str, Any] = {"device": device.value, "search": search, "threads": threads}
    options = {"errors": errors, "min_confidence": min_confidence, **request.options}
    if cluster is None:
        pairs = _pairs(sources, target, form.value)
        count, ready = _parse_here(folders, pairs, form.value, loading, batch_words=batch_words, **options)
    else:
        if ensemble or target in ("-", "json"):
            raise ValueError("--cluster takes one model, and a folder to write to (--output)")
        _check_folder("--cluster", target)
        if batch_words is not None:
            raise ValueError("--batch-words cannot be used with --cluster, which divides files itself")
        count, ready = _parse_there(folders[0], sources, target, cluster, form.value, **loading, **options)
    seconds = time.perf_counter() - ready
    report_skipped(errors)
    say(
        f"{counted(count.sentences, 'sentence')}, {counted(count.words, 'word')}, {count.words / seconds:.0f} words/s; "
        f"start-up {ready - IMPORTED_AT:.1f} s",
    )


def _parse_here(
    folders: list[str], pairs: list[tuple[Path, str | Path]], form: str, loading: dict[str, Any], **options: Any
) -> tuple[Count, float]:
    """Parse in this process; returns how much was parsed, and when loading was done."""
    if form == InputFormat.conllu and not options["errors"].skips:
        for source, _ in pairs:
            check_conllu(
                source,
                f"--text {source} parses text; --input horizontal or --input vertical parses words, a sentence or a "
                "word in each line",
            )
    from mh4.parsers.registry import load

    set_threads(loading["threads"])
    parser = load(*folders, **loading)
    ready = time.perf_counter()
    with words_bar([str(source) for source, _ in pairs], form) as on_progress:
        return _parse_all(parser, pairs, on_progress, format=form, **options), ready


def _parse_there(
    folder: str, sources: list[str], target: str, cluster: str, form: str, **options: Any
) -> tuple[Count, float]:
    """Parse on a cluster; returns how much was parsed, and when that began."""
    from mh4.service.cluster import parse_files, silence_dask

    silence_dask()
    ready = time.perf_counter()
    with words_bar(sources, form) as on_progress:
        count = parse_files(folder, sources, target, cluster, form=form, on_progress=on_progress, **options)
    return count, ready


def _split(paths: list[str], ensemble: bool) -> tuple[list[str], list[str]]:
    """Split the arguments into model folders and inputs."""
    models = 1
    if ensemble:
        models = next((i for i, path in enumerate(paths) if not _is_model(path)), len(paths))
        if models == 0:
            raise ValueError(f"{paths[0]}: is not a folder (--ensemble takes model folders, then the input)")
    folders, sources = paths[:models], paths[models:] or ["-"]
    if ensemble and len(sources) > 1 and not os.path.exists(sources[0]):
        raise ValueError(f"{sources[0]}: is not a folder (--ensemble takes model folders, then the input)")
    return folders, sources


def _is_model(path: str) -> bool:
    from mh4.parsers.packages.cache import installed

    return os.path.isdir(path) or (not os.path.exists(path) and installed(path) is not None)


def _pairs(sources: list[str], target: str, form: str) -> list[tuple[Path, str | Path]]:
    """Pair inputs and outputs; both are checked here, before a model is loaded."""
    if model := next((path for path in sources if os.path.isfile(os.path.join(path, "config.json"))), None):
        raise ValueError(f"{model}: is a model folder, not an input (the model comes first; for several, --ensemble)")
    if text := next((path for path in sources if _TEXT.fullmatch(path) and not os.path.exists(path)), None):
        raise ValueError(f"{quote(text)}: no such file (for text itself: echo TEXT | mh4 parse MODEL --text -)")
    if is_folder_name(target):
        return [(source, output) for source, output in pair_files(sources, target, form)]
    if len(sources) > 1 or os.path.isdir(sources[0]):
        what = f"{sources[0]}: is a folder" if len(sources) == 1 else f"{len(sources)} inputs"
        if output_format(target)[0] == "-":
            raise ValueError(f"{what}: parsed files need a folder (--output FOLDER or, for one input, --output FILE)")
        _check_folder(what, target)
        return [(source, output) for source, output in pair_files(sources, target, form)]
    check_output(output_format(target)[0])
    check_input(sources[0])
    check_apart(sources[0], output_format(target)[0])
    return [(named_path(sources[0]), target)]


def _check_folder(what: str, target: str) -> None:
    """Raise a ValueError if the output folder of ``what`` would be named like a file."""
    if is_folder_name(target) or os.path.exists(target):
        return
    if output_format(target)[1] != "conllu" or target.endswith(".conllu"):
        raise ValueError(f"{what}: parsed files need a folder, and {target} is the name of a file")


def _parse_all(
    parser: Parser, pairs: list[tuple[Path, str | Path]], on_progress: Callable[[Count], None], **options: Any
) -> Count:
    """Parse each file into its output; ``on_progress`` gets the sentences and words of all files so far."""
    from mh4.parsers.base import Count

    total = Count(0, 0)
    for source, target in pairs:
        if isinstance(target, Path):  # in a folder
            target.parent.mkdir(parents=True, exist_ok=True)

        def advance(count: Count, before: Count = total) -> None:
            on_progress(Count(before.sentences + count.sentences, before.words + count.words))

        count = parser.parse_file(source, target, on_progress=advance, **options)
        total = Count(total.sentences + count.sentences, total.words + count.words)
    return total
