"""Optimal steps of shift-reduce parsing for any gold tree (Nederhof 2019).

Algorithms, which give the same scores wherever they apply:

=====================  ================  ========================================
``cubic``              any gold tree     section 4
``critical-cubic``     projective only   section 4, on critical words (section 5)
``quadratic``          projective only   section 5
``linear``             projective only   section 6
=====================  ================  ========================================

The policies are those of `mh4.transitions.shift_reduce.POLICIES`; brute force over all computations confirms the scores
for all of them, and found nothing to correct in the tables of the paper.

`optimal_step` is for one configuration, `step_scores` the same on arrays, `step_scores_batch` for training loops;
`optimal_computation` is a best computation for a whole sentence, the "static" oracle.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import checked_tree
from mh4.transitions.arrays.arc_standard import applies, move
from mh4.transitions.shift_reduce import POLICIES, TRANSITIONS, Configuration

from ..flat_arrays import check_offsets, flat_golds
from ..optimal_step import UNREACHABLE, OptimalStep
from .cubic import cubic_best_after
from .projective import best_after, is_projective_tree
from .restrictions import restrictions
from .static import projective_computation

ALGORITHMS = ("linear", "quadratic", "critical-cubic", "cubic")
_LINEAR, _, _CRITICAL_CUBIC, _CUBIC = range(len(ALGORITHMS))


@njit(cache=True, nogil=True)
def _is_configuration(stack, front, n):
    if stack.shape[0] == 0 or stack[0] != 0 or front < 1 or front > n + 1:
        return False
    for i in range(1, stack.shape[0]):
        if stack[i] <= stack[i - 1]:
            return False
    return stack[-1] < front


@njit(cache=True, nogil=True)
def _step_scores(stack, front, gold, policy, algorithm, scores):
    """Fill scores, int32 (3,); False if the stack and the front are of no configuration."""
    n = gold.shape[0] - 1
    if not _is_configuration(stack, front, n):
        return False
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
    return True


@njit(cache=True, nogil=True)
def _are_projective_trees(golds, offsets):
    projective = np.empty(offsets.shape[0] - 1, np.bool_)
    for sentence in range(projective.shape[0]):
        projective[sentence] = is_projective_tree(golds[offsets[sentence] : offsets[sentence + 1]])
    return projective


@njit(cache=True, nogil=True)
def _step_scores_batch(stacks, offsets, fronts, sentences, golds, gold_offsets, policy, algorithms, scores):
    """Fill scores, int32 (B, 3); the first row that is no configuration, or B."""
    for row in range(fronts.shape[0]):
        s = sentences[row]
        stack = stacks[offsets[row] : offsets[row + 1]]
        gold = golds[gold_offsets[s] : gold_offsets[s + 1]]
        if not _step_scores(stack, fronts[row], gold, policy, algorithms[s], scores[row]):
            return row
    return fronts.shape[0]


def _code(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise ValueError(f"unknown {what} {name!r}; known: {', '.join(names)}")
    return names.index(name)


def _check_for_cubic(algorithm: str | None, gold: np.ndarray) -> None:
    """ValueError unless a gold tree that is no projective tree is a tree and the algorithm is for all of them."""
    checked_tree(gold)
    if algorithm not in (None, "cubic"):
        raise ValueError(f"the {algorithm} algorithm needs a projective gold tree, use 'cubic': {gold.tolist()}")


def step_scores(
    stack: np.ndarray,
    front: int,
    gold: np.ndarray,
    policy: str = "left-before-right",
    algorithm: str | None = None,
) -> np.ndarray:
    """The most gold arcs that can still be built by the step and what follows it, for each transition.

    Parameters
    ----------
    stack : int (k + 1,)
        Positions, topmost last; the first is 0.
    front : int
        First word of the remaining input, n + 1 if none remains.
    gold, policy, algorithm
        See `mh4.oracles`; by default ``linear`` for projective gold trees and ``cubic``, the only one, for others.

    Returns
    -------
    int32 (3,)
        For shift, reduce_left and reduce_right. Arcs built before are not counted.
    """
    stack = np.asarray(stack, np.int32)
    gold = np.ascontiguousarray(gold, np.int32)
    code = _LINEAR if algorithm is None else _code(algorithm, ALGORITHMS, "algorithm")
    if not is_projective_tree(gold):
        _check_for_cubic(algorithm, gold)
        code = _CUBIC
    scores = np.empty(3, np.int32)
    if not _step_scores(stack, front, gold, _code(policy, POLICIES, "policy"), code, scores):
        raise ValueError(
            f"no configuration of {len(gold) - 1} words: stack {stack.tolist()}, remaining input from {front}"
        )
    return scores


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
    """`step_scores` of many configurations: int32 (B, 3).

    The stack of configuration r is ``stacks[offsets[r]:offsets[r + 1]]``, its remaining input begins at ``fronts[r]``.
    The default algorithm is chosen for each gold tree.
    """
    stacks, offsets = np.ascontiguousarray(stacks, np.int32), np.ascontiguousarray(offsets, np.int64)
    fronts = np.ascontiguousarray(fronts, np.int32)
    flat, gold_offsets, sentences = flat_golds(golds, sentences)
    check_offsets(stacks, offsets, fronts, sentences)
    rows = len(fronts)
    code = _LINEAR if algorithm is None else _code(algorithm, ALGORITHMS, "algorithm")
    algorithms = np.full(len(golds), code, np.int64)
    for sentence in np.flatnonzero(~_are_projective_trees(flat, gold_offsets)).tolist():
        _check_for_cubic(algorithm, np.asarray(golds[sentence]))
        algorithms[sentence] = _CUBIC
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
    gold = np.ascontiguousarray(gold, np.int32)
    n = len(gold) - 1
    if configuration.n != n:
        raise ValueError(f"the configuration is of {configuration.n} words, the gold tree of {n}")
    scores = step_scores(np.array(configuration.stack, np.int32), configuration.front, gold, policy, algorithm)
    scores[scores >= 0] += configuration.gold_arcs(gold)
    return OptimalStep.from_array(TRANSITIONS, scores, n)


def optimal_computation(
    gold: np.ndarray, policy: str = "left-before-right", single_root: bool = False
) -> tuple[str, ...]:
    """A computation from the initial configuration to the closest projective tree, which follows a policy.

    Both left-before-right policies lead to the same one.
    """
    right_first = _code(policy, POLICIES, "policy") == POLICIES.index("right-before-left")
    transitions = projective_computation(closest_tree(gold, "projective", single_root), right_first)
    return tuple(TRANSITIONS[transition] for transition in transitions)
