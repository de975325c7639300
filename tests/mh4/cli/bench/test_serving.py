"""``mh4 bench serve``."""

import asyncio
import json
import sys
import time
from types import SimpleNamespace

import pytest

from mh4.cli.bench import serving
from mh4.cli.bench.serving import _Asked, _client, _load, _pages, _parsing, measure_serving, serving_table
from mh4.cli.bench.text import MIB
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence


def test_a_server_is_measured(small_model):
    found = measure_serving(small_model, None, [1, 3], 0.4, "cpu", 1)
    assert [(run["requests_of"], run["clients"]) for run in found["runs"]] == [
        ("sentence", 1),
        ("sentence", 3),
        ("page", 1),
        ("page", 3),
    ]
    for run in found["runs"]:
        assert run["requests"] > 0
        assert run["wrong"] == run["refused"] == 0
        assert 0 < run["p50"] <= run["p99"]
        assert run["words_per_second"] > 0
        if sys.platform == "linux":
            assert run["memory"] > 50 * MIB
            assert 0 <= run["deviation"] < 1
    assert serving_table(found).row_count == 4


def test_an_empty_treebank_and_a_folder_without_a_model(small_model, tmp_path):
    (tmp_path / "empty.conllu").touch()
    with pytest.raises(DataError, match="holds no sentences"):
        measure_serving(small_model, tmp_path / "empty.conllu", [1], 0.1, "cpu", 1)
    with pytest.raises(DataError, match=r"config\.json"):
        measure_serving(tmp_path, None, [1], 0.1, "cpu", 1)


def test_clients_who_are_refused_come_back_and_wrong_answers_are_counted():
    """A server that refuses the first request, answers the second, and mixes up the others."""
    asked = []

    async def answer(reader, writer):
        while header := await reader.readuntil(b"\r\n\r\n"):
            (length,) = (int(line[15:]) for line in header.split(b"\r\n") if line.startswith(b"Content-Length:"))
            asked.append(await reader.readexactly(length))
            status, field = ("503 Busy", "Retry-After: 0\r\n") if len(asked) == 1 else ("200 OK", "")
            body = json.dumps({"result": "# sent_id = 1\n" + ("1\ta\n2\tb\n" if len(asked) == 2 else "1\tb\n2\ta\n")})
            writer.write(f"HTTP/1.1 {status}\r\n{field}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            await asyncio.sleep(0.02)

    async def ask():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            now = time.perf_counter()
            port = server.sockets[0].getsockname()[1]
            requests = [_Asked.of([Sentence(["a", "b"])])]
            return await asyncio.wait_for(_client(port, requests, 0, now + warm_up, now + 0.3), 10)

    warm_up = 0
    answers, refused = asyncio.run(ask())
    assert refused == 1
    assert len(answers) == len(asked) - 1 > 2
    assert [right for _, _, right in answers] == [True, *[False] * (len(asked) - 2)]
    assert {words for _, words, _ in answers} == {2}
    assert all(0.02 < seconds < 10 for seconds, _, _ in answers[1:])
    asked.clear()
    warm_up = 10
    assert asyncio.run(ask()) == ([], 0)
    assert asked


def test_pages_hold_every_sentence_once():
    sentences = [Sentence(["x"] * 90) for _ in range(7)]
    pages = list(_pages(sentences))
    assert [one for page in pages for one in page] == sentences
    assert [sum(map(len, page)) for page in pages] == [450, 180]


def test_waits_are_percentiles_in_milliseconds(monkeypatch):
    async def client(*_):
        return [(i / 1000, 2, i < 100) for i in range(1, 101)], 3

    async def memory(*_):
        return [90, 110]

    monkeypatch.setattr(serving, "_client", client)
    monkeypatch.setattr(serving, "_memory", memory)
    found = asyncio.run(_load(0, [], 2, 4.0))
    assert (found["p50"], found["p99"]) == pytest.approx((50.5, 100))
    assert (found["words_per_second"], found["requests"], found["wrong"], found["refused"]) == (100, 200, 2, 6)
    assert (found["memory"], found["deviation"]) == (100, pytest.approx(0.1))


def test_the_first_run_of_parsing_does_not_count(monkeypatch, tmp_path):
    seconds = [x for i, spent in enumerate([100, 1, 2, 3, 4, 5]) for x in (1000 * i, 1000 * i + spent)]
    monkeypatch.setattr(serving.time, "perf_counter", lambda: seconds.pop(0))
    monkeypatch.setattr(serving, "PARSED", 5)
    counts = []
    parser = SimpleNamespace(parse_file=lambda words, *_, **__: counts.append(len(list(read_conllu(words)))))
    assert _parsing(parser, [Sentence(["a", "b"])], tmp_path) == 3 * 2 / 3  # three copies of two words in 3 s
    assert not seconds
    assert counts == [3] * 6


def test_options_of_the_server(monkeypatch):
    class StoppedError(Exception):
        pass

    def start(command, **_):
        commands.append(command[3:])
        raise StoppedError

    commands = []
    monkeypatch.setattr(serving.subprocess, "Popen", start)
    for threads in (3, None):
        with pytest.raises(StoppedError), serving.serving("m", "cpu", threads):
            pass
    plain = ["serve", "m", "--port", "0", "--device", "cpu"]
    assert commands == [[*plain, "--threads", "3"], plain]
