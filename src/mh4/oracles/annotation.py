"""Optimal computations for whole treebanks: which transitions build as much of each gold tree as can be built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..files import DataError, atomic_output
from ..transitions import arc_eager as arc_eager_system
from ..transitions import shift_reduce as shift_reduce_system
from ..transitions.arc_hybrid import ArcHybrid
from ..transitions.covington import Covington
from ..transitions.lr_spine import LRSpine
from ..transitions.mh4 import MH4
from ..transitions.transition_system import TransitionSystem
from ..treebank import Sentence, read_treebank, set_comment
from . import arc_eager, arc_eager_normalized, arc_hybrid, covington, lr_spine, mh4, shift_reduce

TRANSITIONS_COMMENT = "# transitions = "
ARCS_COMMENT = "# attainable_arcs = "


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


@dataclass
class OracleTotals:
    """What `annotate_file` wrote, and how many gold arcs the computations build."""

    sentences: int = 0
    words: int = 0
    transitions: int = 0
    attainable_arcs: int = 0

    @property
    def accuracy(self) -> float:
        """Attainable accuracy in percent: gold arcs built by the optimal computations."""
        return 100 * self.attainable_arcs / self.words if self.words else 0.0


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


def annotate_file(
    source: str | Path,
    target: str | Path,
    system: str,
    policy: str | None = None,
    *,
    sequences_only: bool = False,
    skip_bad: bool = False,
    on_skip: Callable[[DataError], None] | None = None,
) -> OracleTotals:
    """Write a treebank with the optimal computation of every gold tree in comments.

    Every sentence gets ``# transitions = shift shift reduce_right …`` and ``# attainable_arcs = N``, the gold arcs that
    these transitions build, after its other comments; all else stays byte for byte.

    Parameters
    ----------
    source, target
        CoNLL-U files with gold trees; ``-`` is standard input or output. The target is complete or not there at all.
    system, policy
        As for `optimal_computation`.
    sequences_only : bool
        Write one line a sentence instead: its id, attainable arcs, words and the transitions, separated by tabs.
    skip_bad, on_skip
        As for `read_treebank`.

    Raises
    ------
    DataError
        As `read_treebank` and `atomic_output`.
    ValueError
        An unknown system or policy.
    """
    get_oracle(system, policy)
    totals = OracleTotals()
    with atomic_output(target) as stream:
        for sentence in read_treebank(source, gold=True, skip_bad=skip_bad, on_skip=on_skip):
            transitions, arcs = optimal_computation(sentence.heads, system, policy)
            if sequences_only:
                columns = (sentence.label, arcs, len(sentence), " ".join(transitions))
                stream.write(("\t".join(map(str, columns)) + "\n").encode())
            else:
                stream.write(_annotated(sentence, transitions, arcs).render())
            totals.sentences += 1
            totals.words += len(sentence)
            totals.transitions += len(transitions)
            totals.attainable_arcs += arcs
    return totals


def _annotated(sentence: Sentence, transitions: Sequence[str], arcs: int) -> Sentence:
    lines = list(sentence.lines)
    set_comment(lines, TRANSITIONS_COMMENT, " ".join(transitions))
    set_comment(lines, ARCS_COMMENT, arcs)
    return replace(sentence, lines=tuple(lines))
