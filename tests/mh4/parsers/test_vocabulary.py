"""Vocabularies: what is kept, what is unknown, what survives a round trip."""

import json
from dataclasses import asdict

import pytest

from mh4.data.sentence import Sentence
from mh4.models.bilstm_encoder import BEGIN, END, UNKNOWN, WordBatch
from mh4.parsers.checking import checked
from mh4.parsers.vocabulary import Vocabulary, normalise


@pytest.fixture
def vocabulary():
    return Vocabulary.from_sentences([Sentence.from_words(["The", "the", "THE", "cat", "1999"])] * 2)


def test_normalise():
    assert normalise("Straße-1984") == "straße-0000"


def test_words_need_five_occurrences(vocabulary):
    assert vocabulary.words == {"the": 6}
    assert vocabulary.characters["T"] == 4
    unknown = vocabulary.word_unknown(2.5)
    assert unknown.tolist() == pytest.approx([0.0, 2.5 / 8.5])
    characters = vocabulary.character_unknown(0.25)
    assert vocabulary.characters == {"9": 6} | dict.fromkeys("Teht", 4) | dict.fromkeys("1EHac", 2)
    assert characters.tolist() == pytest.approx([0] * 3 + [0.25 / 6.25] + [0.25 / 4.25] * 4 + [0.25 / 2.25] * 5)


def test_words_may_need_fewer():
    sentences = [Sentence.from_words(["The", "the", "cat", "1999"]), Sentence.from_words(["the", "cat", "sat"])]
    assert Vocabulary.from_sentences(sentences, min_word_count=2).words == {"the": 3, "cat": 2}


def test_a_relation_without_a_head_teaches_nothing():
    """Whose it is, is unknown: it may be that of a word outside of what was annotated."""
    sentence = Sentence(["a", "b", "c"], heads=[-1, -1, 0, 2], relations=["r9", "root", "obj"], upos=["X", "Y", "Z"])
    vocabulary = Vocabulary.from_sentences([sentence], annotates=True)
    assert sorted(vocabulary.relations) == ["obj", "root"]
    assert sorted(vocabulary.columns.by_relation) == ["obj", "root"]


def test_batch(vocabulary):
    sentences = Sentence.from_words(["the", "dog"]), Sentence.from_words(["dog", "The", "thé"])
    batch = WordBatch.of([vocabulary.ids(sentence) for sentence in sentences])
    assert batch.lengths.tolist() == [2, 3]
    assert batch.words.tolist() == [[1, UNKNOWN, UNKNOWN], [UNKNOWN, 1, UNKNOWN]]
    assert batch.forms[0, 1] == batch.forms[1, 0]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    row = batch.characters.split(batch.character_lengths.tolist())[batch.forms[1, 2]].tolist()
    assert (row[0], row[4]) == (BEGIN, END)
    assert row[3] == UNKNOWN  # é was never seen
    assert batch.character_lengths.tolist() == [5, 5, 5, 5]


def test_vocabularies_are_read_back(vocabulary):
    data = asdict(vocabulary)
    assert checked(Vocabulary, json.dumps(data)) == vocabulary
    del data["features"]  # as in models made before there were any
    assert checked(Vocabulary, json.dumps(data)) == vocabulary
