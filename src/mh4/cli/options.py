"""Options, consoles and messages that several commands share."""

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from rich.console import Console
from typer.core import TyperCommand

from mh4.data.errors import DataError, Errors
from mh4.data.files import is_descriptor, is_standard_input, named_path, open_input
from mh4.decoders import decoder_names
from mh4.machine import available_threads
from mh4.parsers.request import Request
from mh4.training import presets

if TYPE_CHECKING:
    from rich.table import Table

# No markup or emoji: names and words may contain brackets, or be ":dog:". Piped output is not cut to the width of a
# terminal.
WIDE = 1000
_ANY_WIDTH = 1 << 20
output = Console(markup=False, emoji=False, width=None if sys.stdout is not None and sys.stdout.isatty() else WIDE)
messages = Console(stderr=True, markup=False, emoji=False)

_REQUEST = [one.name for one in fields(Request)]
# Arguments other than the fields of `Request` that messages may mention.
_OTHERS = (
    *("decoder", "device", "encoder", "epochs", "format", "index", "name", "oracle", "precision", "resume"),
    *("segmenter", "system"),
)
_NAMES = "|".join([*_REQUEST, *_OTHERS])
_ARGUMENT = re.compile(rf'(?<![\w=/\\])(?P<name>{_NAMES})=(?P<value>True|False|\d+|"[^"]*")(?![\w/\\]|\.\w)')
_OPTION_NAMES = {"format": "input", "treebank": "as"}

_COLUMNS = 10  # of CoNLL-U
_LINE = 1 << 16  # bytes of a line that are held

DecoderName = StrEnum("DecoderName", {name: name for name in decoder_names()})  # type: ignore[misc]
DEFAULT_DECODER = DecoderName("mh4-hybrid")
Preset = StrEnum("Preset", {name: name for name in presets.PRESETS})  # type: ignore[misc]
DEFAULT_PRESET = Preset(presets.DEFAULT_PRESET)
PAPER = Preset("paper")


class _Command(TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        if ctx.obj is not None:
            ctx.obj()
        return super().invoke(ctx)


class Commands(typer.Typer):
    """Commands that first call their context's ``obj``, a function, unless they only print their help."""

    def command(self, name: str | None = None, **options: Any) -> Any:
        """See `typer.Typer.command`."""
        return super().command(name, cls=_Command, **options)


class Device(StrEnum):
    """Where the network runs."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class TreeClass(StrEnum):
    """Classes of trees that have a closest tree."""

    projective = "projective"
    mh4 = "mh4"
    one_endpoint_crossing = "1ec"


ThreadsOption = Annotated[
    int | None,
    typer.Option(min=1, max=512, help="CPU threads for the network and the decoder.", show_default="one per core"),
]
DeviceOption = Annotated[Device, typer.Option(help="auto uses CUDA if available.")]
DecodingThreadsOption = Annotated[
    int | None, typer.Option(min=1, max=512, help="CPU threads.", show_default="one per core")
]
PRESET_HELP = (
    "Hyperparameters: paper (as published), or a richer model trained briefly (fast), longer (balanced), longest "
    "(best), in large batches, for GPUs (large), or with --encoder (pretrained, then the default)."
)
SettingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any setting of config.json, e.g. learning_rate=0.001; overrides --preset."
    ),
]
SkipBadOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out invalid sentences and report how many there were.")
]


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: replace the parameter ``request`` of a command by an option for each field of `Request`."""

    @wraps(command)
    def run(**values: Any) -> None:
        asked = {name: values.pop(name) for name in _REQUEST}
        command(request=Request(**asked), **values)

    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        parameters += _request_options() if parameter.name == "request" else [parameter]
    run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def request_option(name: str) -> Any:
    """The command-line option for a field of `Request`."""
    (one,) = (one for one in fields(Request) if one.name == name)
    return typer.Option(option_name(name), help=one.metadata["help"], **one.metadata["command"])


def _request_options() -> list[Parameter]:
    options = []
    for one in fields(Request):
        option = request_option(one.name)
        kind, default = (type(one.default), one.default) if isinstance(one.default, int | str) else (str | None, None)
        options.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]))
    return options


def named_files(given: Sequence[str]) -> Path | dict[str, Path]:
    """One file, or a mapping from names to files, given as NAME=FILE."""
    if len(given) == 1 and ("=" not in given[0] or os.path.exists(given[0])):
        return named_path(given[0])
    return files_by_name(given)


def files_by_name(given: Sequence[str]) -> dict[str, Path]:
    """A mapping from names to files, given as NAME=FILE."""
    pairs = [one.partition("=") for one in given]
    if wrong := [one for one, (_, _, path) in zip(given, pairs, strict=True) if not path]:
        raise ValueError(f"several treebanks are given as NAME=FILE, not {wrong[0]!r}")
    names = [name for name, _, _ in pairs]
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f"the treebank {twice[0]!r} is named twice")
    return {name: named_path(path) for name, _, path in pairs}


def check_named_once(inputs: Sequence[str], gold: str | None = None) -> None:
    """ValueError if an input is named twice; ``gold`` may also be one of the inputs, unless it is standard input."""
    if sum(map(is_standard_input, [gold, *inputs])) > 1:
        raise ValueError("only one of the files can be standard input")
    if twice := next((path for i, path in enumerate(inputs) if path in inputs[:i]), None):
        raise ValueError(f"{twice}: is named twice")


def say(text: str, style: str | None = None) -> None:
    """Print a line on stderr, or nothing if stderr cannot be written."""
    try:
        messages.print(text, style=style, highlight=False, soft_wrap=True)
    except OSError:
        discard(sys.stderr)


def print_whole(table: "Table") -> None:
    """Print a table at its natural width, even on a narrower terminal, so that no cell is cut."""
    unlimited = output.options.update(max_width=_ANY_WIDTH)
    table.width = output.measure(table, options=unlimited).maximum
    output.print(table, crop=False)


def discard(stream: TextIO) -> None:
    """Redirect a standard stream to the null device, so that flushing it at exit raises no error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_options(message: str) -> str:
    """Rewrite Python arguments in a message, such as ``overwrite=True``, as command-line options."""
    message = message.replace('raw text needs format="text"', "raw text needs mh4 parse --text")  # in any command
    return _ARGUMENT.sub(lambda found: _as_option(found["name"], found["value"]), message)


def option_name(name: str) -> str:
    """The command-line option for a Python argument."""
    return "--" + _OPTION_NAMES.get(name, name).replace("_", "-")


def _as_option(name: str, value: str) -> str:
    option = option_name(name)
    if value == "False":
        return option.replace("--", "--no-", 1)
    return option if value == "True" else option + " " + value.strip('"')


def set_threads(threads: int | None) -> None:
    """Set the number of threads of the network; None means PyTorch's default, at most the cores available here."""
    import torch

    torch.set_num_threads(threads or min(torch.get_num_threads(), available_threads()))


def check_conllu(path: str | Path, advice: str) -> None:
    """Raise a DataError, with advice, if a regular file begins like text, not CoNLL-U; other inputs are not read."""
    if is_descriptor(path) or (os.path.exists(path) and not os.path.isfile(path)):
        return
    number = 0
    with open_input(path) as stream:
        while line := stream.readline(_LINE):
            number += 1
            content = line.decode(errors="replace").lstrip("\ufeff")
            if content.strip() and not content.startswith("#"):
                if "\t" not in content and len(content.split()) != _COLUMNS:
                    raise DataError(f"{path}:{number}: is not CoNLL-U ({advice})")
                return
            while line and not line.endswith(b"\n"):  # the rest of a long comment
                line = stream.readline(_LINE)


def error_policy(skip_bad: bool) -> Errors:
    """The error policy that --skip-bad stands for."""
    return Errors("skip" if skip_bad else "raise")


def report_skipped(errors: Errors) -> None:
    """If sentences were left out, print a line on stderr: how many, and the first error."""
    if errors.count:
        say(errors.summary)
