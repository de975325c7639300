"""What the transitions of unnormalized arc-eager parsing are worth: exactly, or in linear time.

For a configuration and a gold tree, projective or not: the most gold arcs of any tree that can be reached after each
transition. `mh4.oracles.arc_eager.normalized` is the same for the normalized system.

Algorithms:

- ``exact``: by the split grammar of Table 10, cubic time, any gold tree, all policies.
- ``linear``: section 5; exact for projective gold trees, an approximation for others, which section 6.2 assesses. Not
  for strict-reduce-before-shift, and only with `reduce_correct`.

What the policies demand is defined in `mh4.transitions.arc_eager`; section 3 states it in terms of trees. One
consequence holds for every policy: shifting the last word scores nothing, as no word is left to become its head, even
where reduce_correct could mend that.

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

ALGORITHMS = ("exact", "linear")


@njit(cache=True, nogil=True)
def fill_scores(batch, all_labels, grammar, normalized, policy, linear, reduce_correct, scores):
    """Fill the scores of a batch, int32 (B, T); ``linear``, bool (S,), says which gold trees take the linear way."""
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
            if linear[s]:
                rightmost = rightmost_descendants(gold)
        first, k, front = batch.offsets[c], batch.offsets[c + 1] - batch.offsets[c], batch.fronts[c]
        stack[:k] = batch.stacks[first : first + k]
        labels[:k] = all_labels[first : first + k]
        if linear[s] and normalized:
            normalized_scores(stack, labels, k, front, gold, rightmost, scores[c])
        elif linear[s]:
            linear_scores(policy, stack, labels, k, front, gold, rightmost, scores[c])
        else:
            exact_scores(grammar, normalized, policy, reduce_correct, stack, labels, k, front, gold, scores[c])


def linear_trees(algorithm: str | None, golds: Sequence[np.ndarray], reduce_correct: bool) -> np.ndarray:
    """bool (S,): which gold trees take the linear way; by default the projective ones, if there is one."""
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {algorithm!r}; known: {', '.join(ALGORITHMS)}")
    if algorithm == "linear" and not reduce_correct:
        raise ValueError("the linear-time algorithm requires reduce_correct; use algorithm='exact'")
    if algorithm is None and reduce_correct:
        return np.fromiter(map(is_projective, golds), np.bool_, len(golds))
    return np.full(len(golds), algorithm == "linear")


def _code(policy: str, algorithm: str | None) -> int:
    """The number of a policy, if the algorithm is made for it."""
    if policy not in POLICIES:
        raise ValueError(f"unknown policy {policy!r}; known: {', '.join(POLICIES)}")
    code = POLICIES.index(policy)
    if algorithm == "linear" and code == STRICT_REDUCE_BEFORE_SHIFT:
        raise ValueError(f"there is no linear-time algorithm for {policy} here; use algorithm='exact'")
    return code


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
    """The most gold arcs that can still be made by each transition and what follows it, for many configurations.

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
    code = _code(policy, algorithm)
    if code == STRICT_REDUCE_BEFORE_SHIFT:
        algorithm = algorithm or "exact"
    batch = checked_batch(stacks, offsets, fronts, sentences, golds)
    labels = checked_labels(labels, batch, undecided=False)
    scores = np.empty((len(batch.fronts), len(ArcEager.transitions)), np.int32)
    grammar = UNNORMALIZED_GRAMMARS[reduce_correct].arrays
    linear = linear_trees(algorithm, golds, reduce_correct)
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

    The algorithm is by default linear for projective gold trees if that suits the policy, and exact for others.
    ``reduce_correct``: whether words labelled ``L`` may be reduced.
    """
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], policy, algorithm, reduce_correct)
    return OptimalStep.with_arcs_made(ArcEager.transitions, scores[0], configuration, gold)


def optimal_computation(
    gold: np.ndarray, policy: str = "shift-before-reduce", single_root: bool = False
) -> tuple[str, ...]:
    """A computation from the initial configuration to the closest projective tree, which follows a policy."""
    reduce_late = _code(policy, None) == SHIFT_BEFORE_REDUCE
    transitions = projective_computation(closest_tree(gold, "projective", single_root), reduce_late)
    return tuple(ArcEager.transitions[transition] for transition in transitions)
