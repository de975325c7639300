"""Vectors of single words without context: embeddings, or predicted by a BiLSTM over the characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from .bilstm_config import BiLSTMConfig
from .checked import as_json, checked
from .devices import HOST, send, send_together
from .encoder import FileError, HostBatch, OnReading, Words
from .layers import SMALL, BiLSTM, Linear, activated, room
from .randomness import Random
from .rows import take_rows
from .word_memory import WordMemory
from .word_source import WordSource
from .word_vocabulary import END, UNKNOWN, WordIds, WordVocabulary

VOCABULARY = "words.json"  # file of the words and characters of the training text


@dataclass(frozen=True)
class WordBatch(HostBatch):
    """The words of B sentences, padded to T; all tensors on the host.

    Indices for lookups are computed on the host, too: on a GPU, results whose size depends on the data would have to be
    waited for.
    """

    lengths: Tensor  # int64 (B,): words of each sentence
    words: Tensor  # int64 (B, T): vocabulary index of each word, `UNKNOWN` for unknown words and padding
    forms: Tensor  # int64 (B, T): index of each word's form among the F distinct forms of the batch; 0 at padding
    characters: Tensor  # int64 (M,): characters of the distinct forms, form by form, with `BEGIN` and `END`
    character_lengths: Tensor  # int64 (F,): characters of each distinct form, M in all

    @classmethod
    def of(cls, sentences: Sequence[WordIds]) -> WordBatch:
        """Collate the words of sentences."""
        lengths = np.array([len(sentence.words) for sentence in sentences])
        inside = np.arange(lengths.max()) < lengths[:, None]
        seen: dict[str, int] = {}
        form_of = np.array([seen.setdefault(form, len(seen)) for sentence in sentences for form in sentence.forms])
        new = np.diff(np.maximum.accumulate(form_of), prepend=-1) > 0
        character_lengths = np.concatenate([sentence.character_lengths for sentence in sentences])
        characters = np.concatenate([sentence.characters for sentence in sentences])[np.repeat(new, character_lengths)]
        words, forms = np.full(inside.shape, UNKNOWN), np.zeros(inside.shape, np.int64)
        words[inside] = np.concatenate([sentence.words for sentence in sentences])
        forms[inside] = form_of
        return cls(
            torch.from_numpy(lengths),
            torch.from_numpy(words),
            torch.from_numpy(forms),
            torch.from_numpy(characters),
            torch.from_numpy(character_lengths[new]),
        )

    @property
    def mask(self) -> Tensor:
        """bool (B, T): True at words, False at padding."""
        return torch.arange(self.words.shape[1]) < self.lengths[:, None]


def _embedding(count: int, size: int) -> nn.Embedding:
    weight = room(count, size)
    if not weight.is_meta:  # for normal_ on meta, PyTorch would load its compiler, which takes seconds
        nn.init.normal_(weight)  # overwritten, but keeps the random numbers that follow, and so what a seed gives
        nn.init.uniform_(weight, -SMALL, SMALL)
    return nn.Embedding(count, size, _weight=weight)


class WordEncoder(WordSource[WordIds, WordBatch], Random):
    """One vector per word: its embedding if the word is frequent, else a vector predicted from its characters.

    If ``characters`` is "all" instead of "rare", a word has the sum of both, and rare words share the embedding of the
    unknown word. In training a frequent word is treated as unknown with probability ``word_unknown[w]``, a character
    with ``character_unknown[c]``. To save time, a frequent form of the batch loses its character-based vector with
    probability ``spelling_dropout`` (only if ``characters`` is "all"). Whole vectors are dropped with probability
    ``block_dropout``.
    """

    def __init__(self, config: BiLSTMConfig, files: Mapping[str, bytes]) -> None:
        super().__init__(config, files)
        try:
            self.vocabulary = vocabulary = checked(WordVocabulary, files[VOCABULARY])
        except ValueError as error:
            raise FileError(VOCABULARY, str(error)) from None
        self.spells_all = config.characters == "all"
        self.block_dropout = config.block_dropout
        self.spelling_dropout = config.spelling_dropout
        self.words = _embedding(len(vocabulary.words) + 1, config.word_size)
        self.characters = _embedding(len(vocabulary.characters) + END + 1, config.character_size)
        self.character_lstm = BiLSTM(
            config.character_size, config.character_hidden // 2, config.character_layers, config.lstm_dropout
        )
        self.from_characters = Linear(config.character_hidden, config.word_size)
        # Not buffers, so that they stay on the host.
        self.word_unknown = vocabulary.word_unknown(config.word_unknown)
        self.character_unknown = vocabulary.character_unknown(config.character_unknown)
        self._memory = WordMemory()

    @classmethod
    def learn(
        cls, config: BiLSTMConfig, train: Sequence[Words], dev: Sequence[Words], on_reading: OnReading
    ) -> dict[str, bytes]:
        forms = (form for sentence in train for form in sentence.forms)
        return {VOCABULARY: as_json(asdict(WordVocabulary.of(forms, config.min_word_count)))}

    def files(self) -> dict[str, bytes]:
        return {VOCABULARY: as_json(asdict(self.vocabulary))}

    def prepare(self, sentence: Words) -> WordIds:
        return self.vocabulary.ids(sentence.forms)

    def collate(self, sentences: Sequence[WordIds]) -> WordBatch:
        return WordBatch.of(sentences)

    def forward(self, batch: WordBatch) -> Tensor:
        """Word vectors (B, T, size)."""
        mask = batch.mask
        unknown = mask & (batch.words == UNKNOWN)
        if self.training:
            unknown |= mask & (self._rand(mask.shape) < self.word_unknown[batch.words])
        known = batch.words.masked_fill(unknown, UNKNOWN)
        spelt = mask if self.spells_all else unknown
        if self.training and self.spells_all and self.spelling_dropout:
            kept = self._rand(batch.character_lengths.shape) >= self.spelling_dropout
            spelt = unknown | (mask & kept[batch.forms])
        needed, which = torch.unique(batch.forms[spelt], return_inverse=True)
        places = spelt.flatten().nonzero().squeeze(1)
        known, places, which = send_together([known, places, which], batch.device)
        vectors = self.words(known)
        if len(needed):
            predicted = take_rows(self._spelt(batch, needed), which)
            flat = vectors.flatten(0, 1)
            joined = flat.index_add(0, places, predicted) if self.spells_all else flat.index_copy(0, places, predicted)
            vectors = joined.view_as(vectors)
        if self.training and self.block_dropout:
            keep = 1.0 - self.block_dropout
            vectors = vectors * (self._rand(mask.shape, vectors.device) < keep)[..., None] / keep
        return vectors

    def forget(self) -> None:
        self._memory.forget()

    def _rand(self, shape: torch.Size, device: torch.device = HOST) -> Tensor:
        return torch.rand(shape, dtype=torch.float32, device=device, generator=self.generator(device))

    def _spelt(self, batch: WordBatch, forms: Tensor) -> Tensor:
        """`predict`, with a cache for inference on the CPU; a GPU is as fast without."""
        if self.training or torch.is_grad_enabled():
            self.forget()  # weights will change, and fused optimizers do not count that in the version
            return self.predict(batch, forms)
        if batch.device.type != "cpu" or self.words.weight.is_inference():  # such tensors have no version
            return self.predict(batch, forms)
        ends = batch.character_lengths.cumsum(0)
        starts = ends - batch.character_lengths
        text, width = batch.characters.numpy().tobytes(), batch.characters.itemsize
        places = zip((starts[forms] * width).tolist(), (ends[forms] * width).tolist(), strict=True)
        version = sum(weight._version for weight in self.parameters())  # grows with every change of any weight
        vectors = self._memory.vectors(
            [text[start:end] for start, end in places],
            version,
            lambda missing: self.predict(batch, forms[torch.from_numpy(missing)]).numpy(),
        )
        return torch.from_numpy(vectors)

    def predict(self, batch: WordBatch, forms: Tensor) -> Tensor:
        """Vectors (K, size) of the forms with indices ``forms``, int64 (K,) on the host, from their characters only."""
        lengths = batch.character_lengths[forms]
        moved = batch.character_lengths.cumsum(0)[forms] - lengths.cumsum(0)  # from selected characters to the batch's
        index = torch.repeat_interleave(moved, lengths)
        characters = batch.characters[index + torch.arange(len(index))]
        if self.training:
            unknown = self._rand(characters.shape) < self.character_unknown[characters]
            characters = characters.masked_fill(unknown, UNKNOWN)
        _, last = self.character_lstm(self.characters(send(characters, batch.device)), lengths)
        return activated(self.from_characters(last).float())
