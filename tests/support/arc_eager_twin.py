"""Plain twin of the arc-eager oracles: policies as conditions on lists of steps, scores by listing all computations."""

from functools import cache

import numpy as np
from computations import best_scores, computations, configurations, reachable_trees

from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.oracles.optimal_step import UNREACHABLE
from mh4.transitions.arc_eager import Configuration

REDUCES = ("reduce", "reduce_left")


def allows(policy):
    """The condition that `computations` takes; ``policy`` is None for the normalized system."""

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
    """Every configuration over n words that can be reached, with its arcs forgotten."""
    bare = {Configuration(c.stack, c.labels, c.front, c.n): None for c in configurations(system, n)}
    return list(bare)


def scores_by_listing(system, policy, configuration, gold):
    """The most arcs in common with each gold tree, int (gold trees, n + 1): (gold trees, transitions)."""
    scores = np.full((len(gold), len(system.transitions)), UNREACHABLE)
    best = best_scores(reachable_trees(system, configuration, allows(policy)), gold)
    for transition, values in best.items():
        scores[:, system.transitions.index(transition)] = values
    return scores


def every_pair(configurations, golds):
    """Arguments for `step_scores_batch`: every configuration with every gold tree, the trees of one side by side."""
    return *flat_configurations((c, tree) for c in configurations for tree in range(len(golds))), list(golds)


def number_of_computations(system, policy, configuration):
    """For each transition that leads to a final configuration, how many computations begin with it."""
    counts: dict[str, int] = {}
    for transitions, _ in computations(system, configuration, allows(policy)):
        if transitions:
            counts[transitions[0]] = counts.get(transitions[0], 0) + 1
    return counts


def random_configuration(rng, n, push=0.6):
    """A configuration over n words, drawn without regard to how likely a parser gets there."""
    front = int(rng.integers(1, n + 2))
    stack = (0, *(token for token in range(1, front) if rng.random() < push))
    labels = "R" + "".join(rng.choice(["R", "L"], size=len(stack) - 1))
    return Configuration(stack, labels, front, n)
