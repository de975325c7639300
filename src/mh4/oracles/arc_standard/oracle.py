"""Optimal steps of arc-standard parsing for any gold tree (Nederhof 2019).

Algorithms, which give the same scores wherever they apply:

=====================  ================  ========================================
``cubic``              any gold tree     section 4
``critical-cubic``     projective only   section 4, on critical words (section 5)
``quadratic``          projective only   section 5
``linear``             projective only   section 6
=====================  ================  ========================================

For the policies see `mh4.transitions.arc_standard.POLICIES`. Brute force over all computations confirms the scores for
each of them; the tables of the paper need no corrections.

`optimal_step` is for one configuration, `step_scores_batch` for training loops; `optimal_computation`, the "static"
oracle, returns a best computation for a whole sentence.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.transitions.arc_standard import POLICIES, TRANSITIONS, Configuration
from mh4.transitions.arrays.arc_standard import applies, move

from ..flat_arrays import checked_batch, flat_configurations
from ..optimal_step import UNREACHABLE, OptimalStep
from .cubic import cubic_best_after
from .projective import best_after
from .restrictions import restrictions
from .static import projective_computation

ALGORITHMS = ("linear", "quadratic", "critical-cubic", "cubic")
_LINEAR, _, _CRITICAL_CUBIC, _CUBIC = range(len(ALGORITHMS))


@njit(nogil=True)
def _step_scores(stack, front, gold, policy, algorithm, scores):
    """Fill scores, int32 (3,)."""
    n = gold.shape[0] - 1
    after = np.empty(stack.shape[0] + 1, np.int32)
    for transition in range(3):
        if not applies(transition, stack.shape[0], front, n):
            scores[transition] = UNREACHABLE
            continue
        for i in range(stack.shape[0]):
            after[i] = stack[i]
        depth, front_after, head, dependent = move(transition, after, stack.shape[0], front)
        first, last, no_right = restrictions(policy, transition, depth)
        if algorithm >= _CRITICAL_CUBIC:
            critical = algorithm == _CRITICAL_CUBIC
            most = cubic_best_after(after[:depth], front_after, gold, first, last, no_right, critical)
        else:
            most = best_after(after[:depth], front_after, gold, first, last, no_right, algorithm == _LINEAR)
        scores[transition] = most + (dependent > 0 and gold[dependent] == head)


@njit(cache=True, nogil=True)
def _step_scores_batch(batch, policy, algorithms, scores):
    """Fill scores, int32 (B, 3)."""
    for row in range(batch.fronts.shape[0]):
        s = batch.sentences[row]
        stack = batch.stacks[batch.offsets[row] : batch.offsets[row + 1]]
        gold = batch.golds[batch.gold_offsets[s] : batch.gold_offsets[s + 1]]
        _step_scores(stack, batch.fronts[row], gold, policy, algorithms[s], scores[row])


def _code(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(names)}")
    return names.index(name)


def step_scores_batch(
    stacks: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    policy: str = "left-before-right",
    algorithm: str | None = None,
) -> np.ndarray:
    """The most gold arcs that each transition and the steps after it can still build, for many configurations.

    Parameters
    ----------
    stacks, offsets : int (sum of depths,), int (B + 1,)
        The stack of configuration r is ``stacks[offsets[r]:offsets[r + 1]]``: positions, topmost last; the first is 0.
    fronts : int (B,)
        First word of each remaining input, n + 1 if none remains.
    sentences, golds, policy, algorithm
        See `mh4.oracles`; by default ``linear`` for projective gold trees and ``cubic``, the only choice, for others.

    Returns
    -------
    int32 (B, 3)
        For shift, reduce_left and reduce_right. Arcs built before are not counted.
    """
    batch = checked_batch(stacks, offsets, fronts, sentences, golds)
    algorithms = np.full(len(golds), _code(algorithm or ALGORITHMS[_LINEAR], ALGORITHMS, "algorithm"), np.int64)
    for s, gold in enumerate(golds):
        if not is_projective(gold):
            if algorithm not in (None, "cubic"):
                raise ValueError(f"the {algorithm} algorithm needs a projective gold tree, use 'cubic': {list(gold)}")
            algorithms[s] = _CUBIC
    code = _code(policy, POLICIES, "policy")
    scores = np.empty((len(batch.fronts), 3), np.int32)
    _step_scores_batch(batch, code, algorithms, scores)
    return scores


def optimal_step(
    configuration: Configuration,
    gold: np.ndarray,
    policy: str = "left-before-right",
    algorithm: str | None = None,
) -> OptimalStep[str]:
    """The transitions of a configuration with the score of the best tree that each can still lead to."""
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], policy, algorithm)
    return OptimalStep.with_arcs_made(TRANSITIONS, scores[0], configuration, gold)


def optimal_computation(
    gold: np.ndarray, policy: str = "left-before-right", single_root: bool = False
) -> tuple[str, ...]:
    """A computation under a policy, from the initial configuration to the closest projective tree.

    Both left-before-right policies lead to the same one.
    """
    right_first = _code(policy, POLICIES, "policy") == POLICIES.index("right-before-left")
    transitions = projective_computation(closest_tree(gold, "projective", single_root), right_first)
    return tuple(TRANSITIONS[transition] for transition in transitions)
