"""Conversion of sentences to dictionaries and JSON with Stanza's keys, and back."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from random_sentences import sentences

from mh4.data.confidence import Confidence
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.records import KEYS
from mh4.data.sentence import Sentence
from mh4.data.text import Span, sentence_of

EXAMPLE = (
    "# sent_id = s1\n# text = Don't go.\n"
    "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tTypo=Yes\n"
    "1\tDo\tdo\tAUX\tVB\tMood=Imp|VerbForm=Fin\t3\taux\t3:aux\t_\n"
    "2\tn't\tnot\tPART\t_\t_\t3\tadvmod\t_\t_\n"
    "3\tgo\tgo\tVERB\t_\t_\t0\troot\t0:root|3.1:x\tSpaceAfter=No\n"
    "3.1\t_\t_\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n"
    "4\t.\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)


@pytest.fixture
def sentence():
    return Sentence.from_conllu(EXAMPLE)


def test_keys_are_those_of_stanza(sentence):
    several, do, *_, go, empty, stop = sentence.to_dict()["tokens"]
    assert several == {"id": (1, 2), "text": "Don't", "misc": "Typo=Yes", "start_char": 0, "end_char": 5}
    of_do = {"lemma": "do", "upos": "AUX", "xpos": "VB", "feats": "Mood=Imp|VerbForm=Fin", "head": 3, "deprel": "aux"}
    assert do == {"id": 1, "text": "Do", **of_do, "deps": "3:aux", "start_char": 0, "end_char": 5}
    assert list(do) == ["id", "text", *of_do, "deps", "start_char", "end_char"]
    assert (go["head"], go["misc"]) == (0, "SpaceAfter=No")
    assert empty == {"id": (3, 1), "text": "_", "upos": "PRON", "deps": "3:nsubj"}
    assert stop == {"id": 4, "text": ".", "start_char": 8, "end_char": 9}  # unknown fields are left out
    assert sentence.to_dict()["comments"] == ["# sent_id = s1", "# text = Don't go."]
    assert (sentence.to_dict()["sent_id"], sentence.to_dict()["text"]) == ("s1", "Don't go.")
    assert [word.to_dict() for word in sentence] == [
        token for token in sentence.to_dict()["tokens"] if isinstance(token["id"], int)
    ]


@given(sentences())
def test_nothing_is_lost(sentence):
    for again in (Sentence.from_dict(sentence.to_dict()), Sentence.from_json(sentence.to_json())):
        assert again == sentence
        assert again.lines == sentence.lines
        assert [(token.start, token.end) for token in again.tokens] == [(t.start, t.end) for t in sentence.tokens]
    document = Document([sentence, sentence])
    assert Document.from_json(document.to_json()) == Document.from_dict(document.to_dict()) == document


@given(sentences())
def test_a_list_of_tokens_as_stanza_has_it(sentence):
    bare = sentence.to_dict()["tokens"]
    assert Sentence.from_dict(bare) == sentence.replace(comments=[])
    assert Document.from_dict([bare])[0] == sentence.replace(comments=[])


def test_stanza_puts_empty_nodes_behind_the_multiword_token(sentence):
    text = EXAMPLE.replace("3.1\t_\t_\tPRON\t_\t_\t_\t_\t3:nsubj\t_\n", "").replace(
        "2\tn't", "1.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n2\tn't"
    )
    inside = Sentence.from_conllu(text.replace("|3.1:x", ""))
    tokens = inside.to_dict()["tokens"]
    assert tokens[2]["id"] == (1, 1)
    assert Sentence.from_dict([*tokens[:2], tokens[3], tokens[2], *tokens[4:]]) == inside.replace(comments=[])


def test_words_may_lack_ids_and_entries_may_be_mappings():
    tokens = [{"text": "a", "feats": {"Case": "Nom"}, "deps": [("x", 2)], "ner": "O"}, {"id": (2,), "text": "b"}]
    found = Sentence.from_dict({"tokens": tokens, "sent_id": "x", "text": "a b"})
    assert found.comments == ("# sent_id = x", "# text = a b")
    assert (found.feats, found.deps, found.heads.tolist()) == (("Case=Nom", "_"), ("2:x", "_"), [-1, -1])


@pytest.mark.parametrize("key", KEYS[2:])
def test_empty_strings_are_unknown_values(key):
    assert Document.from_dict([[{"id": 1, "text": "a", key: ""}]]).to_conllu() == "1\ta" + 8 * "\t_" + "\n\n"


def test_scores_and_confidence_return(sentence):
    arrays = [np.array([0.5, np.inf, np.nan, 2]), np.array([2, -1, -1, 1], np.int32), np.array([1, np.inf, 0.5, 0.25])]
    sure = Confidence(*arrays, heads=np.array([0.5, 1, np.nan, 1]), words=np.array([0.25, 1, np.nan, 1]), tree=0.5)
    for confidence in (sure, Confidence(*arrays)):
        one = sentence.replace(score=2.5, confidence=confidence)
        again = Sentence.from_json(one.to_json())
        assert (again.score, again.confidence) == (2.5, confidence)
    assert sentence.replace(confidence=sure)[1].to_dict()["margin"] is None  # JSON has no infinity
    again = Sentence.from_json(sentence.to_json())
    assert (again.score, again.confidence) == (None, None)


def test_white_space_inside_the_last_token_counts_in_its_end():
    span = Span(0, 4)
    sentence = sentence_of("a\n\nb", [span], 4, "", [], "text", 1, start=0)
    assert [(token.start, token.end) for token in Sentence.from_json(sentence.to_json()).tokens] == [(0, 4)]


def test_offsets_of_words_inside_multiword_tokens_are_not_those_of_tokens():
    places = (((1, 2), "Don't", 0), (1, "Do", 0), (2, "n't", 2), (3, "go", 7))
    tokens = [{"id": id, "text": text, "start_char": at, "end_char": at + len(text)} for id, text, at in places]
    sentence = Sentence.from_dict({"tokens": tokens, "text": "Don't  go"})
    assert [(token.start, token.end) for token in sentence.tokens] == [(0, 5), (7, 9)]


def test_offsets_in_a_text_that_was_parsed_stay(segmenter):
    document = Document(segmenter.cut("Te  nofe\n mihevode.  Zvai te.\n\nKve yeni.", "text"))
    again = Document.from_json(document.to_json())
    assert [word.start for one in again for word in one] == [word.start for one in document for word in one]
    assert again == document


def test_a_next_head_may_be_unknown():
    sentence = Sentence.from_json('{"tokens": [{"id": 1, "text": "a", "head": 0, "margin": 1, "next_head": null}]}')
    assert sentence.confidence.runners_up.tolist() == [-1]
    assert str(sentence.draw())


WORD = {"id": 1, "text": "a"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (7, "dictionary: sentence 1: tokens must be a list of dictionaries, not 7"),
        ("abc", "tokens must be a list of dictionaries"),
        ({}, "tokens must be a list of dictionaries, not None"),
        ([], "holds no words"),
        (["a"], "token 1 is 'a', not a dictionary"),
        ([{"id": 1}], "token 1 has no text"),
        ([{"id": 1, "text": ""}], "FORM '' of token 1 is empty"),
        ([WORD, {"id": 3, "text": "b"}], "ID 3 where word 2 is expected"),
        ([{"id": "1-2", "text": "b"}], "the id of token 1 must be a number or a pair"),
        ([{"id": [1, 2, 3], "text": "b"}], "the id of token 1 must be a number or a pair"),
        ([{"id": [1, 2], "text": "b"}, WORD], "multiword token 1-2 reaches beyond the last word, 1"),
        ([{"id": [2, 3], "text": "b"}, WORD], "multiword token 2-3 reaches beyond the last word, 1"),
        ([WORD, {"id": [1, 2], "text": "b"}], "empty node 1.2 where 1.1 is expected"),
        ([{**WORD, "head": 2}], "sentence 1: HEAD 2 of word 1 is out of range 0…1"),
        ([{**WORD, "head": -1}], "HEAD -1 of word 1 is out of range"),
        ([{**WORD, "head": True}], "HEAD takes a string or None, not True"),
        ([{**WORD, "upos": "a b"}], "UPOS 'a b' of token 1 holds white space"),
        ([{**WORD, "lemma": "a\tb"}], "LEMMA 'a\\tb' of token 1 holds a tab"),
        ([{**WORD, "lemma": 5}], "LEMMA takes a string or None, not 5"),
        ([{**WORD, "text": "\ud800"}], "is not valid Unicode"),
        ([{**WORD, "start_char": "x"}], "object cannot be interpreted as an integer"),
        ([{**WORD, "margin": "x"}], "could not convert string to float"),
        ([{**WORD, "margin": 10**400}], "int too large to convert to float"),
        ([{**WORD, "margin": [1, 2]}], "not 'list'"),
        ([{**WORD, "next_head": 2}], "next_head 2 is out of range 0…1"),
        ([{**WORD, "next_head": -1}], "next_head -1 is out of range 0…1"),
        ([{**WORD, "next_head": 1 << 31}], "next_head 2147483648 is out of range 0…1"),
        ([{**WORD, "next_head": float("inf")}], "cannot convert float infinity to integer"),
        ({"tokens": [WORD], "score": 10**400}, "int too large to convert to float"),
        ({"tokens": [{**WORD, "margin": 1}], "tree_confidence": 10**400}, "int too large to convert to float"),
        ({"tokens": [WORD], "score": "x"}, "could not convert string to float"),
        ({"tokens": [WORD], "comments": "# x"}, "comments must be a list of lines"),
        ({"tokens": [WORD], "comments": ["x"]}, "'x' is not a comment"),
        ({"tokens": [WORD], "text": "a\nb"}, "is not a comment"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(data, message):
    with pytest.raises(DataError, match=re.escape(message)) as error:
        Sentence.from_dict(data)
    assert str(error.value).startswith("dictionary: sentence 1: ")
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(
        DataError, match=re.escape(f"page: sentence 2: {str(error.value).partition(': sentence 1: ')[2]}")
    ):
        Document.from_dict([[WORD], data], source="page")


def test_json_lines_are_sentences():
    with pytest.raises(DataError, match=r"not valid JSON: Extra data.*Sentence.from_json\(line\)"):
        Document.from_json('{"tokens": []}\n{"tokens": []}\n')


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "nan", b"\xff"])
def test_what_is_no_json(text):
    with pytest.raises(DataError, match=r"^JSON: "):
        Sentence.from_json(text)
    with pytest.raises(DataError, match=r"^JSON: "):
        Document.from_json(text)


def test_errors_name_the_source_of_json():
    for text, problem in (("{", "not valid JSON"), ("[]", "sentence 1: holds no words")):
        with pytest.raises(DataError, match=f"^page: {problem}"):
            Sentence.from_json(text, source="page")


def test_a_sentence_is_no_document(sentence):
    with pytest.raises(DataError, match="a document is a list of sentences"):
        Document.from_dict(sentence.to_dict())
    with pytest.raises(DataError, match="these are several sentences"):
        Sentence.from_json(json.dumps(Document([sentence]).to_dict()))
