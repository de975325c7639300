import importlib

import numpy as np
import pytest
from computations import all_trees, computations, configurations

from mh4.decoders.trees import is_projective
from mh4.transitions.arc_standard import REDUCE_LEFT, REDUCE_RIGHT, SHIFT, ArcStandard, Configuration
from mh4.transitions.transition_system import NO_HEAD, TransitionError

SYSTEM = ArcStandard()


def test_a_computation():
    steps = [SHIFT, SHIFT, REDUCE_RIGHT, SHIFT, REDUCE_LEFT, REDUCE_LEFT]
    path = list(SYSTEM.run(3, steps))
    assert [repr(configuration) for configuration in path] == [
        "(0, 1 2 3, ∅)",
        "(0 1, 2 3, ∅)",
        "(0 1 2, 3, ∅)",
        "(0 2, 3, {(2, 1)})",
        "(0 2 3, ε, {(2, 1)})",
        "(0 2, ε, {(2, 1), (2, 3)})",
        "(0, ε, {(0, 2), (2, 1), (2, 3)})",
    ]
    assert [SYSTEM.is_final(configuration) for configuration in path] == [False] * 6 + [True]
    assert SYSTEM.heads(path[4]).tolist() == [NO_HEAD, 2, NO_HEAD, NO_HEAD]
    assert SYSTEM.heads(path[-1]).tolist() == [NO_HEAD, 2, 0, 2]
    assert path[-1].gold_arcs(SYSTEM.heads(path[-1])) == 3
    assert path[3].gold_arcs(SYSTEM.heads(path[-1])) == 1


def test_legal_transitions():
    assert SYSTEM.legal(SYSTEM.initial(2)) == (SHIFT,)
    assert SYSTEM.legal(Configuration((0, 1), 2, 2)) == (SHIFT, REDUCE_LEFT)  # the root gets no head
    assert SYSTEM.legal(Configuration((0, 1, 2), 3, 3)) == (SHIFT, REDUCE_LEFT, REDUCE_RIGHT)
    assert SYSTEM.legal(Configuration((0, 1, 2), 3, 2)) == (REDUCE_LEFT, REDUCE_RIGHT)
    assert SYSTEM.legal(Configuration((0, 2), 3, 2)) == (REDUCE_LEFT,)
    assert SYSTEM.legal(Configuration((0,), 3, 2)) == ()


def test_errors():
    with pytest.raises(TransitionError, match=r"reduce_right does not apply to \(0 1, 2, ∅\)"):
        SYSTEM.apply(Configuration((0, 1), 2, 2), REDUCE_RIGHT)
    with pytest.raises(TransitionError, match="unknown transition 'reduce'; known: shift, reduce_left, reduce_right"):
        SYSTEM.apply(SYSTEM.initial(2), "reduce")


@pytest.mark.parametrize("n", range(1, 5))
def test_the_trees_are_the_projective_ones(n):
    built = {tuple(SYSTEM.heads(final).tolist()) for _, final in computations(SYSTEM, SYSTEM.initial(n))}
    assert built == {tuple(tree) for tree in all_trees(n).tolist() if is_projective(tree)}


@pytest.mark.parametrize("n", range(1, 5))
def test_only_final_configurations_are_at_an_end(n):
    for configuration in configurations(SYSTEM, n):
        assert SYSTEM.is_final(configuration) == (not SYSTEM.legal(configuration))
        heads = SYSTEM.heads(configuration)
        headless = {*configuration.stack, *range(configuration.front, n + 1)}
        assert {d for d in range(n + 1) if heads[d] == NO_HEAD} == headless


def test_the_other_name():
    assert importlib.import_module("mh4.transitions.shift_reduce").ShiftReduce is ArcStandard
    step = importlib.import_module("mh4.oracles.shift_reduce").optimal_step(SYSTEM.initial(1), np.array([-1, 0]))
    assert step.best == (SHIFT,)
