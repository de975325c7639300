"""Arc-eager configurations in flat arrays, checked, as compiled loops take them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import LABELS, Configuration
from mh4.transitions.arrays.arc_eager import N, R

from ..flat_arrays import check_offsets, flat_golds
from .steps import encode_labels


class Batch(NamedTuple):
    """B configurations over S sentences: arguments of the kernels. `checked_batch` makes it."""

    stacks: np.ndarray  # int32 (sum of depths,)
    labels: np.ndarray  # int8 (sum of depths,)
    offsets: np.ndarray  # int64 (B + 1,)
    fronts: np.ndarray  # int32 (B,)
    sentences: np.ndarray  # int64 (B,)
    golds: np.ndarray  # int32 (sum of n + 1,)
    gold_offsets: np.ndarray  # int64 (S + 1,)


@njit(cache=True, nogil=True)
def _first_unsound(batch, undecided):
    """The first row that is no configuration of its sentence, or B; `undecided`: whether the top may have label N."""
    for row in range(batch.fronts.shape[0]):
        start, stop = batch.offsets[row], batch.offsets[row + 1]
        s = batch.sentences[row]
        n = batch.gold_offsets[s + 1] - batch.gold_offsets[s] - 1
        if batch.stacks[start] != 0 or batch.labels[start] != R:
            return row
        for p in range(start + 1, stop):
            label = batch.labels[p]
            if batch.stacks[p] <= batch.stacks[p - 1] or label < 0 or label > N:
                return row
            if label == N and not (undecided and p == stop - 1):
                return row
        if batch.fronts[row] <= batch.stacks[stop - 1] or batch.fronts[row] > n + 1:
            return row
    return batch.fronts.shape[0]


def checked_batch(
    stacks: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    undecided: bool,
) -> Batch:
    """A batch from what `mh4.oracles.arc_eager.step_scores_batch` takes, which says what is a ValueError.

    ``undecided``: whether the element at the top may have label ``N``, as in the normalized system.
    """
    flat, gold_offsets, sentences = flat_golds(golds, sentences)
    batch = Batch(
        np.ascontiguousarray(stacks, np.int32),
        np.ascontiguousarray(labels, np.int8),
        np.ascontiguousarray(offsets, np.int64),
        np.ascontiguousarray(fronts, np.int32),
        sentences,
        flat,
        gold_offsets,
    )
    check_offsets(batch.stacks, batch.offsets, batch.fronts, batch.sentences)
    if len(batch.labels) != len(batch.stacks):
        raise ValueError(f"{len(batch.stacks)} stack elements need as many labels: {len(batch.labels)}")
    row = _first_unsound(batch, undecided)
    if row < len(batch.fronts):
        elements = slice(batch.offsets[row], batch.offsets[row + 1])
        raise ValueError(
            f"row {row} is no configuration of {len(golds[batch.sentences[row]]) - 1} words: "
            f"stack {batch.stacks[elements].tolist()}, labels {batch.labels[elements].tolist()} (of {LABELS}), "
            f"remaining input from {batch.fronts[row]}"
        )
    return batch


def flat_configurations(
    configurations: Iterable[tuple[Configuration, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (configuration, sentence) as stacks, labels, offsets, fronts and sentences, for `step_scores_batch`."""
    pairs = list(configurations)
    return (
        np.array([token for configuration, _ in pairs for token in configuration.stack], np.int32),
        encode_labels("".join(configuration.labels for configuration, _ in pairs)),
        np.cumsum([0, *(len(configuration.stack) for configuration, _ in pairs)], dtype=np.int64),
        np.array([configuration.front for configuration, _ in pairs], np.int32),
        np.array([sentence for _, sentence in pairs], np.int64),
    )
