"""A dynamic and a static oracle of arc-hybrid parsing, for projective gold trees.

The system is *arc-decomposable*: from any configuration, a projective set of arcs can be built as a whole if each of
its arcs can be built (Goldberg and Nivre 2013, section 5). So the cost of a transition is the number of single gold
arcs that it puts out of reach, which takes O(n) to count. The arcs that can still be built are:

- all arcs between two words of the remaining input;
- all arcs between a word of the stack and one of the remaining input, in either direction;
- between two words of the stack, only the arc from the lower to the upper one of two neighbours.

With ``single_root``, the costs are the same if the gold tree has one word below the root: a word that has lost its gold
head can then be attached to another such word, or to the gold child of the root.

The static oracle removes every word as soon as possible. MH4 parsing uses it too: see `mh4.oracles.mh4`.

Source: Goldberg and Nivre (2013), "Training deterministic parsers with non-deterministic oracles", section 5; the root
is the bottom of the stack here, not the end of the input.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import checked_tree, is_projective
from mh4.transitions.arc_hybrid import ArcHybrid, Configuration
from mh4.transitions.arrays.arc_hybrid import REDUCES, SHIFT, move, window
from mh4.transitions.arrays.state import DEPTH, FRONT, LEFT, NONE, RIGHT, TRANSITION, WORDS

from .costs import CHILDREN, STATIC, children_of, write_static_costs
from .flat_arrays import check_arcs
from .optimal_step import UNREACHABLE, OptimalStep


@njit(cache=True, nogil=True)
def transition_costs(stack, front, gold, costs):
    """Fill ``costs``, int32 (3,), with the number of gold arcs that shift, la and ra put out of reach.

    The cost of an illegal transition is undefined. ``stack`` is int32 (k,), ``gold`` int32 (n + 1,), a projective tree.
    """
    n, depth = gold.shape[0] - 1, stack.shape[0]
    top = stack[depth - 1]
    below = stack[depth - 2] if depth > 1 else -1
    ahead = 0  # gold dependents of the topmost word in the remaining input
    for word in range(front, n + 1):
        ahead += gold[word] == top
    shift = 0
    if front <= n:
        for i in range(depth):
            shift += gold[stack[i]] == front or (i < depth - 1 and gold[front] == stack[i])
    costs[0] = shift
    costs[1] = ahead + (gold[top] > front or gold[top] == below)
    costs[2] = ahead + (gold[top] >= front)


@njit(cache=True, nogil=True)
def static_transition(reduces, gold, around, complete, complete_below):
    """The transition that attaches s0, or else s1, to its gold head and removes it; `SHIFT` if neither is possible.

    Parameters
    ----------
    reduces : int (R, 2)
        Table of reductions; see `mh4.transitions.arrays.arc_hybrid`.
    gold : int32 (n + 1,)
    around : four ints
        The `window`: s2, s1, s0, b0.
    complete, complete_below : bool
        Whether s0 and s1 have all their gold dependents.
    """
    for r in range(reduces.shape[0]):
        head, dependent = around[reduces[r, 0]], around[reduces[r, 1]]
        if dependent > 0 and gold[dependent] == head and (complete if dependent == around[2] else complete_below):
            return 1 + r
    return SHIFT


@njit(cache=True, nogil=True)
def static_computation(reduces, gold, transitions):
    """Fill ``transitions``, int (2n,), by the static oracle; return False if it gets stuck before the end."""
    n = gold.shape[0] - 1
    missing = children_of(gold)[CHILDREN]  # the number of gold dependents that each word still lacks
    stack = np.empty(n + 1, np.int32)
    stack[0] = 0
    depth, front = 1, 1
    for step in range(2 * n):
        around = window(stack, depth, front, n)
        complete_below = around[1] != NONE and missing[around[1]] == 0
        transition = static_transition(reduces, gold, around, missing[around[2]] == 0, complete_below)
        if transition == SHIFT and front > n:
            return False
        transitions[step] = transition
        depth, front, head, dependent = move(reduces, transition, stack, depth, front, n)
        if dependent != NONE:
            missing[head] -= 1
    return True


@njit(cache=True, nogil=True)
def _is_complete(state, token):
    dependents = state.valencies[LEFT, token] + state.valencies[RIGHT, token]
    return token != NONE and dependents == state.oracle[CHILDREN, token]


@njit(cache=True, nogil=True)
def static_costs(reduces, state, gold, candidates, count):
    """Fill the costs of the candidates by the static oracle, for a gold tree that the system can build."""
    around = window(state.stack, state.counters[DEPTH], state.counters[FRONT], state.counters[WORDS])
    complete, complete_below = _is_complete(state, around[2]), _is_complete(state, around[1])
    write_static_costs(candidates, count, static_transition(reduces, gold, around, complete, complete_below))


@njit(cache=True, nogil=True)
def costs(state, oracle, gold, candidates, count):
    """Fill the costs of the candidates, for a projective gold tree with one word below the root."""
    if oracle == STATIC:
        static_costs(REDUCES, state, gold, candidates, count)
        return
    lost = np.empty(3, np.int32)
    transition_costs(state.stack[: state.counters[DEPTH]], state.counters[FRONT], gold, lost)
    for c in range(count):
        candidates.costs[c] = lost[candidates.rows[c, TRANSITION]]


def _checked(configuration: Configuration, gold: np.ndarray) -> np.ndarray:
    """The gold tree as int32; ValueError unless it is projective and the configuration valid and of the same length."""
    tree = np.ascontiguousarray(checked_tree(gold), np.int32)
    if not is_projective(tree):
        raise ValueError(f"scoring transitions needs a projective gold tree, see `closest_tree`: {tree.tolist()}")
    if configuration.n != len(tree) - 1:
        raise ValueError(f"the configuration has {configuration.n} words, but the gold tree has {len(tree) - 1}")
    stack, front = configuration.stack, configuration.front
    if stack[:1] != (0,) or front > len(tree) or any(a >= b for a, b in pairwise((*stack, front))):
        raise ValueError(f"not a configuration of {configuration.n} words: {configuration!r}")
    check_arcs(configuration, front, stack)
    return tree


def loss(configuration: Configuration, gold: np.ndarray) -> int:
    """The smallest number of wrong heads in any tree that can be reached; the gold tree must be projective."""
    heads = _checked(configuration, gold).tolist()
    stack, front = configuration.stack, configuration.front
    reachable = configuration.gold_arcs(gold)
    reachable += sum(heads[word] >= front or heads[word] in stack for word in range(front, configuration.n + 1))
    reachable += sum(heads[upper] in (lower, *range(front, len(heads))) for lower, upper in pairwise(stack))
    return configuration.n - reachable


def optimal_step(configuration: Configuration, gold: np.ndarray, single_root: bool = False) -> OptimalStep[str]:
    """The transitions of a configuration with the score of the best tree that each can still lead to.

    The gold tree has to be projective and, with ``single_root`` (see `ArcHybrid`), to have one word below the root.
    """
    tree = _checked(configuration, gold)
    if single_root and np.count_nonzero(tree[1:] == 0) != 1:
        raise ValueError(f"with single_root, the gold tree must have one child of the root: {tree.tolist()}")
    costs = np.empty(3, np.int32)
    transition_costs(np.array(configuration.stack, np.int32), configuration.front, tree, costs)
    legal = [transition in ArcHybrid(single_root).legal(configuration) for transition in ArcHybrid.transitions]
    scores = np.where(legal, configuration.n - loss(configuration, tree) - costs, UNREACHABLE)
    return OptimalStep.from_array(ArcHybrid.transitions, scores, configuration.n)


def optimal_computation(gold: np.ndarray, single_root: bool = False) -> tuple[str, ...]:
    """Transitions to the closest projective tree, removing every word as soon as possible; O(n) for projective trees.

    A word is removed once it is topmost, has all its dependents and is next to its head. Other orders exist: a word
    above its head in the stack could also stay while others are pushed onto it and removed.
    """
    heads = closest_tree(gold, "projective", single_root)
    transitions = np.empty(2 * (len(heads) - 1), np.int8)
    static_computation(REDUCES, heads, transitions)
    return tuple(ArcHybrid.transitions[transition] for transition in transitions)
