"""Context vectors of words by a BiLSTM over the sum of several word vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from .bilstm_config import BiLSTMConfig
from .devices import send, send_together
from .encoder import Encoder, OnReading, States, Words, unreported
from .layers import SMALL, BiLSTM, room
from .rows import Rearranged
from .treebank_vectors import TreebankVectors
from .word_encoder import WordEncoder
from .word_source import JointBatch, WordSource
from .word_vectors import WordVectors


class SentenceEncoder(nn.Module):
    """A BiLSTM over a learned root vector and the word vectors.

    It returns the states of two layers: of the last one, for trees, and of ``tagger_layer``, counted from 1, for tags.
    """

    def __init__(self, config: BiLSTMConfig) -> None:
        super().__init__()
        self.tagger_layer = config.tagger_layer or config.layers
        self.root = nn.Parameter(room(config.word_size).uniform_(-SMALL, SMALL))
        self.lstm = BiLSTM(config.word_size, config.hidden // 2, config.layers, config.lstm_dropout)

    def forward(self, words: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, word_size) → (B, T + 1, hidden) of the last layer and of the tagger layer; position 0 is the root.

        ``lengths``, int64 (B,), is on the host.
        """
        inside = (torch.arange(words.shape[1] + 1) <= lengths[:, None]).flatten()
        places = inside.nonzero().squeeze(1)
        rows = torch.where(inside, inside.cumsum(0) - 1, len(places))  # row of each place; the row of zeros at padding
        places, rows = send_together([places, rows], words.device)
        padded = torch.cat([self.root.expand(len(words), 1, -1), words], dim=1)
        layers, _ = self.lstm(Rearranged.apply(padded.flatten(0, 1), places, rows), lengths + 1)
        states = Rearranged.apply(layers[-1], rows, places).view(*padded.shape[:2], -1)
        if self.tagger_layer == len(layers):
            return states, states
        return states, Rearranged.apply(layers[self.tagger_layer - 1], rows, places).view_as(states)


class BiLSTMEncoder(Encoder[tuple[Any, ...], JointBatch]):
    """A BiLSTM over the sum of word vectors; with `WordEncoder` as its only source, the published model."""

    config_type: ClassVar[type[BiLSTMConfig]] = BiLSTMConfig

    def __init__(self, config: BiLSTMConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        self.size, self.word_size = config.hidden, config.word_size
        self._names = list(self.source_types(config))
        for name, source_type in self.source_types(config).items():
            self.add_module(name, source_type(config, files))
        self.treebanks = TreebankVectors.names_in(files)
        if self.treebanks:
            self.of_treebank = TreebankVectors(config.word_size, self.treebanks)
        self.sentence = self.head(config)

    @classmethod
    def source_types(cls, config: Any) -> dict[str, type[WordSource[Any, Any]]]:
        """The classes of the sources of word vectors, by the names that their weights have."""
        return {"words": WordEncoder} | ({"vectors": WordVectors} if config.vectors else {})

    def head(self, config: Any) -> nn.Module:
        """The module that makes context vectors of word vectors; see `SentenceEncoder`."""
        return SentenceEncoder(config)

    @property
    def sources(self) -> list[WordSource[Any, Any]]:
        """The sources of word vectors, in order."""
        return [getattr(self, name) for name in self._names]

    @classmethod
    def learn(
        cls,
        config: Any,
        train: Sequence[Words],
        dev: Sequence[Words] = (),
        on_reading: OnReading = unreported,
        treebanks: Sequence[str] = (),
    ) -> dict[str, bytes]:
        files = TreebankVectors.files_of(treebanks)
        for source_type in cls.source_types(config).values():
            files |= source_type.learn(config, train, dev, on_reading)
        return files

    def files(self) -> dict[str, bytes]:
        own = {name: content for source in self.sources for name, content in source.files().items()}
        return own | TreebankVectors.files_of(self.treebanks)

    def prepare(self, sentence: Words, treebank: str | None = None) -> tuple[Any, ...]:
        parts = tuple(source.prepare(sentence) for source in self.sources)
        return (*parts, self.of_treebank.shares(treebank)) if self.treebanks else parts

    def collate(self, sentences: Sequence[tuple[Any, ...]]) -> JointBatch:
        if not self.treebanks:
            return JointBatch.of(self.sources, sentences)
        *parts, shares = zip(*sentences, strict=True)
        return replace(JointBatch.of(self.sources, [*zip(*parts, strict=True)]), treebanks=torch.stack(shares))

    def cost(self, sentence: Words) -> int:
        return max(source.cost(sentence) for source in self.sources)

    def remember(self, sentences: Sequence[Words], folder: Path) -> None:
        for source in self.sources:
            source.remember(sentences, folder)

    def forget(self) -> None:
        for source in self.sources:
            source.forget()

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for source in self.sources for group in source.parameter_groups()]

    def halved(self) -> set[str]:
        named = zip(self._names, self.sources, strict=True)
        return {f"{name}.{own}" for name, source in named for own in source.halved()}

    def words_of(self, batch: JointBatch) -> Tensor:
        """Word vectors (B, T, word_size): the sum over all sources, plus the vector of the treebank."""
        first, *others = (source(own) for source, own in zip(self.sources, batch.batches, strict=True))
        if batch.treebanks is not None:
            others.append(self.of_treebank(send(batch.treebanks, first.device)))
        return sum(others, first)

    def forward(self, batch: JointBatch) -> States:
        words = self.words_of(batch)
        trees, tags = self.sentence(words, batch.lengths)
        return States(trees, tags, words)
