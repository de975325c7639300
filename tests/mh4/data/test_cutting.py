"""Cutting in a process of its own: it reads what can be opened here, and its early end is not the end of the text."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from array import array
from pathlib import Path

import pytest

from mh4.data import cutting
from mh4.data.cutting import cut_file
from mh4.data.errors import DataError, Errors
from mh4.data.segmenter import Cut
from mh4.data.text import text_of

TEXT = "Zub ulv.\n\nTor teg.\n"


def cut(segmenter, path):
    return [sentence for sentence in cut_file(segmenter, path, Errors("raise")) if sentence is not None]


@pytest.fixture
def fed():
    """Something that writes the text into a descriptor, or into a file once it is open, and closes it."""
    threads = []

    def feed(target):
        def write():
            with open(target, "wb") as stream:
                stream.write(TEXT.encode())

        threads.append(threading.Thread(target=write))
        threads[-1].start()

    yield feed
    for thread in threads:
        thread.join()


def test_a_descriptor_of_this_process_is_a_text(segmenter, fed):
    """As a shell's ``<(…)``."""
    reader, writer = os.pipe()
    fed(writer)
    try:
        sentences = cut(segmenter, f"/dev/fd/{reader}")
    finally:
        os.close(reader)
    assert "".join(text_of(sentences)) == TEXT
    assert sentences[0].comments[0] == "# newdoc"  # its number says nothing


def test_a_named_pipe_is_a_text(segmenter, fed, tmp_path):
    os.mkfifo(tmp_path / "article.fifo")
    fed(tmp_path / "article.fifo")
    sentences = cut(segmenter, tmp_path / "article.fifo")
    assert "".join(text_of(sentences)) == TEXT
    assert sentences[0].comments[0] == "# newdoc id = article"


@pytest.mark.parametrize("path", ["-", "/dev/stdin"])
@pytest.mark.parametrize("kind", ["pipe", "file", "memory"])
def test_standard_input_is_a_text(path, kind, segmenter, fed, tmp_path, monkeypatch):
    if kind == "pipe":
        reader, writer = os.pipe()
        fed(writer)
        given = open(reader, "rb")  # noqa: SIM115 (the stream around it closes it)
    elif kind == "file":
        (tmp_path / "article.txt").write_text(TEXT)
        given = (tmp_path / "article.txt").open("rb")
    else:
        given = io.BytesIO(TEXT.encode())
    with io.TextIOWrapper(given) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        sentences = cut(segmenter, path)
        assert not given.closed
    assert "".join(text_of(sentences)) == TEXT
    assert sentences[0].comments[0] == "# newdoc"
    assert sentences[0].source == "standard input"


def test_what_cannot_be_opened_is_an_error_here(segmenter, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", never)
    for path, problem in ((tmp_path / "none.txt", "no such file"), (tmp_path, "is a folder")):
        with pytest.raises(DataError, match=problem):
            cut(segmenter, path)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input: is closed"):
        cut(segmenter, "/dev/stdin")


WHOLE = Cut(b"# sent_id = 1\n1\tZub\t_\t_\t_\t_\t_\t_\t_\t_\n\n", array("q", [0])).to_bytes()
RECORD = b"S" + len(WHOLE).to_bytes(4, "little") + WHOLE


@pytest.mark.parametrize(
    ("written", "sentences"),
    [(b"", 0), (RECORD, 1), (RECORD + RECORD[:3], 1), (RECORD + RECORD[:5], 1), (RECORD + RECORD[:-9], 1)],
    ids=["before anything", "after a record", "in a head", "after a head", "in a record"],
)
def test_a_process_that_dies_is_an_error_and_not_the_end(written, sentences, segmenter, tmp_path, monkeypatch):
    (tmp_path / "article.txt").write_text(TEXT)
    (tmp_path / "written").write_bytes(written)
    program = tmp_path / "dies"
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/written"\nkill -KILL $$\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    records, found = cut_file(segmenter, tmp_path / "article.txt", Errors("raise")), []
    with pytest.raises(DataError, match=r"the process that cuts the text ended early \(out of memory\?\)"):
        found.extend(records)  # what came before the error is kept
    assert len(found) == sentences


def test_an_interruption_of_the_terminal_is_not_the_processs_business(segmenter):
    """Ctrl-C reaches every process of the group: the parser ends, and ends what it started, without tracebacks."""
    reader, writer = os.pipe()
    records = cut_file(segmenter, f"/dev/fd/{reader}", Errors("raise"))
    try:
        assert next(records) is None  # nothing has come yet
        (child,) = _children(cutting.__name__)
        status = Path(f"/proc/{child}/status").read_text()
        blocked = int(status.partition("SigBlk:")[2].split()[0], 16)
        assert blocked & 1 << signal.SIGINT - 1
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # here all is as it was
    finally:
        records.close()
        os.close(reader)
        os.close(writer)
    deadline = time.monotonic() + 30
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _children(module):
    """Processes that this one started, and that run a module."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # has ended
            continue
        if int(parent) == os.getpid() and module.encode() in words:
            yield int(path.name)
