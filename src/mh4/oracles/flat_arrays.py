"""Configurations and gold trees one after the other in flat arrays, as compiled loops take them: the common checks."""

from collections.abc import Sequence

import numpy as np

from mh4.decoders.trees import checked_tree


def flat_golds(golds: Sequence[np.ndarray], sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gold trees one behind the other, int32, where each begins, int64 (S + 1,), and the sentences, int64 (B,).

    ValueError: Gold heads that are no tree, or a sentence without a gold tree.
    """
    trees = [checked_tree(np.asarray(gold, np.int32)) for gold in golds]
    sentences = np.ascontiguousarray(sentences, np.int64)
    if len(sentences) and not 0 <= sentences.min() <= sentences.max() < len(trees):
        raise ValueError(f"sentences must be 0 to {len(trees) - 1}: {sentences.min()} to {sentences.max()}")
    flat = np.concatenate([np.empty(0, np.int32), *trees])
    return flat, np.cumsum([0, *map(len, trees)], dtype=np.int64), sentences


def check_offsets(stacks: np.ndarray, offsets: np.ndarray, fronts: np.ndarray, sentences: np.ndarray) -> None:
    """ValueError unless every row r has a stack, ``stacks[offsets[r]:offsets[r + 1]]``, a front and a sentence."""
    rows = len(fronts)
    if len(offsets) != rows + 1 or len(sentences) != rows:
        raise ValueError(
            f"{rows} fronts need {rows + 1} offsets and {rows} sentences: {len(offsets)}, {len(sentences)}"
        )
    if offsets[0] != 0 or offsets[-1] != len(stacks) or (np.diff(offsets) < 1).any():
        raise ValueError("offsets must rise from 0 to the length of the stacks")
