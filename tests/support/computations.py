"""Plain counterparts of the oracles: list all computations of a transition system, take the best. Trees for tests."""

import itertools
from functools import cache

import numpy as np


@cache
def all_trees(n):
    """Every tree over 0…n, projective or not, as heads: int32 (count, n + 1)."""
    trees = []
    for heads in itertools.product(range(n + 1), repeat=n):
        parent = (-1, *heads)
        nodes = set(range(1, n + 1))
        while leaves := nodes - {parent[d] for d in nodes}:
            nodes -= leaves
        if not nodes:  # the words of a cycle never become leaves
            trees.append(parent)
    return np.array(trees, np.int32).reshape(-1, n + 1)


def random_tree(rng, n):
    """Heads of a random tree, rarely projective for large n."""
    heads = np.full(n + 1, -1, np.int32)
    order = [0, *(rng.permutation(n) + 1).tolist()]
    for position in range(1, n + 1):
        heads[order[position]] = order[rng.integers(position)]
    return heads


def random_projective_tree(rng, n):
    """Heads of a random projective tree."""
    heads = np.full(n + 1, -1, np.int32)
    pending = [(1, n, 0)]
    while pending:
        first, last, head = pending.pop()
        if first > last:
            continue
        child = int(rng.integers(first, last + 1))
        start, stop = int(rng.integers(first, child + 1)), int(rng.integers(child, last + 1))
        heads[child] = head
        pending += [(start, child - 1, child), (child + 1, stop, child)]
        pending += [(first, start - 1, head), (stop + 1, last, head)]
    return heads


@cache
def configurations(system, n):
    """Every configuration that occurs in a computation over n words, in the order of discovery."""
    found = {system.initial(n): None}
    pending = list(found)
    while pending:
        configuration = pending.pop()
        for transition in system.legal(configuration):
            following = system.apply(configuration, transition)
            if following not in found:
                found[following] = None
                pending.append(following)
    return list(found)


def computations(system, start, allows=None):
    """Every way from ``start`` to a final configuration, as (transitions, final configuration).

    ``allows(start, steps)`` says whether a policy admits the steps taken so far, a tuple of (configuration, transition)
    pairs; if it does not, it must not admit any continuation of them either.
    """

    def go(configuration, steps):
        if system.is_final(configuration):
            yield tuple(transition for _, transition in steps), configuration
        for transition in system.legal(configuration):
            longer = (*steps, (configuration, transition))
            if allows is None or allows(start, longer):
                yield from go(system.apply(configuration, transition), longer)

    yield from go(start, ())


def reachable_trees(system, start, allows=None):
    """The trees that can be reached after each first transition: transition -> int32 (trees, n + 1)."""
    trees = {}
    for transitions, final in computations(system, start, allows):
        if transitions:
            trees.setdefault(transitions[0], set()).add(tuple(system.heads(final).tolist()))
    return {transition: np.array(sorted(heads), np.int32) for transition, heads in trees.items()}


def best_scores(trees, gold):
    """The most arcs that any of the `reachable_trees` shares with each gold tree: transition -> int (gold trees,).

    ``gold`` is int (gold trees, n + 1).
    """
    return {
        transition: (heads[:, None, 1:] == gold[None, :, 1:]).sum(axis=2).max(axis=0)
        for transition, heads in trees.items()
    }
