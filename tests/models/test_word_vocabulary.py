"""Vocabularies of words and characters: known and unknown ones, and batches of their ids."""

import numpy as np
import pytest

from mh4.models import word_vocabulary
from mh4.models.word_encoder import WordBatch
from mh4.models.word_vocabulary import BEGIN, END, LONGEST, UNKNOWN, WordVocabulary, by_frequency, normalise


@pytest.fixture
def vocabulary():
    return WordVocabulary.of(["The", "the", "THE", "cat", "1999"] * 2, 5)


def test_normalise():
    assert normalise("Straße-1984") == "straße-0000"
    assert normalise("İLK") == "ilk"


@pytest.mark.parametrize("word", ["ilk", "i\u0307lk"])
def test_a_word_is_also_found_as_older_models_have_it(word):
    vocabulary = WordVocabulary({"yeni": 2, word: 1}, {})
    assert vocabulary.ids(["İlk", "yeni", "new", "YENİ"]).words.tolist() == [2, 1, UNKNOWN, 1]
    both = WordVocabulary({"i\u0307lk": 2, "ilk": 1}, {})
    assert both.ids(["İlk", "ilk"]).words.tolist() == [1, 2]


def test_words_need_so_many_occurrences(vocabulary):
    assert vocabulary.words == {"the": 6}
    assert vocabulary.characters["T"] == 4
    unknown = vocabulary.word_unknown(2.5)
    assert unknown.tolist() == pytest.approx([0.0, 2.5 / 8.5])
    characters = vocabulary.character_unknown(0.25)
    assert vocabulary.characters == {"9": 6} | dict.fromkeys("Teht", 4) | dict.fromkeys("1EHac", 2)
    assert characters.tolist() == pytest.approx([0] * 3 + [0.25 / 6.25] + [0.25 / 4.25] * 4 + [0.25 / 2.25] * 5)
    forms = ["The", "the", "cat", "1999", "the", "cat", "sat"]
    assert WordVocabulary.of(forms, 2).words == {"the": 3, "cat": 2}


def test_equal_counts_are_in_the_order_of_the_alphabet_wherever_they_come_first():
    assert list(by_frequency({"b": 2, "c": 3, "a": 2})) == ["c", "a", "b"]
    one, other = (WordVocabulary.of(forms, 1) for forms in (["ba", "ab"], ["ab", "ba"]))
    assert (list(one.words), list(one.characters)) == (list(other.words), list(other.characters))


def test_of_a_very_long_word_the_ends_are_spelt(vocabulary):
    short, long = "t" * 500 + "h" * 500, "t" * 500 + "e" * 100_000 + "h" * 500
    assert len(short) == LONGEST
    seen = vocabulary.ids([short, long, "the"])
    first, second, third = np.split(seen.characters, seen.character_lengths.cumsum()[:-1])
    np.testing.assert_array_equal(first, second)
    assert (len(first), len(third)) == (LONGEST + 2, 5)


def test_ids_are_the_same_when_forms_come_again(vocabulary, monkeypatch):
    forms = ["the", "The", "thé", "dog", "t" * 40, "the", "h", *(f"the{i}" for i in range(20))]
    monkeypatch.setattr(word_vocabulary, "_MOST_KEPT", 7)  # small, so that entries are evicted in between
    first, *others = (vocabulary.ids(forms) for _ in range(3))
    alphabet = {character: i for i, character in enumerate(vocabulary.characters, start=END + 1)}
    assert first.words.tolist() == [
        list(vocabulary.words).index(normalise(f)) + 1 if normalise(f) in vocabulary.words else UNKNOWN for f in forms
    ]
    spelt = [[BEGIN, *(alphabet.get(c, UNKNOWN) for c in form), END] for form in forms]
    assert first.characters.tolist() == [c for word in spelt for c in word]
    assert first.character_lengths.tolist() == list(map(len, spelt))
    for other in others:
        for one, own in zip(first, other, strict=True):
            assert list(one) == list(own)
    assert len(vocabulary._seen) <= 7


def test_batch(vocabulary):
    batch = WordBatch.of([vocabulary.ids(forms) for forms in (["the", "dog"], ["dog", "The", "thé"])])
    assert batch.lengths.tolist() == [2, 3]
    assert batch.words.tolist() == [[1, UNKNOWN, UNKNOWN], [UNKNOWN, 1, UNKNOWN]]
    assert batch.forms[0, 1] == batch.forms[1, 0]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    row = batch.characters.split(batch.character_lengths.tolist())[batch.forms[1, 2]].tolist()
    assert (row[0], row[4]) == (BEGIN, END)
    assert row[3] == UNKNOWN  # é does not occur in training
    assert batch.character_lengths.tolist() == [5, 5, 5, 5]
