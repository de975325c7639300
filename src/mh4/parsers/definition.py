"""The definition of a parser with a network: everything but its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from mh4.data.sentence import Sentence
from mh4.models.encoder import OnReading, unreported
from mh4.models.encoders import ENCODERS

from .config import NetworkParserConfig
from .vocabulary import Vocabulary

C = TypeVar("C", bound=NetworkParserConfig)


class Definition(NamedTuple, Generic[C]):
    """Configuration, vocabulary, and the files of the encoder by name."""

    config: C
    vocabulary: Vocabulary
    encoder_files: Mapping[str, bytes]

    @classmethod
    def learn(
        cls,
        config: C,
        train: Sequence[Sentence],
        dev: Sequence[Sentence] = (),
        on_reading: OnReading = unreported,
        treebanks: Sequence[str] = (),
    ) -> Self:
        """The definition of a new parser, learnt from training sentences; see `Encoder.learn`.

        ValueError: The treebank is unfit for training.
        """
        vocabulary = Vocabulary.from_sentences(train, config.weights.annotates)
        files = ENCODERS[config.encoder.kind].learn(config.encoder, train, dev, on_reading, treebanks)
        return cls(config, vocabulary, files)
