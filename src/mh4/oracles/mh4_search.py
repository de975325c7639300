"""Exact search for the closest tree that MH4 parsing can build to one that it cannot.

The search runs over the configurations of the system. The cost of a configuration is the number of gold arcs lost so
far, because the dependent was attached to another head or the head was removed first. Costs never fall along a
computation, so configurations are expanded in order of cost, and the first final one belongs to a closest tree. Two
things keep the search short. The future of a configuration depends only on its stack and the length of its remaining
input, and each such pair is expanded once. And a complete word whose gold head is within reach is removed without
considering alternatives, as in `mh4.oracles.mh4`: any word that would be attached to it later can be attached to
another word at the same cost (the tests enumerate all trees of up to six words).
"""

from typing import NamedTuple

import numpy as np

from mh4.transitions.mh4 import MH4

CONFIGURATIONS = 50_000  # expanded before the search gives up, after 2 to 4 seconds for up to 300 words


Stacked = tuple[tuple[int, ...], int]  # the stack, and the first word of the remaining input


class _Step(NamedTuple):
    """Backpointer of a configuration: the previous one, and the arc (head, dependent) if the step made one."""

    before: Stacked | None
    arc: tuple[int, int] | None


def search_closest(
    heads: np.ndarray, single_root: bool = False, configurations: int = CONFIGURATIONS
) -> np.ndarray | None:
    """The tree of the system, int32 (n + 1,), that shares most arcs with ``heads``; None if the search gives up.

    It gives up after expanding ``configurations`` configurations. Few trees need more than a few hundred, but the
    number can grow exponentially with the number of gold arcs lost.
    """
    gold = heads.tolist()
    n = len(gold) - 1
    children: list[list[int]] = [[] for _ in gold]
    for word in range(1, n + 1):
        children[gold[word]].append(word)
    agenda: list[list[tuple[Stacked, _Step]]] = [[(((0,), 1), _Step(None, None))]]
    steps: dict[Stacked, _Step] = {}
    cost = 0
    while len(steps) < configurations:
        if not agenda[cost]:
            cost += 1
            continue
        configuration, step = agenda[cost].pop()
        if configuration in steps:
            continue
        steps[configuration] = step
        stack, front = configuration
        if front > n and len(stack) == 1:
            return _heads(configuration, steps, n)
        after: list[tuple[int, Stacked, tuple[int, int] | None]] = []
        if front <= n:
            after.append((0, ((*stack, front), front + 1), None))
        held = set(stack)
        for head, dependent in _arcs(stack, front, n, single_root):
            right = gold[dependent] == head
            waiting = sum(child >= front or child in held for child in children[dependent])
            # If the gold head has been removed already, this arc was counted as lost then.
            loss = waiting + (not right and (gold[dependent] >= front or gold[dependent] in held))
            left = stack[:-1] if dependent == stack[-1] else (*stack[:-2], stack[-1])
            reduced = (left, front), (head, dependent)
            if right and not waiting:
                after = [(0, *reduced)]
                break
            after.append((loss, *reduced))
        for loss, following, arc in after:
            agenda.extend([] for _ in range(cost + loss + 1 - len(agenda)))
            agenda[cost + loss].append((following, _Step(configuration, arc)))
    return None


def _arcs(stack: tuple[int, ...], front: int, n: int, single_root: bool) -> list[tuple[int, int]]:
    """Head and dependent of every legal reduction."""
    remaining = front <= n
    window = (*((-1, -1, *stack)[-3:]), front if remaining else -1)
    least = 1 if single_root and (remaining or len(stack) > 2) else 0
    arcs = ((window[head], window[dependent]) for head, dependent in MH4.reduces.values())
    return [(head, dependent) for head, dependent in arcs if head >= least and dependent > 0]


def _heads(configuration: Stacked, steps: dict[Stacked, _Step], n: int) -> np.ndarray:
    heads = np.full(n + 1, -1, np.int32)
    step = steps[configuration]
    while step.before is not None:
        if step.arc is not None:
            heads[step.arc[1]] = step.arc[0]
        step = steps[step.before]
    return heads
