"""Optimal steps of arc-standard parsing for any gold tree (Nederhof 2019).

Algorithms, which give the same scores wherever they apply:

=====================  ================  ========================================
``cubic``              any gold tree     section 4
``critical-cubic``     projective only   section 4, on critical words (section 5)
``quadratic``          projective only   section 5
``linear``             projective only   section 6
=====================  ================  ========================================

The policies are those of `mh4.transitions.arc_standard.POLICIES`; brute force over all computations confirms the scores
for all of them, and found nothing to correct in the tables of the paper.

`optimal_step` is for one configuration, `step_scores_batch` for training loops; `optimal_computation` is a best
computation for a whole sentence, the "static" oracle.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.transitions.arc_standard import POLICIES, TRANSITIONS, Configuration
from mh4.transitions.arrays.arc_standard import applies, move

from ..flat_arrays import check_offsets, flat_golds
from ..optimal_step import UNREACHABLE, OptimalStep
from .cubic import cubic_best_after
from .projective import best_after
from .restrictions import restrictions
from .static import projective_computation

ALGORITHMS = ("linear", "quadratic", "critical-cubic", "cubic")
_LINEAR, _, _CRITICAL_CUBIC, _CUBIC = range(len(ALGORITHMS))


@njit(nogil=True)
def _is_configuration(stack, front, n):
    if stack.shape[0] == 0 or stack[0] != 0 or front < 1 or front > n + 1:
        return False
    for i in range(1, stack.shape[0]):
        if stack[i] <= stack[i - 1]:
            return False
    return stack[-1] < front


@njit(nogil=True)
def _step_scores(stack, front, gold, policy, algorithm, scores):
    """Fill scores, int32 (3,)."""
    n = gold.shape[0] - 1
    after = np.empty(stack.shape[0] + 1, np.int32)
    for transition in range(3):
        if not applies(transition, stack.shape[0], front, n):
            scores[transition] = UNREACHABLE
            continue
        after[:-1] = stack
        depth, front_after, head, dependent = move(transition, after, stack.shape[0], front)
        first, last, no_right = restrictions(policy, transition, depth)
        if algorithm >= _CRITICAL_CUBIC:
            critical = algorithm == _CRITICAL_CUBIC
            most = cubic_best_after(after[:depth], front_after, gold, first, last, no_right, critical)
        else:
            most = best_after(after[:depth], front_after, gold, first, last, no_right, algorithm == _LINEAR)
        scores[transition] = most + (dependent > 0 and gold[dependent] == head)


@njit(cache=True, nogil=True)
def _step_scores_batch(stacks, offsets, fronts, sentences, golds, gold_offsets, policy, algorithms, scores):
    """Fill scores, int32 (B, 3); the first row that is no configuration, or B."""
    for row in range(fronts.shape[0]):
        s = sentences[row]
        stack = stacks[offsets[row] : offsets[row + 1]]
        gold = golds[gold_offsets[s] : gold_offsets[s + 1]]
        if not _is_configuration(stack, fronts[row], gold.shape[0] - 1):
            return row
        _step_scores(stack, fronts[row], gold, policy, algorithms[s], scores[row])
    return fronts.shape[0]


def _code(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(names)}")
    return names.index(name)


def flat_configurations(
    configurations: Iterable[tuple[Configuration, int]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (configuration, sentence) as stacks, offsets, fronts and sentences, for `step_scores_batch`."""
    pairs = list(configurations)
    return (
        np.array([position for configuration, _ in pairs for position in configuration.stack], np.int32),
        np.cumsum([0, *(len(configuration.stack) for configuration, _ in pairs)], dtype=np.int64),
        np.array([configuration.front for configuration, _ in pairs], np.int32),
        np.array([sentence for _, sentence in pairs], np.int64),
    )


def step_scores_batch(
    stacks: np.ndarray,
    offsets: np.ndarray,
    fronts: np.ndarray,
    sentences: np.ndarray,
    golds: Sequence[np.ndarray],
    policy: str = "left-before-right",
    algorithm: str | None = None,
) -> np.ndarray:
    """The most gold arcs that can still be built by each transition and what follows it, for many configurations.

    Parameters
    ----------
    stacks, offsets : int (sum of depths,), int (B + 1,)
        The stack of configuration r is ``stacks[offsets[r]:offsets[r + 1]]``: positions, topmost last; the first is 0.
    fronts : int (B,)
        First word of each remaining input, n + 1 if none remains.
    sentences, golds, policy, algorithm
        See `mh4.oracles`; by default ``linear`` for projective gold trees and ``cubic``, the only one, for others.

    Returns
    -------
    int32 (B, 3)
        For shift, reduce_left and reduce_right. Arcs built before are not counted.
    """
    stacks, offsets = np.ascontiguousarray(stacks, np.int32), np.ascontiguousarray(offsets, np.int64)
    fronts = np.ascontiguousarray(fronts, np.int32)
    flat, gold_offsets, sentences = flat_golds(golds, sentences)
    check_offsets(stacks, offsets, fronts, sentences)
    rows = len(fronts)
    algorithms = np.full(len(golds), _code(algorithm or ALGORITHMS[_LINEAR], ALGORITHMS, "algorithm"), np.int64)
    for s, gold in enumerate(golds):
        if not is_projective(gold):
            if algorithm not in (None, "cubic"):
                raise ValueError(f"the {algorithm} algorithm needs a projective gold tree, use 'cubic': {list(gold)}")
            algorithms[s] = _CUBIC
    code = _code(policy, POLICIES, "policy")
    scores = np.empty((rows, 3), np.int32)
    row = _step_scores_batch(stacks, offsets, fronts, sentences, flat, gold_offsets, code, algorithms, scores)
    if row < rows:
        stack = stacks[offsets[row] : offsets[row + 1]].tolist()
        raise ValueError(
            f"row {row} is no configuration of {len(golds[sentences[row]]) - 1} words: "
            f"stack {stack}, remaining input from {fronts[row]}"
        )
    return scores


def optimal_step(
    configuration: Configuration,
    gold: np.ndarray,
    policy: str = "left-before-right",
    algorithm: str | None = None,
) -> OptimalStep:
    """The transitions of a configuration with the score of the best tree that each can still lead to."""
    scores = step_scores_batch(*flat_configurations([(configuration, 0)]), [gold], policy, algorithm)
    return OptimalStep.with_arcs_made(TRANSITIONS, scores[0], configuration, gold)


def optimal_computation(
    gold: np.ndarray, policy: str = "left-before-right", single_root: bool = False
) -> tuple[str, ...]:
    """A computation from the initial configuration to the closest projective tree, which follows a policy.

    Both left-before-right policies lead to the same one.
    """
    right_first = _code(policy, POLICIES, "policy") == POLICIES.index("right-before-left")
    transitions = projective_computation(closest_tree(gold, "projective", single_root), right_first)
    return tuple(TRANSITIONS[transition] for transition in transitions)
