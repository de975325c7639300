"""``mh4 package`` and ``mh4 download``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Device, DeviceOption, ThreadsOption, print_whole, say, set_threads
from .progress import bytes_bar

if TYPE_CHECKING:
    from mh4.parsers.packages.download import Source
    from mh4.parsers.packages.index import Entry


def package(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    target: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="NAME.mh4.zip|FOLDER", help="Package, or a folder of packages with an index."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the model.", show_default="that of the package or the folder")
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option("--licence", "--license", help="Licence of the treebank.", show_default="as found in training"),
    ] = None,
    gold: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="CoNLL-U with gold trees, for F1 and speed on the card; repeatable."),
    ] = None,
    device: DeviceOption = Device.auto,
    threads: ThreadsOption = None,
) -> None:
    """Pack a model into one file, with a card that states its treebank, licence and scores."""
    from mh4.parsers.packages.packaging import package as run

    set_threads(threads)
    entry = run(model, target, name=name, licence=licence, gold=gold or (), device=device.value, threads=threads)
    say(f"{entry.file}: {entry.size / 1e6:.1f} MB, SHA-256 {entry.sha256}")
    _tell_licence(entry)
    if entry.licence is None:
        say('name it with --licence "CC BY-SA 4.0", for instance')


def download(
    name: Annotated[str | None, typer.Argument(help="Name of the model; by default, all models are listed.")] = None,
    index: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|FOLDER", help="Index of models: an https address or a folder.", show_default="$MH4_INDEX"
        ),
    ] = None,
) -> None:
    """Download a model by name; all commands then accept the name. An interrupted download continues."""
    from mh4.parsers.packages.cache import installed
    from mh4.parsers.packages.download import Source
    from mh4.parsers.packages.download import download as run

    if name is None:
        _list_models(Source.of(index))
        return
    with bytes_bar(name) as on_progress:
        folder = run(name, index, on_progress=on_progress)
    say(f"{name} is in {folder}")
    if (entry := installed(name)) is not None:
        _tell_licence(entry)


def _list_models(source: Source) -> None:
    from rich.table import Table

    from mh4.data.drawing import printable
    from mh4.parsers.packages.cache import installed

    table = Table(box=None, pad_edge=False)
    for column in ("model", "languages", "MB", "licence of the treebank", "downloaded"):
        table.add_column(column, justify="right" if column == "MB" else "left")
    for entry in source.index().models:
        here = installed(entry.name)
        state = "" if here is None else "yes" if here.sha256 == entry.sha256 else "an older version"
        size = f"{entry.size / 1e6:.1f}"
        languages, licence = printable(" ".join(entry.languages)), printable(entry.licence or "unknown")
        table.add_row(entry.name, languages, size, licence, state)
    print_whole(table)


def _tell_licence(entry: Entry) -> None:
    from mh4.data.drawing import printable
    from mh4.parsers.packages.card import licence_line

    style = "yellow" if entry.non_commercial or entry.licence is None else None
    say(printable(licence_line(entry.licence)), style=style)
