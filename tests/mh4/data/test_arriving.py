"""Reading standard input as it arrives."""

import io
import os
import sys
from types import SimpleNamespace

import pytest

from mh4.data.arriving import arriving_lines, read_arriving
from mh4.data.blocks import WAITING
from mh4.data.errors import DataError, Errors

WORD = "1\ta" + "\t_" * 8


@pytest.fixture
def pipe(monkeypatch):
    """Make standard input a pipe; `feed` writes all of its content and closes the pipe."""
    reader, writer = os.pipe()
    stream = io.BufferedReader(io.FileIO(reader))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))

    def feed(content):
        os.write(writer, content)
        os.close(writer)
        return stream

    yield feed
    stream.close()


@pytest.mark.parametrize("content", [b"a\nb", b"a\n\nb\n", b"a", b"", b"\n", b"a\r\nb\r"])
def test_every_line_arrives(pipe, content):
    lines = [line for line in arriving_lines(pipe(content)) if line is not WAITING]
    assert lines == list(io.BytesIO(content))


def test_who_waits_is_told(monkeypatch):
    reader, writer = os.pipe()
    with io.BufferedReader(io.FileIO(reader)) as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
        lines = arriving_lines(stream)
        os.write(writer, b"a\nb")
        assert next(lines) == b"a\n"
        assert next(lines) is WAITING
        os.write(writer, b"c\nd")
        assert next(lines) == b"bc\n"
        os.close(writer)
        assert [line for line in lines if line is not WAITING] == [b"d"]


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_the_last_sentence_arrives_without_its_blank_line(pipe, end):
    pipe(f"{WORD}\n\n# last\n{WORD}{end}".encode())
    sentences = [sentence for sentence in read_arriving("-", Errors("raise")) if sentence is not None]
    assert [(sentence.number, sentence.first_line, sentence.forms) for sentence in sentences] == [
        (1, 1, ("a",)),
        (2, 3, ("a",)),
    ]


def test_a_bad_sentence_is_named_and_can_be_left_out(pipe):
    pipe(f"{WORD}\n\n2{WORD[1:]}\n\n{WORD}\n\n".encode())
    report = Errors(lambda error: None)
    assert [sentence.number for sentence in read_arriving("-", report) if sentence is not None] == [1, 3]
    assert str(report.first).startswith("standard input:3: sentence 2: ID 2 where word 1 is expected")


def test_a_bad_sentence_stops_what_arrives(pipe):
    pipe(f"2{WORD[1:]}\n\n".encode())
    with pytest.raises(DataError, match=r"^standard input:1: sentence 1"):
        list(read_arriving("-", Errors("raise")))
