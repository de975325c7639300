"""Configurations and gold trees as flat arrays for compiled loops, and the checks that the oracles share."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mh4.decoders.trees import checked_tree
from mh4.transitions.transition_system import ConfigurationWithArcs


def whole_numbers(values: np.ndarray, dtype: type[np.signedinteger[Any]], what: str) -> np.ndarray:
    """The numbers as a C-contiguous array of this type; ValueError if that would round them, or they overflow."""
    given = np.asarray(values)
    with np.errstate(invalid="ignore"):
        array = np.ascontiguousarray(given, dtype)
    if array is not given and not np.array_equal(array, given):
        raise ValueError(f"{what} must be {np.dtype(dtype)}: {given.tolist()}")
    return array


def check_arcs(configuration: ConfigurationWithArcs, front: int, stack: Collection[int] = ()) -> None:
    """ValueError if a configuration holds arcs that no computation can have made; arcs may be missing.

    Each word before ``front`` that is not in the stack may have one head, any other position of the sentence.
    """
    n, dependents = configuration.n, {dependent for _, dependent in configuration.arcs}
    sound = len(dependents) == len(configuration.arcs) and dependents.isdisjoint(stack)
    if not sound or any(not (0 < d < front and 0 <= h <= n and h != d) for h, d in configuration.arcs):
        raise ValueError(f"not a configuration of {n} words: {configuration!r}")


def flat_golds(golds: Sequence[np.ndarray], sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The concatenated gold trees, int32, their offsets, int64 (S + 1,), and ``sentences`` as int64 (B,).

    ValueError if some gold heads are not a tree, or a sentence has no gold tree.
    """
    trees = [np.asarray(checked_tree(gold), np.int32) for gold in golds]
    sentences = whole_numbers(sentences, np.int64, "sentences")
    if len(sentences) and not 0 <= sentences.min() <= sentences.max() < len(trees):
        raise ValueError(f"sentences must be 0 to {len(trees) - 1}: {sentences.min()} to {sentences.max()}")
    flat = np.concatenate([np.empty(0, np.int32), *trees])
    return flat, np.cumsum([0, *map(len, trees)], dtype=np.int64), sentences


def flat_configurations(
    configurations: Iterable[tuple[Any, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (configuration, sentence) as stacks, offsets, fronts and sentences, for `step_scores_batch`."""
    pairs = list(configurations)
    return (
        np.array([position for configuration, _ in pairs for position in configuration.stack], np.int32),
        np.cumsum([0, *(len(configuration.stack) for configuration, _ in pairs)], dtype=np.int64),
        np.array([configuration.front for configuration, _ in pairs], np.int32),
        np.array([sentence for _, sentence in pairs], np.int64),
    )


class Batch(NamedTuple):
    """B configurations of S sentences, for systems with a stack, as arguments of the kernels."""

    stacks: np.ndarray  # int32 (sum of depths,)
    offsets: np.ndarray  # int64 (B + 1,): the stack of row r is ``stacks[offsets[r]:offsets[r + 1]]``
    fronts: np.ndarray  # int32 (B,)
    sentences: np.ndarray  # int64 (B,)
    golds: np.ndarray  # int32 (sum of n + 1,)
    gold_offsets: np.ndarray  # int64 (S + 1,)

    def error(self, row: int, labels: str = "") -> ValueError:
        """The error for a row that is not a configuration of its sentence."""
        n = self.gold_offsets[self.sentences[row] + 1] - self.gold_offsets[self.sentences[row]] - 1
        stack = self.stacks[self.offsets[row] : self.offsets[row + 1]].tolist()
        return ValueError(
            f"row {row} is not a configuration of {n} words: stack {stack}{labels}, "
            f"remaining input from {self.fronts[row]}"
        )


@njit(cache=True, nogil=True)
def _first_unsound(batch):
    """The first row that is not a configuration of its sentence, or B."""
    for row in range(batch.fronts.shape[0]):
        stack, front = batch.stacks[batch.offsets[row] : batch.offsets[row + 1]], batch.fronts[row]
        s = batch.sentences[row]
        n = batch.gold_offsets[s + 1] - batch.gold_offsets[s] - 1
        if stack[0] != 0 or front <= stack[-1] or front > n + 1:
            return row
        for p in range(1, stack.shape[0]):
            if stack[p] <= stack[p - 1]:
                return row
    return batch.fronts.shape[0]


def checked_batch(
    stacks: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
) -> Batch:
    """A batch from the arguments of `step_scores_batch`; ValueError if they are invalid (see `mh4.oracles`)."""
    flat, gold_offsets, sentences = flat_golds(golds, sentences)
    batch = Batch(
        whole_numbers(stacks, np.int32, "stacks"),
        whole_numbers(offsets, np.int64, "offsets"),
        whole_numbers(fronts, np.int32, "fronts"),
        sentences,
        flat,
        gold_offsets,
    )
    rows = len(batch.fronts)
    if len(batch.offsets) != rows + 1 or len(sentences) != rows:
        raise ValueError(
            f"{rows} fronts need {rows + 1} offsets and {rows} sentences: {len(batch.offsets)}, {len(sentences)}"
        )
    if batch.offsets[0] != 0 or batch.offsets[-1] != len(batch.stacks) or (np.diff(batch.offsets) < 1).any():
        raise ValueError("offsets must rise from 0 to the length of the stacks")
    if (row := _first_unsound(batch)) < rows:
        raise batch.error(row)
    return batch
