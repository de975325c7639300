"""Progress of commands and the time left: bars if stderr is a terminal, no bars otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.progress import (
    BarColumn,
    DownloadColumn,
    ProgressColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichBars
from rich.table import Column

from mh4.data.files import is_descriptor, open_input
from mh4.machine import Terminated

from .options import messages, say

if TYPE_CHECKING:
    from mh4.parsers.base import Count
    from mh4.training.schedule import Progress
    from mh4.training.trainer import Recent

T = TypeVar("T")
_PREPARED = 100  # sentences between two updates during preparation
_REFRESHES = 4  # per second; drawing slows down what is measured
_LONGEST = 10_000 * 86_400  # seconds; longer times are not shown


class Bars(RichBars):
    """Bars that leave no trace where they are not shown; rich before 14.3 wrote an empty line there."""

    def stop(self) -> None:
        """Remove the bars, if they are shown."""
        if not self.disable:
            super().stop()


def _bar(*columns: ProgressColumn, expand: bool = False) -> Bars:
    return Bars(
        *columns,
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
        refresh_per_second=_REFRESHES,
        expand=expand,
    )


def track(steps: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Iterate over ``steps`` with a bar and the time left; ``total`` is their number, by default their length."""
    with _bar(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) as bar:
        yield from bar.track(steps, total, description=description)


@contextmanager
def words_bar(inputs: Sequence[str], form: str = "conllu") -> Iterator[Callable[[Count], None]]:
    """Yield a function that shows how much has been parsed: words, words per second and, for files, the time left.

    The length of standard input is unknown, even if it is a file; the elapsed time is shown instead.
    """
    files = messages.is_terminal and all(Path(path).is_file() and not is_descriptor(path) for path in inputs)
    total = sum(count_words(path, form) for path in inputs) if files else None
    ending = (TaskProgressColumn(), TimeRemainingColumn()) if files else (TimeElapsedColumn(),)
    speed = TextColumn("{task.completed:,.0f} words, {task.fields[speed]:,.0f} words/s")
    with _bar(TextColumn("parsing"), BarColumn(), speed, *ending) as bar:
        task, shown = bar.add_task("", total=total, speed=0.0), -1.0

        def show(count: Count) -> None:
            nonlocal shown
            Terminated.check()
            elapsed = bar.tasks[0].elapsed or 1e-9
            if elapsed >= shown + 1 / _REFRESHES:  # not at every sentence
                shown = elapsed
                bar.update(task, completed=count.words, speed=count.words / elapsed)

        yield show


@contextmanager
def bytes_bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows progress, given the bytes done and their total."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with _bar(*columns) as bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int) -> None:
            Terminated.check()
            bar.update(task, completed=done, total=total)

        yield show


def count_words(path: str | Path, form: str = "conllu") -> int:
    """Estimate the words of a file without parsing it; in CoNLL-U, the line of a word has nine tabs."""
    with open_input(path) as stream:
        pieces = iter(lambda: stream.read(1 << 20), b"")
        if form == "conllu":
            return sum(piece.count(b"\t") for piece in pieces) // 9
        return sum(piece.count(b" ") + piece.count(b"\n") for piece in pieces)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds))) if seconds < _LONGEST else "–"


class TrainingDisplay:
    """A live line on a terminal, and a plain line per evaluation everywhere.

    The time left assumes that dev does not improve any more; every improvement may prolong training.
    """

    def __enter__(self) -> TrainingDisplay:
        line = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True))  # only this one is cut
        self._bar = _bar(SpinnerColumn(), TaskProgressColumn(), line, expand=True)
        self._task = self._bar.add_task("reading the treebanks", total=None)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def on_reading(self, done: int, total: int) -> None:
        """Show how much of a file of word vectors is read."""
        Terminated.check()
        self._bar.update(self._task, description="reading the vectors", completed=done, total=total)

    def on_preparation(self, done: int, total: int) -> None:
        """Show how much of the treebank is prepared for training."""
        Terminated.check()
        if messages.is_terminal and (done % _PREPARED == 0 or done == total):
            line = "compiling the decoder" if done == total else "preparing the treebank"
            self._bar.update(self._task, description=line, completed=done, total=total)

    def on_step(self, progress: Progress, recent: Recent) -> None:
        """Update the live line after a minibatch."""
        Terminated.check()
        if not messages.is_terminal:
            return
        fewest, most = progress.seconds_left
        dev = f"UAS {progress.best_uas:.2f} LAS {progress.best_las:.2f}" if progress.best_step else "no dev yet"
        line = (  # 80 columns suffice up to LAS; the line of an evaluation has the rest, too
            f"step {progress.step}  "
            f"{_clock(progress.seconds)} elapsed, {'' if fewest == most else 'at least '}{_clock(fewest)} left  {dev}  "
            f"loss {recent.loss / recent.words:.3f}  {recent.words / recent.profile.total:.0f} words/s  "
            f"decoding {recent.profile.shares['decode']:.0%}  lr {progress.learning_rate:.2g}"
        )
        total = progress.step + progress.fewest_left
        self._bar.update(self._task, description=line, completed=progress.step, total=total)

    def on_evaluation(self, report: dict[str, Any]) -> None:
        """Print the line about an evaluation."""
        each = "; ".join(f"{name} {own['uas']:.2f} {own['las']:.2f}" for name, own in report.get("dev", {}).items())
        say(
            f"step {report['step']:>6}  epoch {report['epoch']:6.2f}  loss {report['loss']:.3f}  "
            f"{report['words_per_second']:.0f} words/s  decoding {report['share']['decode']:.1%}  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}"
            f"{each and f' ({each})'}  lr {report['learning_rate']:.2g}"
            f"{'  *' if report['best'] else ''}",
        )


class EpochsDisplay(TrainingDisplay):
    """Display for the training of a perceptron: a bar over the epochs, and a line per epoch."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def __enter__(self) -> EpochsDisplay:
        self._bar = _bar(TextColumn("training"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._task = self._bar.add_task("", total=self.epochs)
        self._bar.start()
        return self

    def on_evaluation(self, report: dict[str, Any]) -> None:
        Terminated.check()
        self._bar.advance(self._task)
        say(
            f"epoch {report['epoch']:>3}  wrong {report['wrong']:.1%}  {report['words_per_second']:.0f} words/s  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}{'  *' if report['best'] else ''}",
        )
