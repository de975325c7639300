"""Plain counterpart of the shift-reduce oracles: policies as conditions on lists of steps."""

from functools import cache

import numpy as np
from computations import best_scores, configurations, reachable_trees

from mh4.oracles.optimal_step import UNREACHABLE
from mh4.transitions.arc_standard import TRANSITIONS, ArcStandard, Configuration

SYSTEM = ArcStandard()


def arc(configuration, transition):
    """The arc (head, dependent) that a transition builds, or None."""
    if transition == "shift":
        return None
    second, top = configuration.stack[-2:]
    return (second, top) if transition == "reduce_left" else (top, second)


def allows(policy, everywhere=False):
    """The condition for `computations` under a policy: section 2 of Nederhof (2019).

    With ``everywhere``, the order is also fixed where a non-strict policy leaves it open: words below the topmost one
    follow it as well, once they have the right arc that makes them topmost.
    """

    def condition(start, steps):
        built = [new for step in steps if (new := arc(*step))]
        if arc(*steps[-1]) is None:
            return True
        head, dependent = built[-1]
        bound = head == start.stack[-1] or head >= start.front
        earlier = [d for h, d in built[:-1] if h == head]
        if not bound:
            if policy == "strict-left-before-right" and dependent < head:
                return False
            if not everywhere:
                return True
            earlier = earlier[1:]  # the first one is always a right arc
        if policy == "right-before-left":
            return dependent < head or all(d > head for d in earlier)
        return dependent > head or all(d < head for d in earlier)

    return condition


@cache
def bare_configurations(n):
    """Every reachable configuration over n words, without its arcs."""
    return list({Configuration(c.stack, c.front, c.n): None for c in configurations(SYSTEM, n)})


def scores_by_listing(policy, configuration, gold):
    """The most arcs in common with each gold tree, (G, 3), for each transition; ``gold`` is int (G, n + 1)."""
    scores = np.full((len(gold), 3), UNREACHABLE)
    for transition, best in best_scores(reachable_trees(SYSTEM, configuration, allows(policy)), gold).items():
        scores[:, TRANSITIONS.index(transition)] = best
    return scores
