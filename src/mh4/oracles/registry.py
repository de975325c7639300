"""The static oracles of all transition systems, by name."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mh4.transitions.arc_eager import POLICIES as ARC_EAGER_POLICIES
from mh4.transitions.arc_standard import POLICIES as ARC_STANDARD_POLICIES
from mh4.transitions.registry import TRANSITION_SYSTEMS, system_name
from mh4.transitions.transition_system import TransitionSystem

from . import arc_eager, arc_hybrid, arc_standard, covington, lr_spine, mh4
from .arc_eager import normalized as arc_eager_normalized


class StaticOracle(NamedTuple):
    """A transition system, its policies (the first is the default) and the function for an optimal computation."""

    system: TransitionSystem[Any, Any]
    policies: tuple[str, ...]
    computation: Callable[[np.ndarray, str], Sequence[Any]]


def _of_one_policy(computation: Callable[[np.ndarray], Sequence[Any]]) -> Callable[[np.ndarray, str], Sequence[Any]]:
    return lambda gold, policy: computation(gold)


STATIC_ORACLES = {
    name: StaticOracle(TRANSITION_SYSTEMS[name], policies, computation)
    for name, policies, computation in (
        ("arc-standard", ARC_STANDARD_POLICIES, arc_standard.optimal_computation),
        ("arc-eager", ARC_EAGER_POLICIES, arc_eager.optimal_computation),
        ("arc-eager-normalized", ("reduce-before-shift",), _of_one_policy(arc_eager_normalized.optimal_computation)),
        ("arc-hybrid", ("reduce-before-shift",), _of_one_policy(arc_hybrid.optimal_computation)),
        ("mh4", mh4.POLICIES, lambda gold, policy: mh4.optimal_computation(gold, policy=policy)),
        ("covington", ("shift-before-no-arc",), _of_one_policy(covington.optimal_computation)),
        ("lr-spine", ("arc-before-shift",), _of_one_policy(lr_spine.optimal_computation)),
    )
}


def get_oracle(system: str, policy: str | None) -> tuple[StaticOracle, str]:
    """The oracle of a system, and a policy, by default its first; ValueError, with the known names, for other names."""
    system = system_name(system)
    oracle = STATIC_ORACLES[system]
    if policy is not None and policy not in oracle.policies:
        raise ValueError(f"{system} has no policy {policy!r}; known: {', '.join(oracle.policies)}")
    return oracle, policy or oracle.policies[0]


def optimal_computation(heads: np.ndarray, system: str, policy: str | None = None) -> tuple[tuple[str, ...], int]:
    """A computation that builds as many arcs of a tree as the system can, and the number of these arcs.

    Only MH4 parsing may build fewer: if the search for the closest tree gives up (with a warning; see
    `mh4.oracles.mh4.closest_derivable`), or under ``chart-order`` for trees that the chart does not cover; this policy
    raises a ChartTooLargeError for long sentences. For arguments and other errors see `mh4.oracles`.
    """
    oracle, policy = get_oracle(system, policy)
    transitions = oracle.computation(heads, policy)
    if oracle.system.name == "covington":  # builds every tree; running its O(n²) transitions would take cubic time
        return tuple(map(str, transitions)), len(heads) - 1
    *_, last = oracle.system.run(len(heads) - 1, transitions)
    return tuple(map(str, transitions)), int((oracle.system.heads(last)[1:] == heads[1:]).sum())
