"""Parsing on a cluster writes the same files as one process, whatever happens to the workers."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from paths import ROOT

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import DataError, Errors
from mh4.data.sample import read_sample
from mh4.data.sentence import Sentence
from mh4.parsers.chart import ChartParser
from mh4.parsers.registry import load
from mh4.parsers.runtime import Runtime
from mh4.service import cluster
from mh4.service.cluster import _load, check_files, connect, parse_files

SHARD_WORDS = 100
BAD = "1\tA\ta\tDET\tDT\t_\t2\tdet\t_\n\n"


@pytest.fixture(scope="module")
def local_cluster(tmp_path_factory):
    """A cluster with two worker processes."""
    distributed = pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as running:
        yield running


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Three files, of several shards, none and one."""
    folder = tmp_path_factory.mktemp("inputs")
    sentences = read_sample()["train"]
    for name, part in (("long", sentences[:80]), ("empty", []), ("short", sentences[80:83])):
        (folder / f"{name}.conllu").write_text("".join(part), encoding="utf-8")
    return [folder / f"{name}.conllu" for name in ("long", "empty", "short")]


@pytest.fixture
def parser(small_model, monkeypatch):
    """A parser for one process, with windows as long as a shard."""
    monkeypatch.setattr("mh4.parsers.sources.WINDOW_WORDS", SHARD_WORDS)
    return ChartParser.load(small_model, device="cpu")


def parse(model, inputs, folder, address, **options):
    return parse_files(model, inputs, folder, address, device="cpu", shard_words=SHARD_WORDS, **options)


class Here:
    """A client whose only worker is this process."""

    @staticmethod
    def nthreads():
        return {"here": 1}

    @staticmethod
    def submit(task, *arguments, **_):
        result = task(*arguments)
        return SimpleNamespace(result=lambda: result)

    @staticmethod
    def cancel(futures):
        assert futures == []


@pytest.fixture
def here(monkeypatch):
    """Record the arguments of `connect`, which is replaced and yields `Here`, and of `load`."""
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    connections, loadings = [], []

    def loaded(*folders, **options):
        loadings.append((*folders, options))
        return load(*folders, **options)

    @contextmanager
    def connected(*arguments):
        connections.append(arguments)
        yield Here

    monkeypatch.setattr(cluster, "connect", connected)
    monkeypatch.setattr(cluster, "load", loaded)
    threads = torch.get_num_threads()
    yield SimpleNamespace(connections=connections, loadings=loadings)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("search", ["exact", "beam:2", "greedy"])
@pytest.mark.parametrize("threads", [None, 2])
def test_workers_load_the_model_that_was_asked_for(search, threads, here, small_model, inputs, tmp_path):
    parse(small_model, inputs[1:], tmp_path, "somewhere", search=search, threads=threads)
    assert here.connections == [("somewhere", threads)]
    assert here.loadings == [(str(small_model), {"device": "cpu", "search": search, "threads": threads or 1})]
    assert torch.get_num_threads() == (threads or 1)


def test_a_killed_workers_shards_are_done_again(small_model, inputs, parser, local_cluster, tmp_path):
    victim, process = next(iter(local_cluster.get_client().run(os.getpid).items()))
    workers, progress = local_cluster.scheduler.workers, []

    def kill_at_work():
        deadline = time.monotonic() + 100
        while not workers[victim].processing:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process, signal.SIGKILL)

    os.kill(process, signal.SIGSTOP)  # it cannot finish shards that it gets from now on
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill_at_work)
        count = parse(
            small_model, inputs, tmp_path / "out", local_cluster.scheduler_address, on_progress=progress.append
        )
        killed.result()
    for path in inputs:
        parser.parse_file(path, tmp_path / path.name)
        assert (tmp_path / "out" / path.name).read_bytes() == (tmp_path / path.name).read_bytes()
    assert len(progress) > 5
    assert progress[-1] == count
    assert count.sentences == 83
    assert sorted(os.listdir(tmp_path / "out")) == sorted(path.name for path in inputs)


def test_columns_are_those_of_one_process(annotating_model, inputs, local_cluster, tmp_path, caplog):
    bare = tmp_path / "bare.conllu"
    write_conllu((Sentence.from_words(sentence.forms) for sentence in read_conllu(inputs[0])), bare)
    load(annotating_model, device="cpu").parse_file(bare, tmp_path / "expected.conllu", predict="tags,lemmas")
    address = local_cluster.scheduler_address
    parse(annotating_model, [bare], tmp_path / "out", address, predict="tags,lemmas")
    assert (tmp_path / "out" / "bare.conllu").read_bytes() == (tmp_path / "expected.conllu").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": True},
        {"min_confidence": 0.5},
        {"confidence": True, "min_confidence": 0.5},
        {"k_best": 2},
        {"unique": "nsubj,obj", "among": 3},
    ],
)
def test_what_is_said_of_trees_is_what_one_process_says(small_model, inputs, parser, local_cluster, tmp_path, options):
    count = parse(small_model, inputs, tmp_path / "out", local_cluster.scheduler_address, **options)
    assert count.sentences == 83
    for path in inputs:
        parser.parse_file(path, tmp_path / path.name, **options)
        assert (tmp_path / "out" / path.name).read_bytes() == (tmp_path / path.name).read_bytes()
    said = (tmp_path / inputs[0].name).read_text(encoding="utf-8")
    assert ("Confidence=" in said) == ("confidence" in options)


def test_confidence_that_cannot_be_had_is_told_before_any_work(small_model, inputs, tmp_path):
    nobody = "tcp://127.0.0.1:1"
    with pytest.raises(ValueError, match="must be a probability"):
        parse(small_model, inputs, tmp_path / "out", nobody, min_confidence=2)
    for options in ({"confidence": True}, {"min_confidence": 0.5}, {"k_best": 2}):
        with pytest.raises(ValueError, match="exact decoder"):
            parse(small_model, inputs, tmp_path / "out", nobody, search="greedy", **options)
    assert not (tmp_path / "out").exists()


def test_columns_that_are_not_predicted_are_told_before_any_work(small_model, inputs, tmp_path, caplog):
    with pytest.raises(ValueError, match="does not predict LEMMAS"):
        parse(small_model, inputs, tmp_path / "out", "tcp://127.0.0.1:1", predict="lemmas")


def test_what_is_asked_for_reaches_the_workers(small_model, inputs, tmp_path, monkeypatch, caplog):
    jobs = []

    def noted(client, job, tasks):
        jobs.append(job)
        yield from (None for task in tasks if task is None)

    monkeypatch.setattr(cluster, "connect", lambda *_: nullcontext())
    monkeypatch.setattr(cluster, "_in_order", noted)
    parse(small_model, inputs, tmp_path / "out", "nobody", search="beam:3", threads=2, keep_heads=True, errors="skip")
    (job,) = jobs
    assert (job.runtime, job.skip) == (Runtime("cpu", 2, "beam:3"), True)
    assert job.request.keep_heads
    threads = torch.get_num_threads()
    parser = _load(job)
    torch.set_num_threads(threads)
    assert (parser.decoder.width, parser.threads, parser.device.type) == (3, 2, "cpu")
    assert not caplog.messages
    parse(small_model, inputs, tmp_path / "out", "nobody", predict="heads,lemmas")
    assert jobs[0].run != jobs[1].run  # a worker of both loads the model again
    assert "the model does not predict LEMMAS" in caplog.text


def test_a_worker_process_loads_the_model_once(small_model, inputs, local_cluster, tmp_path):
    client = local_cluster.get_client()
    client.run(_load.cache_clear)
    parse(small_model, inputs, tmp_path, local_cluster.scheduler_address, threads=1)
    counts = client.run(_load.cache_info).values()
    assert all(count.misses <= 1 for count in counts)
    assert sum(count.hits + count.misses for count in counts) > len(counts)


def test_bad_sentences_are_reported_as_by_one_process(small_model, inputs, parser, local_cluster, tmp_path):
    bad = tmp_path / "bad.conllu"
    good = inputs[0].read_text(encoding="utf-8").split("\n\n")
    bad.write_text("\n\n".join([*good[:50], BAD.strip(), *good[50:60], BAD.strip(), *good[60:]]), encoding="utf-8")
    address = local_cluster.scheduler_address
    with pytest.raises(DataError) as expected:
        parser.parse_file(bad, tmp_path / "expected.conllu")
    with pytest.raises(DataError) as error:
        parse(small_model, [inputs[2], bad], tmp_path / "out", address)
    assert str(error.value) == str(expected.value)
    assert os.listdir(tmp_path / "out") == [inputs[2].name]  # no partial or temporary files
    assert "Traceback" not in "".join(line for _, lines in local_cluster.get_logs().items() for line in lines)

    expected_errors, errors = [], []
    parser.parse_file(bad, tmp_path / "expected.conllu", errors=expected_errors.append)
    parse(small_model, [bad], tmp_path / "out", address, errors=errors.append)
    assert list(map(str, errors)) == list(map(str, expected_errors))
    assert len(errors) == 2
    forms = [
        [line.split("\t")[1] for line in path.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
        for path in (tmp_path / "out" / "bad.conllu", tmp_path / "expected.conllu")
    ]
    assert forms[0] == forms[1]


def test_the_folder_of_parts_goes_while_a_worker_still_writes_there(tmp_path, monkeypatch):
    parts, remove = tmp_path / "parts", os.rmdir
    parts.mkdir()
    late = iter([parts / "0-1.conllu"])

    def written_meanwhile(*arguments, **options):
        for path in late:
            path.touch()
        remove(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", written_meanwhile)
    cluster._remove(parts)
    assert not parts.exists()


def test_a_shard_that_kills_every_worker_is_named(small_model, inputs, local_cluster, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")

    class Lost:
        def result(self):
            raise distributed.KilledWorker("task", None, 3)

    monkeypatch.setattr(distributed.Client, "submit", lambda *_, **__: Lost())
    monkeypatch.setattr(distributed.Client, "cancel", lambda *_, **__: None)
    with pytest.raises(ValueError, match=r"long\.conllu: sentences 1 to \d+: 4 workers died"):
        parse(small_model, inputs, tmp_path, local_cluster.scheduler_address)
    assert os.listdir(tmp_path) == []


def test_local_workers_are_started_and_stopped(small_model, inputs, parser, tmp_path, monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    parse(small_model, inputs[2:], tmp_path / "new" / "out", "local")
    parser.parse_file(inputs[2], tmp_path / "expected.conllu")
    assert (tmp_path / "new" / "out" / inputs[2].name).read_bytes() == (tmp_path / "expected.conllu").read_bytes()


def test_files_before_a_bad_text_are_written(small_model, parser, local_cluster, tmp_path):
    for name, text in (("a", b"One two .\nThree .\n"), ("b", b"Four .\n\xff .\n"), ("c", b"Five .\n")):
        (tmp_path / f"{name}.txt").write_bytes(text)
    paths = [tmp_path / f"{name}.txt" for name in "abc"]
    with pytest.raises(DataError, match=r"b\.txt:2: byte 0xFF"):
        parse(small_model, paths, tmp_path / "out", local_cluster.scheduler_address, form="horizontal")
    parser.parse_file(paths[0], tmp_path / "expected.conllu", format="horizontal")
    assert os.listdir(tmp_path / "out") == ["a.conllu"]
    assert (tmp_path / "out" / "a.conllu").read_bytes() == (tmp_path / "expected.conllu").read_bytes()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://somewhere"])
def test_an_address_without_scheduler(address, monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with pytest.raises(ValueError, match="no Dask scheduler"), connect(address):
        pass


def test_a_scheduler_without_workers(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(ValueError, match="has no workers"),
        connect(empty.scheduler_address),
    ):
        pass


def test_without_dask_one_line_says_what_to_install(small_model, inputs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"pip install 'mh4\[cluster\]'"):
        parse_files(small_model, inputs, tmp_path)
    assert os.listdir(tmp_path) == []


def test_an_unknown_policy_leaves_nothing_behind(tmp_path):
    model, source = ROOT / "tests" / "golden" / "models" / "chart", tmp_path / "a.conllu"
    source.write_text("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    with pytest.raises(ValueError, match="errors must be"):
        parse(model, [source], tmp_path / "out", "nobody", errors="ignore")
    assert not (tmp_path / "out").exists()


def test_files_that_cannot_go_together(inputs, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for files, message in (
        (["-"], "standard input: has no name"),
        (["/dev/fd/0"], "/dev/fd/0: has no name"),  # workers have other descriptors
        ([pipe], "pipe: is a pipe"),  # without a writer, opening it would block
        ([inputs[0], inputs[0]], "named twice"),
    ):
        with pytest.raises(DataError, match=message):
            check_files(files, tmp_path / "out")


def test_folders_are_parsed_on_a_cluster(here, small_model, inputs, parser, tmp_path):
    (tmp_path / "in" / "below").mkdir(parents=True)
    for place, path in (("a.conllu", inputs[1]), ("below/b.conllu", inputs[2])):
        (tmp_path / "in" / place).write_bytes(path.read_bytes())
    assert parse(small_model, [tmp_path / "in"], tmp_path / "out", "somewhere").sentences == 3
    parser.parse_file(inputs[2], tmp_path / "expected.conllu")
    assert (tmp_path / "out" / "a.conllu").read_bytes() == b""
    assert (tmp_path / "out" / "below" / "b.conllu").read_bytes() == (tmp_path / "expected.conllu").read_bytes()


def test_progress_adds_up_shard_by_shard(here, small_model, inputs, tmp_path):
    progress = []
    count = parse(small_model, inputs, tmp_path, "somewhere", on_progress=progress.append)
    assert count.sentences == 83
    assert progress[-1] == count
    assert len(progress) > 5
    assert progress == sorted(progress)


def test_as_many_shards_are_ahead_as_workers_need():
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    submitted, cancelled = [], []

    class Client(Here):
        nthreads = staticmethod({"one": 2, "other": 1}.copy)
        submit = staticmethod(lambda *task, **_: submitted.append(task) or SimpleNamespace(result=lambda: None))
        cancel = staticmethod(cancelled.extend)

    tasks = ((None, Path(str(number))) for number in range(100))
    found = cluster._in_order(Client, SimpleNamespace(run="r"), tasks)
    for done in range(3):
        next(found)
        assert len(submitted) == 3 * cluster.AHEAD + done
    found.close()
    assert len(cancelled) == len(submitted) - 3  # the workers are free for others


def test_runs_at_the_same_time_do_not_share_results():
    """Dask gives tasks of the same key, even of two clients, one result."""
    keys = []

    class Client(Here):
        submit = staticmethod(lambda *_, key, pure: keys.append(key) or SimpleNamespace(result=lambda: None))

    for run in ("one", "other"):
        tasks = ((None, Path(f"{number}.conllu")) for number in range(2))
        assert len(list(cluster._in_order(Client, SimpleNamespace(run=run), tasks))) == 2
    assert len(set(keys)) == 4


@pytest.mark.parametrize(("threads", "workers"), [(None, 8), (3, 2), (16, 1)])
def test_local_workers_share_the_cores(threads, workers, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    started = []
    monkeypatch.setattr(cluster, "available_threads", lambda: 8)
    monkeypatch.setattr(cluster, "_local_cluster", lambda count: nullcontext(started.append(count)))
    monkeypatch.setattr(distributed, "Client", nullcontext)
    with connect("local", threads):
        assert started == [workers]


def test_a_part_that_is_not_yet_whole_is_no_output(tmp_path):
    """On a network file system, a file that another machine has written may still lack its end."""
    part = tmp_path / "0.conllu"
    part.write_bytes(b"abc")
    with (tmp_path / "out").open("wb") as stream:
        with pytest.raises(OSError, match=r"0\.conllu: 3 bytes were received instead of 4"):
            cluster._append(part, 4, stream)
        cluster._append(part, 3, stream)
    assert (tmp_path / "out").read_bytes() == b"abcabc"
    assert not part.exists()


def test_shards_of_text_have_the_name_of_its_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("One two .\n")
    (shard, part), end = cluster._tasks([path], cluster._cutter("horizontal", None, Errors()), 100, tmp_path)
    assert (shard.source, shard.path, part.name, end) == (str(path), str(tmp_path / "0.conllu"), "0-0.conllu", None)


def test_dask_logs_nothing_when_it_is_told_so():
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    program = """
import logging, sys
from mh4.service.cluster import silence_dask
silence_dask()
import distributed
for name in ("distributed", "distributed.nanny", "distributed.client", "distributed.new", "tornado.access", "asyncio"):
    logging.getLogger(name).critical("%s was heard", name)
logging.getLogger("mh4").warning("heard")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "heard\n"
