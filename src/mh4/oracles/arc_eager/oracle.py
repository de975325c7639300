"""Scores of the transitions of unnormalized arc-eager parsing, exact or in linear time.

The score of a transition is the largest number of gold arcs in any tree that can be reached after it; the gold tree
need not be projective. For the normalized system see `mh4.oracles.arc_eager.normalized`.

Algorithms:

- ``exact``: by the split grammar of Table 10, in cubic time, for any gold tree and policy.
- ``linear``: section 5 or, without `reduce_correct`, `uncorrected_linear`; exact for projective gold trees, an
  approximation for others, assessed in section 6.2. With `reduce_correct`, not for strict-reduce-before-shift.

The policies are defined in `mh4.transitions.arc_eager`; section 3 states them in terms of trees. Under every policy,
shifting the last word is `UNREACHABLE`: no word is left to become its head, and the policies do not allow
reduce_correct to repair that.

Source: Nederhof (2021), "Calculating the optimal step of arc-eager parsing for non-projective trees".
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.transitions.arc_eager import POLICIES, ArcEager, Configuration

from ..flat_arrays import checked_batch
from ..optimal_step import OptimalStep
from .batch import checked_labels, flat_configurations
from .grammars import UNNORMALIZED_GRAMMARS, exact_scores
from .linear import linear_scores, rightmost_descendants
from .normalized_linear import normalized_scores
from .static import projective_computation
from .steps import SHIFT_BEFORE_REDUCE, STRICT_REDUCE_BEFORE_SHIFT
from .uncorrected_linear import uncorrected_scores

ALGORITHMS = ("exact", "linear")


@njit(cache=True, nogil=True)
def fill_scores(batch, all_labels, grammar, normalized, policy, linear, reduce_correct, scores):
    """Fill the scores of a batch, int32 (B, T); ``linear``, bool (S,): which gold trees to score in linear time."""
    longest = 0
    for c in range(batch.fronts.shape[0]):
        longest = max(longest, batch.offsets[c + 1] - batch.offsets[c])
    stack, labels = np.empty(longest + 1, np.int32), np.empty(longest + 1, np.int8)
    sentence = -1
    gold = rightmost = batch.golds[:0]
    for c in range(batch.fronts.shape[0]):
        s = batch.sentences[c]
        if s != sentence:
            sentence = s
            gold = batch.golds[batch.gold_offsets[sentence] : batch.gold_offsets[sentence + 1]]
            if linear[s] and reduce_correct:
                rightmost = rightmost_descendants(gold)
        first, k, front = batch.offsets[c], batch.offsets[c + 1] - batch.offsets[c], batch.fronts[c]
        for i in range(k):
            stack[i], labels[i] = batch.stacks[first + i], all_labels[first + i]
        if not linear[s]:
            exact_scores(grammar, normalized, policy, reduce_correct, stack, labels, k, front, gold, scores[c])
        elif not reduce_correct:
            uncorrected_scores(normalized, policy, stack, labels, k, front, gold, scores[c])
        elif normalized:
            normalized_scores(stack, labels, k, front, gold, rightmost, scores[c])
        else:
            linear_scores(policy, stack, labels, k, front, gold, rightmost, scores[c])


def linear_trees(algorithm: str | None, golds: Sequence[np.ndarray]) -> np.ndarray:
    """bool (S,): which gold trees to score in linear time; by default, the projective ones."""
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    if algorithm is None:
        return np.fromiter(map(is_projective, golds), np.bool_, len(golds))
    return np.full(len(golds), algorithm == "linear")


def _code(policy: str) -> int:
    """The number of a policy; ValueError if it is unknown."""
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; known: {', '.join(POLICIES)}")
    return POLICIES.index(policy)


def step_scores_batch(
    stacks: np.ndarray,
    labels: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    policy: str = "shift-before-reduce",
    algorithm: str | None = None,
    reduce_correct: bool = True,
) -> np.ndarray:
    """The most gold arcs that each transition and the steps after it can still make, for many configurations.

    Parameters
    ----------
    stacks, labels : int (sum of depths,)
        All stacks, one after the other, each from the root to the top, and the labels of their elements: indices of
        `mh4.transitions.arc_eager.LABELS`.
    offsets : int (B + 1,)
        The stack of configuration r is ``stacks[offsets[r]:offsets[r + 1]]``.
    fronts : int (B,)
        First word of each remaining input; n + 1 where that is empty.
    sentences, golds, policy, algorithm
        See `mh4.oracles`.
    reduce_correct : bool
        Whether words labelled ``L`` may be reduced.

    Returns
    -------
    int32 (B, 4)
        For shift, left_arc, right_arc, reduce; arcs made before are not counted.
    """
    code = _code(policy)
    if code == STRICT_REDUCE_BEFORE_SHIFT and reduce_correct:
        if algorithm == "linear":
            raise ValueError(f"the linear-time algorithm does not support {policy} with reduce_correct; use 'exact'")
        algorithm = algorithm or "exact"
    batch = checked_batch(stacks, offsets, fronts, sentences, golds)
    labels = checked_labels(labels, batch, undecided=False)
    scores = np.empty((len(batch.fronts), len(ArcEager.transitions)), np.int32)
    grammar = UNNORMALIZED_GRAMMARS[reduce_correct].arrays
    linear = linear_trees(algorithm, golds)
    fill_scores(batch, labels, grammar, False, code, linear, reduce_correct, scores)
    return scores


def optimal_step(
    configuration: Configuration,
    gold: np.ndarray,
    policy: str = "shift-before-reduce",
    algorithm: str | None = None,
    reduce_correct: bool = True,
) -> OptimalStep[str]:
    """The score of every transition and the best ones; for arguments and errors see `mh4.oracles`.

    By default the algorithm is linear for projective gold trees, if it supports the other options, and else exact.
    ``reduce_correct``: whether words labelled ``L`` may be reduced.
    """
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], policy, algorithm, reduce_correct)
    return OptimalStep.with_arcs_made(ArcEager.transitions, scores[0], configuration, gold)


def optimal_computation(
    gold: np.ndarray, policy: str = "shift-before-reduce", single_root: bool = False
) -> tuple[str, ...]:
    """A computation under a policy, from the initial configuration to the closest projective tree."""
    reduce_late = _code(policy) == SHIFT_BEFORE_REDUCE
    transitions = projective_computation(closest_tree(gold, "projective", single_root), reduce_late)
    return tuple(ArcEager.transitions[transition] for transition in transitions)
