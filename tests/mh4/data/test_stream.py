"""Streams can be shared by threads and closed early, and their errors say what to use instead."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import mh4
from mh4.data.stream import Stream


def test_each_item_goes_to_one_thread():
    def slow():
        for number in range(200):
            time.sleep(0)  # another thread could interrupt here
            yield number

    stream = Stream(slow())
    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda _: list(stream), range(8)))
    assert sorted(number for part in parts for number in part) == list(range(200))
    for part in parts:
        assert part == sorted(part)


def test_an_error_ends_the_stream_for_all():
    def failing():
        yield 1
        raise ValueError("bad")

    stream = Stream(failing())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="bad"):
        next(stream)
    assert list(stream) == []


@pytest.mark.parametrize("end", [Stream.close, lambda stream: stream.__exit__(None, None, None)])
def test_closing_ends_the_work_behind_it(end):
    closed = []

    def working():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    stream = Stream(working())
    with stream as same:
        assert same is stream
        assert next(stream) == 1
        end(stream)
        assert closed == [True]
    assert list(stream) == []


def test_another_thread_may_close_it_between_two_items():
    begun, goes_on = threading.Event(), threading.Event()

    def waiting():
        begun.set()
        goes_on.wait(30)
        yield 1
        yield 2

    stream = Stream(waiting())
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(next, stream)
        assert begun.wait(30)
        closing = pool.submit(stream.close)
        goes_on.set()
        assert first.result(30) == 1
        closing.result(30)
    assert list(stream) == []


def test_what_it_cannot_do_names_what_can(small_treebanks):
    stream = mh4.read_conllu(small_treebanks[1])
    assert stream  # bool does not call len
    for asked in (len, lambda one: one[0], lambda one: one[:2], reversed):
        with pytest.raises(TypeError, match=r"collect it with list\(…\) or mh4\.Document\(…\) first"):
            asked(stream)
    assert len(mh4.Document(stream)) == 12
