"""Word vectors learned on a training text with word2vec (Mikolov et al. 2013), by gensim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mh4.machine import require
from mh4.models.word_vocabulary import normalise

EPOCHS = 20
MIN_COUNT = 2


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of frequent words.

    Attributes
    ----------
    index : dict
        Row of each normalised word (in lower case, with digits as 0).
    table : float32 (V, D)
    """

    index: dict[str, int]
    table: np.ndarray

    @classmethod
    def none(cls) -> WordVectors:
        """Vectors without words and dimensions, for parsers that use none."""
        return cls({}, np.zeros((0, 0), np.float32))


def learn_word_vectors(
    sentences: Iterable[Sequence[str]],
    size: int = 100,
    seed: int = 1,
    epochs: int = EPOCHS,
    min_count: int = MIN_COUNT,
) -> WordVectors:
    """Skip-gram vectors with negative sampling (5 words), window 5; the same seed gives the same vectors.

    Parameters
    ----------
    sentences : iterable of sequences of str
        Word forms as they are in the text.
    size : int
        Dimensions.
    seed : int
    epochs : int
        Passes over the text.
    min_count : int
        Rarer words get no vector. They represent unknown words of other texts in training, so there should be some.

    Raises
    ------
    ValueError
        gensim is not installed, or no word is frequent enough.
    """
    models = require("gensim.models", "vectors")
    text = [[normalise(form) for form in sentence] for sentence in sentences]
    model = models.Word2Vec(
        vector_size=size, window=5, sg=1, negative=5, min_count=min_count, seed=seed, workers=1, epochs=epochs
    )
    model.build_vocab(text)
    if not len(model.wv):
        raise ValueError(f"no word occurs {min_count} times in these {len(text)} sentences")
    # With more than one worker, the order of updates, and so the result, would vary.
    model.train(text, total_examples=len(text), epochs=epochs)
    return WordVectors(dict(model.wv.key_to_index), model.wv.vectors.astype(np.float32))
