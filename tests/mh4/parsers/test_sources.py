"""Sentences from Python objects, and in windows."""

import pytest

from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.parsers.sources import as_sentences, windows


def test_sentences_of_words_are_counted():
    given = Sentence.from_words(["x"], number=7)
    assert [sentence.number for sentence in as_sentences([["a"], given, ["b", "c"]])] == [1, 7, 3]
    with pytest.raises(DataError, match=r"^words: sentence 2: word 2"):
        list(as_sentences([["a"], ["b", ""]]))


def test_windows_hold_words_enough_and_what_came_before_an_error():
    def sentences():
        yield from as_sentences([["a"], ["b", "c"], ["d"], ["e"]])
        raise DataError("bad")

    found = []
    with pytest.raises(DataError, match="bad"):
        found.extend([len(sentence) for sentence in window] for window in windows(sentences(), 3))
    assert found == [[1, 2], [1, 1]]
