"""Data for training steps: sentences as arrays, the batches of an epoch, and their tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mh4.data.sentence import Sentence
from mh4.models.devices import send_together
from mh4.models.encoder import Batch, Encoder
from mh4.parsers.vocabulary import Vocabulary, tag_pair_names

UNLABELLED = -1
WINDOW = 128  # fewest sentences of a window, inside which sentences of similar cost are batched together
WINDOW_BATCHES = 8  # fewest batches of a window, roughly


@dataclass(frozen=True, eq=False)
class Example:
    """A training sentence as arrays for the losses.

    `words` is the input of the encoder, and `cost` its `Encoder.cost`; `heads` (n + 1,) is the gold tree or, if the
    parser cannot build it, the closest one that it can, −1 where a head is unknown; `relations` (`UNLABELLED` where
    unknown), `tags` and `tag_pairs` are int64 (n,); `columns` is int64 (n, 4), see `Columns.targets`, or (n, 0).
    """

    sentence: Sentence
    treebank: str | None
    words: Any
    cost: int
    heads: np.ndarray
    relations: np.ndarray
    tags: np.ndarray
    tag_pairs: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(
        cls,
        sentence: Sentence,
        heads: np.ndarray,
        encoder: Encoder[Any, Any],
        vocabulary: Vocabulary,
        treebank: str | None = None,
    ) -> Example:
        """A sentence with the tree to learn; for ``treebank`` see `Encoder.prepare`."""
        columns = np.empty((len(sentence), 0), np.int64)
        if vocabulary.columns is not None:
            columns = vocabulary.columns.targets(sentence)
        return cls(
            sentence,
            treebank,
            encoder.prepare(sentence, treebank),
            encoder.cost(sentence),
            heads,
            np.array([vocabulary.relation_index.get(name, UNLABELLED) for name in sentence.relations]),
            np.array([vocabulary.tag_index[name] for name in sentence.upos]),
            np.array([vocabulary.tag_pair_index[name] for name in tag_pair_names(sentence)]),
            columns,
        )


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """Words, trees, the relations of all L labelled arcs and the classes of all M words; tensors are on the device.

    An arc is labelled if its head and relation are known.
    """

    words: Batch
    heads: list[np.ndarray]
    sentence_of: Tensor
    dependent: Tensor
    arc_sentence: Tensor
    arc_head: Tensor
    arc_dependent: Tensor
    relations: Tensor
    tags: Tensor
    tag_pairs: Tensor
    columns: Tensor


def evened(treebanks: Sequence[str | None], lengths: Sequence[int], evenness: float, seed: Sequence[int]) -> np.ndarray:
    """Indices of the sentences of an epoch, int64; sentences of smaller treebanks come more than once.

    A treebank comes (words of the largest / its words) ** ``evenness`` times; for the fractional part, ``seed``
    determines a sample of its sentences. ``lengths`` are the numbers of words of the sentences.
    """
    generator = np.random.default_rng(seed)
    places: dict[str | None, list[int]] = {}
    for i, name in enumerate(treebanks):
        places.setdefault(name, []).append(i)
    words = {name: sum(lengths[i] for i in own) for name, own in places.items()}
    chosen = []
    for name, own in places.items():
        times = (max(words.values()) / words[name]) ** evenness
        chosen += own * int(times)
        chosen += generator.permutation(own)[: round(times % 1 * len(own))].tolist()
    return np.array(chosen)


def shuffled_batches(
    lengths: Sequence[int], costs: Sequence[int], batch_words: int, seed: Sequence[int], noise: float = 0.0
) -> list[list[int]]:
    """Indices of the sentences of each batch: shuffled, with similar costs together within a window.

    ``lengths`` are the numbers of words of the sentences; for ``costs`` see `Encoder.cost`. A batch is full as soon as
    it has ``batch_words``. ``seed``, a sequence of numbers, determines the order. Costs are compared after being
    multiplied by random factors whose logarithms have the standard deviation ``noise``; if that is not 0, a batch at
    the end of a window that is less than half full joins the one before.
    """
    generator = np.random.default_rng(seed)
    words_of = np.array(lengths)
    order = generator.permutation(len(words_of))
    size = max(WINDOW, round(WINDOW_BATCHES * batch_words / words_of.mean()))
    compared = np.array(costs)
    if noise:
        compared = compared * np.exp(noise * generator.standard_normal(len(compared)))
    batches: list[list[int]] = []
    for start in range(0, len(order), size):
        window = order[start : start + size]
        batch: list[int] = []
        words = 0
        for i in window[np.argsort(compared[window], kind="stable")].tolist():
            batch.append(i)
            words += int(words_of[i])
            if words >= batch_words:
                batches.append(batch)
                batch, words = [], 0
        if batch and noise and batches and 2 * words < batch_words:
            batches[-1] += batch
        elif batch:
            batches.append(batch)
    return [batches[k] for k in generator.permutation(len(batches))]


def collate(examples: Sequence[Example], encoder: Encoder[Any, Any], device: torch.device) -> TrainingBatch:
    """Make the tensors of one batch."""
    lengths = [len(example.sentence) for example in examples]
    sentence_of = np.repeat(np.arange(len(examples)), lengths)
    dependent = np.concatenate([np.arange(1, n + 1) for n in lengths])
    head_of = np.concatenate([example.sentence.heads for example in examples])
    relations = np.concatenate([example.relations for example in examples])
    labelled = np.flatnonzero((relations != UNLABELLED) & (head_of >= 0))
    parts = (
        sentence_of,
        dependent,
        sentence_of[labelled],
        head_of[labelled],
        dependent[labelled],
        relations[labelled],
        np.concatenate([example.tags for example in examples]),
        np.concatenate([example.tag_pairs for example in examples]),
    )
    joined = [torch.from_numpy(array.astype(np.int64)) for array in parts]
    columns = torch.from_numpy(np.concatenate([example.columns for example in examples]).astype(np.int64))
    words = encoder.collate([example.words for example in examples]).to(device)
    sent = send_together([*joined, columns], device)
    return TrainingBatch(words, [example.heads for example in examples], *sent)
