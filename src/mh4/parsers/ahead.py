"""Answers windows of sentences in threads, while the next windows are read and earlier ones are written.

Much of the work is compiled code that releases Python's lock, so that two threads with a core each are faster than one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext

import torch

from mh4.data.sentence import Sentence
from mh4.models.devices import on_one_core

from .answers import Answers

WORKERS = 2  # more would wait for Python's lock

Answered = Generator[tuple[list[Sentence], Answers], None, None]


def answered(
    windows: Iterable[list[Sentence]], answer: Callable[[Sequence[Sentence]], Answers], workers: int = 1
) -> Answered:
    """Yield each window with its answers, working up to ``workers`` windows ahead.

    An error in reading a window is raised after the windows before it are yielded.
    """
    if workers == 1:
        for window in windows:
            yield window, answer(window)
        return
    own_core = on_one_core if torch.get_num_threads() <= workers else nullcontext

    def answer_there(window: list[Sentence]) -> Answers:
        with own_core():
            return answer(window)

    iterator = iter(windows)
    failure: Exception | None = None
    pending: deque[tuple[list[Sentence], Future[Answers]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="mh4-answer") as pool:
        while True:
            try:
                window = next(iterator)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            pending.append((window, pool.submit(answer_there, window)))
            if len(pending) > workers:
                first, found = pending.popleft()
                yield first, found.result()
        while pending:
            first, found = pending.popleft()
            yield first, found.result()
    if failure is not None:
        raise failure
