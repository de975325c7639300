"""Windows are parsed ahead, in order, and only where nothing but speed can change."""

import os
import select
import sys
import threading
import time
from dataclasses import replace

import pytest
import torch

import mh4
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.models.devices import compiled_threads
from mh4.parsers import base
from mh4.parsers.ahead import WORKERS, answered
from mh4.parsers.answers import Answers


@pytest.fixture(params=[WORKERS, 4])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def numbered(count, taken, failure=None):
    for i in range(count):
        taken.append(i)
        yield [i]
    if failure is not None:
        raise failure


@pytest.mark.parametrize("workers", [1, 2])
def test_windows_come_in_order_and_few_are_read_ahead(workers):
    taken = []
    for i, (window, answers) in enumerate(answered(numbered(9, taken), lambda own: Answers(own * 2), workers)):
        assert (window, answers.annotations) == ([i], [i, i])
        assert len(taken) == min(9, i + 1 + (workers if workers > 1 else 0))  # all workers have one to answer


def test_two_are_answered_at_once_each_on_its_own_core(threads):
    meeting, found = threading.Barrier(2, timeout=30), []

    def answer(window):
        meeting.wait()
        with compiled_threads() as own:
            found.append(own)
            meeting.wait()
        return Answers([])

    assert len(list(answered(numbered(4, []), answer, 2))) == 4
    # With threads to spare, the first worker to decode gets them all, and the other has one core.
    assert set(found) == ({1} if threads == WORKERS else {1, min(threads, os.cpu_count())})
    with compiled_threads() as own:
        assert own == min(threads, os.cpu_count())


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_come_behind_what_precedes_them(workers):
    def answer(window):
        if window == [2]:
            raise ValueError("answering")
        return Answers([])

    for source, kind, before in (
        (numbered(2, [], DataError("reading")), DataError, 2),
        (numbered(9, [], DataError("reading")), ValueError, 2),
    ):
        found = []
        with pytest.raises(kind):
            found.extend(answered(source, answer, workers))
        assert len(found) == before


@pytest.fixture
def workers(monkeypatch):
    """The number of worker threads requested for each source."""
    asked = []
    monkeypatch.setattr(base, "answered", lambda windows, answer, own: asked.append(own) or answered(windows, answer))
    return asked


@pytest.mark.parametrize(("form", "sentence"), [("conllu", "1\tA" + "\t_" * 8 + "\n\n"), ("horizontal", "A\n")])
def test_a_sentence_from_a_pipe_is_written_before_the_next_one_arrives(form, sentence, small_model, tmp_path):
    parser = mh4.load(small_model, device="cpu")
    given, parsed = tmp_path / "given", tmp_path / "parsed"
    for pipe in (given, parsed):
        os.mkfifo(pipe)
    parsing = threading.Thread(target=lambda: parser.parse_file(given, parsed, format=form), daemon=True)
    parsing.start()
    with open(parsed, "rb", buffering=0) as answers, open(given, "w") as questions:
        for _ in range(2):
            questions.write(sentence)
            questions.flush()
            answer = b""
            while not answer.endswith(b"\n\n"):
                assert select.select([answers], [], [], 30)[0]
                answer += answers.read(1 << 16)
            assert b"1\tA\t" in answer
    parsing.join(30)
    assert not parsing.is_alive()


def test_only_files_are_parsed_ahead(small_model, small_treebanks, tmp_path, workers, threads, monkeypatch):
    parser = mh4.load(small_model, device="cpu")
    path, target = small_treebanks[1], tmp_path / "out.conllu"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    parser.parse_file(path, target)
    parser.parse_file(pipe, target)
    writer.join()
    parser.parse_file(list(read_conllu(path)), target)
    list(parser.parse(path))
    assert workers == [WORKERS, 1, 1, 1]
    with open(path) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        parser.parse_file("-", target)
    mh4.load(small_model, device="cpu", threads=1).parse_file(path, target)
    torch.set_num_threads(1)
    parser.parse_file(path, target)
    assert workers[4:] == [1, 1, 1]


def test_warnings_are_logged_in_order(small_model, small_treebanks, tmp_path, threads, monkeypatch, caplog):
    parser, waits = mh4.load(small_model, device="cpu"), iter([0.3, 0.0, 0.2])
    answer = type(parser)._answer_all

    def slowly(self, sentences, request):
        time.sleep(next(waits, 0))
        return replace(answer(self, sentences, request), warnings=[sentences[0].name])

    monkeypatch.setattr(type(parser), "_answer_all", slowly)
    parser.parse_file(small_treebanks[1], tmp_path / "out.conllu", batch_words=1)
    assert caplog.messages == [sentence.name for sentence in read_conllu(small_treebanks[1])]


def test_files_are_parsed_ahead_to_the_same_trees(small_model, small_treebanks, tmp_path, threads):
    parser, path = mh4.load(small_model, device="cpu"), small_treebanks[1]
    count = parser.parse_file(path, tmp_path / "ahead.conllu", batch_words=15, confidence=True)
    assert count.sentences > 4 * WORKERS
    torch.set_num_threads(1)
    assert parser.parse_file(path, tmp_path / "alone.conllu", batch_words=15, confidence=True) == count
    ahead, alone = (list(read_conllu(tmp_path / name)) for name in ("ahead.conllu", "alone.conllu"))
    assert [(own.forms, own.heads.tolist()) for own in ahead] == [(own.forms, own.heads.tolist()) for own in alone]
