"""What the transitions of normalized arc-eager parsing are worth, by the split grammar of Table 9; cubic time.

For a configuration and a gold tree, projective or not: the most gold arcs of any tree that can be reached after each
transition. The policy reduce-before-shift is built into the system. Words that get the label ``L`` after the
configuration must become left children; only earlier labels may be corrected.

Source: Nederhof (2021), "Calculating the optimal step of arc-eager parsing for non-projective trees", section 4.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.transitions.arc_eager import Configuration, NormalizedArcEager

from ..optimal_step import OptimalStep
from .batch import checked_batch, flat_configurations, with_arcs_made
from .grammars import NORMALIZED_GRAMMARS, exact_scores_normalized
from .static import normalized_computation


@njit(cache=True, nogil=True)
def _step_scores_batch(batch, grammar, reduce_correct, scores):
    for c in range(batch.fronts.shape[0]):
        sentence, first, stop = batch.sentences[c], batch.offsets[c], batch.offsets[c + 1]
        gold = batch.golds[batch.gold_offsets[sentence] : batch.gold_offsets[sentence + 1]]
        stack, labels = batch.stacks[first:stop], batch.labels[first:stop]
        exact_scores_normalized(grammar, reduce_correct, stack, labels, stop - first, batch.fronts[c], gold, scores[c])


def step_scores_batch(
    stacks: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    reduce_correct: bool = True,
) -> np.ndarray:
    """`step_scores` of many configurations, int32 (B, 5); see `mh4.oracles.arc_eager.step_scores_batch`."""
    batch = checked_batch(stacks, labels, offsets, fronts, sentences, golds, undecided=True)
    scores = np.empty((len(batch.fronts), len(NormalizedArcEager.transitions)), np.int32)
    _step_scores_batch(batch, NORMALIZED_GRAMMARS[reduce_correct].arrays, reduce_correct, scores)
    return scores


def step_scores(
    stack: np.ndarray, labels: np.ndarray, front: int, gold: np.ndarray, reduce_correct: bool = True
) -> np.ndarray:
    """The most gold arcs that can still be made by the step and what follows it, for each transition.

    int32 (5,), for shift, left_child, right_child, reduce_left, reduce_right; arcs made before are not counted. For
    arguments see `mh4.oracles.arc_eager.step_scores`.
    """
    offsets, fronts = np.array([0, len(stack)]), np.array([front])
    return step_scores_batch(stack, labels, offsets, fronts, np.zeros(1), [gold], reduce_correct)[0]


def optimal_step(configuration: Configuration, gold: np.ndarray, reduce_correct: bool = True) -> OptimalStep:
    """The score of every transition and the best ones; ``reduce_correct``: see `NormalizedArcEager`."""
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], reduce_correct)
    return with_arcs_made(NormalizedArcEager.transitions, scores[0], configuration, gold)


def optimal_computation(gold: np.ndarray, single_root: bool = False) -> tuple[str, ...]:
    """A computation from the initial configuration to the closest projective tree (static oracle)."""
    transitions = normalized_computation(closest_tree(gold, "projective", single_root))
    return tuple(NormalizedArcEager.transitions[transition] for transition in transitions)
