"""Parsing many CoNLL-U files on a Dask cluster, on one machine or on several.

Files are cut into shards of whole sentences. Each shard is a task: a worker parses it into a part file, and the parts
are joined in the order of the input. When a worker dies, Dask gives its shards to others. The model, the input and the
output folder must be on a file system that all machines see under the same paths.

Needs the extra ``mh4[cluster]``.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Unpack

import torch

from mh4.data.confidence_columns import Output
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output
from mh4.data.folders import FilePair, pair_files
from mh4.data.segmenter import Segmenter
from mh4.data.shards import WINDOW_WORDS, Shard, cut_shards, read_shard
from mh4.machine import available_threads, require, undisturbed
from mh4.parsers.base import Count, Parser
from mh4.parsers.folder import ModelFolder
from mh4.parsers.registry import load
from mh4.parsers.request import HEADS, ParseOptions, Request
from mh4.parsers.runtime import Runtime
from mh4.parsers.sources import check_format, read_file, require_segmenter

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster

LOCAL = "local"
AHEAD = 4  # shards submitted per worker thread: enough to keep it busy while the oldest shard is awaited
CONNECT_SECONDS = 30
REMOVALS = 20  # attempts to remove the part files, every 0.1 seconds

log = logging.getLogger("mh4")
_loading = threading.Lock()  # Dask may give a process several threads, which share the parser


@dataclass(frozen=True)
class ShardResult:
    """Numbers of sentences, words and bytes that `parse_shard` wrote, and the error of each sentence left out."""

    sentences: int
    words: int
    size: int
    skipped: tuple[DataError, ...]


def parse_shard(
    parser: Parser,
    shard: Shard,
    output: str | Path,
    request: Request | None = None,
    *,
    skip: bool = False,
    min_confidence: float | None = None,
) -> ShardResult:
    """Parse a shard into a file of its own, which appears once complete; ``skip`` leaves bad sentences out.

    DataError: As for `read_shard`; or the output cannot be written.
    """
    skipped: list[DataError] = []
    errors = Errors(skipped.append if skip else "raise")
    options = (request or Request()).options
    sentences, words = parser.parse_file(
        read_shard(shard, errors), output, errors=errors, min_confidence=min_confidence, **options
    )
    if sentences + len(skipped) != shard.sentences:
        raise AssertionError(f"{shard}: {sentences} sentences parsed, {len(skipped)} skipped")
    return ShardResult(sentences, words, Path(output).stat().st_size, tuple(skipped))


@dataclass(frozen=True)
class _Job:
    """The arguments that all tasks of a run share."""

    run: str
    model: str
    runtime: Runtime
    request: Request
    min_confidence: float | None
    skip: bool


@lru_cache(maxsize=1)
def _load(job: _Job) -> Parser:
    """The parser of this worker process. ``job.run`` keeps a long-lived worker from using an outdated model."""
    torch.set_num_threads(job.runtime.threads or 1)
    return load(job.model, **asdict(job.runtime))


def _work(job: _Job, shard: Shard, part: str) -> ShardResult | DataError:
    """Run a task in a worker process; a DataError is returned, since raising it there would print a traceback."""
    with _loading:
        parser = _load(job)
    known = job.request.columns & (parser.annotates | {HEADS})  # `_check` has warned about the others
    request = replace(job.request, predict=known)
    try:
        return parse_shard(parser, shard, part, request, skip=job.skip, min_confidence=job.min_confidence)
    except DataError as error:
        return error


def silence_dask() -> None:
    """Silence Dask's loggers: errors report what went wrong, and its warnings do not help users."""
    require("distributed", "cluster")
    unheard = logging.CRITICAL + 1
    loggers = logging.root.manager.loggerDict.items()
    for name, logger in [*loggers, ("asyncio", logging.getLogger("asyncio"))]:
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logger.setLevel(unheard)
            for handler in logger.handlers:
                handler.setLevel(unheard)


@contextmanager
def _local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start worker processes; at the end of the block they are killed, whatever they are doing."""
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory(prefix="mh4-dask-", ignore_cleanup_errors=True) as scratch:
        with undisturbed():
            # No limit on memory: one long sentence may need more than an equal share of it.
            started = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                memory_limit=None,
                dashboard_address="127.0.0.1:0",
                local_directory=scratch,
                silence_logs=logging.CRITICAL,
            )
        with started:
            try:
                yield started
            finally:
                for nanny in started.workers.values():
                    nanny.auto_restart = False
                    if nanny.pid is not None:
                        os.kill(nanny.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)


@contextmanager
def connect(address: str, threads: int | None = None) -> Iterator[Client]:
    """Connect to a Dask cluster and yield the client.

    Parameters
    ----------
    address : str
        ``local`` starts worker processes on this machine, as many as fit its cores, and stops them at the end;
        otherwise, the address of a running scheduler, such as ``tcp://host:8786``.
    threads : int, optional
        Threads of a local worker process, 1 by default.

    Raises
    ------
    ValueError
        Dask is not installed, or there is no scheduler or no worker at the address.
    """
    require("distributed", "cluster")
    from distributed import Client

    if address == LOCAL:
        with _local_cluster(max(1, available_threads() // (threads or 1))) as started, Client(started) as client:
            yield client
        return
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:  # not reachable; not an address
        raise ValueError(f"no Dask scheduler answers at {address}: {error} (start one with `dask scheduler`)") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise ValueError(f"the Dask scheduler at {address} has no workers (start `dask worker`)") from None
        yield client


def check_files(inputs: Sequence[str | Path], output_folder: str | Path, form: str = "conllu") -> list[FilePair]:
    """Like `pair_files`, but an input that is a pipe is a DataError, too."""
    pairs = pair_files(inputs, output_folder, form)
    for source, _ in pairs:
        if source.is_fifo():
            raise DataError(f"{source}: is a pipe and cannot be cut into shards (name a regular file)")
    return pairs


def parse_files(
    model: str | Path,
    inputs: Sequence[str | Path],
    output_folder: str | Path,
    address: str = LOCAL,
    *,
    device: str = "auto",
    search: str = "exact",
    threads: int | None = None,
    errors: ErrorPolicy = "raise",
    form: str = "conllu",
    min_confidence: float | None = None,
    on_progress: Callable[[Count], None] = lambda count: None,
    shard_words: int = WINDOW_WORDS,
    **options: Unpack[ParseOptions],
) -> Count:
    """Parse files, or folders of files, on a cluster; outputs keep their names in another folder (see `pair_files`).

    Each output appears once complete, its sentences in the order of the input. The trees equal those of
    `Parser.parse`.

    Parameters
    ----------
    model, inputs, output_folder : paths
        A model folder of any kind, loaded once by every worker process; CoNLL-U or text files, and folders of them;
        the output folder, created if missing.
    address : str
        See `connect`. A script that starts workers (``local``) needs the ``if __name__ == "__main__"`` of
        `multiprocessing`.
    device, search, threads
        See `mh4.load`; threads are per shard, by default 1: Dask parses as many shards at once as its workers have
        threads.
    errors, min_confidence, **options
        See `Parser.parse_file`; errors about bad sentences come in the order of the input.
    form : {"conllu", "text", "horizontal", "vertical"}
        See `Parser.parse`; text is cut into words in this process, while workers parse.
    on_progress
        Called after every shard with the number of sentences and words parsed so far.
    shard_words : int
        Minimum number of words in a shard.

    Raises
    ------
    DataError
        See `check_files`; something in the model folder is missing or damaged; with ``errors="raise"``, at the first
        bad sentence, after the files before it have been written.
    ValueError
        See `connect`; or a shard kills every worker that tries it.
    OSError
        The connection to the cluster is lost, or the disk is full.
    """
    require("distributed", "cluster")
    request, runtime = Request(**options), Runtime(device, threads or 1, search)
    report = Errors.of(errors)
    check_format(form, request)
    pairs = check_files(inputs, output_folder, form)
    found = ModelFolder.find(model)
    _check(found, runtime, request, min_confidence)
    segmenter = None
    if request.boundaries == "joint":
        segmenter = load(found.path, **asdict(runtime)).segmenter_for(request)
        request = replace(request, boundaries="segmenter")  # workers get sentences
    elif form == "text":
        segmenter = require_segmenter(found.segmenter)
    Path(output_folder).mkdir(parents=True, exist_ok=True)
    parts = Path(tempfile.mkdtemp(prefix=".mh4-parts-", dir=Path(output_folder).absolute()))
    where = str(found.path.absolute())
    job = _Job(secrets.token_hex(8), where, runtime, request, min_confidence, report.skips)
    try:
        tasks = _tasks([pair.source for pair in pairs], _cutter(form, segmenter, report), shard_words, parts)
        with connect(address, threads) as client, closing(_in_order(client, job, tasks)) as finished:
            return _assemble([pair.target for pair in pairs], finished, report, on_progress)
    finally:
        _remove(parts)


def _cutter(form: str, segmenter: Segmenter | None, report: Errors) -> Callable[[str | Path, Path], str | Path]:
    """A function that converts an input to a CoNLL-U file at the given path; CoNLL-U inputs are used as they are."""

    def cut(source: str | Path, part: Path) -> str | Path:
        with atomic_output(part) as stream:
            for sentence in read_file(source, form, report, segmenter):
                stream.write(sentence.to_bytes() if sentence else b"")
        return part

    return cut if form != "conllu" else lambda source, part: source


def _assemble(
    targets: Iterable[Path],
    finished: Iterator[tuple[Path, ShardResult] | None],
    report: Errors,
    on_progress: Callable[[Count], None],
) -> Count:
    """Write each target from its parts, which ``finished`` yields in order, with None after each target's last."""
    count = Count(0, 0)
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(target) as stream:
            for part, result in iter(finished.__next__, None):
                _append(part, result.size, stream)
                for error in result.skipped:
                    report(error)
                count = Count(count.sentences + result.sentences, count.words + result.words)
                on_progress(count)
    return count


def _check(model: ModelFolder, runtime: Runtime, request: Request, min_confidence: float | None) -> None:
    """Raise an error before workers start if the model is missing or cannot answer the request; log its warnings."""
    _ = model.config
    Output(min_confidence=min_confidence)
    if request == Request() and min_confidence is None:
        return
    if min_confidence is not None:
        request = replace(request, confidence=request.confidence or True)
    for warning in load(model.path, device=runtime.device, search=runtime.search).check(request):
        log.warning("%s", warning)


def _remove(parts: Path) -> None:
    """Remove the folder of part files; after a failure, workers may still be writing there for a moment."""
    for _ in range(REMOVALS):
        shutil.rmtree(parts, ignore_errors=True)
        if not parts.exists():
            return
        time.sleep(0.1)
    log.warning("%s: cannot be removed; remove it when the cluster is idle", parts)


def _tasks(
    sources: Iterable[str | Path], cut: Callable[[str | Path, Path], str | Path], shard_words: int, parts: Path
) -> Iterator[tuple[Shard, Path] | None]:
    """Shards and their part files; None after the last of each file."""
    for number, source in enumerate(sources):
        for count, shard in enumerate(cut_shards(cut(source, parts / f"{number}.conllu"), shard_words, source)):
            yield shard, parts / f"{number}-{count}.conllu"
        yield None


def _in_order(
    client: Client, job: _Job, tasks: Iterator[tuple[Shard, Path] | None]
) -> Generator[tuple[Path, ShardResult] | None, None, None]:
    """Run the tasks, a bounded number at a time, and yield part files and results in the order of the tasks."""
    pending: deque[tuple[Shard, Path, Future] | DataError | None] = deque()
    try:
        exhausted = False
        while pending or not exhausted:
            limit = AHEAD * max(1, sum(client.nthreads().values()))  # workers may come and go
            while not exhausted and len(pending) < limit:
                try:
                    task = next(tasks)
                except StopIteration:
                    exhausted = True
                    break
                except DataError as error:  # raised only after all earlier shards
                    pending.append(error)
                    exhausted = True
                    break
                if task is None:
                    pending.append(None)
                else:
                    key = f"mh4-{job.run}-{task[1].stem}"
                    pending.append((*task, client.submit(_work, job, task[0], str(task[1]), key=key, pure=False)))
            if pending:
                entry = pending.popleft()
                if isinstance(entry, DataError):
                    raise entry
                yield None if entry is None else (entry[1], _result(entry[0], entry[2]))
    finally:
        client.cancel([entry[2] for entry in pending if isinstance(entry, tuple)])


def _result(shard: Shard, future: Future) -> ShardResult:
    from distributed import KilledWorker

    try:
        result = future.result()
    except KilledWorker as error:
        first, last = shard.sentences_before + 1, shard.sentences_before + shard.sentences
        raise ValueError(
            f"{shard.source}: sentences {first} to {last}: {error.allowed_failures + 1} workers died "
            "while parsing them (out of memory? see their logs)"
        ) from None
    except CancelledError as error:
        raise OSError(f"the cluster gave up: {error}") from error
    if isinstance(result, DataError):
        raise result
    return result


def _append(part: Path, size: int, stream: BinaryIO) -> None:
    """Move a part file to the end of the output."""
    with open(part, "rb") as written:
        before = stream.tell()
        shutil.copyfileobj(written, stream)
    if stream.tell() - before != size:
        raise OSError(f"{part}: {stream.tell() - before} bytes were received instead of {size}")
    part.unlink()
