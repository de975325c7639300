"""Conversion of sentences to pandas data frames and spaCy documents, and back."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from random_sentences import sentences

from mh4.data.blocks import Block
from mh4.data.confidence import Confidence
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence

pandas = pytest.importorskip("pandas")

TEXT = (
    "# sent_id = s1\n# text = Don't.\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n"
    "1\tDo\tdo\tAUX\t_\tMood=Imp\t0\troot\t_\t_\n2\tn't\t_\t_\t_\t_\t_\t_\t_\t_\n2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\t.\t_\tPUNCT\t_\t_\t1\tpunct\t_\t_\n\n1\tA\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)


@pytest.fixture
def document():
    return Document.from_conllu(TEXT)


def test_a_row_is_a_word(document):
    frame = document.to_pandas()
    assert frame["text"].tolist() == ["Do", "n't", ".", "A"]
    assert frame["token"].tolist() == ["Don't", "Don't", ".", "A"]
    assert (frame["sentence"].tolist(), frame["id"].tolist()) == ([1, 1, 1, 2], [1, 2, 3, 1])
    assert frame["sent_id"].isna().tolist() == [False, False, False, True]
    assert frame["other_lines"].isna().tolist() == [False, True, True, True]
    assert frame["head"].tolist() == [0, pandas.NA, 1, pandas.NA]
    assert frame["start_char"].tolist() == [0, 0, 5, 0]
    types = frame.dtypes.astype(str).to_dict()
    assert (types["id"], types["head"], types["upos"], types["other_lines"]) == ("int64", "Int64", "string", "string")
    assert "confidence" not in frame
    empty = Document([]).to_pandas()
    assert empty.dtypes.to_dict() == frame.dtypes.to_dict()
    assert Document.from_pandas(empty) == Document([])


@settings(max_examples=25)
@given(sentences(), sentences())
def test_nothing_is_lost(one, other):
    document = Document([one, other])
    frame = document.to_pandas()
    assert Document.from_pandas(frame) == document
    assert Document.from_pandas(pandas.concat([frame, frame])) == Document([*document, *document])
    assert Sentence.from_pandas(one.to_pandas()) == one
    for sentence, found in zip(document, Document.from_pandas(frame), strict=True):
        assert found.tokens == sentence.tokens  # including character offsets
    without = frame.drop(columns=["sentence", "other_lines", "start_char"])
    words = [sentence.replace(comments=[], multiword_tokens=[]) for sentence in document]
    for sentence, found in zip(words, Document.from_pandas(without), strict=True):
        assert [line for line in sentence.lines if line[: line.index("\t")].isdecimal()] == [
            line for line in found.lines if not line.startswith("#")
        ]


def test_offsets_of_multiword_tokens_return(document):
    lines = document[0].to_conllu().encode().splitlines(keepends=True)[:-1]
    cut = Sentence.from_block(Block(b"", lines, b"\n", 0), "text", 1, start=7)
    for sentence, starts in ((document[0], [0, 5]), (cut, [7, 12])):
        assert [token.start for token in sentence.tokens] == starts
        assert [token.start for token in Sentence.from_pandas(sentence.to_pandas()).tokens] == starts


def test_scores_and_confidence_return(document):
    arrays = [np.array([0.5, np.inf, np.nan]), np.array([2, -1, -1], np.int32), np.array([1, np.inf, 0.5])]
    sure = Confidence(*arrays, heads=np.array([0.5, 1, 1]), words=np.array([0.25, 1, 1]), tree=0.5)
    found = document[0].replace(score=2.5, confidence=sure)
    frame = Document([found, document[1]]).to_pandas()
    assert frame["margin"].tolist()[:2] == [0.5, np.inf]
    assert frame["next_head"].tolist() == [2, pandas.NA, pandas.NA, pandas.NA]
    again = Document.from_pandas(frame)
    assert (again[0].score, again[0].confidence) == (2.5, sure)
    assert (again[1].score, again[1].confidence) == (None, None)


def test_files_without_types_are_read_too(document, tmp_path):
    document.to_pandas().to_csv(tmp_path / "words.csv", index=False)
    frame = pandas.read_csv(tmp_path / "words.csv")
    assert frame["head"].dtype == float
    assert Document.from_pandas(frame) == document


def test_offsets_that_gaps_have_turned_into_floats_are_read():
    frame = pandas.DataFrame(
        {"text": ["a", "b"], "sentence": [1, 2], "start_char": [4, None], "end_char": [5, None], "next_head": [0, None]}
    )
    first, second = (sentence[0] for sentence in Document.from_pandas(frame))
    assert [(word.start, word.end) for word in (first, second)] == [(4, 5), (0, 1)]
    assert first.sentence.confidence.runners_up.tolist() == [0]


def test_columns_may_be_missing():
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "sentence": [1, 1, 2], "sent_id": ["x", "x", None]})
    found = Document.from_pandas(frame)
    assert [sentence.forms for sentence in found] == [("a", "b"), ("c",)]
    assert found[0].comments == ("# sent_id = x",)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"word": ["a"]}, "data frame: has no column text, with a row for each word (it has word)"),
        ({"text": ["a", "b"], "sentence": [1, 2], "head": [0, 7]}, "data frame: sentence 2: HEAD 7 of word 1"),
        ({"text": ["a"], "head": [0.5]}, "HEAD '0.5' of word 1 is neither a number"),
        ({"text": ["a", "b"], "id": [1, 3]}, "data frame: sentence 1: ID 3 where word 2 is expected"),
        ({"text": ["a", None]}, "token 2 has no text"),
        ({"text": ["a"], "upos": ["b c"]}, "UPOS 'b c' of token 1 holds white space"),
        ({"text": ["a"], "lemma": [5]}, "LEMMA takes a string or None, not 5"),
        ({"text": ["a"], "id": ["x"]}, "the id of token 1 must be a number or a pair of numbers, not 'x'"),
        ({"text": ["a"], "other_lines": ["x"]}, "sentence 1: other_lines has 'x', which is neither a comment nor"),
        ({"text": ["a"], "other_lines": ["1-9" + 9 * "\t_"]}, "multiword token 1-9 reaches beyond the last word"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(columns, message):
    with pytest.raises(DataError, match=re.escape(message)) as error:
        Document.from_pandas(pandas.DataFrame(columns))
    assert len(str(error.value).splitlines()) == 1


def test_errors_name_the_source(document):
    for frame, problem in ((document.to_pandas(), "holds 2"), (pandas.DataFrame({"word": ["a"]}), "has no column")):
        with pytest.raises(DataError, match=rf"^words\.csv: {problem}"):
            Sentence.from_pandas(frame, source="words.csv")
    with pytest.raises(DataError, match=r"^words\.csv: sentence 1: HEAD 7"):
        Document.from_pandas(pandas.DataFrame({"text": ["a"], "head": [7]}), source="words.csv")


def test_what_is_no_frame_and_no_single_sentence(document):
    with pytest.raises(TypeError, match="expected a pandas data frame"):
        Document.from_pandas([1])
    with pytest.raises(
        DataError, match=re.escape("data frame: holds 2 sentences, not one (for several, see Document)")
    ):
        Sentence.from_pandas(document.to_pandas())


def test_documents_of_spacy(document):
    spacy = pytest.importorskip("spacy")
    plain = Document([Sentence(["A", "b"], heads=[2, 0], relations=["x", "root"], upos=["DET", "NOUN"])])
    doc = plain.to_spacy()
    assert [(token.text, token.head.text, token.pos_) for token in doc] == [("A", "b", "DET"), ("b", "b", "NOUN")]
    assert Document.from_spacy(doc) == plain
    vocab = spacy.blank("hu").vocab
    assert plain[0].to_spacy(vocab).vocab is vocab
    assert Sentence.from_spacy(plain[0].to_spacy(vocab)) == plain[0]
    with pytest.raises(DataError, match="Doc: holds 0 sentences, not one"):
        Sentence.from_spacy(spacy.blank("hu")(""))
    with pytest.raises(TypeError, match="expected a spaCy Doc"):
        Document.from_spacy("A b")
    with pytest.raises(DataError, match="Doc: sentence 1: XPOS 'a b' of token 1 holds"):
        Document.from_spacy(spacy.tokens.Doc(spacy.blank("xx").vocab, ["a"], tags=["a b"]))


def test_index_levels_are_columns(document):
    frame = document.to_pandas()
    for levels in (["sentence", "id"], ["sent_id", "token"], "head"):
        assert Document.from_pandas(frame.set_index(levels)) == document


def test_a_file_read_as_text(tmp_path):
    words = Sentence(["NA", "1999"], lemmas=["null", "1999"], heads=[0, 1], comments=["# sent_id = 007"])
    confidence = Confidence(np.array([2.0, np.inf]), np.array([2, -1], np.int32), np.array([0.5, 1.0]))
    document = Document([words.replace(score=3.5, confidence=confidence)] * 2)
    document.to_pandas().to_csv(tmp_path / "words.csv", index=False)
    options = {"keep_default_na": False, "na_values": [""]}
    frame = pandas.read_csv(tmp_path / "words.csv", dtype=str, **options)
    for own in (frame, frame.drop(columns="other_lines")):
        found = Document.from_pandas(own)
        assert found.to_dict() == document.to_dict()


def test_identifiers_of_sentences_that_became_floats():
    frame = pandas.DataFrame({"text": ["a", "b"], "sent_id": [7, None], "id": [1, 1]})
    assert Document.from_pandas(frame)[0].sent_id == "7"
