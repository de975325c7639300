"""``mh4 sample`` and ``mh4 demo``."""

from pathlib import Path
from typing import Annotated

import typer

from .options import output


def sample(
    folder: Annotated[Path, typer.Argument(help="Folder for the train, dev and test files.")] = Path("sample"),
) -> None:
    """Write the built-in sample treebank, in an invented language."""
    from mh4.data.sample import write_sample

    for path in write_sample(folder).values():
        typer.echo(path)


def demo(
    folder: Annotated[Path, typer.Argument(help="Folder for the sample, the models and the drawing.")] = Path("demo"),
) -> None:
    """Train every decoder on the sample, compare them, parse a file and draw a tree. Takes a few minutes."""
    from .demo import run_demo

    run_demo(folder, output)
