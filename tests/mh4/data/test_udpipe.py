"""UDPipe segmenters, which models trained by older versions have."""

import pickle

import pytest

import mh4
from mh4.data.errors import DataError, Errors
from mh4.data.text import text_of
from mh4.data.udpipe import UDPipeSegmenter
from mh4.parsers.sources import read_file

TEXT = "Zub ulv.  Zubani\ttor “teg”.\r\n \n\n\tNew paragraph: 10 000.\n"


@pytest.fixture
def udpipe(udpipe_model):
    return UDPipeSegmenter(udpipe_model, udpipe_model.read_bytes())


def test_an_older_model_still_cuts_text(older_text_model, tmp_path):
    parser = mh4.load(older_text_model, device="cpu")
    document = parser(TEXT)
    assert "".join(text_of(document)) == TEXT
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    assert [one.forms for one in parser.parse(tmp_path / "a.txt", format="text")] == [one.forms for one in document]
    parser.save(tmp_path / "m")
    assert mh4.load(tmp_path / "m", device="cpu")(TEXT) == document


def test_multiword_tokens_are_split(udpipe):
    sentences = list(udpipe.cut("Zub suteri ulv. Tor vetar ulv. " * 20))
    assert any(token.last > token.first for sentence in sentences for token in sentence.tokens)


@pytest.mark.parametrize("text", ["😀👩‍👩‍👧", "\u200d", "a" * 3000, "\u2028x\u2028\u2028y", "é " * 2000])
def test_hostile_text_comes_back(udpipe, text):
    assert "".join(text_of(udpipe.cut(text))) == text


def test_it_can_be_copied(udpipe):
    assert list(pickle.loads(pickle.dumps(udpipe)).cut(TEXT)) == list(udpipe.cut(TEXT))


@pytest.mark.parametrize("size", [0, 100, -1])
def test_a_damaged_one_is_named(udpipe_model, size, tmp_path):
    path = tmp_path / "broken.udpipe"
    path.write_bytes(b"")
    broken = UDPipeSegmenter(path, udpipe_model.read_bytes()[:size])
    for cut in (lambda: broken.cut("Zub."), lambda: read_file(path, "text", Errors("raise"), broken)):
        path.write_text("Zub.")
        with pytest.raises(DataError, match=r"broken\.udpipe: is damaged"):
            list(cut())


def test_without_udpipe_one_line_says_what_to_install(udpipe, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ufal.udpipe", None)
    with pytest.raises(ValueError, match=r"ufal.* is not installed: pip install 'mh4\[text\]'"):
        list(udpipe.cut(TEXT))
