"""Plain counterpart of the arc-eager oracles: policies as conditions on lists of steps, scores by enumeration."""

from functools import cache

import numpy as np
from computations import best_scores, computations, configurations, reachable_trees

from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.oracles.optimal_step import UNREACHABLE
from mh4.transitions.arc_eager import Configuration

REDUCES = ("reduce", "reduce_left")


def allows(policy):
    """The condition for `computations` under a policy, which is None for the normalized system."""

    def condition(start, steps):
        configuration, transition = steps[-1]
        top = configuration.stack[-1]
        if transition in REDUCES and configuration.labels[-1] == "L":
            # A mistake may be corrected only if it was made before.
            old = dict(zip(start.stack, start.labels, strict=True))
            if old.get(top) != "L":
                return False
        if len(steps) == 1:
            return True
        before, previous = steps[-2]
        if policy == "shift-before-reduce":
            return (previous, transition) != ("reduce", "shift")
        if (previous, transition) == ("left_arc", "reduce"):
            return policy == "reduce-before-shift" and before.stack[-1] in start.stack
        return True

    return condition


@cache
def bare_configurations(system, n):
    """Every reachable configuration over n words, without its arcs."""
    bare = {Configuration(c.stack, c.labels, c.front, c.n): None for c in configurations(system, n)}
    return list(bare)


def scores_by_listing(system, policy, configuration, gold):
    """The most arcs in common with each gold tree, (G, T), for each transition; ``gold`` is int (G, n + 1)."""
    scores = np.full((len(gold), len(system.transitions)), UNREACHABLE)
    best = best_scores(reachable_trees(system, configuration, allows(policy)), gold)
    for transition, values in best.items():
        scores[:, system.transitions.index(transition)] = values
    return scores


def every_pair(configurations, golds):
    """Arguments for `step_scores_batch`: every configuration with every gold tree, grouped by configuration."""
    return *flat_configurations((c, tree) for c in configurations for tree in range(len(golds))), list(golds)


def number_of_computations(system, policy, configuration):
    """The number of computations beginning with each transition that leads to a final configuration."""
    counts: dict[str, int] = {}
    for transitions, _ in computations(system, configuration, allows(policy)):
        if transitions:
            counts[transitions[0]] = counts.get(transitions[0], 0) + 1
    return counts


def random_configuration(rng, n, push=0.6):
    """A random configuration over n words, not necessarily a likely one."""
    front = int(rng.integers(1, n + 2))
    stack = (0, *(token for token in range(1, front) if rng.random() < push))
    labels = "R" + "".join(rng.choice(["R", "L"], size=len(stack) - 1))
    return Configuration(stack, labels, front, n)
