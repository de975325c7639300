"""Parse the sentences of many requests together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field

from mh4.data.sentence import Sentence
from mh4.models.devices import on_one_core
from mh4.parsers.answers import Answers
from mh4.parsers.base import Parser
from mh4.parsers.request import Request

ROUND_WORDS = 8000  # most words parsed together
REQUEST = "request "  # followed by its number: the source of its sentences
SHARE_WORDS = 1000  # most words of one request in a round, so that a long request does not hold up others
QUIET_SECONDS = 0.004  # a round stops waiting when no request has arrived for this long


class OverloadedError(Exception):
    """The queue is full: another request would wait too long."""


@dataclass(eq=False)
class _Job:
    """The sentences of a request; the first ``len(answers.annotations)`` of them are parsed."""

    parser: Parser
    request: Request
    sentences: Sequence[Sentence]
    done: asyncio.Future[Answers]
    answers: Answers = field(default_factory=lambda: Answers([]))

    def goes_with(self, other: _Job) -> bool:
        return self.parser is other.parser and self.request == other.request

    def share(self) -> Sequence[Sentence]:
        """The next sentences to parse: at most `SHARE_WORDS` words, but at least one sentence."""
        start = stop = len(self.answers.annotations)
        words = 0
        while stop < len(self.sentences) and (start == stop or words + len(self.sentences[stop]) <= SHARE_WORDS):
            words += len(self.sentences[stop])
            stop += 1
        return self.sentences[start:stop]

    def add(self, found: Answers, start: int, stop: int) -> None:
        """Add the answers for the next sentences, which are ``start`` to ``stop`` (exclusive) of the round's.

        Warnings that name the source of another request are skipped.
        """
        before = len(self.answers.annotations) - start
        self.answers.annotations += found.annotations[start:stop]
        self.answers.errors.update({before + i: error for i, error in found.errors.items() if start <= i < stop})
        for text in found.warnings:
            named = text.startswith(REQUEST)
            if text not in self.answers.warnings and (not named or text.startswith(f"{self.sentences[0].source}:")):
                self.answers.warnings.append(text)


class Batcher:
    """Parses waiting requests in rounds, each for requests with the same parser and options.

    A request starts a round unless ``rounds`` are running already. Call all methods in the thread of the event loop.

    Parameters
    ----------
    executor
        Runs the parsing.
    most_words
        Limit of waiting words; beyond it, requests are refused unless nothing waits.
    rounds
        Maximum number of rounds at a time.
    """

    def __init__(self, executor: Executor, most_words: int, rounds: int = 1) -> None:
        self._executor = executor
        self._most_words = most_words
        self._most_rounds = rounds
        self._jobs: deque[_Job] = deque()  # except those in a round
        self._rounds: set[asyncio.Task[None] | None] = set()
        self._answered = 0  # requests of the round that ended last
        self.waiting_words = 0

    async def answer(self, parser: Parser, sentences: Sequence[Sentence], request: Request) -> Answers:
        """Return the answers of `Parser.attempt`; if the caller is cancelled, the request leaves the queue.

        The source of the sentences, ``request NUMBER``, must identify the request.

        Raises
        ------
        OverloadedError
            Too many words are waiting.
        """
        words = sum(map(len, sentences))
        if self.waiting_words and self.waiting_words + words > self._most_words:
            raise OverloadedError
        job = _Job(parser, request, sentences, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self.waiting_words += words
        if len(self._rounds) < self._most_rounds:
            self._rounds.add(asyncio.create_task(self._parse_all()))
        try:
            return await job.done
        finally:
            self.waiting_words -= words
            if job in self._jobs:
                self._jobs.remove(job)

    async def _parse_all(self) -> None:
        try:
            while self._jobs:
                await self._gather()
                await self._parse_some()
        finally:  # not in a callback of the task: a client may send its next request before that runs
            self._rounds.discard(asyncio.current_task())

    async def _gather(self) -> None:
        """While another round runs, wait briefly until as many requests are queued as the last round answered.

        Their clients are likely to send more, and small rounds cost more per word.
        """
        seen = 0
        while len(self._rounds) > 1 and seen < len(self._jobs) < self._answered:
            seen = len(self._jobs)
            await asyncio.sleep(QUIET_SECONDS)

    async def _parse_some(self) -> None:
        """Run one round on a share of every job compatible with the first; unfinished jobs go to the queue's end."""
        self._jobs = deque(job for job in self._jobs if not job.done.done())  # the others have just been cancelled
        if not self._jobs:  # taken by another round, or cancelled
            return
        first = self._jobs[0]
        most_words = min(ROUND_WORDS, self.waiting_words // self._most_rounds)
        alike = [job for job in self._jobs if job.goes_with(first)]
        together: list[Sentence] = []
        shares: list[tuple[_Job, int, int]] = []
        words = 0
        for job in alike:
            share = job.share()
            words += sum(map(len, share))
            if shares and words > most_words:
                break
            shares.append((job, len(together), len(together) + len(share)))
            together += share
            self._jobs.remove(job)
        own_core = on_one_core() if len(self._rounds) > 1 else nullcontext()

        def attempt() -> Answers:
            with own_core:
                return first.parser.attempt(together, first.request)

        try:
            found = await asyncio.get_running_loop().run_in_executor(self._executor, attempt)
        except Exception as error:
            for job, _, _ in shares:
                self._end(job, error=error)
            return
        self._answered = len(shares)
        for job, start, stop in shares:
            job.add(found, start, stop)
            if len(job.answers.annotations) == len(job.sentences):
                self._end(job, job.answers)
            elif not job.done.done():
                self._jobs.append(job)

    def _end(self, job: _Job, answers: Answers | None = None, error: Exception | None = None) -> None:
        if job.done.done():  # cancelled
            return
        if error is not None or answers is None:
            job.done.set_exception(error or RuntimeError("no answer"))
        else:
            job.done.set_result(answers)
