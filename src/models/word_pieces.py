"""Words split into the pieces of a pretrained transformer, and the windows in which it reads long sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mh4.machine import require

from .encoder import FileError, HostBatch
from .word_vocabulary import LONGEST_KEPT, shortened

TOKENIZER = "tokenizer.json"  # as the package tokenizers writes it
MOST_FORMS = 1 << 17  # word forms in the cache


class WordPieces(NamedTuple):
    """The pieces of a sentence of n words."""

    ids: np.ndarray  # int64 (P,): ids of the pieces, word by word
    counts: np.ndarray  # int64 (n,): number of pieces of each word, at least 1

    @property
    def key(self) -> bytes:
        """A key that only equal sentences share."""
        return self.counts.tobytes() + self.ids.tobytes()


class PieceVocabulary:
    """Splits words into pieces, each word on its own, so that a form has the same pieces in every sentence.

    Words that spell a special piece, such as "[SEP]" or "</s>", are split like all others.

    Parameters
    ----------
    content
        The content of ``tokenizer.json``.
    unknown
        Id of the piece for words that yield none, such as words of control characters only.

    Attributes
    ----------
    before, after : int64 (S,)
        The special pieces before and after every window, such as [CLS] and [SEP].

    Raises
    ------
    FileError
        The content is not valid.
    """

    def __init__(self, content: bytes, unknown: int) -> None:
        tokenizers = require("tokenizers", "transformers")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except Exception as error:  # the package raises nothing narrower
            raise FileError(TOKENIZER, f"is not a tokenizer: {error}") from None
        self.content = content
        self._tokenizer.encode_special_tokens = True  # special pieces in a text are ordinary text
        added = self._tokenizer.get_added_tokens_decoder()
        self._special = {index for index, piece in added.items() if piece.special} - {unknown}
        encoded = self._tokenizer.encode("a")
        inner = [place for place, special in enumerate(encoded.special_tokens_mask) if not special] or [0]
        self.before = np.array(encoded.ids[: inner[0]], np.int64)
        self.after = np.array(encoded.ids[inner[-1] + 1 :], np.int64)
        self._unknown = [unknown]
        self._known: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def pieces(self, forms: Sequence[str]) -> WordPieces:
        """The pieces of the words of a sentence; a word that yields none gets the unknown piece."""
        known = self._known
        if len(known) > MOST_FORMS:
            self._known = known = {}
        of_words = []
        for form in forms:
            ids = known.get(form)
            if ids is None:
                ids = self._pieces_of(shortened(form)) or self._unknown
                if len(form) <= LONGEST_KEPT:
                    known[form] = ids
            of_words.append(ids)
        return WordPieces(
            np.array([i for ids in of_words for i in ids], np.int64), np.array([len(ids) for ids in of_words], np.int64)
        )

    def _pieces_of(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if self._special.isdisjoint(ids):
            return ids
        if len(text) == 1:
            return [i for i in ids if i not in self._special]
        return [i for letter in text for i in self._pieces_of(letter)]  # Unigram models find special pieces in words


def windows(counts: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Split a sentence into windows of at most ``room`` pieces that overlap by half.

    Parameters
    ----------
    counts : int64 (n,)
        Pieces of each word, P in all.

    Returns
    -------
    starts : int64 (W,)
        The first piece of each window. Every window has min(``room``, P) pieces.
    of_pieces : int64 (P,)
        The window from which each piece takes its state: the one whose middle is closest to the middle of the piece's
        word or, if that window does not hold the piece, to the piece itself.
    """
    total = int(counts.sum())
    if total <= room:
        return np.zeros(1, np.int64), np.zeros(total, np.int64)
    starts = np.minimum(np.arange(0, total - room + room // 2, room // 2), total - room)
    pieces = np.arange(total)
    last = counts.cumsum()
    of_words = np.repeat(last - (counts + 1) / 2, counts)  # the middle of each piece's word
    middles = starts + (room - 1) / 2

    def nearest(places: np.ndarray) -> np.ndarray:
        right = np.searchsorted(middles, places).clip(1, len(middles) - 1)
        return right - (places - middles[right - 1] <= middles[right] - places)

    chosen = nearest(of_words)
    outside = (pieces < starts[chosen]) | (pieces >= starts[chosen] + room)  # only in words longer than half a window
    chosen[outside] = nearest(pieces[outside])
    return starts, chosen


@dataclass(frozen=True)
class PieceBatch(HostBatch):
    """The pieces of B sentences in R windows of up to L pieces; all tensors on the host."""

    lengths: Tensor  # int64 (B,): words of each sentence
    ids: Tensor  # int64 (R, L), padded with 0
    sizes: Tensor  # int64 (R,): pieces of each window, special ones included
    places: Tensor  # int64 (P,): index of each piece's state among the R · L
    counts: Tensor  # int64 (M,): pieces of each word

    @classmethod
    def of(cls, vocabulary: PieceVocabulary, sentences: Sequence[WordPieces], window: int) -> PieceBatch:
        """Arrange sentences in windows of up to ``window`` pieces, special ones included."""
        before, after = vocabulary.before, vocabulary.after
        rows: list[np.ndarray] = []
        places: list[np.ndarray] = []  # (row, column) of each piece
        for ids, counts in sentences:
            starts, chosen = windows(counts, window - len(before) - len(after))
            room = min(len(ids), window - len(before) - len(after))
            columns = np.arange(len(ids)) - starts[chosen] + len(before)
            places.append(np.stack([chosen + len(rows), columns]))
            rows += [np.concatenate([before, ids[start : start + room], after]) for start in starts]
        sizes = np.array([len(row) for row in rows])
        padded = np.zeros((len(rows), sizes.max()), np.int64)
        for row, own in zip(padded, rows, strict=True):
            row[: len(own)] = own
        row_of, column_of = np.concatenate(places, axis=1)
        return cls(
            torch.tensor([len(one.counts) for one in sentences]),
            torch.from_numpy(padded),
            torch.from_numpy(sizes),
            torch.from_numpy(row_of * padded.shape[1] + column_of),
            torch.from_numpy(np.concatenate([one.counts for one in sentences])),
        )
