"""``mh4 parse``."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mh4 import IMPORTED_AT
from mh4.data.files import check_output

from .options import (
    Device,
    DeviceOption,
    SkipBadOption,
    ThreadsOption,
    error_policy,
    report_skipped,
    say,
    set_threads,
)
from .progress import words_bar

if TYPE_CHECKING:
    from mh4.parsers.request import ParseOptions


class InputFormat(StrEnum):
    """What `mh4 parse` reads."""

    conllu = "conllu"
    text = "text"
    horizontal = "horizontal"
    vertical = "vertical"


def parse(
    paths: Annotated[
        list[str],
        typer.Argument(help="Model folder, and the file to parse; - is standard input.", metavar="MODEL [INPUT]"),
    ],
    target: Annotated[
        str, typer.Option("--output", "-o", help="Output file; - is standard output. With --cluster, a folder.")
    ] = "-",
    text: Annotated[
        str | None, typer.Option(help="Raw text to cut into sentences and words, and to parse.", metavar="FILE|-")
    ] = None,
    form: Annotated[
        InputFormat,
        typer.Option(
            "--input", help="Format of INPUT: conllu, raw text, one sentence per line, or one word per line (vertical)."
        ),
    ] = InputFormat.conllu,
    keep_heads: Annotated[
        bool,
        typer.Option("--keep-heads", help="Keep the heads that the input has; find the best tree that contains them."),
    ] = False,
    predict: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN,...",
            help="What to predict: heads (and relations), upos, xpos, feats, lemmas, tags (upos, xpos, feats) or all.",
            show_default="all that the model knows",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Predict tags and lemmas also where the input has them.")
    ] = False,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Write how sure the parser is into MISC (Confidence, HeadConfidence, Margin, NextHead) and a comment.",
        ),
    ] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Leave HEAD and DEPREL of words that are less certain empty (_)."),
    ] = None,
    k_best: Annotated[int, typer.Option(min=1, help="Write each sentence with its K best trees.", metavar="K")] = 1,
    unique: Annotated[
        str | None,
        typer.Option(
            metavar="RELATION,...",
            help="At most one dependent with each of these, subtypes included, e.g. nsubj,csubj,obj,iobj,expl.",
        ),
    ] = None,
    among: Annotated[
        int,
        typer.Option(
            min=1, metavar="K", help="With --unique: look among the K best trees for the best one with its relations."
        ),
    ] = 1,
    search: Annotated[
        str, typer.Option(help="exact, beam:K or greedy (the last two for decoders mh3, mh4-two and mh4-hybrid only).")
    ] = "exact",
    ensemble: Annotated[
        bool, typer.Option("--ensemble", help="Several model folders, then the input: each arc gets a vote per model.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS",
            help="Parse many files (MODEL INPUT...) on Dask workers: on this machine, or at a scheduler's address.",
        ),
    ] = None,
    batch_words: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Collect at least this many words before parsing: faster, but standard input is answered later.",
            show_default="20,000 of a file; of standard input what has come",
        ),
    ] = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
    skip_bad: SkipBadOption = False,
) -> None:
    """Parse CoNLL-U or text. Predicts HEAD and DEPREL, and UPOS, XPOS, FEATS and LEMMA where they are missing ("_")."""
    if text is not None:
        form, paths = InputFormat.text, [*paths, text]
    models = 1
    if ensemble:
        models = next((i for i, path in enumerate(paths) if not Path(path).is_dir()), len(paths))
        if models == 0:
            raise ValueError(f"{paths[0]}: is not a folder (--ensemble takes model folders, then the input)")
    folders, sources = paths[:models], paths[models:] or ["-"]
    if cluster is not None and (ensemble or target == "-"):
        raise ValueError("--cluster takes one model, and a folder to write to (--output)")
    if cluster is not None and batch_words is not None:
        raise ValueError("--batch-words is for a single input; a cluster gets files in pieces of its own")
    if ensemble and len(sources) > 1:
        raise ValueError(f"{sources[0]}: is not a folder (--ensemble takes model folders, then one input)")
    if cluster is None and len(sources) > 1:
        raise ValueError(f"one input at a time, not {', '.join(sources)} (--cluster local takes several)")
    if cluster is None:
        check_output(target)
    errors = error_policy(skip_bad)
    options: ParseOptions = {
        "keep_heads": keep_heads,
        "predict": predict,
        "overwrite": overwrite,
        "confidence": confidence,
        "k_best": k_best,
        "unique": unique,
        "among": among,
    }
    if cluster is not None:
        from mh4.service.cluster import parse_files

        ready = time.perf_counter()
        with words_bar(sources, form.value) as on_progress:
            sentences, words = parse_files(
                folders[0],
                sources,
                target,
                cluster,
                device=device.value,
                search=search,
                threads=threads,
                errors=errors,
                form=form.value,
                min_confidence=min_confidence,
                on_progress=on_progress,
                **options,
            )
    else:
        from mh4.api import Parser

        set_threads(threads)
        parser = Parser(*folders, device=device.value, search=search, threads=threads)
        ready = time.perf_counter()
        with words_bar(sources, form.value) as on_progress:
            sentences, words = parser.parse_file(
                sources[0],
                target,
                errors=errors,
                format=form.value,
                min_confidence=min_confidence,
                batch_words=batch_words,
                on_progress=on_progress,
                **options,
            )
    seconds = time.perf_counter() - ready
    report_skipped(errors)
    say(
        f"{sentences} sentences, {words} words, {words / seconds:.0f} words/s; start-up {ready - IMPORTED_AT:.1f} s",
    )
