"""The segmenter of a model loses no text of any kind, cuts streams like whole texts, and checks its files."""

import gzip
import io
import os
import pickle
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from mh4.data.arriving import arriving_lines
from mh4.data.blocks import WAITING
from mh4.data.document import Document
from mh4.data.errors import DataError, Errors
from mh4.data.sample import read_sample
from mh4.data.text import PORTION, text_of
from mh4.models.atoms import EDGE, FEATURES, FEATURES_OF_FORMAT, NO_GAP
from mh4.parsers.checksums import write_file
from mh4.parsers.folder import ModelFolder
from mh4.parsers.segmenter import SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS, AtomReader, Ends, NeuralSegmenter
from mh4.parsers.sources import read_file

KINDS = {
    "without spaces": "我爱北京天安门。今天天气很好。東京タワーへ行きました。",
    "Thai": "ฉันรักภาษาไทย วันนี้อากาศดี",
    "spaces inside words": "Hải quân Việt Nam đã rải truyền đơn. 10 000 km.",
    "right to left": "שלום עולם. מה שלומך? السلام عليكم، كيف حالك؟",
    "emoji": "😀👩‍👩‍👧🏽🇭🇺❤️ ok 👍🏿!",
    "combining marks": "é à na\u0308ive कि क्षत्रिय",
    "numbers": "1,5 10.000,00 ½ 3/4 -7 +36-1-234 2018.01.05. 12:30",
    "addresses": "http://www.mh4.example/a?b=c&d#e info@mh4.example @user #tag C:\\x\\y.txt",
    "abbreviations": "Dr. Kovács u. 5. stb. pl. U.S.A. e.g. Ph.D.",
    "ellipses": "No... well… Yes?! (Really?!!) –– «quoted»",
    "invisible": "\u200b\u200d \u2060zub\u00ad\ufeff \x01 \u061c",
}


def lines_of(sentences):
    return [sentence.to_conllu() for sentence in sentences]


class Slowly(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, content, sizes):
        self.content, self.sizes, self.at = content, sizes, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        size = min(len(buffer), self.sizes[self.at % len(self.sizes)])
        piece = self.content[:size]
        self.content, self.at = self.content[len(piece) :], self.at + 1
        buffer[: len(piece)] = piece
        return len(piece)


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_all_kinds_comes_back(kind, segmenter):
    text = KINDS[kind]
    sentences = list(segmenter.cut(text))
    assert "".join(text_of(sentences)) == text
    conllu = "".join(lines_of(sentences))
    assert list(Document.from_conllu(conllu)) == sentences


PIECES = [*KINDS.values(), "Zub ulv. Tor teg.", "\n\n", "\r\n", "\t", " "]


@given(st.lists(st.sampled_from(PIECES)), st.lists(st.integers(1, 9), min_size=1))
def test_a_stream_gives_what_the_whole_text_gives(segmenter, pieces, sizes):
    text = "".join(pieces)
    stream = io.BufferedReader(Slowly(text.encode(), sizes), 16)
    found = list(segmenter.cut_stream(stream, "text", Errors("raise")))
    assert lines_of(found) == lines_of(segmenter.cut(text))
    assert [one.layout for one in found] == [one.layout for one in segmenter.cut(text)] or text.startswith("\ufeff")


def test_a_pipe_gives_what_the_whole_text_gives(segmenter):
    """Wherever reads happen to break the text, and although long lines are segmented in pieces."""
    text = "".join(KINDS.values()) * 150 + "\n\nZub ulv.\nTor.\n" + "é" * (PORTION // 2 + 3)
    content = text.encode()
    reader, writer = os.pipe()

    def write():
        with open(writer, "wb", buffering=0) as stream:
            for i in range(0, len(content), 4099):
                stream.write(content[i : i + 4099])

    thread = threading.Thread(target=write)
    thread.start()
    with open(reader, "rb") as stream:
        found = list(segmenter.cut_stream(stream, "text", Errors("raise")))
    thread.join()
    assert [one for one in found if one is not None] == list(segmenter.cut(text))


def test_a_paragraph_does_not_wait_for_the_next(segmenter):
    reader, writer = os.pipe()
    with open(reader, "rb") as stream, open(writer, "wb", buffering=0) as sink:
        sentences = segmenter.cut_stream(stream, "text", Errors("raise"))
        sink.write(b"Zub ulv.\n\nTor te")
        assert next(sentences).text == "Zub ulv."
        assert next(sentences) is None
        sink.write(b"g.\n\n")
        assert next(sentences).text == "Tor teg."


def test_lines_of_a_pipe_come_in_pieces():
    reader, writer = os.pipe()
    content = b"ab\n" + b"x" * 10 + b"\n" + b"y" * 8
    os.write(writer, content)
    os.close(writer)
    with open(reader, "rb") as stream:
        found = [line for line in arriving_lines(stream, 4) if line is not WAITING]
    assert found == [b"ab\n", b"xxxx", b"xxxx", b"xx\n", b"yyyy", b"yyyy"]


def test_what_speaks_for_an_end_is_more_than_what_it_takes(segmenter):
    """Proposed odds are log-odds less the threshold, and infinite at the end of a paragraph."""
    texts = ["Zub ulv. Tor teg.", "Teg tor ulv"]
    free, strict = (list(segmenter.with_odds(-99.0, odds).propose(texts)) for odds in (0.0, 1.5))
    for one, other in zip(free, strict, strict=True):
        assert one.tokens == other.tokens
        assert one.odds[-1] == np.inf
        np.testing.assert_allclose(one.odds[:-1] - 1.5, other.odds[:-1], atol=1e-6)


def test_a_token_has_several_words_if_that_is_likelier_than_not(segmenter):
    odds = np.array([[1, -1, 0.5], [1, -1, -0.5], [-1, -1, 0.5], [-1, -1, 0.5]], np.float32)
    ends = Ends.of(odds, np.array([NO_GAP, NO_GAP, NO_GAP, EDGE]), segmenter.with_odds(0.0, 0.0).settings)
    assert ends.tokens.tolist() == [True, True, False, True]
    assert ends.several.tolist() == [True, False, False, True]


def test_white_space_ends_a_word_unless_words_of_the_treebank_hold_it(segmenter):
    assert not segmenter.settings.spaces_in_words
    reluctant = segmenter.with_odds(99.0, 99.0)
    assert [one.forms for one in reluctant.cut("Zub ulv.\nTor")] == [("Zub", "ulv.", "Tor")]
    spaced = NeuralSegmenter(
        replace(reluctant.settings, spaces_in_words=True), load(segmenter.files[SEGMENTER_WEIGHTS])
    )
    assert [one.forms for one in spaced.cut("Zub ulv. Tor")] == [("Zub ulv. Tor",)]


def test_paragraphs_do_not_change_each_other(segmenter):
    texts = [*KINDS.values(), "Zub ulv. Tor teg. " * 200]
    together = segmenter._tokens(texts)
    assert together == [segmenter._tokens([text])[0] for text in texts]


def test_several_threads_share_one(segmenter):
    texts = [kind * 3 for kind in KINDS.values()]
    alone = [lines_of(segmenter.cut(text)) for text in texts]
    again = pickle.loads(pickle.dumps(segmenter))  # a copy with empty caches
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: lines_of(again.cut(text)), texts * 4)) == alone * 4


def test_a_long_text_takes_little_memory(segmenter):
    class Endless(io.RawIOBase):
        left = 40

        def readable(self):
            return True

        def readinto(self, buffer):
            self.left -= 1
            size = len(buffer) if self.left >= 0 else 0
            buffer[:size] = b"x" * size
            return size

    stream = io.BufferedReader(Endless(), 1 << 16)
    next(segmenter.cut_stream(stream, "text", Errors("raise")))
    tracemalloc.start()
    longest = max(len(one.text) for one in segmenter.cut_stream(stream, "text", Errors("raise")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert longest <= 251_000
    assert peak < 60 << 20


def test_a_file_is_a_document(segmenter, tmp_path):
    path = tmp_path / "a b.txt"
    path.write_bytes(b"Zub ulv.  Tor.\n\nTeg.")
    found = list(read_file(path, "text", Errors("raise"), segmenter))
    assert found[0].comments[0] == "# newdoc id = a b"
    assert [one.lines[1:] for one in found] == [one.lines[1:] for one in segmenter.cut("Zub ulv.  Tor.\n\nTeg.")]
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    with pytest.raises(DataError, match=r"nowhere\.txt: no such file"):
        list(read_file(tmp_path / "nowhere.txt", "text", Errors("raise"), segmenter))
    path.write_bytes(b"One.\n\n\xff\n\nTwo.\n")
    with pytest.raises(DataError, match=r"a b\.txt:3: .*UTF-8"):
        list(read_file(path, "text", Errors("raise"), segmenter))
    report = Errors(lambda error: None)
    assert len(list(read_file(path, "text", report, segmenter))) == 2
    assert report.count == 1


@pytest.mark.parametrize("name", ["a\nb.txt", "a\u2028b.txt", b"a\xffb.txt".decode(errors="surrogateescape")])
def test_a_document_has_a_printable_name(segmenter, tmp_path, name):
    path = tmp_path / name
    path.write_text("Zub ulv.\n", encoding="utf-8")
    first = next(iter(read_file(path, "text", Errors("raise"), segmenter)))
    assert first.comments[0] == "# newdoc id = a_b"


@pytest.mark.parametrize("name", ["ch.1.txt", "ch.1.TXT", "ch.1.txt.gz", "ch.1", "ch.1.GZ"])
def test_a_document_is_named_like_its_file_without_txt_and_compression(segmenter, tmp_path, name):
    path = tmp_path / name
    text = b"Zub ulv.\n"
    path.write_bytes(gzip.compress(text) if name.lower().endswith(".gz") else text)
    first = next(iter(read_file(path, "text", Errors("raise"), segmenter)))
    assert first.comments[0] == "# newdoc id = ch.1"


def test_the_sample_is_cut_as_it_was(segmenter):
    gold = Document.from_conllu("".join(read_sample()["train"][:40]))
    found = list(segmenter.cut("".join(text_of(gold))))
    assert [one.forms for one in found] == [one.forms for one in gold]


@pytest.fixture
def folder(segmenter, tmp_path):
    for name, content in segmenter.files.items():
        write_file(tmp_path / name, content)
    return ModelFolder(tmp_path)


def test_files_hold_all_of_it(segmenter, folder):
    text = "".join(KINDS.values())
    assert lines_of(folder.segmenter.cut(text)) == lines_of(segmenter.cut(text))
    assert folder.segmenter.files == segmenter.files


def test_a_segmenter_of_the_first_format_sees_its_own_features(segmenter):
    arrays = load(segmenter.files[SEGMENTER_WEIGHTS])
    first, now = FEATURES_OF_FORMAT[1], len(FEATURES)
    rows = [*range(first), *range(now, len(arrays["table"]))]
    earlier = NeuralSegmenter(replace(segmenter.settings, format=1), arrays | {"table": arrays["table"][rows]})
    texts = [" ".join(KINDS.values()), "Zub ulv."]
    _, expected = AtomReader((), arrays, now)(texts)
    expected = expected[:, :first]
    _, ids = AtomReader((), arrays, first)(texts)
    assert (ids == np.where(expected < first, expected, expected - now + first)).all()
    assert "".join(text_of(earlier.cut(texts[0]))) == texts[0]
    assert earlier.log_odds(texts)[1].shape == (len(ids), 3)


def changed(name, change):
    def damage(settings, weights):
        arrays = load(weights)
        arrays[name] = change(arrays[name])
        return settings, save(arrays)

    return damage


def without(name):
    def damage(settings, weights):
        return settings, save({other: array for other, array in load(weights).items() if other != name})

    return damage


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda s, w: (b"", w), r"segmenter\.json: not valid JSON"),
        (lambda s, w: (s.replace(b'"format": 2', b'"format": 3'), w), r"segmenter\.json: format"),
        (lambda s, w: (s.replace(b'"token_odds"', b'"odds"'), w), r"segmenter\.json: .*odds"),
        (lambda s, w: (s.replace(b'"lone_scripts": []', b'"lone_scripts": [-1]'), w), r"segmenter\.json: lone_scripts"),
        (lambda s, w: (s.replace(b'"tar"', b'"a\\tb"', 1), w), r"segmenter\.json: multiword"),
        (lambda s, w: (s, b""), r"segmenter\.safetensors: not a complete safetensors file"),
        (lambda s, w: (s, w[:-1]), r"segmenter\.safetensors: not a complete safetensors file"),
        (without("hashes"), r"segmenter\.safetensors: hashes is missing"),
        (without("cut_runs"), r"cut_runs is missing"),
        (without("table"), r"table is missing"),
        (without("bilstm.layers.0.bias"), r"bilstm\.layers\.0\.bias is missing"),
        (changed("hashes", lambda a: a[1:]), r"table has \d+ rows where \d+ are expected"),
        (changed("hashes", lambda a: a.astype(np.float32)), r"hashes is not a vector of 64-bit integers"),
        (changed("hashes", lambda a: a * 0), r"hashes holds a hash twice, or 0"),
        (changed("cut_places", lambda a: np.ones(3, np.int64)), r"cut_places and cut_runs differ in length"),
        (changed("table", lambda a: a * np.nan), r"table holds NaN or infinity"),
        (changed("table", lambda a: a.astype(np.float64)), r"table is float64"),
        (changed("table", lambda a: a[:, :3].copy()), r"bilstm\.layers\.0\.input_weight is float32"),
        (changed("output.weight", lambda a: a[:2].copy()), r"output\.weight is float32"),
        (changed("bilstm.layers.0.bias", lambda a: a[:, :12].copy()), r"bilstm\.layers\.0\.bias"),
        (changed("bilstm.layers.0.recurrent_weight", lambda a: a[:1].copy()), r"recurrent_weight is float32"),
    ],
)
def test_damaged_files_are_named_in_one_line(damage, problem, folder, segmenter):
    before = tuple(segmenter.files[name] for name in (SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS))
    after = damage(*before)
    assert after != before
    for name, content in zip((SEGMENTER_SETTINGS, SEGMENTER_WEIGHTS), after, strict=True):
        write_file(folder / name, content)
    with pytest.raises(DataError, match=problem) as error:
        _ = folder.segmenter
    assert "\n" not in str(error.value)
    assert str(folder.path) in str(error.value)


def test_weights_that_are_missing_are_named(folder):
    (folder / SEGMENTER_WEIGHTS).unlink()
    with pytest.raises(DataError, match=r"segmenter\.safetensors: no such file"):
        _ = folder.segmenter
