"""Command line: ``mh4 train | parse | eval | calibrate | uncertain | draw | coverage | transform | oracle | …``.

Each module holds a group of commands. Heavy modules are imported only when a command that needs them runs, so that
``mh4 --help`` answers at once.
"""

from __future__ import annotations

import gc
import io
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import Annotated, BinaryIO

import typer

from mh4 import __version__
from mh4.data.errors import LONGEST_PATH, DataError, shortened
from mh4.data.files import STDOUT_NAME, failure_reason
from mh4.machine import INTERRUPTED, Terminated

from .bench.commands import bench_app
from .calibration import calibrate, uncertain
from .compiling import warm_up
from .evaluation import evaluate
from .guesses import advised
from .options import Commands, discard, in_options, say
from .parsing import parse
from .samples import demo, sample
from .serving import serve
from .sharing import download, package
from .training import train
from .trees import coverage, draw, oracle, transform

__all__ = ["app", "main"]

LONGEST = 4000  # characters of a message; some list all known names
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]  # UsageError of the Click that Typer bundles or imports
SWITCH_SECONDS = 2e-4  # a thread may keep Python's lock this long while another one waits
COLLECTED_AT = 100_000, 20, 50  # thresholds of the garbage collector's generations
EXPECTED = (ValueError, OSError)  # DataError, InfeasibleError, unknown options and names; files and folders

app = Commands(
    name="mh4",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Shown:
    tracebacks = False


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mh4 {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Exact global dependency parsing: train, parse and evaluate on CoNLL-U treebanks."""
    _Shown.tracebacks = debug


# in the order of the help text
app.command()(train)
app.command()(parse)
app.command(name="eval")(evaluate)
app.command()(calibrate)
app.command()(uncertain)
app.command()(draw)
app.command()(serve)
app.command()(package)
app.command()(download)
app.command()(coverage)
app.command()(transform)
app.command()(oracle)
app.command()(sample)
app.command()(demo)
app.command(name="warm-up")(warm_up)
app.add_typer(bench_app, name="bench")


def _announce_compiling() -> None:
    from .announcing import announce_compiling

    announce_compiling()


class _ConsoleHandler(logging.Handler):
    """Log messages as plain lines that stay clear of the progress display."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def _show_messages() -> None:
    """Show mh4's log on the console; other packages' loggers (Dask's reports every connection) stay as they are."""
    handler = _ConsoleHandler()
    handler.setFormatter(logging.Formatter("mh4: %(message)s"))
    log = logging.getLogger("mh4")
    log.setLevel(logging.INFO)
    log.handlers = [handler]


def _hurry() -> None:
    """Let threads wait less for Python's lock, and collect cyclic garbage less often.

    Parsing creates many small objects that live for a while, hardly any of them in cycles.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECTED_AT)


def main() -> None:
    """Entry point: an error that the user can fix is one line on stderr and exit status 2, without a traceback."""
    _show_messages()
    _hurry()
    Terminated.asked = None
    signal.signal(signal.SIGTERM, _terminate)
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # for characters that the encoding lacks, such as "≤"
    try:
        signal.signal(signal.SIGINT, _interrupt)
        status = _run()
    except KeyboardInterrupt:  # outside a command, also while an error is reported; commands handle it themselves
        raise SystemExit(INTERRUPTED) from None
    raise SystemExit(status)


def _run() -> int:
    """Run the command that was asked for and report what goes wrong; returns the exit status."""
    try:
        try:
            if "" in sys.argv[1:]:
                raise ValueError("an argument is empty (an unset shell variable?)")
            _check_folder()
            return app(prog_name="mh4", standalone_mode=False, obj=_announce_compiling) or 0
        finally:
            sys.stdout.flush()
    except _UsageError as error:
        return _report_usage(error)
    except BrokenPipeError:  # the reader of standard output has gone
        discard(sys.stdout)
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and _is_of_output(error):
            error.filename = STDOUT_NAME
            discard(sys.stdout)
        if _Shown.tracebacks:
            raise
        say(f"mh4: {_report(error)}", style="red")
        return 2 if isinstance(error, EXPECTED) else 1


def _check_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise DataError("the current folder has been removed (cd to another one)") from None


def _report_usage(error: Exception) -> int:
    """Print a usage error in one line, or the help of a command without arguments; returns the exit status."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and context is not None:
        typer.echo(context.get_help(), nl=False)
        return 2
    command = context.command_path if context is not None else "mh4"
    problem = " ".join(error.format_message().split()).rstrip(".")  # type: ignore[attr-defined]
    problem = advised(command, problem)
    problem = problem.replace("Input should", "must").replace("Value error, ", "")
    say(f"{command}: {problem[:1].lower()}{problem[1:]} (see {command} --help)", style="red")
    return 2


class _Closed(io.TextIOBase):
    """Standard output of a process that was started without it; writing to it is an error."""

    def write(self, text: str) -> int:
        raise DataError(f"{STDOUT_NAME}: is closed (name a file)")

    @property
    def buffer(self) -> BinaryIO:
        raise DataError(f"{STDOUT_NAME}: is closed (name a file)")


def _open_what_is_closed() -> None:
    """Keep files opened later from taking the descriptors of standard streams, to which any library may write."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, this one
    sys.stdout = sys.stdout or _Closed()


def _is_of_output(error: OSError) -> bool:
    """Whether an error was raised while writing standard output: in the libraries that print, or in `_run`."""
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return last.f_globals["__name__"].partition(".")[0] in ("rich", "typer") or last.f_code is _run.__code__


def _report(error: Exception) -> str:
    """One line about an error; for an unexpected one, also where it was raised."""
    if isinstance(error, FileExistsError) and error.filename is not None:
        return f"{shortened(str(error.filename), LONGEST_PATH)}: is a file, not a folder (choose another name)"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{shortened(str(error.filename), LONGEST_PATH)}: {failure_reason(error)}"
    if isinstance(error, EXPECTED):
        return shortened(in_options(str(error)), LONGEST)
    if isinstance(error, MemoryError) or "out of memory" in str(error) or "not enough memory" in str(error):
        return f"out of memory: {str(error).partition(chr(10))[0]} (parse shorter sentences, or use a smaller model)"
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).partition("\n")[0]
    return (
        f"unexpected {type(error).__name__}: {text} ({Path(last.filename).name}:{last.lineno}, mh4 {__version__}); "
        "`mh4 --debug …` shows the traceback"
    )


def _terminate(*_: object) -> None:
    Terminated.asked = Terminated
    raise Terminated


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt on Ctrl-C; during imports, when there is nothing to clean up, exit at once."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    Terminated.asked = KeyboardInterrupt
    raise KeyboardInterrupt
