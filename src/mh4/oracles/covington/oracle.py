"""A dynamic and a static oracle of Covington's parser, for any gold tree.

The loss of a configuration is computed in linear time by Theorem 1 (`loss`). Training keeps it up to date along a
computation instead (`incremental`).

`optimal_step` is for one configuration, `step_scores_batch` for many; `optimal_computation`, the "static" oracle, is
the shortest computation that builds the gold tree.

Source: Gómez-Rodríguez and Fernández-González (2015), "An efficient dynamic oracle for unrestricted non-projective
parsing".
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numba import njit

from mh4.decoders.trees import checked_tree
from mh4.transitions.covington import TRANSITIONS, Configuration
from mh4.transitions.transition_system import NO_HEAD

from ..flat_arrays import check_arcs, flat_golds, whole_numbers
from ..optimal_step import UNREACHABLE, OptimalStep
from .loss import is_configuration, loss_on_arrays, topmost_words
from .static import shortest_computation


@njit(cache=True, nogil=True)
def _step_scores(heads, left, right, gold, scores):
    """Fill scores, int32 (4,); ``heads`` are changed and restored."""
    n = heads.shape[0] - 1
    scores[:] = UNREACHABLE
    if right > n:
        return
    scores[0] = n - loss_on_arrays(heads, right, right + 1, gold)
    if left == 0:
        return
    scores[1] = n - loss_on_arrays(heads, left - 1, right, gold)
    tops = np.empty(n + 1, np.int32)
    topmost_words(heads, tops)
    if tops[left] == tops[right]:
        return
    for transition, head, dependent in ((2, right, left), (3, left, right)):
        if heads[dependent] == NO_HEAD:
            heads[dependent] = head
            scores[transition] = n - loss_on_arrays(heads, left - 1, right, gold)
            heads[dependent] = NO_HEAD


@njit(cache=True, nogil=True)
def _step_scores_batch(heads, offsets, lefts, rights, sentences, golds, gold_offsets, scores):
    """Fill scores, int32 (B, 4); return the first row that is not a valid configuration, or B."""
    for row in range(lefts.shape[0]):
        s = sentences[row]
        of_row = heads[offsets[row] : offsets[row + 1]]
        if not is_configuration(of_row, lefts[row], rights[row]):
            return row
        _step_scores(of_row, lefts[row], rights[row], golds[gold_offsets[s] : gold_offsets[s + 1]], scores[row])
    return lefts.shape[0]


def flat_configurations(
    configurations: Iterable[tuple[Configuration, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (configuration, sentence) as heads, lefts, rights and sentences, for `step_scores_batch`."""
    pairs = list(configurations)
    return (
        np.concatenate([np.empty(0, np.int32), *(_heads(configuration) for configuration, _ in pairs)]),
        np.array([configuration.left for configuration, _ in pairs], np.int32),
        np.array([configuration.right for configuration, _ in pairs], np.int32),
        np.array([sentence for _, sentence in pairs], np.int64),
    )


def step_scores_batch(
    heads: np.ndarray,
    lefts: np.ndarray,
    rights: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
) -> np.ndarray:
    """The most gold arcs of any tree that can be reached after each transition; O(n) per configuration.

    Parameters
    ----------
    heads : int (sum of n + 1,)
        Heads by the arcs made so far, −1 where there is none, concatenated over the configurations.
    lefts, rights : int (B,)
        Focus words: the last one of λ₁ (0 if it is empty), the first one of the buffer (n + 1 if it is empty).
    sentences, golds
        See `mh4.oracles`.

    Returns
    -------
    int32 (B, 4)
        For shift, no_arc, left_arc, right_arc: n minus the loss of the configuration that follows. Gold arcs made
        before are counted.
    """
    heads = whole_numbers(heads, np.int32, "heads").copy()  # the kernel changes them
    lefts, rights = whole_numbers(lefts, np.int32, "lefts"), whole_numbers(rights, np.int32, "rights")
    flat, gold_offsets, sentences = flat_golds(golds, sentences)
    rows = len(lefts)
    if len(rights) != rows or len(sentences) != rows:
        raise ValueError(f"{rows} lefts need as many rights and sentences: {len(rights)}, {len(sentences)}")
    sizes = np.diff(gold_offsets)
    offsets = np.concatenate(([0], np.cumsum(sizes[sentences])))
    if offsets[-1] != len(heads):
        raise ValueError(f"these sentences need {offsets[-1]} heads, the root's among them: {len(heads)}")
    scores = np.empty((rows, len(TRANSITIONS)), np.int32)
    row = _step_scores_batch(heads, offsets, lefts, rights, sentences, flat, gold_offsets, scores)
    if row < rows:
        raise ValueError(
            f"row {row} is not a configuration of {sizes[sentences[row]] - 1} words: "
            f"heads {heads[offsets[row] : offsets[row + 1]].tolist()}, focus words {lefts[row]} and {rights[row]}"
        )
    return scores


def loss(configuration: Configuration, gold: np.ndarray) -> int:
    """The smallest number of wrong heads in any tree that can be reached (Theorem 1)."""
    tree = _checked(configuration, gold)
    return int(loss_on_arrays(configuration.heads(), configuration.left, configuration.right, tree))


def _heads(configuration: Configuration) -> np.ndarray:
    """The heads by the arcs made so far; ValueError unless they are words of the sentence, one for each dependent."""
    check_arcs(configuration, configuration.n + 1)
    return configuration.heads()


def _checked(configuration: Configuration, gold: np.ndarray) -> np.ndarray:
    """The gold tree as int32; ValueError if it or the configuration is invalid, or their lengths differ."""
    tree = np.ascontiguousarray(checked_tree(gold), np.int32)
    if configuration.n != len(tree) - 1:
        raise ValueError(f"the configuration has {configuration.n} words, but the gold tree has {len(tree) - 1}")
    if not is_configuration(_heads(configuration), configuration.left, configuration.right):
        raise ValueError(f"not a configuration of {configuration.n} words: {configuration!r}")
    return tree


def optimal_step(configuration: Configuration, gold: np.ndarray) -> OptimalStep[str]:
    """The transitions of a configuration with the score of the best tree that each can still lead to."""
    _checked(configuration, gold)
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold])
    return OptimalStep.from_array(TRANSITIONS, scores[0], configuration.n)


def optimal_computation(gold: np.ndarray) -> tuple[str, ...]:
    """Transitions from the initial configuration to the gold tree, reading each word as soon as possible."""
    heads = np.ascontiguousarray(checked_tree(gold), np.int32)
    return tuple(TRANSITIONS[transition] for transition in shortest_computation(heads))
