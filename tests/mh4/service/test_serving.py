"""The server's protocol: UDPipe's, with extensions."""

import json
import shutil
import threading
import time
from base64 import encodebytes
from concurrent.futures import ThreadPoolExecutor
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.policy import HTTP
from pathlib import Path
from quopri import encodestring
from types import SimpleNamespace

import pytest
from serving import running

import mh4
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.parsers.chart import ChartParser
from mh4.service import served_models, web
from mh4.service.processing import PARAMETERS, WRITERS, Asked
from mh4.service.served_models import ServedModel, ServedModels
from mh4.service.web import FEW, LONGEST_LINE, Service

LINES = "1\tTe\t_\t_\t_\t_\t_\t_\t_\t_\n2\tnofe\t_\t_\t_\t_\t_\t_\t_\t_\n3\t.\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
TEXT = "Te nofe  mihevode.\nZvai te.\n\nKve yeni takomero."


@pytest.fixture(scope="module")
def client(text_model, annotating_model):
    models = ServedModels([f"ulvari-small-text={text_model}", f"ulvari-tags={annotating_model}"])
    with running(models) as client:
        yield client


@pytest.fixture(scope="module")
def parser(text_model):
    return mh4.load(text_model)


def by_email(parameters):
    """Return a request body built as UDPipe's own client does, and its content type."""
    message = MIMEMultipart("form-data", policy=HTTP)
    for name, value in parameters.items():
        part = MIMENonMultipart("text", "plain")
        part.add_header("Content-Disposition", f'form-data; name="{name}"')
        part.add_header("Content-Transfer-Encoding", "8bit")
        part.set_payload(value, charset="utf-8")
        message.attach(part)
    return message.as_bytes().split(b"\r\n\r\n", maxsplit=1)[1], message["Content-Type"]


def body_of(result):
    """Return a result in CoNLL-U without the comments about the server."""
    header, lines = result.split("\n")[:3], result.split("\n")[3:]
    assert [line.split(" = ")[0] for line in header] == ["# generator", "# udpipe_model", "# udpipe_model_licence"]
    return "\n".join(lines)


def test_models_and_what_they_can_do(client):
    abilities = {"ulvari-small-text": ["tokenizer", "parser"], "ulvari-tags": ["tagger", "parser"]}
    for answer in (client.get("/models"), client.post("/models")):
        assert answer.json["models"] == abilities
        assert answer.json["default_model"] == "ulvari-small-text"
        assert answer.json["extensions"]["ulvari-small-text"] == ["confidence", "k_best", "keep_heads"]
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_all_ways_to_ask_give_the_same_answer(client, parser):
    expected = parser(Document.from_conllu(LINES)[0]).to_conllu()
    parameters = {"data": LINES, "parser": "", "output": "conllu"}
    found = [client.get("/process", **parameters), client.post("/process", **parameters)]
    body, kind = by_email(parameters)
    assert b"\r\n1\tTe" in body or b"\r\n2\tnofe" in body
    found.append(client.send("POST", "/process", body, {"Content-Type": kind}))
    upload = (
        b'--x\r\nContent-Disposition: form-data; name="data"; filename="a.conllu"\r\n\r\n'
        + LINES.encode()
        + b'\r\n--x\r\nContent-Disposition: form-data; name="parser"\r\n\r\n\r\n--x--\r\n'
    )
    found.append(client.send("POST", "/process", upload, {"Content-Type": "multipart/form-data; boundary=x"}))
    for answer in found:
        assert body_of(answer.result) == expected
        assert answer.json["model"] == "ulvari-small-text"
        assert isinstance(answer.json["acknowledgements"], list)


def test_parts_are_decoded(client):
    data = "Te nofe – é."
    expected = client.process(data, tokenizer="").result
    head = '--x\r\nContent-Disposition: form-data; name="%s"%s\r\nContent-Transfer-Encoding: %s\r\n\r\n%s\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    packed = {
        "base64": encodebytes(data.encode()).decode(),
        "quoted-printable": encodestring(data.encode()).decode(),
        "8BIT": data,
    }
    for encoding, content in packed.items():
        for file in ("", '; filename="a"'):
            body = head % ("data", file, encoding, content) + head % ("tokenizer", "", "7bit", "") + "--x--\r\n"
            assert client.send("POST", "/process", body.encode(), kind).result == expected
    wrong = [
        ("x-uuencode", "a", "Encoding 'x-uuencode' is unknown"),
        ("base64", "abcde", "base64"),
        ("base64", "6Q==", "UTF-8"),
    ]
    for encoding, content, message in wrong:
        answer = client.send("POST", "/process", head % ("data", "", encoding, content) + "--x--\r\n", kind)
        assert (answer.status, message in answer.text) == (400, True), answer.text


def test_the_body_wins(client):
    form = "model=ulvari-tags&data=a+b&input=horizontal", "application/x-www-form-urlencoded"
    for body, kind in (form, by_email({"model": "ulvari-tags", "data": "a b", "input": "horizontal"})):
        address = "/process?model=none&data=x&output=vertical"
        found = client.send("POST", address, body, {"Content-Type": kind})
        assert (found.json["model"], found.result) == ("ulvari-tags", "a\nb\n\n")


def test_line_ends_of_forms_are_those_of_the_text(client):
    body, kind = by_email({"data": "Te nofe.\nZvai te.\n", "tokenizer": "", "output": "plaintext"})
    assert b"nofe.\r\nZvai" in body
    assert client.send("POST", "/process", body, {"Content-Type": kind}).result == "Te nofe.\nZvai te.\n"


def test_a_field_may_be_as_large_as_a_body(client):
    body, kind = by_email({"data": "a", "model": "m" * (2 << 20)})
    found = client.send("POST", "/process", body, {"Content-Type": kind})
    assert (found.status, found.text[:18]) == (400, "no model is called")


def test_an_error_is_not_longer_than_a_line(client, monkeypatch):
    def fail(*_):
        raise ValueError("x" * 10_000)

    monkeypatch.setattr(Asked, "of", fail)
    assert 900 < len(client.process("a").text) <= LONGEST_LINE + 1


@pytest.mark.parametrize(
    ("loaded", "parameters", "at_once"),
    [(True, {}, True), (False, {}, False), (True, {"tokenizer": ""}, False), (True, {"data": "a " * FEW}, False)],
)
def test_only_little_is_read_in_the_thread_of_the_server(loaded, parameters, at_once, client, monkeypatch):
    threads = []

    def read(*_):
        threads.append(threading.current_thread().name)
        raise ValueError

    monkeypatch.setattr(client.service, "_read", read)
    monkeypatch.setattr(client.service.models, "in_memory", lambda model: loaded)
    client.process(**{"data": "a", **parameters})
    assert [not name.startswith("mh4-read") for name in threads] == [at_once]


def test_long_forms_are_decoded_outside_the_event_loop(client, monkeypatch):
    decode, threads = web._fields, []

    def fields(*given):
        threads.append(threading.current_thread().name.startswith("mh4-read"))
        return decode(*given)

    monkeypatch.setattr(web, "_fields", fields)
    for size in (1, FEW):
        client.process("a" * size, input="horizontal")
    assert threads == [False, False, False, True]  # address and body, twice


def test_times_are_logged_in_milliseconds_and_measured_in_seconds(client, monkeypatch):
    write = Asked.write

    def slowly(*given):
        time.sleep(0.05)
        return write(*given)

    def seconds():
        lines = client.get("/metrics").text.splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith('mh4_stage_seconds_sum{stage="write"}'))

    monkeypatch.setattr(Asked, "write", slowly)
    before = seconds()
    assert client.process("a", input="horizontal").status == 200
    assert 0.05 <= seconds() - before < 10
    assert max(line["ms"] for line in client.logged if line["path"] == "/process") >= 50


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ulvari-small-text", "ulvari-small-text"),
        ("ulvari-small", "ulvari-small-text"),
        ("ulvari", "ulvari-small-text"),
        ("ulvari-tags", "ulvari-tags"),
        ("", "ulvari-small-text"),
    ],
)
def test_models_answer_to_beginnings_of_their_names(client, name, model):
    assert client.process("a", input="horizontal", model=name).json["model"] == model


def test_models_answer_to_their_language(small_model, tmp_path):
    for name, language in (("a", "xu"), ("b", "xv")):
        shutil.copytree(small_model, tmp_path / name)
        (tmp_path / name / "meta.json").write_text(json.dumps({"language": language, "licence": "CC0-1.0"}))
        sums = tmp_path / name / "SHA256SUMS"
        lines = sums.read_text().splitlines() if sums.exists() else []
        sums.write_text("".join(f"{line}\n" for line in lines if not line.endswith("meta.json")))
    models = ServedModels([str(tmp_path / "a"), str(tmp_path / "b")])
    assert [models.find(name).name for name in ("xv", "xu", "b", None)] == ["b", "a", "b", "a"]
    assert models.find("x") is None
    assert models.find("b").licence == "CC0-1.0"


def test_the_whole_name_of_a_model_is_never_the_beginning_of_another(small_model):
    models = ServedModels([f"a-b-c={small_model}", f"a-b={small_model}", f"a={small_model}"])
    assert [models.find(name).name for name in ("a-b-c", "a-b", "a")] == ["a-b-c", "a-b", "a"]


@pytest.mark.parametrize(
    ("parameters", "status", "message"),
    [
        ({}, 400, "'data' is required"),
        ({"data": "x", "model": "none"}, 400, "no model is called 'none'"),
        ({"data": "x"}, 400, "raw text needs the parameter tokenizer"),
        ({"data": "x", "input": "pdf"}, 400, "unknown input format 'pdf'"),
        ({"data": "x", "tokenizer": "", "output": "pdf"}, 400, "unknown output format 'pdf'"),
        ({"data": "x", "tokenizer": "", "model": "ulvari-tags"}, 400, "cannot split text"),
        ({"data": "x", "tokenizer": "", "output": "svg"}, 400, "no tree to draw"),
        ({"data": "a " * 1001, "input": "horizontal"}, 400, "has 1001 words, and at most 1000"),
        ({"data": "a", "input": "horizontal", "parser": "", "k_best": "x"}, 400, "k_best is a number; got 'x'"),
        ({"data": "a", "input": "horizontal", "parser": "", "k_best": "101"}, 400, "k_best is at most 100"),
        ({"data": LINES, "parser": "", "unique": "nsubj", "among": "101"}, 400, "among is at most 100"),
        ({"data": "a", "input": "horizontal", "parser": "", "confidence": "x"}, 400, "confidence is 1 or 0; got 'x'"),
        ({"data": LINES, "tagger": "", "confidence": "", "model": "ulvari-tags"}, 400, "need trees"),
        ({"data": LINES.replace("\t_\t_\t_\t_\n", "\t1\t_\t_\t_\n"), "parser": "", "keep_heads": ""}, 400, "own head"),
        ({"data": "a\0", "input": "horizontal"}, 400, "NUL"),
        ({"data": "a", "input": "horizontal", "predict": "x", "parser": ""}, 400, "unknown column 'x'"),
        ({"data": LINES, "parser": "", "min_confidence": "x"}, 400, "a probability from 0 to 1; got 'x'"),
        ({"data": LINES, "parser": "", "min_confidence": "2"}, 400, "a probability from 0 to 1; got 2"),
        ({"data": LINES, "parser": "", "min_confidence": "0.9", "output": "svg"}, 400, "min_confidence leaves heads"),
        ({"data": LINES, "parser": "", "predict": "upos", "model": "ulvari-tags"}, 400, "parser asks for heads, and"),
        ({"data": LINES, "tagger": "", "predict": "heads", "model": "ulvari-tags"}, 400, "tagger asks for upos, xpos,"),
        ({"data": LINES, "parser": "", "boundaries": "joint"}, 400, "boundaries are found in raw text"),
        ({"data": "x", "tokenizer": "presegmented", "parser": "", "boundaries": "joint"}, 400, "presegmented says"),
        ({"data": "x", "tokenizer": "", "boundaries": "joint"}, 400, "boundaries is about what is predicted"),
        ({"data": "x" * 65_537, "tokenizer": "", "parser": "", "boundaries": "joint"}, 400, "at most 65,536 "),
        ({"data": LINES, "min_confidence": "0.5"}, 400, "add the parameter tagger or parser"),
        ({"data": LINES, "parser": "", "keep-heads": ""}, 400, "unknown parameter 'keep-heads'; known: data, model,"),
        ({"data": LINES, "\n" * 2000: ""}, 400, "known: data, model, tokenizer, tagger, parser, input, output,"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_line(client, parameters, status, message):
    answer = client.post("/process", **parameters)
    assert (answer.status, answer.text.count("\n")) == (status, 1), answer.text
    assert message in answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_answers_do_not_tell_where_a_model_is(client, monkeypatch):
    served = client.service.models.default
    monkeypatch.setattr(client.service.models.parser(served), "calibration", None)
    answer = client.post("/process", data=LINES, parser="", confidence="1")
    assert answer.status == 400
    name = served.name
    assert answer.text.startswith(f"{name}: the model is not calibrated yet; run mh4 calibrate {name} DEV")


@pytest.mark.parametrize("given", [".", "x=."])
def test_the_folder_of_a_model_is_a_whole_path(given, annotating_model, monkeypatch):
    """Where a message names the folder, the model's name replaces it, and would replace every "." otherwise."""
    monkeypatch.chdir(annotating_model)
    served = ServedModels([given], device="cpu")
    assert served.default.folder == served.parser(served.default).folder == annotating_model.resolve()


def test_as_much_as_is_allowed_is_accepted():
    class Anyone:
        annotates = frozenset()

        def check(self, request):
            return []

    parameters = {"data": "a " * 1000, "input": "horizontal", "parser": "", "k_best": "100"}
    asked = Asked.of(parameters, Anyone())
    assert (asked.request.k_best, asked.request.predict) == (100, {"heads"})
    assert [len(sentence) for sentence in asked.read(Anyone(), "request 1")] == [1000]


def test_addresses_and_bodies_that_are_not_known(client):
    assert (client.get("/nothing").status, client.get("/nothing").text) == (404, "there is no '/nothing' here\n")
    assert client.send("PUT", "/process", "x").status == 405
    for kind in ("application/json", "text/plain", "multipart/mixed", "x" * 2000):
        answer = client.send("POST", "/process", "data=x", {"Content-Type": kind})
        assert answer.status == 400
        assert "is not read" in answer.text
        assert len(answer.body) < 1100
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for encoding, status in (("gzip", 400), ("br", 400), ("identity", 200), ("Identity", 200)):
        answer = client.send("POST", "/process", "data=", form | {"Content-Encoding": encoding})
        assert (answer.status, "send it uncompressed" in answer.text) == (status, status == 400)
    for body in (b"--x", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--", b"--x\r\n\r\n\xff\r\n--x--"):
        assert client.send("POST", "/process", body, {"Content-Type": "multipart/form-data; boundary=x"}).status == 400
    assert client.send("POST", "/process", b"x", {"Content-Type": "multipart/form-data"}).status == 400
    field = b'--x\r\nContent-Disposition: form-data; name="data"\r\n\r\n%b\r\n--x%b'
    for content, end, problem in ((b"\xe9", b"--", "is not UTF-8"), (b"a", b"", "its end is missing")):
        body = field.replace(b"data", b"input") % (b"vertical", b"\r\n") + field[5:] % (content, end)
        answer = client.send("POST", "/process", body, {"Content-Type": "multipart/form-data; boundary=x"})
        assert (answer.status, problem in answer.text) == (400, True), answer.text
    for body in (b"data=%ff", b"data=\xff", b"a=1&" * 200):
        answer = client.send("POST", "/process", body, {"Content-Type": "application/x-www-form-urlencoded"})
        assert (answer.status, "UTF-8" in answer.text) == (400, True)


def test_text_comes_back_byte_for_byte(client, parser):
    answer = client.process(TEXT, tokenizer="")
    assert body_of(answer.result) == parser.cut(TEXT).to_conllu()  # only segmented, without `parser`
    assert client.process(TEXT, tokenizer="", output="plaintext").result == TEXT
    parsed = client.process(TEXT, tokenizer="", parser="", output="conllu").result
    assert body_of(parsed) == parser(TEXT).to_conllu()


def test_text_is_brought_into_one_form_of_unicode(client):
    assert client.process("e\u0301", input="horizontal", output="horizontal").result == "\u00e9\n"


def test_trees_choose_boundaries(client, monkeypatch):
    asked = []
    scores = ChartParser.tree_scores
    monkeypatch.setattr(ChartParser, "tree_scores", lambda self, own, **_: asked.append(own) or scores(self, own))
    plain, joint = (client.process(TEXT, tokenizer="", parser="", boundaries=one) for one in ("segmenter", "joint"))
    assert len(asked) == 1
    joint, plain = (Document.from_conllu(one.result) for one in (joint, plain))
    assert [word for one in joint for word in one.forms] == [word for one in plain for word in one.forms]


def test_a_tagger_that_the_model_lacks_is_a_warning(client):
    for switches in ({"tagger": ""}, {"tagger": "", "parser": ""}):
        found = client.process(LINES, **switches).json
        assert found["warnings"] == ["tagger has no effect: the model predicts neither tags nor lemmas"]
        assert "warnings" not in client.process(LINES, **switches, model="ulvari-tags").json


@pytest.mark.parametrize(("licence", "shown"), [("CC0-1.0", "CC0-1.0"), ("", "unknown")])
def test_conllu_tells_the_model_and_its_licence(licence, shown):
    model = ServedModel("a", Path("m"), (), (), "hu", licence)
    header = WRITERS["conllu"]([], model).splitlines()
    assert header[1:] == ["# udpipe_model = a", f"# udpipe_model_licence = {shown}"]


def test_words_in_lines(client):
    assert client.process("a b\n\nc\n", input="horizontal", output="vertical").result == "a\nb\n\nc\n\n"
    found = client.process("a\nb c\n\nd", input="vertical", output="horizontal").result
    assert found == "a b\u00a0c\nd\n"  # a space inside a word becomes a no-break space


def test_tagger_and_parser_are_switches(client, annotating_model):
    parser = mh4.load(annotating_model)
    given = Document.from_conllu(LINES)[0].replace(upos=["X"] * 3)
    ask = {"model": "ulvari-tags"}
    nothing, tags, trees, both = (
        Document.from_conllu(client.process(given.to_conllu(), **ask, **dict.fromkeys(switches, "")).result)[0]
        for switches in ((), ("tagger",), ("parser",), ("tagger", "parser"))
    )
    full = parser(given, overwrite=True)
    assert (nothing.upos, nothing.heads.tolist()) == (given.upos, [-1] * 3)
    assert (tags.upos, tags.lemmas, tags.heads.tolist()) == (full.upos, full.lemmas, [-1] * 3)
    assert (trees.upos, trees.heads.tolist()) == (given.upos, parser(given).heads.tolist())
    assert (both.upos, both.heads.tolist()) == (full.upos, full.heads.tolist())
    kept = client.process(given.to_conllu(), **ask, tagger="", overwrite="0").result
    assert "\tX\t" in kept


def test_confidence_several_trees_and_given_heads(client, parser):
    sentence = Document.from_conllu(LINES)[0]
    sure = Document.from_conllu(client.process(LINES, parser="", confidence="1").result)[0]
    assert "Confidence" in sure[0].misc
    (word, *_), *_ = (one["tokens"] for one in client.process(LINES, parser="", confidence="", output="json").result)
    assert word["confidence"] == pytest.approx(parser(sentence, confidence=True)[0].confidence, abs=1e-3)
    several = Document.from_conllu(client.process(LINES, parser="", k_best="3").result)
    expected = parser.k_best(sentence, 3)
    assert [one.heads.tolist() for one in several] == [one.heads.tolist() for one in expected]
    head = next(h for h in (1, 2, 3) if h not in (2, parser(sentence).heads[1]))
    given = sentence.replace(heads=[-1, head, -1])
    found = Document.from_conllu(client.process(given.to_conllu(), parser="", keep_heads="true").result)[0]
    assert found.heads.tolist() == parser(given, keep_heads=True).heads.tolist()
    assert found.heads[1] == head
    free = Document.from_conllu(client.process(given.to_conllu(), parser="", keep_heads="0").result)[0]
    assert free.heads.tolist() == parser(sentence).heads.tolist()


def test_words_that_are_not_sure_get_no_head(client, parser):
    sentence = Document.from_conllu(LINES)[0]
    sure = [word.confidence for word in parser(sentence, confidence=True)]
    for least in (0.0, sorted(sure)[1], 1.0):
        found = Document.from_conllu(client.process(LINES, parser="", min_confidence=str(least)).result)[0]
        assert (found.heads >= 0).tolist() == [own >= least for own in sure]
        assert "Confidence" not in "".join(found.misc)
    headed = sentence.replace(heads=[2, 0, 2], relations=["x", "root", "y"]).to_conllu()
    found = Document.from_conllu(client.process(headed, parser="", min_confidence="1").result)[0]
    assert (found.heads >= 0).tolist() == [own == 1 for own in sure]  # given heads are kept only on request
    both = client.process(LINES, parser="", min_confidence="1", confidence="").result
    assert "Confidence=" in both
    given = sentence.replace(heads=[-1, 3, -1])
    kept = client.process(given.to_conllu(), parser="", min_confidence="1", keep_heads="").result
    assert Document.from_conllu(kept)[0].heads[1] == 3


def test_json_and_pictures(client, parser):
    found = client.process(LINES, parser="", output="json").result
    assert found == Document([parser(Document.from_conllu(LINES)[0])]).to_dict()
    svg = client.process("<b> & x", input="horizontal", parser="", output="svg").result
    assert svg.startswith("<svg")
    assert "&lt;b&gt;" in svg
    assert "<b>" not in svg


def test_what_operators_ask_for(client):
    assert client.get("/health").json == {"status": "ok"}
    before = client.get("/metrics").text
    client.process(LINES, parser="")
    after = client.get("/metrics").text

    def count(text, name):
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    words = 'mh4_words_total{model="ulvari-small-text"}'
    assert count(after, words) == count(before, words) + 3
    asked = 'mh4_requests_total{path="/process",status="200"}'
    assert count(after, asked) == count(before, asked) + 1
    for stage in ("receive", "read", "parse", "write"):
        assert count(after, f'mh4_stage_seconds_count{{stage="{stage}"}}') > 0
    assert (count(after, "process_resident_memory_bytes ") > 0) == Path("/proc/self/stat").exists()
    described = client.get("/openapi.json").json
    assert described["openapi"].startswith("3.")
    assert '["ulvari-small-text", "ulvari-tags"]' in json.dumps(described)
    assert {one["name"] for one in described["paths"]["/process"]["get"]["parameters"]} == {*PARAMETERS}


def test_models_need_names_of_their_own(small_model):
    with pytest.raises(ValueError, match="two models are called a"):
        ServedModels([f"a={small_model}", f"a={small_model}"])
    with pytest.raises(ValueError, match="a server needs a model"):
        ServedModels([])
    with pytest.raises(ValueError, match="the model has no name"):
        ServedModels([f"={small_model}"])
    with pytest.raises(ValueError, match="a=: the model has no folder"):
        ServedModels(["a="])


def test_models_are_loaded_as_the_server_was_told(small_model):
    models = ServedModels([f"a={small_model}"], device="cpu", search="beam:3", threads=1)
    parser = models.parser(models.default)
    assert (parser.decoder.width, parser.threads, parser.device.type) == (3, 1, "cpu")


def test_the_model_that_was_asked_for_longest_ago_leaves_memory(small_model):
    models = ServedModels([f"{name}={small_model}" for name in "abc"], most=2)
    first, second = (models.parser(models.find(name)) for name in "bc")
    assert models.parser(models.find("b")) is first
    third = models.parser(models.find("a"))  # evicts c
    assert models.parser(models.find("b")) is first
    assert models.parser(models.find("a")) is third
    assert models.parser(models.find("c")) is not second


def test_as_many_rounds_as_the_models_allow(small_model, monkeypatch):
    models = ServedModels([f"one={small_model}", f"other={small_model}"], device="cpu")
    for own, parser in zip((3, 2), models._loaded.values(), strict=True):
        monkeypatch.setitem(vars(parser), "of_test", own)
    monkeypatch.setattr(ChartParser, "workers", property(lambda self: self.of_test))
    assert models.workers == 2
    service, meeting = Service(models), threading.Barrier(2, timeout=10)
    assert service.batcher._most_rounds == 2
    assert sorted(service._parsing.map(lambda _: meeting.wait(), range(2))) == [0, 1]  # at a time


def test_all_models_are_warmed_up(small_model, monkeypatch):
    models, asked = ServedModels([f"{name}={small_model}" for name in "ab"], device="cpu"), []
    monkeypatch.setattr(ChartParser, "attempt", lambda self, sentences: asked.append(self))
    models.warm_up()
    assert asked == [models.parser(model) for model in models.models]


def test_parts_of_the_page_and_nothing_else(client, monkeypatch):
    for path in ("/", "/page/page.js"):
        page = client.get(path)
        assert (page.status, page.headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert page.headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert page.headers["Cache-Control"] == "no-cache"  # after an update, the browser shows the new page
    for name in ("a" * 5000 + ".js", "%00.js", "..%2fweb.py", ".", "%ff.css", "__init__.js"):
        assert client.get(f"/page/{name}").status == 404, name


def test_a_model_that_cannot_be_loaded_again_is_an_error_of_the_server(client, monkeypatch, caplog):
    def missing(model):
        raise DataError("models/a/config.json: no such file")

    monkeypatch.setattr(client.service.models, "parser", missing)
    monkeypatch.setattr(client.service.models, "in_memory", lambda model: False)
    answer = client.process("a", input="horizontal", parser="")
    assert (answer.status, answer.text) == (500, "the model ulvari-small-text cannot be loaded\n")
    assert "ulvari-small-text: cannot be loaded again: models/a/config.json: no such file" in caplog.messages


def test_long_answers_are_written_outside_the_event_loop(client, monkeypatch):
    """The server would answer nobody else meanwhile."""

    def write(self, *_):
        return {"result": threading.current_thread().name}

    monkeypatch.setattr(Asked, "write", write)
    ask = {"input": "horizontal", "parser": ""}
    assert not client.process("a b\n", **ask).result.startswith("mh4-read")
    assert client.process("a b\n" * 3, **ask, k_best="100").result.startswith("mh4-read")
    assert client.process("a b\n", **ask, output="svg").result.startswith("mh4-read")


def test_errors_of_its_own_are_counted_as_such(client, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(client.service.models, "find", broken)
    assert client.process("a", input="horizontal").status == 500
    deadline = time.monotonic() + 10
    while client.logged[-1]["status"] != 500 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert client.logged[-1]["status"] == 500
    assert 'mh4_requests_total{path="/process",status="500"}' in client.get("/metrics").text


def test_a_model_in_memory_does_not_wait_for_another_to_be_loaded(tmp_path, monkeypatch):
    begun, goes_on = threading.Event(), threading.Event()
    loaded = []

    def load(folder, **_):
        loaded.append(folder.name)
        if loaded.count("c") == 2:
            begun.set()
            assert goes_on.wait(60)
        limited = SimpleNamespace(segmenter=None, annotates=(), meta={}, limit_charts=lambda most: None)
        return SimpleNamespace(**vars(limited), check=lambda request: [], workers=1)

    monkeypatch.setattr(served_models, "load", load)
    models = ServedModels([f"{name}={tmp_path / name}" for name in "acb"], most=2)
    a, c, b = models.models
    before = models.parser(b)
    models.parser(a)  # c leaves
    models.parser(b)
    with ThreadPoolExecutor(3) as threads:
        try:
            together = [threads.submit(models.parser, c) for _ in range(2)]
            assert begun.wait(60)
            assert threads.submit(models.parser, b).result(10) is before
        finally:
            goes_on.set()
        assert together[0].result() is together[1].result()
    assert loaded == ["a", "c", "b", "a", "c"]
