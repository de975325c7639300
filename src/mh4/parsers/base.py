"""What every parser offers, whatever it scores with: trees of sentences, files in and out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mh4.data.conllu import Sentence, read_conllu
from mh4.data.errors import DataError, ErrorPolicy, Errors
from mh4.data.files import atomic_output
from mh4.data.shards import WINDOW_WORDS

ROOT_RELATION = "root"


@dataclass(frozen=True, eq=False)
class Prediction:
    """The tree of one sentence: heads int32 (n + 1,) with ``heads[0] == -1``, and n relations."""

    heads: np.ndarray
    relations: tuple[str, ...]


class Count(NamedTuple):
    """How much was parsed."""

    sentences: int
    words: int


def _windows(sentences: Iterable[Sentence]) -> Iterator[list[Sentence]]:
    """Sentences in portions of `WINDOW_WORDS`."""
    window: list[Sentence] = []
    words = 0
    for sentence in sentences:
        window.append(sentence)
        words += len(sentence)
        if words >= WINDOW_WORDS:
            yield window
            window, words = [], 0
    if window:
        yield window


class TreebankParser(ABC):
    """What every parser does with files, given `attempt`.

    Attributes
    ----------
    single_root : bool
        Whether all its trees have exactly one word below the root.
    """

    single_root: bool = True

    @abstractmethod
    def attempt(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> Sequence[Prediction | DataError]:
        """Trees of some sentences, in their order; in place of a tree the error of given heads that no tree has."""

    def predict(self, sentences: Sequence[Sentence], keep_heads: bool = False) -> list[Prediction]:
        """Trees of some sentences, in their order.

        Parameters
        ----------
        sentences : sequence of Sentence
        keep_heads : bool
            Keep the heads that the sentences have and predict the others, exactly, around them.

        Raises
        ------
        DataError
            At the first sentence whose given heads are not those of any tree that the parser can build.
        ValueError
            A parser that cannot keep heads.
        """
        predictions = []
        for result in self.attempt(sentences, keep_heads):
            if isinstance(result, DataError):
                raise result
            predictions.append(result)
        return predictions

    def parse(
        self,
        source: str | Path | Iterable[Sentence],
        keep_heads: bool = False,
        errors: ErrorPolicy = "raise",
    ) -> Iterator[tuple[Sentence, Prediction]]:
        """Parse CoNLL-U; yields every sentence with its tree, in order.

        Parameters
        ----------
        source
            A file, ``"-"`` for standard input, or sentences.
        keep_heads : bool
            Keep the heads that the input has and predict the others, exactly, around them.
        errors : {"raise", "skip"} or callable
            What happens at a sentence that is not valid, or whose given heads cannot be kept; see `Errors.of`.

        Raises
        ------
        DataError
            The file cannot be read; with ``errors="raise"``, at the first bad sentence.
        """
        report = Errors.of(errors)
        if isinstance(source, (str, Path)):
            source = read_conllu(source, errors=report)
        for window in _windows(source):
            for sentence, result in zip(window, self.attempt(window, keep_heads), strict=True):
                if isinstance(result, DataError):
                    report(result)
                else:
                    yield sentence, result

    def parse_to_file(
        self,
        source: str | Path | Iterable[Sentence],
        output: str | Path,
        keep_heads: bool = False,
        errors: ErrorPolicy = "raise",
    ) -> Count:
        """`parse` into a CoNLL-U file, ``"-"`` for standard output; the file appears when it is whole."""
        sentences = words = 0
        with atomic_output(output) as stream:
            for sentence, prediction in self.parse(source, keep_heads, errors):
                stream.write(sentence.render(heads=prediction.heads, relations=prediction.relations))
                sentences += 1
                words += len(sentence)
        return Count(sentences, words)

    def parse_tokens(self, sentences: Sequence[Sequence[str]]) -> list[Prediction]:
        """Parse sentences given as lists of words."""
        return self.predict([Sentence.from_tokens(tokens, number=i) for i, tokens in enumerate(sentences, start=1)])
