import io
import itertools
import re
import sys
import time
import tracemalloc
from types import SimpleNamespace

import conllu
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import UD

from mh4.data import conllu as treebank
from mh4.data.blocks import blocks, read_block
from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import BadFileError, DataError

DEV_FILES = sorted(UD.parent.glob("2.*/*/*-dev.conllu"))

EXAMPLE = (
    "# newdoc\n"
    "# sent_id = dev-s1\n"
    "# text = Don't go  away\n"
    "# text = a repeated key\n"
    "# a comment without the sign\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\tRB\tPolarity=Neg\t3\tadvmod\t_\t_\n"
    "3\tgo  away\tgo\tVERB\tVB\t_\t0\troot\t0:root\tRef=a=b|SpacesAfter=\\n\n"
    "3.1\t_\t_\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n"
    "\n"
)


def word(i, form="w", head="_", relation="_"):
    return f"{i}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"


def tree(*heads, comments=""):
    return comments + "".join(word(i, f"w{i}", head) for i, head in enumerate(heads, start=1)) + "\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="hu.conllu"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def read(write):
    """Return a function that reads the sentences of CoNLL-U text."""
    return lambda content, **options: list(read_conllu(write(content), **options))


@pytest.fixture
def error(write, tmp_path):
    """Return a function that reads bad CoNLL-U text and returns the error message, without the folder's name."""

    def error(content, trees="any"):
        with pytest.raises(DataError) as caught:
            list(read_conllu(write(content), trees=trees))
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}/")
        assert "\n" not in message
        return message.removeprefix(f"{tmp_path}/")

    return error


def rendered(sentences) -> bytes:
    return b"".join(sentence.to_bytes() for sentence in sentences)


# Contents of a sentence.


def test_columns_and_position(read):
    first, second = read(EXAMPLE + tree(2, 0), trees="required")
    assert first.forms == ("Do", "n't", "go  away")
    assert first.lemmas == ("do", "not", "go")
    assert first.upos == ("AUX", "PART", "VERB")
    assert first.xpos == ("VB", "RB", "VB")
    assert first.feats == ("Mood=Imp", "Polarity=Neg", "_")
    assert first.relations == ("aux", "advmod", "root")
    assert first.heads.tolist() == [3, 3, 0]
    assert first.heads.dtype == np.int32
    assert first.lines == tuple(EXAMPLE.split("\n")[:-2])
    assert len(first) == 3
    assert first.roots == (3,)
    assert (first.sent_id, first.number, first.first_line, first.layout.newline) == ("dev-s1", 1, 1, "\n")
    assert (second.sent_id, second.number, second.first_line) == (None, 2, 12)
    assert (first.name, second.name) == ("sentence dev-s1", "sentence 2")
    assert first.source.endswith("hu.conllu")


def test_errors_about_a_sentence_are_located(read):
    (sentence,) = read(EXAMPLE)
    assert str(sentence.error("is odd")).endswith("hu.conllu:1: sentence dev-s1: is odd")
    assert str(sentence.error("is odd", 3)).endswith("hu.conllu:9: sentence dev-s1: is odd")


def test_missing_heads_are_minus_one(read):
    (sentence,) = read(tree("_", 0, "_"))
    assert sentence.heads.tolist() == [-1, 0, -1]
    assert sentence.roots == (2,)


def test_several_roots_are_accepted_and_listed(read):
    (sentence,) = read(tree(0, 1, 0), trees="required")
    assert sentence.roots == (1, 3)


def test_parsing_does_not_need_a_tree(read):
    (sentence,) = read(tree(2, 1, 3))
    assert sentence.heads.tolist() == [2, 1, 3]


# Round trips.


@pytest.mark.skipif(not DEV_FILES, reason="no Universal Dependencies files beside the repository")
def test_real_treebanks_come_out_as_they_were_read():
    words = 0
    for path in DEV_FILES:
        sentences = list(read_conllu(path, trees="required"))
        words += sum(map(len, sentences))
        assert rendered(sentences) == path.read_bytes(), path
    assert words > 10_000


@pytest.mark.skipif(not DEV_FILES, reason="no Universal Dependencies files beside the repository")
def test_real_treebanks_with_windows_line_ends(write):
    content = DEV_FILES[0].read_bytes().replace(b"\n", b"\r\n")
    sentences = list(read_conllu(write(content), trees="required"))
    assert {sentence.layout.newline for sentence in sentences} == {"\r\n"}
    assert rendered(sentences) == content


@pytest.mark.skipif(not DEV_FILES, reason="no Universal Dependencies files beside the repository")
def test_columns_agree_with_the_conllu_library():
    with open(DEV_FILES[0], encoding="utf-8") as stream:
        for ours, theirs in zip(read_conllu(DEV_FILES[0], trees="required"), conllu.parse_incr(stream), strict=True):
            words = theirs.filter(id=lambda i: isinstance(i, int))
            assert list(ours.forms) == [token["form"] for token in words]
            assert list(ours.upos) == [token["upos"] for token in words]
            assert list(ours.relations) == [token["deprel"] for token in words]
            assert ours.heads.tolist() == [token["head"] for token in words]
            assert ours.sent_id == theirs.metadata.get("sent_id")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(EXAMPLE, id="plain"),
        pytest.param(EXAMPLE * 3, id="three sentences"),
        pytest.param(EXAMPLE.replace("\n", "\r\n") * 2, id="windows line ends"),
        pytest.param(EXAMPLE.replace("\n", "\r\n", 4), id="mixed line ends"),
        pytest.param(EXAMPLE.replace("\n", "\r\r\n") * 2, id="doubled carriage returns"),
        pytest.param(EXAMPLE[:-1] + "\r\n" + EXAMPLE, id="mixed blank line"),
        pytest.param("\n\n" + EXAMPLE, id="blank lines first"),
        pytest.param(EXAMPLE + "\n\r\n  \n" + EXAMPLE, id="blank lines between"),
        pytest.param(EXAMPLE[:-1] + "   \n" + EXAMPLE, id="spaces on the blank line"),
        pytest.param(EXAMPLE[:-1] + "\t\n" + EXAMPLE, id="tab on the blank line"),
        pytest.param(EXAMPLE[:-1] + "\t" * 9 + "\r\n" + EXAMPLE, id="ten empty columns on the blank line"),
        pytest.param("\u00a0\n" + EXAMPLE[:-1] + "\u3000 \n" + EXAMPLE, id="wide spaces on the blank lines"),
        pytest.param(word(1, "a\u2028b\x0b\x85c\x1cd") + "\n", id="separators that are no line ends"),
        pytest.param(word(1, " a\u3000") + word(2, "\u00a0b c ") + "\n", id="white space around forms"),
        pytest.param(word(1, "#") + "\n", id="number sign"),
        pytest.param(word(1) + "# between\n" + word(2) + "\n", id="comment between words"),
        pytest.param(word(1) + word("1.1") + word("1.2") + word(2) + word("2.1") + "\n", id="empty nodes of two words"),
        pytest.param("0.1" + word(1)[1:] + word(1) + "\n", id="empty node before the first word"),
    ],
)
def test_unusual_files_come_out_as_they_were_read(read, content):
    assert rendered(read(content)) == content.encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "{}", "{} ", "{}{}{}"])
def test_the_end_of_a_file_is_normalised_to_one_blank_line(read, newline, ending):
    content = EXAMPLE.replace("\n", newline)
    body = content.removesuffix(newline * 2)
    assert rendered(read(body + ending.replace("{}", newline))) == content.encode()


def test_very_long_sentences(read):
    """Lengths around and above the size of the precomputed tables of IDs and heads."""
    for n in (4094, 4095, 4096, 4097, 5000):
        text = tree(*range(2, n + 1), 0)
        (sentence,) = read(text, trees="required")
        assert sentence.heads.tolist() == [*range(2, n + 1), 0]
        assert sentence.to_bytes() == text.encode()
        again = sentence.replace(heads=sentence.heads, misc=sentence.misc)
        assert again.to_bytes() == text.encode()
        with pytest.raises(DataError, match=f"ID 7 where word {n} is expected"):
            read(tree(*["_"] * n).replace(f"\n{n}\t", "\n7\t"))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("\ufeff" + EXAMPLE * 2, id="at the beginning"),
        pytest.param(EXAMPLE + "\ufeff" + EXAMPLE, id="of a second file"),
        pytest.param("\ufeff\n" + EXAMPLE, id="alone on a line"),
        pytest.param("\ufeff\ufeff" + EXAMPLE.replace("\n", "\r\n"), id="twice"),
    ],
)
def test_a_byte_order_mark_belongs_to_no_sentence(read, tmp_path, content):
    """Otherwise, writing that sentence elsewhere would put a byte order mark in the middle of a file."""
    sentences = read(content)
    expected = content.replace("\ufeff", "").encode()
    assert rendered(sentences) == expected
    write_conllu(sentences[::-1] * 2, tmp_path / "out.conllu")
    assert b"\xef\xbb\xbf" not in (tmp_path / "out.conllu").read_bytes()
    assert [sentence.first_line for sentence in sentences] == [
        number for number, line in enumerate(content.split("\n"), start=1) if line.strip("\ufeff\r") == "# newdoc"
    ]


def test_carriage_return_at_the_end_of_a_file_with_windows_line_ends(read):
    (sentence,) = read((tree(0, 1)[:-2]).replace("\n", "\r\n") + "\r")
    assert sentence.to_bytes() == tree(0, 1).replace("\n", "\r\n").encode()


def test_blank_lines_alone_hold_no_sentence(read):
    assert read("") == read("\n\n \r\n") == read("\ufeff") == []


# No line ends or tabs, which end fields, and no surrogates, which UTF-8 cannot encode.
FREE_TEXT = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), max_size=8)
FORMS = FREE_TEXT.filter(str.strip)
TRIMMED = FREE_TEXT.map(str.strip).filter(bool)  # for LEMMA and MISC
TAGS = FREE_TEXT.map(lambda text: "".join(text.split())).filter(bool)


# Valid and invalid lines and parts of lines.
NO_WORD = "x" + "\t_" * 8 + "\n"
SNIPPETS = [
    *("# sent_id = s1\n", "#\n", f"1-2\t{NO_WORD}", f"1-1\t{NO_WORD}", f"2.1\t{NO_WORD}", "1-2\tx" + "\t" * 8 + "\n"),
    *(f"{i}\tw\t_\t_\t_\t_\t{head}\t_\t_\t_\n" for i in (1, 2, 3) for head in ("_", 0, 1, 3)),
    *("1\tw\t_\t_\t_\t_\t", "_\t_\t_\t_\n", "0\t_\t_\t_\n2\n", "\t", " ", "x", "\n", "2"),
    *(
        "1\t" + "\t".join([*"_" * k, blank, *"_" * (8 - k)]) + "\n"
        for k in range(9)
        for blank in ("", " ", "a b", "a\u00a0")
    ),
    *(f"{i}\t{NO_WORD}" for i in ("1.1", "1.2", "0.1", "3-3")),
]


def content_or_error(block, number):
    """Return the content of a block in comparable form, or its error message."""
    try:
        fields, heads, others, newline = read_block(block, "text", number)
    except DataError as error:
        return str(error)
    return fields, heads.tolist(), others, newline


@st.composite
def sentence_texts(draw, newline):
    n = draw(st.integers(1, 5))
    others = st.tuples(FORMS, TRIMMED, *[TAGS] * 6, TRIMMED).map(list)
    lines = ["#" + draw(FREE_TEXT) for _ in range(draw(st.integers(0, 2)))]
    for i in range(1, n + 1):
        if i < n and draw(st.booleans()) and not any(line.startswith(f"{i - 1}-") for line in lines):
            lines.append("\t".join([f"{i}-{i + 1}", *draw(others)]))
        fields = draw(others)
        fields[5] = draw(st.sampled_from(["_", *map(str, range(n + 1))]))
        lines.append("\t".join([str(i), *fields]))
        lines += ["\t".join([f"{i}.{k}", *draw(others)]) for k in range(1, 1 + draw(st.integers(0, 2)))]
    lead = draw(st.sampled_from(["", "", newline, " " + newline, "\t" + newline]))
    return lead + newline.join(lines) + newline * 2


@given(st.sampled_from(["\n", "\r\n"]).flatmap(lambda newline: st.lists(sentence_texts(newline), max_size=3)))
def test_any_valid_file_comes_out_as_it_was_read(texts):
    content = "".join(texts).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        sentences = list(read_conllu("-"))
    assert len(sentences) == len(texts)
    assert rendered(sentences) == content
    for sentence in sentences:
        new = sentence.replace(heads=sentence.heads, relations=sentence.relations, upos=sentence.upos).to_bytes()
        assert new == sentence.to_bytes()


@given(st.binary(max_size=60) | st.text("1-. \t\n\r_#w", max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(content):
    skipped = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        try:
            sentences = list(read_conllu("-", errors=skipped.append))
        except BadFileError as error:
            sentences = []
            skipped.append(error)
    if content.decode(errors="replace").strip().lstrip("\ufeff").strip():
        assert sentences or skipped
    assert all(isinstance(error, DataError) for error in skipped)


@given(st.lists(sentence_texts("\n"), max_size=3) | st.lists(st.sampled_from(SNIPPETS), max_size=8))
def test_words_read_together_are_those_read_line_by_line(texts):
    for number, block in enumerate(blocks(io.BytesIO("".join(texts).encode())), start=1):
        with pytest.MonkeyPatch.context() as patch:
            quick = content_or_error(block, number)
            patch.setattr("mh4.data.blocks._read_together", lambda text, count: None)
            assert content_or_error(block, number) == quick


# Writing.


def test_written_files_are_those_that_were_read(write, tmp_path, monkeypatch):
    path = write(EXAMPLE * 2)
    write_conllu(read_conllu(path), tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == path.read_bytes()
    (one, _) = read_conllu(path)
    write_conllu(one, tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == EXAMPLE.encode()
    stdout = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=stdout, flush=lambda: None))
    write_conllu([one], "-")
    assert stdout.getvalue() == EXAMPLE.encode()


def test_a_file_is_written_as_a_whole_or_not_at_all(write, tmp_path):
    path = write(tree(0) + tree(5))
    with pytest.raises(DataError, match="HEAD 5"):
        write_conllu(read_conllu(path), tmp_path / "out.conllu")
    assert not (tmp_path / "out.conllu").exists()


@pytest.mark.parametrize(
    ("sentences", "path", "message"),
    [("out.conllu", [], r"write_conllu\(sentences, path\)"), ([["A", "word"]], "out.conllu", "is not a sentence")],
)
def test_what_cannot_be_written(sentences, path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=message):
        write_conllu(sentences, path)


@pytest.mark.parametrize("name", ["q.zip", "q.zst", "q.csv", "q.json", "q.jsonl.gz", "json"])
def test_conllu_is_not_written_under_the_name_of_another_format(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"^{name}: only CoNLL-U can be written here .name the file .conllu.$"):
        write_conllu([], name)
    assert not list(tmp_path.iterdir())


# Bad files. Line 12 is the first line of the second sentence.


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (tree(0, 3), "13: sentence 2: HEAD 3 of word 2 is out of range 0…2"),
        (tree(0, 3, comments="# sent_id = x\n")[:-1], "14: sentence x: HEAD 3 of word 2 is out of range 0…2"),
        (tree(-1), "12: sentence 2: HEAD -1 of word 1 is out of range 0…1"),
        (tree("1" * 30), "12: sentence 2: HEAD 1111111…1111 of word 1 is out of range 0…1"),
        (tree("1" * 5000), f"12: sentence 2: HEAD '{'1' * 39}…' of word 1 is neither a number nor \"_\""),
        (tree("root"), "12: sentence 2: HEAD 'root' of word 1 is neither a number nor \"_\""),
        (tree("0 "), "12: sentence 2: HEAD '0 ' of word 1 is neither a number nor \"_\""),
        (tree("１"), "12: sentence 2: HEAD '１' of word 1 is neither a number nor \"_\""),  # noqa: RUF001
        (tree(""), "12: sentence 2: HEAD '' of word 1 is neither a number nor \"_\""),
        (word(1, ""), "12: sentence 2: FORM of word 1 is empty (an unknown value is _)"),
        (word(1, relation=""), "12: sentence 2: DEPREL of word 1 is empty (an unknown value is _)"),
        (
            "1\tw\t_\t_\t_\t_\t0\t_\t_\n",
            "12: sentence 2: 9 tab-separated columns instead of 10 (an unknown value is _)",
        ),
        (word(1)[:-1] + "\t_\n", "12: sentence 2: 11 tab-separated columns instead of 10 (values hold no tabs)"),
        (
            word(1).replace("\t", "  "),
            "12: sentence 2: 1 tab-separated column instead of 10 (columns are separated by tabs, not spaces)",
        ),
        (word(2), "12: sentence 2: ID 2 where word 1 is expected (ids count 1, 2, 3, …)"),
        *(
            (
                word(1) + word(again),
                f"13: sentence 2: ID {again} where word 2 is expected "
                "(is the blank line between two sentences missing?)",
            )
            for again in ("1", "1-2", "0.1")
        ),
        (
            word(1) + word("1" * 4000),
            f"13: sentence 2: ID {'1' * 39}…{'1' * 20} where word 2 is expected (ids count 1, 2, 3, …)",
        ),
        (word(1) + word(3), "13: sentence 2: ID 3 where word 2 is expected (ids count 1, 2, 3, …)"),
        (word("x"), "12: sentence 2: ID 'x' is not a word id, a range such as 1-2 or an empty node such as 1.1"),
        (word("01"), "12: sentence 2: ID '01' is not a word id, a range such as 1-2 or an empty node such as 1.1"),
        (word("_"), "12: sentence 2: ID '_' is not a word id, a range such as 1-2 or an empty node such as 1.1"),
        (word("2-1"), "12: sentence 2: ID '2-1' is not a word id, a range such as 1-2 or an empty node such as 1.1"),
        (word("2-3") + word(1), "12: sentence 2: multiword token 2-3 does not stand before word 2"),
        (word("1-2") + word(1) + word("2-3"), "14: sentence 2: multiword token 2-3 overlaps the one before it"),
        (word("1-3") + word(1) + word("2-3"), "14: sentence 2: multiword token 2-3 overlaps the one before it"),
        (
            "1-2\tw\n" + word(1) + word(2),
            "12: sentence 2: 2 tab-separated columns instead of 10 (an unknown value is _)",
        ),
        (word("1-2") + word(1), "12: sentence 2: multiword token 1-2 reaches beyond the last word, 1"),
        (word("1.1") + word(1), "12: sentence 2: empty node 1.1 does not stand after word 1"),
        *(
            (
                word(1) + "".join(map(word, nodes)),
                f"{12 + len(nodes)}: sentence 2: empty node {nodes[-1]} where {right} is expected "
                "(they count 1.1, 1.2, …)",
            )
            for nodes, right in (
                (["1.2"], "1.1"),
                (["1.1", "1.1"], "1.2"),
                (["1.1", "1.2", "1.1"], "1.3"),
                (["1.1", "1.3"], "1.2"),
            )
        ),
        (
            word(1) + word("2-3") + word("1.1") + word(2) + word(3),
            "14: sentence 2: empty node 1.1 does not stand before multiword token 2-3",
        ),
        (
            "# sent_id = none\n# text = x\n",
            "12: sentence none: holds no words, only comments, multiword tokens or empty nodes (remove it)",
        ),
        (word("1-1"), "12: sentence 2: holds no words, only comments, multiword tokens or empty nodes (remove it)"),
    ],
    ids=lambda value: value[:40].strip(),
)
@pytest.mark.parametrize("trees", ["any", "required"])
def test_messages_name_the_place_and_the_problem(error, bad, message, trees):
    assert error(EXAMPLE + bad, trees) == f"hu.conllu:{message}"


BLANKS = {"": "is empty", " ": "is white space alone", "\u3000\u00a0": "is white space alone"}
PADDED = {"a ": "begins or ends with white space", "\u00a0_": "begins or ends with white space"}
INSIDE = {"a b": "holds white space", "a\u2009b": "holds white space"}
COLUMNS_AND_PROBLEMS = [
    *((column, value, problem) for column in (1, 2, 3, 4, 5, 7, 8, 9) for value, problem in BLANKS.items()),
    *((column, value, problem) for column in (2, 3, 4, 5, 7, 8, 9) for value, problem in PADDED.items()),
    *((column, value, problem) for column in (3, 4, 5, 7, 8) for value, problem in INSIDE.items()),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "bad_id", "kind"),
    [("", "1", "word"), (word(1), "2", "word"), (word(1), "2-3", "multiword token"), (word(1), "1.1", "empty node")],
)
def test_values_are_neither_blank_nor_padded(read, before, bad_id, kind, newline):
    for column, value, problem in COLUMNS_AND_PROBLEMS:
        name = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")[column]
        fields = word(bad_id)[:-1].split("\t")
        fields[column] = value
        after = word(2) + word(3) if kind != "word" else word(int(bad_id) + 1)
        text = (before + "\t".join(fields) + "\n" + after + "\n").replace("\n", newline)
        with pytest.raises(DataError) as caught:
            read(text)
        assert f":{1 + bool(before)}: sentence 1: {name} " in str(caught.value)
        assert f"of {kind} {bad_id} {problem} (an unknown value is _)" in str(caught.value)
        good = text.replace("\t".join(fields), word(bad_id)[:-1])
        assert rendered(read(good)) == good.encode()


def test_white_space_may_stand_inside_forms_lemmas_and_misc(read):
    content = "1\t a  b\u00a0\ta\u00a0 b\t_\t_\t_\t_\t_\t_\tGloss=a b\n\n"
    (sentence,) = read(content)
    assert (sentence.forms, sentence.lemmas, sentence.misc) == ((" a  b\u00a0",), ("a\u00a0 b",), ("Gloss=a b",))
    assert sentence.to_bytes() == content.encode()


@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize(
    ("content", "line"),
    [
        (tree(0, 1, comments="# sent_id = s1\n").replace("\n", "\r"), 1),
        (tree(0, 1).replace("\n", "\r") + tree(0), 1),
        (tree(0) + (tree(0, comments="# sent_id = s2\n") * 2).replace("\n", "\r"), 3),
        (tree(0) + (tree(0, 1, comments="# a\n") * 2)[:-2].replace("\n", "\r"), 3),
        ("1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\r" + tree(0, 1), 1),
    ],
    ids=["whole file", "first half", "second half", "no line end at all", "one line"],
)
def test_files_with_cr_as_line_end_are_refused_as_a_whole(read, content, line, policy):
    """Even with policy "skip": nobody could tell how many sentences were skipped."""
    with pytest.raises(DataError) as caught:
        read(content, errors=policy)
    place = f"hu.conllu:{line}: lines end with CR alone (convert the file: lines end with LF or CR LF)"
    assert str(caught.value).endswith(place)


def test_a_cr_before_very_many_digits(read):
    before = time.thread_time()
    with pytest.raises(DataError, match="holds a CR that ends no line"):
        read(word(1).replace("\t_\n", "\tA=b\r" + "1" * 100_000 + "\n"))
    assert time.thread_time() - before < 2


@pytest.mark.parametrize("bad", [word(1, "a\rb"), "# a\rb\n" + word(1), word(1).replace("\t_\n", "\tA=b\rc\r\n")])
def test_a_cr_inside_a_line_is_refused(read, bad):
    skipped = []
    sentences = read(tree(0) + "# sent_id = x\n" + bad + "\n" + tree(0), errors=skipped.append)
    assert [sentence.number for sentence in sentences] == [1, 3]
    assert re.search(r"conllu:[45]: sentence x: holds a CR that ends no line \(lines end with", str(skipped[0]))


def test_long_names_are_shortened(read, tmp_path):
    long = "x" * 100_000
    with pytest.raises(DataError, match=r":2: sentence x{39}…x{20}: ID 2 where") as caught:
        read(f"# sent_id = {long}\n" + word(2))
    assert len(str(caught.value)) < 1000
    (sentence,) = read(f"# sent_id = {long}\n" + word(1))
    assert len(str(sentence.error("is odd"))) < 400
    assert sentence.label == long
    with pytest.raises(DataError, match=r"^/x+…x+: cannot be read: file name too long$") as caught:
        list(read_conllu("/" + long))
    assert len(str(caught.value)) < 1001


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (tree(0, "_"), "13: sentence 2: HEAD of word 2 is missing (a tree needs every head)"),
        (tree(0, 2), "13: sentence 2: word 2 ('w2') is its own head"),
        (
            tree(0, 4, 2, 3, 4),
            "13: sentence 2: the heads of words 2 ('w2') → 4 ('w4') → 3 ('w3') → 2 ('w2') form a cycle",
        ),
        (
            tree(2, 1),
            "12: sentence 2: no word has HEAD 0, and the heads of words 1 ('w1') → 2 ('w2') → 1 ('w1') form a cycle",
        ),
    ],
)
def test_gold_trees_are_checked(read, error, bad, message):
    assert error(EXAMPLE + bad, trees="required") == f"hu.conllu:{message}"
    assert len(read(EXAMPLE + bad)) == 2


def test_the_message_of_a_long_cycle_is_abridged(error):
    message = error(tree(*range(2, 101), 1), trees="required")
    assert "6 ('w6') → … → 97 ('w97') → 98 ('w98') → 99 ('w99') → 100 ('w100') → 1 ('w1')" in message


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_cycles_are_found_in_every_small_graph(n):
    for heads in itertools.product(range(n + 1), repeat=n):
        ancestors = [{k} for k in range(n + 1)]  # found by following n heads
        in_cycle = set()
        for start in range(1, n + 1):
            k = start
            for _ in range(n):
                k = heads[k - 1] if k else 0
                if k == start:
                    in_cycle.add(start)
                ancestors[start].add(k)
        cycle = treebank._find_cycle([-1, *heads])
        assert bool(cycle) == bool(in_cycle)
        assert set(cycle) <= in_cycle
        assert len(set(cycle)) == len(cycle)
        if cycle:
            assert cycle[0] == min(cycle)
            assert all(heads[cycle[i - 1] - 1] == cycle[i] for i in range(len(cycle)))
            assert in_cycle & ancestors[cycle[0]] == set(cycle)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"# sent_id = s2\n" + word(1).encode() + b"2\tcaf\xe9\n", "14: sentence s2: byte 0xE9 at position 6"),
        (b"# \xff\n# sent_id = s2\n", "12: sentence s2: byte 0xFF at position 3"),
        (b"1\t\xc3\n\xa9\n", "12: sentence 2: byte 0xC3 at position 3"),
        (b"1\tw\xed\xa0\x80\n", "12: sentence 2: byte 0xED at position 4"),
    ],
)
def test_bytes_that_are_not_utf_8_are_located(error, bad, message):
    assert error(EXAMPLE.encode() + bad) == f"hu.conllu:{message} of the line is not UTF-8 (convert the file to UTF-8)"


def test_nul_is_located(error):
    message = "hu.conllu:12: sentence 2: the line holds a NUL character (expected text)"
    assert error(EXAMPLE.encode() + b"1\ta\0b" + b"\t_" * 8 + b"\n\n") == message


def test_sentences_before_a_bad_one_are_delivered(write):
    sentences = read_conllu(write(tree(0) + tree(5) + tree(0)), trees="required")
    assert next(sentences).number == 1
    with pytest.raises(DataError, match=":3: sentence 2"):
        next(sentences)


def test_skipping_bad_sentences(read):
    skipped = []
    content = (tree(0) + tree(2, 1) + tree(9)).encode() + b"1\t\xff\n\n" + b"# only\n\n" + tree(0, 1).encode()
    sentences = read(content, trees="required", errors=skipped.append)
    assert [(sentence.number, sentence.first_line) for sentence in sentences] == [(1, 1), (6, 12)]
    places = [str(error).split("hu.conllu:")[1].split(": ")[:2] for error in skipped]
    assert places == [["3", "sentence 2"], ["6", "sentence 3"], ["8", "sentence 4"], ["10", "sentence 5"]]


def test_skipping_without_a_callback_warns(read):
    with pytest.warns(UserWarning, match=r"hu.conllu:3: sentence 2: HEAD 7 .* sentence left out") as record:
        assert len(read(tree(0) + tree(7), errors="skip")) == 1
    assert len(record) == 1


@pytest.mark.parametrize("options", [{"trees": "gold"}, {"trees": True}, {"errors": True}])
def test_unknown_options_are_refused(read, options):
    with pytest.raises(ValueError, match="must be"):
        read(tree(0), **options)


def test_an_empty_file(read, error):
    for content in ("", "\n\n"):
        assert read(content) == []
        assert error(content, trees="required") == "hu.conllu: holds no sentences (expected a CoNLL-U file with trees)"


def test_a_file_of_bad_sentences_only(write):
    path = write(tree(5) + tree(6))
    with pytest.raises(DataError, match=f"^{path}: no sentence of 2 is valid; the first: {path}:1: sentence 1: HEAD 5"):
        list(read_conllu(path, trees="required", errors=lambda error: None))
    assert list(read_conllu(path, errors=lambda error: None)) == []


def test_problems_of_the_file_itself_are_never_skipped(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        list(read_conllu(tmp_path / "missing.conllu", errors="skip"))
    with pytest.raises(DataError, match="is a folder"):
        list(read_conllu(str(tmp_path), trees="required", errors="skip"))


# Streams.


def lines_as_stdin(monkeypatch, lines):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines))


def test_standard_input_and_its_name(monkeypatch):
    lines_as_stdin(monkeypatch, io.BytesIO((tree(0) + tree(4)).encode()))
    with pytest.raises(DataError, match=r"^standard input:3: sentence 2: HEAD 4"):
        list(read_conllu("-"))


def test_a_sentence_is_delivered_when_its_blank_line_arrives(monkeypatch):
    taken = []

    def lines():
        for line in (tree(0) + tree(0)).encode().splitlines(keepends=True):
            taken.append(line)
            yield line

    lines_as_stdin(monkeypatch, lines())
    next(read_conllu("-"))
    assert len(taken) == 2


def test_memory_does_not_grow_with_the_stream(monkeypatch):
    block = [word(i, f"w{i}", i - 1).encode() for i in range(1, 21)]
    size = 0

    def lines():
        nonlocal size
        for number in range(2500):
            for line in [f"# sent_id = s{number}\n".encode(), *block, b"\n"]:
                size += len(line)
                yield line

    lines_as_stdin(monkeypatch, lines())
    sentences = read_conllu("-", trees="required")
    next(itertools.islice(sentences, 499, None))  # fill the bounded caches before measuring
    tracemalloc.start()
    try:
        count = 500 + sum(1 for _ in sentences)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2500
    assert size > 1_000_000
    assert peak < 100_000
