"""The memory of word vectors that were computed before."""

import numpy as np

from mh4.models import word_memory
from mh4.models.word_memory import LONGEST_KEY, WordMemory


class Computing:
    """Look numbers up in a memory, with vectors derived from the numbers; ``asked`` lists which ones were computed."""

    def __init__(self):
        self.memory, self.asked = WordMemory(), []

    def __call__(self, *numbers, version=1, key=str):
        keys = [key(number).encode() for number in numbers]

        def compute(missing):
            self.asked.append([numbers[i] for i in missing])
            return np.array([[numbers[i], -numbers[i]] for i in missing], np.float32)

        vectors = self.memory.vectors(keys, version, compute)
        np.testing.assert_array_equal(vectors, [[number, -number] for number in numbers])


def test_a_word_is_computed_once():
    vectors = Computing()
    vectors(1, 2)
    vectors(2, 3, 1)
    vectors(3, 1)
    assert vectors.asked == [[1, 2], [3]]


def test_other_weights_make_other_vectors():
    vectors = Computing()
    vectors(1, 2)
    vectors(1, version=2)
    vectors(1, 2, version=2)
    assert vectors.asked == [[1, 2], [1], [2]]


def test_all_can_be_forgotten():
    vectors = Computing()
    vectors(1, 2)
    vectors.memory.forget()
    vectors(1)
    assert vectors.asked == [[1, 2], [1]]


def test_a_memory_has_an_end(monkeypatch):
    monkeypatch.setattr(word_memory, "MOST_WORDS", 2)
    vectors = Computing()
    vectors(1, 2, 3)
    vectors(3)
    assert vectors.asked == [[1, 2, 3], [3]]


def test_very_long_words_are_not_kept():
    vectors = Computing()
    for _ in range(2):
        vectors(1, key=lambda number: str(number) * (LONGEST_KEY + 1))
    assert vectors.asked == [[1], [1]]
