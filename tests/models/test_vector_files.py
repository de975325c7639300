"""Files of word vectors: all formats give the same words and vectors, and errors are reported in one line."""

import bz2
import gzip
import lzma
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from mh4 import machine
from mh4.models.encoder import UnusableError, unreported
from mh4.models.vector_files import read_vectors

WORDS = ["the", "Hund", "0", "naïve", "a\u00a0b", "…", "5.5"]
VECTORS = np.random.default_rng(1).normal(size=(len(WORDS), 6)).astype(np.float32)
LINES = [f"{word} {' '.join(map(repr, map(float, row)))}" for word, row in zip(WORDS, VECTORS, strict=True)]
HEADER = f"{len(WORDS)} 6"
ALL = 1000


def gensim_models():
    return pytest.importorskip("gensim.models", reason="gensim (extra 'vectors') is not installed")


def write(path, *lines, end="\n"):
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def read(path, most=ALL, wanted=(), on_reading=unreported):
    return read_vectors(str(path), most, wanted, on_reading)


@pytest.fixture(params=["word2vec", "fastText", "GloVe", "tabs", "CRLF", ".gz", ".xz", ".bz2", "no end"])
def text(request, tmp_path):
    path = tmp_path / "v.vec"
    match request.param:
        case "word2vec" | "no end":
            return write(path, HEADER, *LINES, end="\n" if request.param == "word2vec" else "")
        case "fastText":
            return write(path, HEADER, *(f"{line} " for line in LINES))
        case "GloVe":
            return write(path, *LINES)
        case "tabs":
            return write(path, HEADER.replace(" ", "\t"), *(line.replace(" ", "\t") for line in LINES))
        case "CRLF":
            return write(path, HEADER, *LINES, end="\r\n")
        case suffix:
            packed = tmp_path / f"v.vec{suffix}"
            module = {".gz": gzip, ".xz": lzma, ".bz2": bz2}[suffix]
            packed.write_bytes(module.compress(write(path, HEADER, *LINES).read_bytes()))
            return packed


@pytest.fixture(params=["v.bin", "v.bin.gz", "newlines.bin"])
def binary(request, tmp_path):
    """A binary word2vec file as gensim writes it, or with a newline after each vector as in the original program."""
    vectors = gensim_models().KeyedVectors(6)
    vectors.add_vectors(WORDS, VECTORS)
    path = tmp_path / request.param
    vectors.save_word2vec_format(str(tmp_path / "plain.bin"), binary=True)
    content = (tmp_path / "plain.bin").read_bytes()
    if request.param == "newlines.bin":
        header, _, _ = content.partition(b"\n")
        entries = (f"{word} ".encode() + row.tobytes() for word, row in zip(WORDS, VECTORS, strict=True))
        content = header + b"\n" + b"".join(entry + b"\n" for entry in entries)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_text(text):
    words, vectors = read(text)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)


def test_binary(binary):
    words, vectors = read(binary)
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)


def test_only_frequent_words_and_wanted_ones_are_kept(text):
    words, vectors = read(text, 2, {"…", "Katze"})
    assert words == ["the", "Hund", "…"]
    np.testing.assert_array_equal(vectors, VECTORS[[0, 1, 5]])
    words, vectors = read(text, 0, {"naïve"})
    assert (words, vectors.shape) == (["naïve"], (1, 6))
    assert read(text, 0)[1].shape == (0, 6)


def test_of_a_word_that_comes_again_the_first_vector_counts(tmp_path):
    words, vectors = read(write(tmp_path / "v.vec", "a 1 2", "b 3 4", "a 5 6", "c 7 8"), 2, {"a", "c"})
    assert words == ["a", "b", "c"]
    assert vectors.tolist() == [[1, 2], [3, 4], [7, 8]]


def test_words_may_hold_spaces(tmp_path):
    words, vectors = read(write(tmp_path / "glove.txt", ", 1 2", ". . . 3 4", "at name@domain.com 5 6", "2 7 8"))
    assert words == [",", ". . .", "at name@domain.com", "2"]
    assert vectors.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


@pytest.mark.parametrize("lines", [[HEADER, *LINES], LINES])
def test_a_byte_order_mark_and_blank_lines_at_the_end_are_dropped(tmp_path, lines):
    words, vectors = read(write(tmp_path / "v.vec", "\ufeff" + lines[0], *lines[1:], "", " "))
    assert words == WORDS
    np.testing.assert_array_equal(vectors, VECTORS)


def test_progress_is_reported(tmp_path):
    path = write(tmp_path / "v.vec", *(f"w{i} 1 2" for i in range(10_000)))
    reports = []
    read(path, 5, on_reading=lambda *report: reports.append(report))
    size = path.stat().st_size
    assert len(reports) == 11
    assert reports == sorted(reports)
    assert {total for _, total in reports} == {size}
    assert reports[-1] == (size, size)
    assert reports[4][0] == pytest.approx(size / 2, rel=0.2)


def test_a_long_number_is_a_word_not_the_size_of_a_file(tmp_path):
    words, vectors = read(write(tmp_path / "v.vec", f"{'7' * 60} 5", "a 6"))
    assert (words, vectors.tolist()) == (["7" * 60, "a"], [[5.0], [6.0]])


@pytest.mark.parametrize("kept", [1_000, 20_000])
def test_no_more_is_in_memory_than_what_is_kept(tmp_path, kept):
    path = tmp_path / "large.vec"
    size, count = 20, 30_000
    numbers = " ".join(f"{x:.100f}" for x in np.random.default_rng(1).normal(size=size))
    with path.open("w") as stream:
        stream.writelines(f"word{i} {numbers}\n" for i in range(count))
    assert path.stat().st_size > 60_000_000
    tracemalloc.start()
    try:
        words, _ = read(path, kept, {f"word{count - 1}"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(words) == kept + 1
    assert peak < 1.3 * kept * (4 * size + sys.getsizeof("word12345") + 100) + 500_000  # 100: a dictionary entry


def changed(number, line):
    lines = [HEADER, *LINES]
    lines[number - 1] = line
    return lines


TEXTS = {
    "a number too few": (changed(4, "x 1 2 3 4 5"), "line 4: has 5 numbers where 6 are expected"),
    "a number too many": (changed(4, "x 1 2 3 4 5 6 7"), "line 4: has 7 numbers where 6 are expected"),
    "without a header": (["a 1 2", "b 1"], "line 2: has 1 numbers where 2 are expected"),
    "numbers alone": (changed(5, "1 2 3 4 5 6"), "line 5: has 5 numbers where 6 are expected"),
    "an empty line": (changed(3, ""), "line 3: has 0 numbers where 6 are expected"),
    "NaN": (changed(3, "x 1 nan 3 4 5 6"), "line 3: 'nan' is not a finite number"),
    "infinity": (changed(3, "x 1 2 3 4 5 -inf"), "line 3: '-inf' is not a finite number"),
    "too large": (changed(3, "x 1 2 3 4 5 1e39"), "line 3: the vector of 'x' holds NaN or infinity"),
    "far too large": (changed(3, "x 1 2 3 4 5 1e999"), "line 3: the vector of 'x' holds NaN or infinity"),
    "no number": (changed(3, "x 1 2 3 4 5 six"), "line 3: 'six' is not a finite number"),
    "not quite a number": (changed(3, "x 1 2 3 4 5 6.6.6"), "line 3: '6.6.6' is not a finite number"),
    "a number of Python's": (changed(3, "x 1 2 3 4 5 1_0"), "line 3: '1_0' is not a finite number"),
    "another header": (["7 5", *LINES], "line 2: has 6 numbers where 5 are expected"),
    "lines missing": ([HEADER, *LINES[:-2]], "ends after 5 of 7 words: it is truncated"),
    "lines too many": ([HEADER, *LINES, "x 1 2 3 4 5 6"], "line 9: there are more words than the 7 that line 1"),
    "words alone": (["the", "Hund"], "line 1: vectors of 0 numbers"),
    "no words": (["0 6"], "holds no vectors"),
    "vectors of nothing": (["2 0", "a", "b"], "line 1: vectors of 0 numbers"),
    "endless vectors": (["2 999999999999"], "line 1: vectors of 999999999999 numbers; from 1 to"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("most", [ALL, 1])
def test_text_that_is_not_right(name, most, tmp_path):
    lines, message = TEXTS[name]
    path = write(tmp_path / "v.vec", *lines)
    if most == 1 and ("too large" in name or name == "not quite a number"):
        most = 3  # vectors of words that are not kept are not parsed
    with pytest.raises(UnusableError) as error:
        read(path, most)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def fails(path, message, most=ALL):
    with pytest.raises(UnusableError) as error:
        read(path, most)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path):
    fails(tmp_path, "no such file")
    fails(tmp_path / "none.vec", "no such file")
    with pytest.raises(UnusableError, match=r"^vectors: no such file$"):
        read("")


def test_text_that_is_not_utf_8(tmp_path):
    path = tmp_path / "v.vec"
    path.write_bytes(b"a 1 2\nb 3 4\nstra\xdfe 5 6\n")
    fails(path, "line 3: 'stra\ufffde' is not UTF-8")
    fails(path, "line 3: 'stra\ufffde' is not UTF-8", most=1)


def test_a_format_that_the_name_does_not_tell(tmp_path):
    plain, named = tmp_path / "v.vec", tmp_path / "v.bin"
    plain.write_bytes(b"2 2\na " + np.array([1, 2], np.float32).tobytes() + b"b " + bytes(8))
    fails(plain, "line 2: is not text (the names of word2vec's binary files must end in .bin)")
    write(named, HEADER, *LINES)
    fails(named, "is text (the names of text files must not end in .bin)")
    plain.write_bytes(b"PK\x03\x04" + bytes(60))
    fails(plain, "is a zip archive (unpack it, and name the file of vectors in it)")


@pytest.mark.parametrize("end", [0, 5])
def test_text_cut_short(text, end):
    """A truncated file is an error, unless it has no header and ends between two lines."""
    content = text.read_bytes()
    text.write_bytes(content[: len(content) // 2 + end])
    if text.suffix == ".vec":
        lines = (len(content) // 2 + end) and text.read_bytes().count(b"\n") + 1
        fails(text, f"line {lines}: has ")
    else:
        with pytest.raises(UnusableError, match=r"(cut short|are expected)$"):
            read(text)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_packed_content_that_is_damaged(tmp_path, suffix):
    lines = "".join(f"w{i} {i / 7} {i / 3}\n" for i in range(20_000))
    content = {".gz": gzip, ".xz": lzma, ".bz2": bz2}[suffix].compress(lines.encode())
    message = r"(after \d+ words: )?its packed content is damaged or cut short$|line \d+: "
    path = tmp_path / f"v.vec{suffix}"
    damaged = bytearray(content)
    damaged[len(content) // 2 : len(content) // 2 + 60] = bytes(60)
    for broken in (content[: len(content) // 2], bytes(damaged)):
        path.write_bytes(broken)
        with pytest.raises(UnusableError, match=message) as error:
            read(path)
        assert "\n" not in str(error.value)
    path.write_bytes(content[:12])
    fails(path, "its packed content is damaged or cut short")


def test_binary_files_that_are_not_right(binary):
    if binary.suffix == ".gz":
        pytest.skip("the same inside")
    content = binary.read_bytes()
    start = content.index(b"Hund ") + len("Hund ")

    def becomes(broken, message):
        binary.write_bytes(broken)
        fails(binary, message)

    becomes(content[:-6], "ends after 6 of 7 words: it is truncated")
    becomes(content[: start + 3], "ends after 1 of 7 words: it is truncated")
    becomes(content[:4], "ends after 0 of 7 words: it is truncated")
    becomes(content.replace(b"Hund ", b"H\xffnd "), "word 2: 'H\ufffdnd' is not UTF-8")
    nan = np.array([np.nan], np.float32).tobytes()
    becomes(content[:start] + nan + content[start + 4 :], "word 2: the vector of 'Hund' holds NaN or infinity")
    becomes(b"2 3\n" + b"x" * 3_000_000, "word 1: has no end")
    becomes(b"the 1 2\n", "not a binary file of word2vec, which begins with a line of two numbers")
    becomes(b"", "holds no vectors")


@pytest.fixture(scope="module")
def fasttext(tmp_path_factory):
    """The path of a model in fastText's own format, and gensim's vectors of it."""
    sentences = [["der", "Hund", "bellt"], ["die", "Hunde", "bellen"], ["der", "Esel", "schreit"]] * 5
    models = gensim_models()
    model = models.FastText(
        sentences, vector_size=8, min_count=1, min_n=2, max_n=3, bucket=50, seed=1, workers=1, epochs=1
    )
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    models.fasttext.save_facebook_model(model, str(path))
    return path, model.wv


def test_models_of_fasttext_know_unseen_words(fasttext):
    path, known = fasttext
    words, vectors = read(path, 3, {"Hundes", "Esel"})
    assert words == [*known.index_to_key[:3], *sorted({"Hundes", "Esel"} - {*known.index_to_key[:3]})]
    np.testing.assert_allclose(vectors, [known.get_vector(word) for word in words], atol=1e-6)
    assert np.abs(vectors[words.index("Hundes")]).max() > 0


def test_words_whose_ngrams_are_all_unknown_to_fasttext_have_no_vector(fasttext, monkeypatch):
    vectors = {"some": [0.0, 1.0], "none": [0.0, 0.0]}
    model = SimpleNamespace(index_to_key=[], get_vector=vectors.get)
    monkeypatch.setattr("gensim.models.fasttext.load_facebook_vectors", lambda path: model)
    words, found = read(fasttext[0], 0, vectors)
    assert (words, found.tolist()) == (["some"], [[0.0, 1.0]])


def test_models_of_fasttext_that_are_damaged(fasttext, tmp_path, monkeypatch):
    content = fasttext[0].read_bytes()
    path = tmp_path / "model.bin"
    for size in (6, 60, len(content) // 2):
        path.write_bytes(content[:size])
        fails(path, "cannot be read as a model of fastText: ")

    def missing(name):
        raise ModuleNotFoundError("No module named 'gensim'", name="gensim")

    monkeypatch.setattr(machine, "import_module", missing)
    fails_with = "gensim is not installed: pip install 'mh4[vectors]'"
    with pytest.raises(machine.MissingPackageError) as error:
        read(path)
    assert str(error.value) == fails_with
