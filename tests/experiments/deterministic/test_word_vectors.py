"""Word vectors are reproducible, limited to frequent words, and optional."""

import sys

import numpy as np
import pytest
from deterministic.word_vectors import WordVectors, learn_word_vectors

TEXT = [["The", "dog", "sees", "1914"], ["the", "cat", "sees", "2001"], ["a", "cat"]] * 2


def test_same_seed_same_vectors():
    pytest.importorskip("gensim", reason="gensim (extra 'vectors') is not installed")
    one, again, other = (learn_word_vectors(TEXT, size=5, seed=seed) for seed in (1, 1, 2))
    assert one.index == again.index
    np.testing.assert_array_equal(one.table, again.table)
    assert not np.array_equal(one.table, other.table)


def test_words_are_normalised_and_rare_ones_left_out():
    pytest.importorskip("gensim", reason="gensim (extra 'vectors') is not installed")
    vectors = learn_word_vectors([*TEXT, ["once"]], size=5)
    assert set(vectors.index) == {"the", "dog", "sees", "0000", "cat", "a"}
    assert sorted(vectors.index.values()) == list(range(6))
    assert vectors.table.shape == (6, 5)
    assert vectors.table.dtype == np.float32
    with pytest.raises(ValueError, match="no word occurs 9 times"):
        learn_word_vectors(TEXT, min_count=9)


def test_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)  # makes the import fail
    with pytest.raises(ValueError, match=r"mh4\[vectors\]"):
        learn_word_vectors(TEXT)


def test_doing_without():
    assert WordVectors.none().table.shape == (0, 0)
