"""Parsing raw text on the command line."""

import gzip
import os
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from command_line import fails_with_one_line

from mh4.cli import app
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.text import text_of

TEXT = "Zub ulv.  Tor\tteg.\n\nNew: “zub”.\n"


@pytest.fixture
def mh4(capfd):
    """Call the program within this process; returns standard output and error."""

    def call(*arguments):
        app([str(argument) for argument in arguments], standalone_mode=False)
        return capfd.readouterr()

    return call


@pytest.fixture
def article(tmp_path):
    path = tmp_path / "article.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_text_is_cut_and_parsed(mh4, text_model, article, tmp_path):
    output = tmp_path / "out.conllu"
    assert "sentences, " in mh4("parse", text_model, "--text", article, "-o", output).err
    sentences = list(read_conllu(output, trees="required"))
    assert "".join(text_of(sentences)) == TEXT
    assert sentences[0].comments[:3] == ("# newdoc id = article", "# newpar", "# sent_id = 1")
    assert mh4("parse", text_model, "--input", "text", article).out == output.read_text(encoding="utf-8")
    assert mh4("parse", "--ensemble", text_model, text_model, "--text", article).out.count("\t") == sum(
        9 * len(sentence) for sentence in sentences
    )


@pytest.mark.parametrize(("form", "text"), [("horizontal", "A dog .\nB .\n"), ("vertical", "A\ndog\n.\n\nB\n.\n")])
def test_words_in_lines_are_parsed(form, text, mh4, small_model, tmp_path):
    path = tmp_path / "words.txt"
    path.write_text(text, encoding="utf-8")
    mh4("parse", small_model, path, "--input", form, "-o", tmp_path / "out.conllu")
    sentences = list(read_conllu(tmp_path / "out.conllu", trees="required"))
    assert [sentence.forms for sentence in sentences] == [("A", "dog", "."), ("B", ".")]


def test_paragraphs_that_are_not_utf8_can_be_left_out(mh4, text_model, article):
    article.write_bytes(b"Zub ulv.\n\n\xffTor.\n\nTeg.\n")
    with pytest.raises(DataError, match=r"article\.txt:3: byte 0xFF is not UTF-8"):
        mh4("parse", text_model, "--text", article)
    result = mh4("parse", text_model, "--text", article, "--skip-bad")
    assert result.out.count("# text = Zub ulv.") == 2  # the first call wrote it before the error
    assert result.out.count("# text = Teg.") == 1
    assert "1 bad sentence skipped; the first: " in result.err


def test_nothing_in_nothing_out(mh4, text_model, article):
    article.write_bytes(b"\n \n")
    assert mh4("parse", text_model, "--text", article).out == ""


def test_a_model_without_a_segmenter_says_so(mh4, small_model, article):
    with pytest.raises(ValueError, match=r"cannot split text: it has no segmenter"):
        mh4("parse", small_model, "--text", article)


def test_a_damaged_segmenter_is_named(mh4, text_model, article, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    for path in text_model.iterdir():
        (model / path.name).write_bytes(path.read_bytes()[: -1 if path.name == "segmenter.safetensors" else None])
    with pytest.raises(DataError, match=r"segmenter\.safetensors"):
        mh4("parse", model, "--text", article)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("árvíztűrő".encode("latin2"), ":1: byte 0xE1 is not UTF-8"),
        ("árvíztűrő".encode("utf-16"), ": is UTF-16 text"),
        ("kutya".encode("utf-16-le"), ": is a binary file"),
        (b"Zub\n\xed\xa0\x80", ":2: byte 0xED is not UTF-8"),  # a lone surrogate
        ("é".encode()[:1], ":1: byte 0xC3 is not UTF-8"),
        (b"x" * 70_000 + b"\0", ":1: holds a NUL character"),
        (gzip.compress(b"Zub ulv.", mtime=0)[:20], ": is compressed and damaged"),
    ],
)
def test_what_is_no_text_is_one_line(content, problem, run, text_model, article, tmp_path):
    article.write_bytes(content)
    parsed = run("parse", text_model, "--text", article, "-o", tmp_path / "out")
    fails_with_one_line(parsed, f"article.txt{problem}")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: b"[]\n",
        lambda content: np.random.default_rng(1).bytes(100_000),  # UDPipe would abort the process
        lambda content: content[:40] + bytes(range(256)) * 200,
    ],
    ids=["empty", "half", "nearly whole", "of another program", "random", "after its header"],
)
def test_what_is_no_segmenter_of_udpipe_is_one_line(damage, run, older_text_model, article, tmp_path):
    shutil.copytree(older_text_model, model := tmp_path / "model")
    (model / "segmenter.udpipe").write_bytes(damage((model / "segmenter.udpipe").read_bytes()))
    parsed = run("parse", model, "--text", article)
    fails_with_one_line(parsed, "segmenter.udpipe: is damaged or is not a UDPipe segmenter")


@pytest.mark.parametrize(
    "text",
    ["😀👩‍👩‍👧🏽🇭🇺" * 500, pytest.param("a" * 10**6, marks=pytest.mark.slow), "\u200d\u200b" * 300, "\r\n \n\tZub"],
    ids=["emoji", "1 MB without a blank", "nothing to see", "white space first"],
)
def test_unusual_text_is_parsed(text, mh4, text_model, article, tmp_path):
    article.write_bytes(text.encode())
    mh4("parse", text_model, "--text", article, "-o", tmp_path / "out.conllu")
    assert "".join(text_of(read_conllu(tmp_path / "out.conllu", trees="required"))) == text


def test_trees_choose_boundaries_on_the_command_line(mh4, text_model, article, monkeypatch):
    monkeypatch.setattr("mh4.parsers.boundaries.SENTENCE_COST", -100.0)
    monkeypatch.setattr("mh4.parsers.boundaries.LEAST_LOG", -np.inf)
    monkeypatch.setattr("mh4.parsers.boundaries.MOST_WORDS", 1000)
    found = mh4("parse", text_model, "--text", article, "--boundaries", "joint").out
    assert found.count("# sent_id") == 12  # one per token
    assert mh4("parse", text_model, "--text", article).out.count("# sent_id") < 12
    with pytest.raises(ValueError, match="boundaries can be chosen only in raw text"):
        mh4("parse", text_model, article, "--input", "vertical", "--boundaries", "joint")


@pytest.mark.slow
@pytest.mark.parametrize("boundaries", ["segmenter", "joint"])
def test_text_is_parsed_on_a_cluster(boundaries, mh4, text_model, article, tmp_path):
    options = ["--text", article, "--boundaries", boundaries]
    mh4("parse", text_model, *options, "--cluster", "local", "-o", tmp_path / "parsed")
    expected = mh4("parse", text_model, *options).out
    assert (tmp_path / "parsed" / f"{article.stem}.conllu").read_text(encoding="utf-8") == expected


@pytest.mark.parametrize(
    "options",
    [["--text", "-"], ["--text", "/dev/fd/0"], pytest.param(["--input", "horizontal"], marks=pytest.mark.slow)],
)
def test_a_paragraph_is_written_when_its_blank_line_arrives(options, text_model):
    program = [sys.executable, "-m", "mh4", "parse", str(text_model), *options]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        os.write(process.stdin.fileno(), b"Zub ulv.\n\n" if "--text" in options else b"Zub ulv .\n")
        lines = []
        while not lines or lines[-1] != b"\n":  # standard input stays open meanwhile
            lines.append(process.stdout.readline())
            assert lines[-1]
        assert lines[-2].startswith(b"3\t.\t")
        rest, _ = process.communicate(b"Tor teg .\n")
        timer.cancel()
    assert process.returncode == 0
    assert b"# sent_id = 2\n# text = Tor teg .\n" in rest


def test_eval_says_that_there_are_no_trees(mh4, tmp_path, small_treebanks):
    bare = tmp_path / "bare.conllu"
    with bare.open("wb") as stream:
        for sentence in read_conllu(small_treebanks[1]):
            n = len(sentence)
            stream.write(sentence.replace(heads=[-1] * n, relations=["_"] * n, upos=["_"] * n).to_bytes())
    result = mh4("eval", small_treebanks[1], bare)
    assert "Words" in result.out
    assert "LAS" not in result.out
    assert any(line.split()[:3] == ["UPOS", "–", "–"] for line in result.out.splitlines())
    assert 'bare.conllu: there are no trees (every HEAD is "_")' in result.err
