"""Slow, half-open, huge, malformed and hostile requests, and shutdown."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import running

from mh4.data.errors import DataError
from mh4.parsers.chart import ChartParser
from mh4.service import served_models, server, web
from mh4.service.served_models import ServedModels

LINES = "1\tTe\t_\t_\t_\t_\t_\t_\t_\t_\n2\tnofe\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.fixture(scope="module")
def models(small_model):
    return ServedModels([f"m={small_model}"])


@pytest.fixture(scope="module")
def client(models):
    with running(models, ["127.0.0.1"], most_bytes=5000, receive_seconds=0.5) as client:
        yield client


def raw(client, content, wait=10.0):
    """Send bytes to the server and return all that it sends before it closes the connection."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=wait) as connection:
        connection.sendall(content)
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


def request(body="", method="POST", path="/process", headers=FORM):
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{headers}"
        f"Content-Length: {len(body.encode())}\r\n\r\n{body}"
    ).encode()


@pytest.fixture
def held(monkeypatch):
    """An event that parsing waits for; `held.began` is set once a request waits."""
    go, attempt = threading.Event(), ChartParser.attempt
    go.began = threading.Event()

    def waiting(self, *arguments):
        go.began.set()
        assert go.wait(30)
        return attempt(self, *arguments)

    monkeypatch.setattr(ChartParser, "attempt", waiting)
    yield go
    go.set()


def wait_for_lines(client, count):
    """Wait for lines of the log, which are written after the answers."""
    deadline = time.monotonic() + 10
    while len(client.logged) < count and time.monotonic() < deadline:
        time.sleep(0.01)


def test_many_clients_get_their_own_answers(models):
    def ask(i):
        words = " ".join(f"w{i}x{j}" for j in range(i % 7 + 1))
        answer = client.process(words, input="horizontal", output="horizontal", parser="")
        return answer.result == words + "\n"

    with running(models) as client, ThreadPoolExecutor(32) as pool:
        assert all(pool.map(ask, range(300)))
        wait_for_lines(client, 300)
        assert sorted(line["request"] for line in client.logged) == list(range(1, 301))


def test_bodies_that_are_too_large(client):
    assert client.process("x" * 6000).status == 413
    assert "5,000 bytes" in client.process("x" * 6000).text
    chunked = (
        b"POST /process HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"7d0\r\n" + b"x" * 2000
    )
    answer = raw(client, chunked + b"\r\n7d0\r\n" + b"x" * 2000 + b"\r\n7d0\r\n" + b"x" * 2000 + b"\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")
    assert client.get("/health").status == 200


def test_bodies_that_do_not_come(client):
    start = time.perf_counter()
    answer = raw(client, request("data=x")[:-3].replace(b"Connection: close", b"Connection: keep-alive"))
    assert answer.startswith(b"HTTP/1.1 408")
    assert time.perf_counter() - start < 8


def test_headers_that_do_not_come(models, monkeypatch):
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    with running(models) as client:
        for content in (b"", b"GET /heal", b"GET /health HTTP/1.1\r\nX: "):
            assert raw(client, content) == b""
        with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal")
            received = b""
            while chunk := connection.recv(1000):
                received += chunk
            assert received.count(b"HTTP/1.1 200") == 1


def test_a_long_address_may_come_in_parts(client):
    content = request("", "GET", f"/process?input=vertical&data={'a' * 50_000}", "")
    with socket.create_connection(("127.0.0.1", client.port), timeout=0.2) as connection:
        connection.sendall(content[:40_000])
        with pytest.raises(TimeoutError):  # no error yet
            connection.recv(1000)
        connection.settimeout(10)
        connection.sendall(content[40_000:])
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_connections_are_limited(models, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 3)
    with running(models) as client:
        with contextlib.ExitStack() as opened:
            for _ in range(2):
                connection = opened.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=10))
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            assert client.get("/health").status == 503
        deadline = time.monotonic() + 10
        while client.get("/health").status != 200:  # the connections have been closed
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_what_takes_too_long_is_given_up(models, held):
    with running(models, answer_seconds=0.3) as client:
        answer = client.process(LINES, parser="")
        assert (answer.status, "takes too long" in answer.text) == (503, True)
        held.set()


def test_a_full_queue_refuses_and_says_when_to_come_back(models, held):
    with running(models, most_waiting=3) as client, ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.process, LINES, parser="")
        assert held.began.wait(10)
        refused = client.process(LINES, parser="")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        assert "\nmh4_waiting_words 2.0\n" in client.get("/metrics").text
        held.set()
        assert first.result().status == 200
        assert client.process(LINES, parser="").status == 200


def test_all_bodies_together_are_bounded(models, held):
    with running(models, most_held=2000) as client, ThreadPoolExecutor(2) as pool:
        first = pool.submit(client.process, LINES, parser="x" * 1500)
        assert held.began.wait(10)
        refused = client.process(LINES, parser="x" * 1500)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        held.set()
        assert first.result().status == 200
        assert client.process(LINES, parser="x" * 1500).status == 200


def test_sentences_that_would_take_too_long_are_parsed_approximately(small_model, monkeypatch):
    monkeypatch.setattr(served_models, "MOST_CHART", 60_000)
    with running(ServedModels([f"m={small_model}"])) as client:
        answer = client.process("a b c\n" + "a " * 40 + "\n", input="horizontal", parser="", confidence="").json
        (warning,) = answer["warnings"]
        assert warning.startswith("request 1: sentence 2: ")
        assert "beam:16, without confidence" in warning
        assert answer["result"].count("Confidence=") == 2 * 3  # Confidence and HeadConfidence of three words
        assert "warnings" not in client.process("a b c\n", input="horizontal", parser="").json


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_who_leaves_frees_the_place(method, models, held):
    asked = "parser=&input=horizontal&data=a+b"
    content = request(asked) if method == "POST" else request("", "GET", f"/process?{asked}", "")
    with running(models, most_waiting=3) as client:
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(content)
            assert held.began.wait(10)
        deadline = time.monotonic() + 10
        while client.service.batcher.waiting_words and time.monotonic() < deadline:
            time.sleep(0.01)
        assert client.service.batcher.waiting_words == 0
        assert client.logged[-1]["status"] == 499
        held.set()


def test_boundaries_that_trees_choose_hold_up_nobody(text_model, monkeypatch):
    began, goes_on, stopped = threading.Event(), threading.Event(), threading.Event()

    def tree_scores(self, sentences, treebank, before_batch):
        began.set()
        assert goes_on.wait(30)
        try:
            before_batch()
        except CancelledError:
            stopped.set()
            raise
        return np.zeros(len(sentences))

    def wait_for_joint(count):
        deadline = time.monotonic() + 10
        while client.service._joining != count and time.monotonic() < deadline:
            time.sleep(0.01)
        assert client.service._joining == count

    monkeypatch.setattr(ChartParser, "tree_scores", tree_scores)
    monkeypatch.setattr(web, "MOST_JOINT", 3)
    with running(ServedModels([f"m={text_model}"])) as client:
        with contextlib.ExitStack() as opened:
            for _ in range(3):
                connection = opened.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=10))
                connection.sendall(request("tokenizer=&parser=&boundaries=joint&data=Te+nofe.+Zvai+te."))
            assert began.wait(10)
            wait_for_joint(3)
            assert client.process("Te nofe. Zvai te.", tokenizer="").status == 200
            refused = client.process("Te nofe.", tokenizer="", parser="", boundaries="joint")
            assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
        wait_for_joint(0)  # the clients have left
        goes_on.set()
        assert stopped.wait(10)
        assert client.process("Te nofe.", tokenizer="", parser="", boundaries="joint").status == 200


def test_answers_are_sent_at_once():
    """asyncio disables Nagle's algorithm only for sockets that name the protocol TCP."""
    with server.listening("127.0.0.1", 0) as found:
        assert found.proto == socket.IPPROTO_TCP


def test_an_address_that_is_taken_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DataError, match=rf"cannot listen on 127\.0\.0\.1, port {port}: Address already in use"):
            server.listening("127.0.0.1", port)
    with pytest.raises(DataError, match=r"cannot listen on 300\.1\.1\.1"):
        server.listening("300.1.1.1", 0)


def test_other_hosts_are_refused(client):
    answer = raw(client, request("data=x").replace(b"Host: 127.0.0.1", b"Host: evil.example"))
    assert answer.startswith(b"HTTP/1.1 400")
    assert raw(client, request("data=a&input=vertical")).startswith(b"HTTP/1.1 200")


def test_logs_and_answers_hold_no_text_of_users_but_their_own(client):
    time.sleep(0.1)  # let log lines of earlier requests arrive
    before = len(client.logged)
    client.process("secret", input="horizontal", parser="")
    client.get("/secret")
    client.get("/page/secret.js")
    wait_for_lines(client, before + 3)
    assert "secret" not in json.dumps(client.logged)
    assert {"method", "path", "status", "ms", "model", "words"} <= set(client.logged[-3])
    assert "secret" not in client.get("/metrics").text


def test_no_file_of_the_server_can_be_named(client, tmp_path):
    (tmp_path / "secret.conllu").write_text("1\tsecret\n")
    for path in (str(tmp_path / "secret.conllu"), f"file://{tmp_path}/secret.conllu"):
        for parameters in ({}, {"input": "horizontal"}, {"model": str(tmp_path)}, {"model": f"m={tmp_path}"}):
            assert "1\tsecret" not in client.process(path, **parameters).text
    for path in ("/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd"):
        assert client.get(path).status == 404


def check_hostile_request(client, data):
    """Send a random request: the server may refuse it, but must neither fail nor stop."""
    name = st.sampled_from(
        ["data", "model", "tokenizer", "tagger", "parser", "input", "output", "k_best", "unique", "x"]
    )
    value = st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["conllu", "horizontal", "json", "svg", "presegmented;ranges", LINES, "1", "all", "nsubj", "-1"]
        ),
    )
    kind = data.draw(st.sampled_from(["raw", "body", "header", "form"]))
    if kind == "form":
        parameters = data.draw(st.dictionaries(name, value, max_size=6))
        parameters = {key: text.encode("utf-8", "replace").decode() for key, text in parameters.items()}
        status = client.post("/process", **parameters).status
        assert status in (200, 400, 413), parameters
        return
    junk = data.draw(st.binary(max_size=200))
    header = junk.replace(b"\r", b"").replace(b"\n", b"")
    types = ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "multipart/form-data"]
    close = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    form = f"Content-Type: {data.draw(st.sampled_from(types))}\r\nContent-Length: {len(junk)}\r\n\r\n".encode()
    content = {
        "raw": junk + b"\r\n\r\n",
        "body": b"POST /process" + close + form + junk,
        "header": b"GET /process?" + header + close + b"X: " + header + b"\r\n\r\n",
    }[kind]
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(1 << 16):
            received += chunk
    assert b"HTTP/1.1 5" not in received
    assert client.get("/health").status == 200


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nothing_that_is_sent_is_an_error_of_the_server(client, data):
    half_open = (b"", b"POST /process HTT", request("data=x")[:-3], b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    with contextlib.ExitStack() as opened:
        for content in half_open:
            connection = opened.enter_context(socket.create_connection(("127.0.0.1", client.port), timeout=10))
            connection.sendall(content)
        huge = b"POST /process HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n"
        assert raw(client, huge).startswith(b"HTTP/1.1 413")
        check_hostile_request(client, data)


def test_what_is_under_way_when_it_is_told_to_stop_is_answered(models, held):
    with running(models) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.process, LINES, parser="")
        assert held.began.wait(10)
        client.server.should_exit = True
        deadline = time.monotonic() + 10
        with contextlib.suppress(ConnectionRefusedError):
            while time.monotonic() < deadline:
                socket.create_connection(("127.0.0.1", client.port)).close()
                time.sleep(0.01)
        time.sleep(0.2)  # uvicorn first waits for 0.1 s
        held.set()
        assert first.result().status == 200


def test_told_to_stop_it_answers_what_it_has_accepted(small_model):
    program = [sys.executable, "-m", "mh4", "serve", str(small_model), "--port", "0", "--threads", "1"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True, env={**os.environ}) as process:
        line = process.stderr.readline()
        while "http://" not in line:
            assert line, "the server exited"
            line = process.stderr.readline()
        port = int(line.split(":")[3].split()[0])
        threading.Thread(target=process.stderr.read, daemon=True).start()
        words = "\n".join(" ".join(f"w{i}" for i in range(40)) for _ in range(300))
        body = f"parser=&input=horizontal&output=vertical&data={words}".replace("\n", "%0A").replace(" ", "+")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(request(body))
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            received = b""
            while chunk := connection.recv(1 << 16):
                received += chunk
        assert received.startswith(b"HTTP/1.1 200"), received[:200]
        assert received.count(b"w39") == 300
        assert process.wait(30) == 0
