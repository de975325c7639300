"""Reference implementations of the decoders for short sentences: enumerate all candidates and take the best."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np


def is_tree(heads):
    for d in range(1, len(heads)):
        seen = set()
        while d != 0:
            if d in seen:
                return False
            seen.add(d)
            d = heads[d]
    return True


def cross(first, second):
    """Whether two arcs (head, dependent) cross as chords."""
    (a, b), (c, d) = sorted(first), sorted(second)
    return a < c < b < d or c < a < d < b


def crossed(heads):
    """For each word, whether its arc is crossed; False for position 0."""
    arcs = [(h, d) for d, h in enumerate(heads) if d > 0]
    return [False] + [any(cross(arc, other) for other in arcs) for arc in arcs]


@cache
def all_trees(n, single_root=False, projective=False):
    """The heads of all trees of n words, int (count, n + 1)."""
    choices = [[h for h in range(n + 1) if h != d] for d in range(1, n + 1)]
    trees = [(-1, *heads) for heads in itertools.product(*choices)]
    trees = [t for t in trees if is_tree(t)]
    if single_root:
        trees = [t for t in trees if t.count(0) == 1]
    if projective:
        trees = [t for t in trees if not any(crossed(t))]
    return np.array(trees)


def best_arc_score(arc, n, single_root, projective=False):
    """The largest sum of arc[h, d] over the arcs of a tree; −inf if every tree contains a forbidden arc."""
    trees = all_trees(n, single_root, projective)[:, 1:]
    return arc.astype(np.float64)[trees, np.arange(1, n + 1)].sum(axis=1).max()


# Reduce transitions, name: (head, dependent); the dependent leaves the stack.
REDUCES = {
    "ra2": ("s2", "s0"),
    "ra": ("s1", "s0"),
    "la": ("b0", "s0"),
    "ra'": ("s2", "s1"),
    "la'": ("s0", "s1"),
    "la2": ("b0", "s1"),
}

# For each system, the parts (channel, row, column) of each reduce; the part of a shift is always (0, s0, b0).
SYSTEMS = {
    "mh3": {"la": [(1, "s0", "b0")], "ra": [(2, "s0", "b0")]},
    "mh4-two": {name: [(1 + t, "s0", "b0")] for t, name in enumerate(REDUCES)},
    "mh4-hybrid": {name: [(1 + t, "s1", "s0"), (7 + t, "s0", "b0")] for t, name in enumerate(REDUCES)},
}


@cache
def transition_sequences(system, n):
    """(heads, parts) of all computations from stack [0], buffer [1, …, end] to stack [0], buffer [end = n + 1]."""
    end = n + 1
    done = []

    def go(stack, b0, heads, parts):
        if stack == (0,) and b0 == end:
            done.append((tuple(heads.get(d, -1) for d in range(n + 1)), tuple(parts)))
            return
        if b0 < end:
            go((*stack, b0), b0 + 1, heads, [*parts, (0, stack[-1], b0)])
        at = dict(zip(("s0", "s1", "s2"), reversed(stack), strict=False), b0=b0)
        for name, channels in SYSTEMS[system].items():
            head, dependent = (at.get(position) for position in REDUCES[name])
            if head is None or dependent in (None, 0) or head == end:
                continue
            rest = tuple(word for word in stack if word != dependent)
            scored = [(channel, at[row], at[column]) for channel, row, column in channels]
            go(rest, b0, {**heads, dependent: head}, parts + scored)

    go((0,), 1, {}, [])
    return done


def best_transition_score(system, scores, arc_bonus, single_root):
    """The score of the best sequence of transitions; −inf if all are forbidden."""
    n = scores.shape[1] - 2
    best = -np.inf
    for heads, parts in transition_sequences(system, n):
        if single_root and heads.count(0) != 1:
            continue
        total = sum(float(scores[p]) for p in parts) + sum(float(arc_bonus[h, d]) for d, h in enumerate(heads) if d > 0)
        best = max(best, total)
    return best
