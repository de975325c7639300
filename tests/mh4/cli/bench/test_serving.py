"""``mh4 bench serve``."""

import asyncio
import json
import sys
import time

import pytest

from mh4.cli.bench.serving import _Asked, _client, _pages, measure_serving, serving_table
from mh4.cli.bench.text import MIB
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
            return await asyncio.wait_for(_client(port, [_Asked.of([Sentence(["a", "b"])])], 0, now, now + 0.3), 10)

    answers, refused = asyncio.run(ask())
    assert refused == 1
    assert len(answers) == len(asked) - 1 > 2
    assert [right for _, _, right in answers] == [True, *[False] * (len(asked) - 2)]
    assert {words for _, words, _ in answers} == {2}


def test_pages_hold_every_sentence_once():
    sentences = [Sentence(["x"] * 90) for _ in range(7)]
    pages = list(_pages(sentences))
    assert [one for page in pages for one in page] == sentences
    assert [sum(map(len, page)) for page in pages] == [450, 180]
