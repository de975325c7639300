"""Vocabularies and configurations: what is kept, what is unknown, what survives a round trip."""

import json

import pytest

from mh4.data.sentence import Sentence
from mh4.models.encoder import BEGIN, END, UNKNOWN
from mh4.parsers.config import Config, TrainingConfig, make_config
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


def test_batch(vocabulary):
    batch = vocabulary.batch([Sentence.from_words(["the", "dog"]), Sentence.from_words(["dog", "The", "thé"])])
    assert batch.lengths.tolist() == [2, 3]
    assert batch.words.tolist() == [[1, UNKNOWN, UNKNOWN], [UNKNOWN, 1, UNKNOWN]]
    assert batch.forms[0, 1] == batch.forms[1, 0]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    row = batch.characters.split(batch.character_lengths.tolist())[batch.forms[1, 2]].tolist()
    assert (row[0], row[4]) == (BEGIN, END)
    assert row[3] == UNKNOWN  # é was never seen
    assert batch.character_lengths.tolist() == [5, 5, 5, 5]


def test_round_trips(vocabulary):
    assert Vocabulary.from_dict(json.loads(json.dumps(vocabulary.as_dict()))) == vocabulary
    config = Config(decoder="mst", single_root=False, training=TrainingConfig(seed=4))
    assert Config.from_dict(json.loads(json.dumps(config.as_dict()))) == config


def test_settings():
    config = make_config("mh3", settings=["learning_rate=0.001", "hidden=64", "seed=5"])
    assert (config.training.learning_rate, config.network.hidden, config.training.seed) == (0.001, 64, 5)
    with pytest.raises(ValueError, match=r"unknown setting 'lr'; known: .*learning_rate"):
        make_config("mh3", settings=["lr=1"])
    with pytest.raises(ValueError, match="hidden must be of type int; got 'big'"):
        make_config("mh3", settings=["hidden=big"])
