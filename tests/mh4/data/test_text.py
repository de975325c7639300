"""Segmenting raw text, restoring it from the sentences, and reading text that is already tokenized."""

import io
import pickle
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mh4.data.arriving import arriving_lines
from mh4.data.conllu import read_conllu
from mh4.data.document import Document
from mh4.data.errors import DataError, Errors
from mh4.data.sample import read_sample
from mh4.data.segmenter import LONGEST_SENTENCE, LONGEST_TOKEN
from mh4.data.text import PORTION, Span, portions, read_words, sentence_of, text_of

TEXT = "Zub ulv.  Zubani\ttor “teg”.\r\n \n\n\tNew paragraph: 10 000.\n"


WITH_MULTIWORD_TOKENS = """\
# newdoc id = d1
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\t_\t_\t_\t_\t0\troot\t_\t_
2\tnos\t_\t_\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\t_\t_\t_\t_\t5\tcase\t_\tSpaceAfter=No
4\tel\t_\t_\t_\t_\t5\tdet\t_\tSpaceAfter=No
5\tmar\t_\t_\t_\t_\t1\tobl\t_\tSpaceAfter=No
5.1\tnada\t_\t_\t_\t_\t_\t_\t1:obl\t_
6\t.\t_\t_\t_\t_\t1\tpunct\t_\t_

1\t¿\t_\t_\t_\t_\t2\tpunct\t_\tSpaceAfter=No
2\tYa\t_\t_\t_\t_\t0\troot\t_\tX=Y|SpaceAfter=No
3\t?\t_\t_\t_\t_\t2\tpunct\t_\tSpaceAfter=No

# newpar
1\tSí\t_\t_\t_\t_\t0\troot\t_\t_

"""


def paragraphs(text):
    return list(portions(arriving_lines(io.BytesIO(text), PORTION), "f"))


def test_white_space_is_written_as_udpipe_does(segmenter):
    sentences = Document(segmenter.cut(TEXT))
    assert "".join(text_of(sentences)) == TEXT
    misc = [value for sentence in sentences for value in sentence.misc]
    assert "SpacesAfter=\\r\\n\\s\\n" in misc
    assert "SpacesAfter=\\s\\s" in misc
    first = next(sentence for sentence in sentences if "New" in sentence.forms)
    assert first.comments[0] == "# newpar"
    assert "SpacesBefore=\\n\\t" in first.misc[0]
    assert [sentence.sent_id for sentence in sentences] == [str(i + 1) for i in range(len(sentences))]
    assert sentences[0].comments[:2] == ("# newdoc", "# newpar")


def test_white_space_inside_a_token_is_kept():
    sentence = sentence_of("10\t 000 x ", [Span(0, 7), Span(8, 9)], 10, "", (), "f", 1, 0)
    assert sentence.forms == ("10 000", "x")
    assert sentence.misc == ("SpacesInToken=10\\t\\s000", "_")
    assert "".join(text_of([sentence])) == "10\t 000 x "


def test_white_space_that_misc_cannot_end_with_is_escaped(segmenter):
    text = "\u3000Zub\u00a0ulv. \u2009Tor\u2028teg\x0b.\u2003"
    sentences = Document(segmenter.cut(text))
    assert "".join(text_of(sentences)) == text
    misc = [value for sentence in sentences for value in sentence.misc]
    assert [value for value in misc if value != value.strip()] == []
    assert misc[0] == r"SpacesAfter=\u00A0|SpacesBefore=\u3000"
    as_udpipe_does = Document.from_conllu("1\tZub\t_\t_\t_\t_\t_\t_\t_\tSpacesAfter=\u00a0\\\\u00A0\\s\n\n")
    assert "".join(text_of(as_udpipe_does)) == "Zub\u00a0\\u00A0 "


def test_text_is_as_it_was_written():
    assert "".join(text_of(Document.from_conllu(WITH_MULTIWORD_TOKENS))) == "Vámonos al mar. ¿Ya?\n\nSí "


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.text(" \t\n\r\u3000a.\u200d\\|"))
def test_any_text_comes_back(segmenter, text):
    sentences = list(segmenter.cut(text))
    end = len(text.removeprefix("\ufeff").rstrip())
    back = "".join(text_of(sentences))
    assert back[:end] == text.removeprefix("\ufeff")[:end]
    assert text.removeprefix("\ufeff").startswith(back)
    conllu = "".join(sentence.to_conllu() for sentence in sentences)
    assert list(Document.from_conllu(conllu)) == sentences


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    | st.text(" \t\n\r\ufeff\u3000a.\u200d\\|")
)
@example("\ufeff \n\n Zub ulv.\r\n\r\n\r\n Tor  zub. Teg")
@example(f"Zub.{' ' * 700}\n" * 100)  # longer than a portion
@example(f"Zub.{' ' * PORTION}\n{' ' * (PORTION + 9)}\nTor.")
def test_words_stand_in_the_text_where_they_say(segmenter, text):
    for sentence in segmenter.cut(text):
        for token in sentence.tokens:
            assert " ".join(text[token.start : token.end].split()) == " ".join(token.form.split())
            for word in sentence[token.first - 1 : token.last]:
                assert (word.start, word.end) == (token.start, token.end)


@given(st.text("ab. \t\n\r\u2028", max_size=60))
@example("\ufeff\n Zub ulv. Tor.\r\n\n \nZub\n\n")
@example(("Zub ulv. Tor. " * 100 + "\n") * (PORTION // 900))  # more than are cut together
def test_every_line_is_a_sentence_that_stands_in_the_text_where_it_says(segmenter, text):
    lines = [line.strip() for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    sentences = list(segmenter.cut_lines(text))
    back = "".join(text_of(sentences))
    assert text.removeprefix("\ufeff").startswith(back)
    assert back.split() == text.removeprefix("\ufeff").split()
    found = [text[one.tokens[0].start : one.tokens[-1].end] for one in sentences]
    assert found == lines
    assert [one.sent_id for one in sentences] == [str(i + 1) for i in range(len(lines))]
    assert ["# newdoc" in one.comments for one in sentences] == [i == 0 for i in range(len(lines))]
    for line, sentence in zip(lines, sentences, strict=True):  # words are those of the line alone
        assert sentence.forms == tuple(form for one in segmenter.cut(line) for form in one.forms)


def test_lines_are_cut_together(segmenter, monkeypatch):
    sizes = []
    cut = type(segmenter)._tokens
    monkeypatch.setattr(type(segmenter), "_tokens", lambda self, texts: sizes.append(len(texts)) or cut(self, texts))
    assert len(list(segmenter.cut_lines("Zub.\n\n" * 50))) == 50
    assert sizes == [50]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\ud800b", "text: character 2 .* lone surrogate"),
        ("a\n\nb\0", "text:3: .*NUL"),
        ("a\n" + "b" * (PORTION + 1), "text:2: has more than 65536 characters"),
    ],
)
def test_lines_that_are_no_sentences_are_refused(segmenter, text, problem):
    with pytest.raises(DataError, match=problem):
        list(segmenter.cut_lines(text))


@pytest.mark.parametrize(
    "text", ["😀👩‍👩‍👧", "שלום עולם. שלום", "\u200d", "a" * (PORTION + 5000), "é " * PORTION, "_ #"]
)
def test_hostile_text_is_cut(segmenter, text):
    sentences = list(segmenter.cut(text))
    assert "".join(text_of(sentences)) == text
    assert max(map(len, sentences)) <= LONGEST_SENTENCE
    assert max(len(form) for sentence in sentences for form in sentence.forms) <= LONGEST_TOKEN


@pytest.mark.parametrize("text", ["", " \n\n \n", "\u2028"])
def test_text_of_nothing_but_white_space_has_no_sentences(segmenter, text):
    assert list(segmenter.cut(text)) == []


@pytest.mark.parametrize(("text", "problem"), [("a\ud800b", "U\\+D800"), ("a\0b", "NUL")])
def test_text_that_no_file_can_hold_is_refused(segmenter, text, problem):
    with pytest.raises(DataError, match=problem):
        list(segmenter.cut(text))


def test_a_long_text_without_a_blank_line_is_cut_where_sentences_end(segmenter, small_treebanks):
    text = "".join(text_of(read_conllu(small_treebanks[0]))).strip()
    paragraph = text + " "
    copies = 2 * PORTION // len(paragraph) + 1
    cut = [sentence.forms for sentence in segmenter.cut(paragraph * copies)]
    whole = [sentence.forms for sentence in segmenter.cut(paragraph)]
    assert cut[: len(whole) - 1] == whole[:-1]
    assert len(cut) == pytest.approx(copies * len(whole), rel=0.02)  # sentences may differ where copies meet


@pytest.mark.parametrize("size", [PORTION - 1, PORTION, PORTION + 1, 2 * PORTION, 2 * PORTION + 5])
@pytest.mark.parametrize("piece", ["Zub ulv. Tor.\n", "Zub ulv. Tör. "])
def test_nothing_is_lost_where_a_long_text_is_read_in_portions(segmenter, piece, size):
    text = (piece * PORTION)[:size]
    assert "".join(text_of(segmenter.cut(text))) == text


def test_multiword_tokens_are_split(segmenter):
    sentences = read_sample()["train"]
    contracted = [sentence for sentence in sentences if re.search(r"^\d+-", sentence, re.MULTILINE)]
    gold = Document.from_conllu("".join(contracted))
    sentences = list(segmenter.cut("".join(text_of(gold))))
    several = [token for sentence in sentences for token in sentence.tokens if token.last > token.first]
    assert several
    assert "".join(text_of(sentences)) == "".join(text_of(gold))


def test_the_ids_of_multiword_tokens_follow_from_the_words_before():
    tokens = [Span(0, 2, ("a", "b")), Span(3, 5, ("c", "d")), Span(6, 7), Span(8, 10, ("e", "f"))]
    sentence = sentence_of("ab cd x ef", tokens, 10, "", (), "f", 1, 0)
    assert [(token.first, token.last) for token in sentence.tokens] == [(1, 2), (3, 4), (5, 5), (6, 7)]


def test_paragraphs_end_at_blank_lines():
    assert [(p.text, p.before) for p in paragraphs(b"\xef\xbb\xbfa\nb\n \r\n\n c\n")] == [
        ("a\nb\n \r\n", ""),
        (" c\n", "\n"),
    ]
    long = paragraphs(b"a\n" * PORTION + b"\nb")
    assert [(p.begins, p.ends) for p in long] == [(True, False), (False, False), (False, True), (True, True)]
    assert "".join(p.text for p in paragraphs("é".encode() * PORTION)) == "é" * PORTION


def test_an_error_stands_for_a_line_that_is_not_utf8():
    text = b"good\n\none\nb\xffd\ntwo\n\nlast\n"
    good, one, error, *rest = paragraphs(text)
    assert [good.text, one.text, *(p.text for p in rest)] == ["good\n\n", "one\n", "two\n\n", "last\n"]
    assert all(p.begins and p.ends for p in (good, one, *rest))
    assert [p.start for p in (good, one, *rest)] == [0, 6, 10, 15]
    assert str(error).startswith("f:4: byte 0xFF is not UTF-8")
    (error,) = paragraphs(b"\xc3")
    assert str(error).startswith("f:1: byte 0xC3")


@pytest.mark.parametrize(
    ("layout", "text"),
    [("horizontal", "A dog barks .\n\n It\tdid .\r\n"), ("vertical", "A\ndog\nbarks\n.\n\n\nIt\tx\ndid\n.")],
)
def test_words_in_lines(layout, text, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    sentences = list(read_words(path, layout, Errors("raise")))
    assert [sentence.forms for sentence in sentences] == [("A", "dog", "barks", "."), ("It", "did", ".")]
    assert sentences[0].comments == ("# newdoc", "# sent_id = 1", "# text = A dog barks .")
    assert sentences[1].comments == ("# sent_id = 2", "# text = It did .")  # no newdoc: the same document
    path.write_bytes(text.encode().replace(b"dog", b"d\xffg"))
    with pytest.raises(DataError, match=r"words\.txt:\d: byte 0xFF"):
        list(read_words(path, layout, Errors("raise")))
    (sentence,) = read_words(path, layout, Errors(lambda error: None))
    assert sentence.forms == ("It", "did", ".")


def test_a_bad_line_of_words_takes_no_other_with_it(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"A dog .\nIt \xff did .\nIt \0 did .\nOne more .\nLast .\n")
    report = Errors(lambda error: None)
    forms = [sentence.forms for sentence in read_words(path, "horizontal", report)]
    assert forms == [("A", "dog", "."), ("One", "more", "."), ("Last", ".")]
    assert report.count == 2


@pytest.mark.parametrize("layout", ["horizontal", "vertical"])
@pytest.mark.parametrize("policy", ["raise", "skip"])
@pytest.mark.parametrize(("text", "line"), [("one\n\ntwo\rthree\n\nfour\n", 3), ("one\rtwo\r\rthree\r", 1)])
def test_lines_of_words_do_not_end_with_cr(layout, policy, text, line, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    with pytest.raises(
        DataError, match=rf"words\.txt:{line}: holds a CR that ends no line \(lines end with LF or CR LF"
    ):
        list(read_words(path, layout, Errors(policy)))


@pytest.mark.parametrize(
    ("layout", "text"),
    [("horizontal", "A \u00a0 dog\n\u3000\nIt did\n"), ("vertical", "A\ndog\n\u00a0\nIt\ndid\n \t\n")],
)
def test_white_space_alone_is_no_word(layout, text, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    sentences = read_words(path, layout, Errors("raise"))
    assert [sentence.forms for sentence in sentences] == [("A", "dog"), ("It", "did")]


@pytest.mark.parametrize(
    ("layout", "text", "words"),
    [
        ("horizontal", "10\u00a0000 \u00a0Việt\u00a0Nam\n", ("10 000", "Việt Nam")),
        ("vertical", "10 000\n10\u00a0000\n", ("10 000", "10\u00a0000")),
    ],
)
def test_words_with_a_space(layout, text, words, tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    (sentence,) = read_words(path, layout, Errors("raise"))
    assert sentence.forms == words


def test_a_line_without_its_word_is_named(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"one\n\tNOUN\nthree\n\nfour\n")
    with pytest.raises(DataError, match=r"words\.txt:2: holds no word before its first tab"):
        list(read_words(path, "vertical", Errors("raise")))
    assert [sentence.forms for sentence in read_words(path, "vertical", Errors(lambda error: None))] == [("four",)]


def test_the_first_bad_line_of_a_sentence_is_named(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"one\n\xfe\n\xff\n\nfour\n")
    with pytest.raises(DataError, match=r"words\.txt:2: byte 0xFE"):
        list(read_words(path, "vertical", Errors("raise")))


@pytest.mark.parametrize("size", [PORTION - 1, PORTION, PORTION + 1, 2 * PORTION])
def test_a_piece_of_a_line_ends_no_paragraph(segmenter, size):
    start = ("Zub ulv. " * PORTION)[: size - 1] + "x"
    for text in (f"{start}\nTor zub.\n", f"Zub{' ' * size}ulv.\n"):
        sentences = list(segmenter.cut(text))
        assert sum("# newpar" in sentence.comments for sentence in sentences) == 1
        assert "".join(text_of(sentences)) == text


def test_a_text_is_one_document(segmenter):
    sentences = list(segmenter.cut("Zub ulv.\n\nTor zub. Teg ulv.\n\nZub."))
    assert len(sentences) >= 3
    assert [sum(comment == "# newdoc" for comment in sentence.comments) for sentence in sentences] == [
        1,
        *[0] * (len(sentences) - 1),
    ]


@pytest.mark.parametrize("blanks", [" " * PORTION, " " * (2 * PORTION + 7), "\n" * (PORTION + 3)])
def test_a_paragraph_begins_after_many_blanks(segmenter, blanks):
    sentences = list(segmenter.cut(f"Zub ulv.\n\n{blanks}Tor.\n"))
    begin = [sentence.text for sentence in sentences if "# newpar" in sentence.comments]
    assert begin == [sentences[0].text, next(one.text for one in sentences if one.text.startswith("Tor"))]


def test_a_segmenter_can_be_copied(segmenter):
    assert [one.forms for one in pickle.loads(pickle.dumps(segmenter)).cut(TEXT)] == [
        one.forms for one in segmenter.cut(TEXT)
    ]


def test_a_long_paragraph_ends_where_it_is_not_utf8(segmenter):
    text = b"Zub ulv. " * (PORTION // 8) + b"\xff\n\nZub tor.\n"
    report = Errors(lambda error: None)
    *_, last = segmenter.cut_stream(io.BytesIO(text), "f", report)
    assert report.count == 1
    assert last.text == "Zub tor."
    assert "# newpar" in last.comments


def test_the_text_of_a_sentence_has_no_blank_at_its_end():
    sentence = sentence_of("a\tb c ", [Span(0, 3), Span(4, 5)], 6, "", (), "f", 1, 0)
    assert sentence.comments == ("# text = a b c",)


@pytest.mark.parametrize(("comment", "between"), [("newdoc id = a", " \n\n"), ("newpar", " \n\n"), ("else", " ")])
def test_documents_and_paragraphs_stand_apart(comment, between):
    word = "1\t{}\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    document = Document.from_conllu(f"{word.format('a')}# {comment}\n{word.format('b')}")
    assert "".join(text_of(document)).rstrip() == f"a{between}b"


def test_white_space_before_a_paragraph_is_kept_up_to_a_limit():
    (found,) = portions([b" " * (PORTION - 9) + b"\n", b" " * 9 + b"\n", b"a\n"], "f")
    assert (found.text, len(found.before), found.start) == ("a\n", PORTION, PORTION + 2)
