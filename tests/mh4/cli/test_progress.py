"""Progress bars are shown on a terminal and nowhere else."""

import gzip
import io
import os
import re

import pytest
from rich.console import Console

from mh4.cli import progress
from mh4.data.conllu import read_conllu
from mh4.parsers.base import Count
from mh4.parsers.profiling import stage
from mh4.training.schedule import Progress
from mh4.training.trainer import Recent


@pytest.fixture(params=[True, False])
def screen(request, monkeypatch):
    """A buffer that replaces stderr, with or without a terminal; its attribute ``terminal`` says which."""
    stream = io.StringIO()
    stream.terminal = request.param
    monkeypatch.setattr(progress, "messages", Console(file=stream, force_terminal=request.param, width=120))
    return stream


def test_steps_are_all_done_and_shown_on_a_terminal(screen):
    assert list(progress.track([1, 2, 3], "counting")) == [1, 2, 3]
    assert ("counting" in screen.getvalue()) == screen.terminal
    assert ("100%" in screen.getvalue()) == screen.terminal


def test_rich_does_not_end_bars_that_it_does_not_show(screen, monkeypatch):
    """Before 14.3, it wrote an empty line."""
    monkeypatch.setattr(progress.RichBars, "stop", lambda bars: screen.write("ended"))
    assert list(progress.track([1], "counting")) == [1]
    assert ("ended" in screen.getvalue()) == screen.terminal


def test_words_of_a_file_in_percent_and_of_a_pipe_without(screen, small_treebanks):
    path = str(small_treebanks[1])
    words = sum(map(len, read_conllu(path)))
    for source, percent in ((path, True), ("-", False)):
        screen.seek(0)
        screen.truncate()
        with progress.words_bar([source]) as on_progress:
            on_progress(Count(1, words // 2))
        assert (f"{words // 2:,} words" in screen.getvalue()) == screen.terminal
        assert ("%" in screen.getvalue()) == (percent and screen.terminal)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
def test_a_file_as_standard_input_is_left_to_its_reader(screen, small_treebanks, monkeypatch, name):
    before = os.dup(0)
    try:
        with open(small_treebanks[1]) as file:
            os.dup2(file.fileno(), 0)
            monkeypatch.setattr("sys.stdin", file)
            with progress.words_bar([name]):
                assert file.read() == small_treebanks[1].read_text()
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert "%" not in screen.getvalue()


def test_the_name_of_what_is_downloaded_is_shown_as_it_is(screen):
    name = "hu[/b]:dog:"  # neither Rich markup nor an emoji
    with progress.bytes_bar(name) as on_progress:
        on_progress(1, 2)
    assert (name in screen.getvalue()) == screen.terminal


def test_epochs(screen):
    with progress.EpochsDisplay(4) as display:
        display.on_evaluation(
            {"epoch": 1, "wrong": 0.25, "words_per_second": 10.0, "dev_uas": 50.0, "dev_las": 40.0, "best": True}
        )
    assert (" 25%" in screen.getvalue()) == screen.terminal


def test_words_are_counted_without_parsing(small_treebanks, tmp_path):
    words = sum(map(len, read_conllu(small_treebanks[1])))
    counted = progress.count_words(small_treebanks[1])
    assert words <= counted <= 1.05 * words  # includes lines of multiword tokens
    packed = tmp_path / "dev.conllu.gz"
    packed.write_bytes(gzip.compress(small_treebanks[1].read_bytes()))
    assert progress.count_words(packed) == counted


def test_training_shows_the_least_time_left(screen):
    state = Progress(step=30, seconds=60.0, fewest_left=10, most_left=500)
    recent = Recent(words=100, loss=50.0)
    with recent.profile.recording(), stage("decode"):
        pass
    with progress.TrainingDisplay() as display:
        display.on_step(state, recent)
    drawn = screen.getvalue()
    assert ("step 30  0:01:00 elapsed, at least 0:00:20 left  no dev yet  loss 0.500" in drawn) == screen.terminal
    assert ("75%" in drawn) == screen.terminal


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, " 50% step 12345  1:40:00 elapsed, at least 1:40:00 left  UAS 88.12 LAS 84.12"),
        ({"step": 1, "fewest_left": 10**18}, "  0% step 1  1:40:00 elapsed, – left  UAS 88.12 LAS 84.12"),
    ],
)
def test_a_terminal_of_80_columns_shows_times_and_scores(given, shown, monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(progress, "messages", Console(file=stream, force_terminal=True, width=80))
    numbers = {"step": 12345, "fewest_left": 12345, "most_left": 10**18, "seconds": 6000.0, "best_step": 1}
    state = Progress(**(numbers | given), best_uas=88.12, best_las=84.12)
    recent = Recent(words=100, loss=50.0)
    with recent.profile.recording(), stage("decode"):
        pass
    with progress.TrainingDisplay() as display:
        display.on_step(state, recent)
    assert shown in re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_reading_vectors_is_shown(screen):
    with progress.TrainingDisplay() as display:
        display.on_reading(30, 120)
    assert ("reading the vectors" in screen.getvalue()) == screen.terminal
    assert ("25%" in screen.getvalue()) == screen.terminal


def test_the_preparation_of_a_treebank_is_shown(screen):
    with progress.TrainingDisplay() as display:
        for done in range(0, 401, 100):
            display.on_preparation(done, 400)
            if done == 300:
                display._bar.refresh()
    assert ("preparing the treebank" in screen.getvalue()) == screen.terminal
    assert ("75%" in screen.getvalue()) == screen.terminal
    assert ("compiling the decoder" in screen.getvalue()) == screen.terminal
