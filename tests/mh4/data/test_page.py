"""Pages with the trees of many sentences."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from mh4.cli import app
from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence
from mh4.data.page import draw_page
from mh4.data.sentence import Sentence

SENTENCES = [
    Sentence(["<b>", "&", "c"], heads=[2, 0, 2], relations=["a", "root", "<x>"], comments=["# sent_id = s<1>"]),
    Sentence(["a", "b"]),
    Sentence(["a", "b", "c", "d"], heads=[3, 4, 0, 3]),
]


def test_a_page_has_all_sentences():
    page = "".join(draw_page(SENTENCES, "a <file>"))
    HTMLParser().feed(page)
    assert page.startswith("<!doctype html>")
    assert "<title>a &lt;file&gt;</title>" in page
    assert re.findall(r'<section id="(\d)" dir="ltr">\n<h2>(.*)</h2>\n<p>(.*)</p>', page) == [
        ("1", "s&lt;1&gt;", "&lt;b&gt; &amp; c"),
        ("2", "1", "a b"),
        ("3", "1", "a b c d"),
    ]
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(pictures) == 2
    assert page.count("(no tree)") == 1
    assert [picture.count("data-dependent=") for picture in pictures] == [3, 4]
    assert 'class="arc crossed"' in pictures[1]
    for picture in pictures:
        ElementTree.fromstring(picture)


def test_sentences_written_from_right_to_left_begin_on_the_right():
    sentences = [Sentence(['"', "שלום"]), Sentence(["السلام", "a"]), Sentence(["a", "שלום"]), Sentence(["1"])]
    assert re.findall('dir="(...)"', "".join(draw_page(sentences, "x"))) == ["rtl", "rtl", "ltr", "ltr"]


def test_a_page_shows_how_certain_heads_are():
    certain = np.array([0.5, 0.99])
    confidence = Confidence(np.ones(2), np.array([0, 1]), np.ones(2), certain, certain)
    tree = Annotation(np.array([2, 0]), ("a", "root"), confidence=confidence)
    page = "".join(draw_page([Sentence(["a", "b"]).annotated(tree)], "x"))
    assert re.findall('class="note"[^>]*>([^<]*)<', page) == ["50%"]


def test_a_page_comes_piece_by_piece():
    def endless():
        while True:
            yield SENTENCES[0]

    pieces = draw_page(endless(), "x")
    assert [next(pieces).count("<svg") for _ in range(3)] == [0, 1, 1]


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_bytes(b"".join(sentence.to_bytes() for sentence in SENTENCES) + b"1\tbad\n\n")
    return path


def test_mh4_draw(treebank, tmp_path):
    page = tmp_path / "trees.html"
    result = CliRunner().invoke(app, ["draw", str(treebank), "-o", str(page), "--skip-bad"])
    assert result.exit_code == 0
    assert page.read_text(encoding="utf-8").count("<svg") == 2
    assert "<title>trees.conllu</title>" in page.read_text(encoding="utf-8")
    shown = CliRunner().invoke(app, ["draw", str(treebank), "--skip-bad"]).output
    assert "s<1>: <b> & c\n" in shown
    assert shown.count("▶") == 7
    assert "(no tree)" in shown
    assert "<b>  a\n" in shown  # the word and its relation
    wrong = CliRunner().invoke(app, ["draw", str(treebank), "-o", str(tmp_path / "trees.svg")])
    assert "the name of a page must end in .html" in str(wrong.exception)
    capitals = CliRunner().invoke(app, ["draw", str(treebank), "-o", str(tmp_path / "trees.HTM"), "--skip-bad"])
    assert capitals.exit_code == 0
    assert "2 tab-separated columns" in capitals.stderr
    broken = CliRunner().invoke(app, ["draw", str(treebank), "-o", str(tmp_path / "new.html")])
    assert "sentence 4: 2 tab-separated columns" in str(broken.exception)
    assert not (tmp_path / "new.html").exists()
