"""Parsing many requests together."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mh4.data.annotation import Annotation
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.models.devices import compiled_threads
from mh4.parsers.answers import Answers
from mh4.parsers.request import Request
from mh4.service import batcher as batcher_module
from mh4.service.batcher import Batcher, OverloadedError


class Recorder:
    """A parser that records its rounds; the score of a sentence is the number in its first word."""

    def __init__(self, problem=None):
        self.rounds, self.problem = [], problem

    def attempt(self, sentences, request):
        self.rounds.append([one.forms[0] for one in sentences])
        if self.problem is not None:
            raise self.problem
        answers = Answers([Annotation(score=float(one.forms[0])) for one in sentences])
        for i, one in enumerate(sentences):
            if "bad" in one.forms:
                answers.errors[i] = DataError(one.forms[0])
            if "long" in one.forms:
                answers.warnings.append(f"{one.source}: {one.forms[0]}")
        answers.warnings.append("of all")
        return answers


def sentences(source, *numbers, word="x", length=2):
    return [Sentence.from_words([str(n), *[word] * (length - 1)], source=f"request {source}") for n in numbers]


def ask(*jobs, most_words=10_000):
    """Submit (parser, sentences, request) jobs at once; return their answers or exceptions."""

    async def run():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, most_words)
            found = await asyncio.gather(*(batcher.answer(*job) for job in jobs), return_exceptions=True)
            assert batcher.waiting_words == 0
            return found

    return asyncio.run(run())


def test_each_request_gets_what_belongs_to_it():
    parser, request = Recorder(), Request()
    jobs = [
        (parser, sentences(i, *range(10 * i, 10 * i + i + 1), word="bad" if i == 2 else "long"), request)
        for i in range(4)
    ]
    found = ask(*jobs)
    assert len(parser.rounds) == 1  # all together
    for i, answers in enumerate(found):
        assert [one.score for one in answers.annotations] == [10 * i + j for j in range(i + 1)]
        assert {k: str(error) for k, error in answers.errors.items()} == (
            {k: str(20 + k) for k in range(3)} if i == 2 else {}
        )
        own = [] if i == 2 else [f"request {i}: {10 * i + j}" for j in range(i + 1)]
        assert answers.warnings == [*own, "of all"]


def test_a_long_request_leaves_room_for_others(monkeypatch):
    monkeypatch.setattr(batcher_module, "SHARE_WORDS", 4)
    monkeypatch.setattr(batcher_module, "ROUND_WORDS", 6)
    parser, request = Recorder(), Request()
    long, short, other = ask(
        (parser, sentences(1, *range(7)), request),
        (parser, sentences(2, 100), request),
        (parser, sentences(3, 200, 201), request),
    )
    assert parser.rounds == [["0", "1", "100"], ["200", "201"], ["2", "3"], ["4", "5"], ["6"]]
    assert [one.score for one in long.annotations] == list(range(7))
    assert [one.score for one in short.annotations] == [100]
    assert [one.score for one in other.annotations] == [200, 201]


def test_errors_and_warnings_of_several_rounds_are_those_of_the_request(monkeypatch):
    monkeypatch.setattr(batcher_module, "SHARE_WORDS", 4)
    parser = Recorder()
    own = [*sentences(1, 0, 1, 2), *sentences(1, 3, word="bad")]
    (found,) = ask((parser, own, Request()))
    assert parser.rounds == [["0", "1"], ["2", "3"]]
    assert {i: str(error) for i, error in found.errors.items()} == {3: "3"}
    assert found.warnings == ["of all"]


def test_a_sentence_longer_than_a_share_is_parsed(monkeypatch):
    monkeypatch.setattr(batcher_module, "SHARE_WORDS", 4)
    parser = Recorder()
    (found,) = ask((parser, sentences(1, 5, 6, length=9), Request()))
    assert parser.rounds == [["5"], ["6"]]
    assert len(found.annotations) == 2


def test_different_requests_and_parsers_are_not_mixed():
    one, other = Recorder(), Recorder()
    ask(
        (one, sentences(1, 1), Request()),
        (other, sentences(2, 2), Request()),
        (one, sentences(3, 3), Request(confidence=True)),
        (one, sentences(4, 4), Request()),
    )
    assert one.rounds == [["1", "4"], ["3"]]
    assert other.rounds == [["2"]]


def test_an_error_ends_its_round_and_nothing_else():
    broken, sound = Recorder(MemoryError("full")), Recorder()
    first, second, third = ask(
        (broken, sentences(1, 1), Request()), (sound, sentences(2, 2), Request()), (broken, sentences(3, 3), Request())
    )
    assert isinstance(first, MemoryError)
    assert isinstance(third, MemoryError)
    assert second.annotations[0].score == 2


def test_what_is_too_much_is_refused_unless_nothing_waits():
    parser = Recorder()
    found = ask(*((parser, sentences(i, i, length=6), Request()) for i in range(3)), most_words=12)
    assert [isinstance(one, OverloadedError) for one in found] == [False, False, True]
    (alone,) = ask((parser, sentences(1, 1, length=600), Request()), most_words=12)
    assert alone.annotations[0].score == 1


@pytest.fixture
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
def test_two_rounds_are_parsed_at_a_time_and_no_job_in_both(monkeypatch):
    """Five jobs that cannot share rounds: each round waits until another runs; the first job needs two rounds."""
    monkeypatch.setattr(batcher_module, "SHARE_WORDS", 4)
    meeting = threading.Barrier(2, timeout=30)

    class Meeting(Recorder):
        def attempt(self, sentences, request):
            meeting.wait()
            with compiled_threads() as own:
                cores.append(own)
                meeting.wait()
            return super().attempt(sentences, request)

    parser, cores = Meeting(), []

    async def run():
        with ThreadPoolExecutor(3) as executor:
            batcher = Batcher(executor, 1000, 2)
            jobs = [sentences(i, *range(10 * i, 10 * i + (4 if i == 0 else 1))) for i in range(5)]
            asked = [batcher.answer(parser, own, Request(k_best=1 + i)) for i, own in enumerate(jobs)]
            return await asyncio.gather(*asked)

    found = asyncio.run(run())
    assert [[one.score for one in answers.annotations] for answers in found] == [[0, 1, 2, 3], [10], [20], [30], [40]]
    assert sorted(parser.rounds) == [["0", "1"], ["10"], ["2", "3"], ["20"], ["30"], ["40"]]
    assert set(cores) == {1}  # one core per round


@pytest.mark.usefixtures("_two_threads")
def test_a_round_alone_has_all_cores():
    class Measuring(Recorder):
        def attempt(self, sentences, request):
            with compiled_threads() as own:
                cores.append(own)
            return super().attempt(sentences, request)

    cores = []

    async def run():
        with ThreadPoolExecutor(2) as executor:
            await Batcher(executor, 1000, 2).answer(Measuring(), sentences(1, 1), Request())

    asyncio.run(run())
    assert cores == [min(2, os.cpu_count())]


class Waiting(Recorder):
    """A parser that waits for `go_on`."""

    def __init__(self):
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def attempt(self, sentences, request):
        self.begun.set()
        assert self.go_on.wait(30)
        return super().attempt(sentences, request)


def while_one_is_parsed(job, then, most_words=1000, rounds=1):
    """Run ``then`` on the batcher and the task of a job while a part of the job is being parsed."""

    async def run():
        with ThreadPoolExecutor(rounds) as executor:
            batcher = Batcher(executor, most_words, rounds)
            asked = asyncio.create_task(batcher.answer(*job))
            await asyncio.get_running_loop().run_in_executor(None, job[0].begun.wait, 30)
            await then(batcher, asked)

    asyncio.run(run())


@pytest.mark.usefixtures("_two_threads")
def test_rounds_share_what_waits():
    meeting = threading.Barrier(2, timeout=30)

    class Meeting(Recorder):
        def attempt(self, sentences, request):
            meeting.wait()
            return super().attempt(sentences, request)

    parser = Meeting()

    async def run():
        with ThreadPoolExecutor(2) as executor:
            batcher = Batcher(executor, 1000, 2)
            await asyncio.gather(*(batcher.answer(parser, sentences(i, i), Request()) for i in range(6)))

    asyncio.run(run())
    assert sorted(parser.rounds) == [["0", "1", "2"], ["3", "4", "5"]]


@pytest.mark.parametrize("quiet", [0.1, 0.0])
def test_a_round_beside_another_waits_for_those_that_were_just_answered(monkeypatch, quiet):
    monkeypatch.setattr(batcher_module, "QUIET_SECONDS", quiet)
    slow, parser = Waiting(), Recorder()

    async def ask_one_after_the_other(batcher, numbers):
        asked = []
        for n in numbers:
            asked.append(asyncio.create_task(batcher.answer(parser, sentences(n, n), Request())))
            await asyncio.sleep(0.01)
        await asyncio.gather(*asked)

    async def run():
        with ThreadPoolExecutor(2) as executor:
            batcher = Batcher(executor, 1000, 2)
            other = asyncio.create_task(batcher.answer(slow, sentences(0, 0, length=100), Request()))
            await asyncio.get_running_loop().run_in_executor(None, slow.begun.wait, 30)
            await asyncio.gather(*(batcher.answer(parser, sentences(n, n), Request()) for n in (1, 2)))
            await ask_one_after_the_other(batcher, (3, 4))
            await ask_one_after_the_other(batcher, (5,))  # no other request follows
            slow.go_on.set()
            await other

    asyncio.run(run())
    assert parser.rounds == [["1", "2"], *([["3", "4"]] if quiet else [["3"], ["4"]]), ["5"]]


async def ask_in_turn(batcher, *groups):
    """Send each group of (parser, sentences) when the one before is answered; nobody may wait `QUIET_SECONDS`."""
    async with asyncio.timeout(10):
        for group in groups:
            await asyncio.gather(*(batcher.answer(*job, Request()) for job in group))


def test_a_round_alone_waits_for_nobody(monkeypatch):
    monkeypatch.setattr(batcher_module, "QUIET_SECONDS", 60)
    parser = Recorder()

    async def run():
        with ThreadPoolExecutor(1) as executor:
            jobs = [(parser, sentences(n, n)) for n in range(3)]
            await ask_in_turn(Batcher(executor, 1000), jobs[:2], jobs[2:])

    asyncio.run(run())
    assert parser.rounds == [["0", "1"], ["2"]]


def test_a_round_waits_for_as_many_requests_as_were_answered_not_sentences(monkeypatch):
    monkeypatch.setattr(batcher_module, "QUIET_SECONDS", 60)
    slow, parser = Waiting(), Recorder()

    async def then(batcher, asked):
        try:
            await ask_in_turn(batcher, [(parser, sentences(1, 1, 2))], [(parser, sentences(2, 3))])
        finally:
            slow.go_on.set()
        await asked

    while_one_is_parsed((slow, sentences(0, 0, length=100), Request()), then, rounds=2)
    assert parser.rounds == [["1", "2"], ["3"]]


def test_what_is_being_parsed_waits_too():
    parser = Waiting()

    async def then(batcher, asked):
        with pytest.raises(OverloadedError):
            await batcher.answer(parser, sentences(2, 2, length=600), Request())
        parser.go_on.set()
        assert len((await asked).annotations) == 1

    while_one_is_parsed((parser, sentences(1, 1, length=600), Request()), then, 12)


def test_who_leaves_while_a_part_is_parsed_leaves_the_rest(monkeypatch):
    monkeypatch.setattr(batcher_module, "SHARE_WORDS", 4)
    parser = Waiting()

    async def then(batcher, asked):
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        other = asyncio.create_task(batcher.answer(parser, sentences(2, 9), Request()))
        await asyncio.sleep(0)
        parser.go_on.set()
        await other
        assert parser.rounds == [["0", "1"], ["9"]]

    while_one_is_parsed((parser, sentences(1, 0, 1, 2, 3), Request()), then)


def test_who_leaves_is_not_parsed():
    async def run():
        parser = Recorder()
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, 1000)
            waits = [
                asyncio.create_task(batcher.answer(parser, sentences(i, i), Request(k_best=1 + i))) for i in range(3)
            ]
            await asyncio.sleep(0)
            waits[1].cancel()
            first, gone, third = await asyncio.gather(*waits, return_exceptions=True)
        assert isinstance(gone, asyncio.CancelledError)
        assert [first.annotations[0].score, third.annotations[0].score] == [0, 2]
        assert parser.rounds == [["0"], ["2"]]
        assert batcher.waiting_words == 0

    asyncio.run(run())


def test_who_is_about_to_leave_is_not_parsed():
    async def run():
        parser = Recorder()
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, 1000)
            waits = [asyncio.create_task(batcher.answer(parser, sentences(i, i), Request())) for i in range(4)]
            await asyncio.sleep(0)
            for i in (0, 2):
                waits[i].cancel()
            await batcher._parse_some()  # before they run again
            await asyncio.gather(*waits, return_exceptions=True)
        assert parser.rounds == [["1", "3"]]
        assert batcher.waiting_words == 0

    asyncio.run(run())


def test_it_goes_on_after_it_was_idle():
    async def run():
        parser = Recorder()
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, 1000)
            for i in range(3):
                found = await batcher.answer(parser, sentences(i, i), Request())
                assert found.annotations[0].score == i
        assert parser.rounds == [["0"], ["1"], ["2"]]

    asyncio.run(run())


@pytest.mark.parametrize("count", [1, 5])
def test_a_failing_parser_does_not_stop_the_batcher(count):
    async def run():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(executor, 1000)
            for _ in range(count):
                with pytest.raises(ValueError, match="no"):
                    await batcher.answer(Recorder(ValueError("no")), sentences(1, 1), Request())
            assert (await batcher.answer(Recorder(), sentences(1, 1), Request())).annotations[0].score == 1

    asyncio.run(run())
