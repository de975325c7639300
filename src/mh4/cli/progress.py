"""How far a command is and how long it will still take: bars on a terminal, nothing where stderr goes elsewhere."""

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
from rich.progress import Progress as Bars

from mh4.data.files import open_input
from mh4.machine import Terminated

from .options import messages, say

if TYPE_CHECKING:
    from mh4.parsers.base import Count
    from mh4.training.schedule import Progress
    from mh4.training.trainer import Recent

T = TypeVar("T")
_PREPARED = 100  # sentences between two looks at how far the preparation is
_REFRESHES = 4  # per second: drawing takes time from what is measured


def _bar(*columns: ProgressColumn) -> Bars:
    return Bars(
        *columns, console=messages, transient=True, disable=not messages.is_terminal, refresh_per_second=_REFRESHES
    )


def track(steps: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Go through ``steps``, of which there are ``total`` if not their length, with a bar and the time left."""
    with _bar(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()) as bar:
        yield from bar.track(steps, total, description=description)


@contextmanager
def words_bar(inputs: Sequence[str], form: str = "conllu") -> Iterator[Callable[[Count], None]]:
    """Yield a function that takes what has been parsed so far: in percent, with the time left, of files.

    Of standard input nobody knows how much there is; words and words per second are shown then.
    """
    files = messages.is_terminal and all(Path(path).is_file() for path in inputs)
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
    """Yield a function that takes how many bytes of how many are there."""
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with _bar(*columns) as bar:
        task = bar.add_task(description, total=None)

        def show(done: int, total: int) -> None:
            Terminated.check()
            bar.update(task, completed=done, total=total)

        yield show


def count_words(path: str | Path, form: str = "conllu") -> int:
    """Estimate the words of a file without parsing it; each line of a word in CoNLL-U has nine tabs."""
    with open_input(path) as stream:
        pieces = iter(lambda: stream.read(1 << 20), b"")
        if form == "conllu":
            return sum(piece.count(b"\t") for piece in pieces) // 9
        return sum(piece.count(b" ") + piece.count(b"\n") for piece in pieces)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


class TrainingDisplay:
    """A live line on a terminal, a plain line per evaluation everywhere.

    Nobody knows when the last improvement on dev will come: the time left is that until training ends if none does.
    """

    def __enter__(self) -> TrainingDisplay:
        self._bar = _bar(SpinnerColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
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
        """Show how much of the treebank is ready to be learnt from."""
        Terminated.check()
        if messages.is_terminal and (done % _PREPARED == 0 or done == total):
            line = "compiling the decoder" if done == total else "preparing the treebank"
            self._bar.update(self._task, description=line, completed=done, total=total)

    def on_step(self, progress: Progress, recent: Recent) -> None:
        """Show how a minibatch left things."""
        Terminated.check()
        if not messages.is_terminal:
            return
        fewest, most = progress.seconds_left
        dev = f"dev UAS {progress.best_uas:.2f} LAS {progress.best_las:.2f}" if progress.best_step else "no dev yet"
        line = (
            f"step {progress.step}  loss {recent.loss / recent.words:.3f}  "
            f"{recent.words / recent.profile.total:.0f} words/s  "
            f"decoding {recent.profile.shares['decode']:.0%}  {dev}  lr {progress.learning_rate:.2g}  "
            f"{_clock(progress.seconds)} elapsed, {'' if fewest == most else 'at least '}{_clock(fewest)} left"
        )
        total = progress.step + progress.fewest_left
        self._bar.update(self._task, description=line, completed=progress.step, total=total)

    def on_evaluation(self, report: dict[str, Any]) -> None:
        """Print the line of an evaluation."""
        each = "; ".join(f"{name} {own['uas']:.2f} {own['las']:.2f}" for name, own in report.get("dev", {}).items())
        say(
            f"step {report['step']:>6}  epoch {report['epoch']:6.2f}  loss {report['loss']:.3f}  "
            f"{report['words_per_second']:.0f} words/s  decoding {report['share']['decode']:.1%}  "
            f"dev UAS {report['dev_uas']:.2f} LAS {report['dev_las']:.2f}"
            f"{each and f' ({each})'}  lr {report['learning_rate']:.2g}"
            f"{'  *' if report['best'] else ''}",
        )


class EpochsDisplay(TrainingDisplay):
    """A perceptron's training, a line an epoch, with the share of the epochs that is done."""

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
