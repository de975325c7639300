"""Arc-eager configurations as flat arrays for compiled loops, and the check of their labels."""

from collections.abc import Iterable

import numpy as np
from numba import njit

from mh4.transitions.arc_eager import LABELS, Configuration
from mh4.transitions.arrays.arc_eager import N, R

from ..flat_arrays import Batch, whole_numbers
from ..flat_arrays import flat_configurations as flat_stacks
from .steps import encode_labels


@njit(cache=True, nogil=True)
def _first_mislabelled(labels, offsets, undecided):
    """The first row with labels that no configuration can have, or B."""
    for row in range(offsets.shape[0] - 1):
        start, stop = offsets[row], offsets[row + 1]
        if labels[start] != R:
            return row
        for p in range(start + 1, stop):
            if labels[p] < 0 or labels[p] > N or (labels[p] == N and not (undecided and p == stop - 1)):
                return row
    return offsets.shape[0] - 1


def checked_labels(labels: np.ndarray, batch: Batch, undecided: bool) -> np.ndarray:
    """The labels of all stack elements of a batch, int8; ValueError if they are invalid.

    ``undecided``: whether the element at the top may have label ``N``, as in the normalized system.
    """
    labels = whole_numbers(labels, np.int8, "labels")
    if len(labels) != len(batch.stacks):
        raise ValueError(f"{len(batch.stacks)} stack elements need as many labels: {len(labels)}")
    if (row := _first_mislabelled(labels, batch.offsets, undecided)) < len(batch.fronts):
        own = labels[batch.offsets[row] : batch.offsets[row + 1]].tolist()
        raise batch.error(row, f", labels {own} (of {LABELS})")
    return labels


def flat_configurations(
    configurations: Iterable[tuple[Configuration, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (configuration, sentence) as stacks, labels, offsets, fronts and sentences, for `step_scores_batch`."""
    pairs = list(configurations)
    stacks, offsets, fronts, sentences = flat_stacks(pairs)
    labels = encode_labels("".join(configuration.labels for configuration, _ in pairs))
    return stacks, labels, offsets, fronts, sentences
