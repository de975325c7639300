"""Static oracles by the names of their systems: an optimal computation of every system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mh4.transitions import arc_eager as arc_eager_system
from mh4.transitions import shift_reduce as shift_reduce_system
from mh4.transitions.arc_hybrid import ArcHybrid
from mh4.transitions.covington import Covington
from mh4.transitions.lr_spine import LRSpine
from mh4.transitions.mh4 import MH4
from mh4.transitions.transition_system import TransitionSystem

from . import arc_eager, arc_hybrid, covington, lr_spine, mh4, shift_reduce
from .arc_eager import normalized as arc_eager_normalized


class StaticOracle(NamedTuple):
    """A transition system, its policies (the first is the default) and how to compute an optimal computation."""

    system: TransitionSystem[Any, Any]
    policies: tuple[str, ...]
    computation: Callable[[np.ndarray, str], Sequence[Any]]


ORACLES = {
    oracle.system.name: oracle
    for oracle in (
        StaticOracle(shift_reduce_system.ShiftReduce(), shift_reduce_system.POLICIES, shift_reduce.optimal_computation),
        StaticOracle(arc_eager_system.ArcEager(), arc_eager_system.POLICIES, arc_eager.optimal_computation),
        StaticOracle(
            arc_eager_system.NormalizedArcEager(),
            ("reduce-before-shift",),
            lambda gold, policy: arc_eager_normalized.optimal_computation(gold),
        ),
        StaticOracle(ArcHybrid(), ("reduce-before-shift",), lambda gold, policy: arc_hybrid.optimal_computation(gold)),
        StaticOracle(MH4(), ("reduce-before-shift",), lambda gold, policy: mh4.optimal_computation(gold)),
        StaticOracle(Covington(), ("shift-before-no-arc",), lambda gold, policy: covington.optimal_computation(gold)),
        StaticOracle(LRSpine(), ("arc-before-shift",), lambda gold, policy: lr_spine.optimal_computation(gold)),
    )
}


def get_oracle(system: str, policy: str | None) -> tuple[StaticOracle, str]:
    """The oracle of a system and a policy of it, by default its first.

    Raises
    ------
    ValueError
        An unknown name; the message lists the known ones.
    """
    if system not in ORACLES:
        raise ValueError(f"unknown transition system {system!r}; known: {', '.join(ORACLES)}")
    oracle = ORACLES[system]
    if policy is not None and policy not in oracle.policies:
        raise ValueError(f"{system} has no policy {policy!r}; known: {', '.join(oracle.policies)}")
    return oracle, policy or oracle.policies[0]


def optimal_computation(heads: np.ndarray, system: str, policy: str | None = None) -> tuple[tuple[str, ...], int]:
    """A computation of a system that builds as many arcs of a tree as any does, and the number of these arcs.

    One exception: a tree that MH4 parsing cannot build is replaced by the closest one of the chart decoder, and there
    may be a closer one.

    Parameters
    ----------
    heads : int (n + 1,)
        A tree, projective or not.
    system : str
        One of `ORACLES`.
    policy : str, optional
        One of the policies of the system.

    Raises
    ------
    ValueError
        An unknown system or policy, or ``heads`` is not a tree.
    """
    oracle, policy = get_oracle(system, policy)
    transitions = oracle.computation(heads, policy)
    *_, last = oracle.system.run(len(heads) - 1, transitions)
    return tuple(map(str, transitions)), int((oracle.system.heads(last)[1:] == heads[1:]).sum())
