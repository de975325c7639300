"""Scores of the transitions of normalized arc-eager parsing, exact or in linear time.

The score of a transition is the largest number of gold arcs in any tree that can be reached after it; the gold tree
need not be projective. The policy reduce-before-shift is built into the system. Words that get the label ``L`` after
the configuration must become left children; only earlier labels may be corrected.

Algorithms:

- ``exact``: by the split grammar of Table 9, in cubic time, for any gold tree.
- ``linear``: see `normalized_linear` and, without `reduce_correct`, `uncorrected_linear`; exact for projective gold
  trees, an approximation for others.

Source: Nederhof (2021), "Calculating the optimal step of arc-eager parsing for non-projective trees", section 4.
"""

from collections.abc import Sequence

import numpy as np

from mh4.decoders.closest import closest_tree
from mh4.transitions.arc_eager import Configuration, NormalizedArcEager

from ..flat_arrays import checked_batch
from ..optimal_step import OptimalStep
from .batch import checked_labels, flat_configurations
from .grammars import NORMALIZED_GRAMMARS
from .oracle import fill_scores, linear_trees
from .static import normalized_computation


def step_scores_batch(
    stacks: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    algorithm: str | None = None,
    reduce_correct: bool = True,
) -> np.ndarray:
    """See `mh4.oracles.arc_eager.step_scores_batch`; int32 (B, 5).

    For shift, left_child, right_child, reduce_left, reduce_right.
    """
    batch = checked_batch(stacks, offsets, fronts, sentences, golds)
    labels = checked_labels(labels, batch, undecided=True)
    scores = np.empty((len(batch.fronts), len(NormalizedArcEager.transitions)), np.int32)
    grammar, linear = NORMALIZED_GRAMMARS[reduce_correct].arrays, linear_trees(algorithm, golds)
    fill_scores(batch, labels, grammar, True, 0, linear, reduce_correct, scores)
    return scores


def optimal_step(
    configuration: Configuration, gold: np.ndarray, algorithm: str | None = None, reduce_correct: bool = True
) -> OptimalStep[str]:
    """The score of every transition and the best ones, by default in linear time for projective gold trees.

    ``reduce_correct``: see `NormalizedArcEager`; for other arguments and errors see `mh4.oracles`.
    """
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], algorithm, reduce_correct)
    return OptimalStep.with_arcs_made(NormalizedArcEager.transitions, scores[0], configuration, gold)


def optimal_computation(gold: np.ndarray, single_root: bool = False) -> tuple[str, ...]:
    """A computation from the initial configuration to the closest projective tree (static oracle)."""
    transitions = normalized_computation(closest_tree(gold, "projective", single_root))
    return tuple(NormalizedArcEager.transitions[transition] for transition in transitions)
