import numpy as np
import pytest
from computations import computations, configurations
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.trees import is_projective
from mh4.transitions.arc_eager import ArcEager, Configuration, NormalizedArcEager
from mh4.transitions.transition_system import NO_HEAD, TransitionError

NUMBER_OF_PROJECTIVE_TREES = [1, 1, 3, 12, 55, 273]  # C(3n, n) / (2n + 1)

SHIFT, LEFT_ARC, RIGHT_ARC, REDUCE = "shift", "left_arc", "right_arc", "reduce"


def shown(system, n, transitions):
    return [repr(configuration) for configuration in system.run(n, transitions)]


def test_a_computation_that_gets_stuck_without_the_correction():
    """The situation of Nederhof (2021), Table 5; right arcs are added only by the reduce."""
    steps = [SHIFT, RIGHT_ARC, RIGHT_ARC, REDUCE, REDUCE]
    assert shown(ArcEager(reduce_correct=False), 3, steps) == [
        "(0ᴿ, 1 2 3, ∅)",
        "(0ᴿ 1ᴸ, 2 3, ∅)",
        "(0ᴿ 1ᴸ 2ᴿ, 3, ∅)",
        "(0ᴿ 1ᴸ 2ᴿ 3ᴿ, ε, ∅)",
        "(0ᴿ 1ᴸ 2ᴿ, ε, {(2, 3)})",
        "(0ᴿ 1ᴸ, ε, {(1, 2), (2, 3)})",
    ]
    *_, stuck = ArcEager(reduce_correct=False).run(3, steps)
    assert ArcEager(reduce_correct=False).legal(stuck) == ()
    *_, final = ArcEager().run(3, [*steps, REDUCE])
    assert repr(final) == "(0ᴿ, ε, {(0, 1), (1, 2), (2, 3)})"
    assert ArcEager().is_final(final)
    assert ArcEager().heads(final).tolist() == [NO_HEAD, 0, 1, 2]


def test_one_tree_in_two_ways():
    """The example of Nederhof (2021), Table 7."""
    start = Configuration((0, 1, 2), "RRR", 3, 4)
    system = ArcEager()
    late = early = start
    for transition in (SHIFT, LEFT_ARC, REDUCE):
        late = system.apply(late, transition)
    for transition in (REDUCE, SHIFT, LEFT_ARC):
        early = system.apply(early, transition)
    assert repr(late) == "(0ᴿ 1ᴿ, 4, {(1, 2), (4, 3)})"
    assert late == early


def test_a_normalized_computation():
    steps = ["shift", "left_child", "shift", "reduce_right", "right_child", "shift", "right_child"]
    assert shown(NormalizedArcEager(), 3, [*steps, "reduce_left", "reduce_left"]) == [
        "(0ᴿ, 1 2 3, ∅)",
        "(0ᴿ 1ᴺ, 2 3, ∅)",
        "(0ᴿ 1ᴸ, 2 3, ∅)",
        "(0ᴿ 1ᴸ 2ᴺ, 3, ∅)",
        "(0ᴿ 2ᴺ, 3, {(2, 1)})",
        "(0ᴿ 2ᴿ, 3, {(2, 1)})",
        "(0ᴿ 2ᴿ 3ᴺ, ε, {(2, 1)})",
        "(0ᴿ 2ᴿ 3ᴿ, ε, {(2, 1)})",
        "(0ᴿ 2ᴿ, ε, {(2, 1), (2, 3)})",
        "(0ᴿ, ε, {(0, 2), (2, 1), (2, 3)})",
    ]


@pytest.mark.parametrize("reduce_correct", [True, False])
@pytest.mark.parametrize("system", [ArcEager, NormalizedArcEager])
@pytest.mark.parametrize("n", range(5))
def test_the_trees_are_the_projective_ones(system, reduce_correct, n):
    system = system(reduce_correct)
    trees = {tuple(system.heads(final).tolist()) for _, final in computations(system, system.initial(n))}
    assert len(trees) == NUMBER_OF_PROJECTIVE_TREES[n]
    assert all(is_projective(np.array(heads)) for heads in trees)


@pytest.mark.parametrize("n", range(1, 5))
def test_without_the_correction_a_normalized_tree_has_one_computation(n):
    system = NormalizedArcEager(reduce_correct=False)
    assert len(list(computations(system, system.initial(n)))) == NUMBER_OF_PROJECTIVE_TREES[n]


@pytest.mark.parametrize("system", [ArcEager(), NormalizedArcEager()])
def test_labels_say_where_the_head_is(system):
    """The root is labelled R, only the top may be N, and exactly the words that have left the stack have an arc."""
    for configuration in configurations(system, 3):
        assert configuration.labels[0] == "R"
        assert "N" not in configuration.labels[:-1]
        assert list(configuration.stack) == sorted(configuration.stack)
        attached = sorted(dependent for _, dependent in configuration.arcs)
        assert attached == [d for d in range(1, configuration.front) if d not in configuration.stack]


@given(st.integers(0, 8), st.data(), st.sampled_from([ArcEager(), NormalizedArcEager()]))
def test_with_the_correction_nothing_gets_stuck(n, data, system):
    configuration = system.initial(n)
    while not system.is_final(configuration):
        configuration = system.apply(configuration, data.draw(st.sampled_from(system.legal(configuration))))
    assert is_projective(system.heads(configuration))


@pytest.mark.parametrize(
    ("system", "configuration", "transition"),
    [
        (ArcEager(), Configuration((0,), "R", 1, 2), LEFT_ARC),
        (ArcEager(), Configuration((0,), "R", 1, 2), REDUCE),
        (ArcEager(), Configuration((0, 1), "RR", 2, 2), LEFT_ARC),
        (ArcEager(), Configuration((0, 1), "RL", 3, 2), LEFT_ARC),
        (ArcEager(), Configuration((0, 1), "RL", 3, 2), SHIFT),
        (ArcEager(), Configuration((0, 1), "RL", 3, 2), RIGHT_ARC),
        (ArcEager(reduce_correct=False), Configuration((0, 1), "RL", 2, 2), REDUCE),
        (NormalizedArcEager(), Configuration((0, 1), "RN", 2, 2), "shift"),
        (NormalizedArcEager(), Configuration((0, 1), "RN", 2, 2), "reduce_left"),
        (NormalizedArcEager(), Configuration((0, 1), "RN", 2, 2), "reduce_right"),
        (NormalizedArcEager(), Configuration((0, 1), "RL", 2, 2), "left_child"),
        (NormalizedArcEager(), Configuration((0, 1, 2), "RLR", 3, 2), "reduce_right"),
        (NormalizedArcEager(reduce_correct=False), Configuration((0, 1), "RL", 2, 2), "reduce_left"),
    ],
)
def test_what_does_not_apply_is_an_error(system, configuration, transition):
    assert transition not in system.legal(configuration)
    with pytest.raises(TransitionError, match=f"{transition} does not apply to"):
        system.apply(configuration, transition)


def test_an_unknown_transition_lists_the_known_ones():
    with pytest.raises(TransitionError, match="known: shift, left_arc, right_arc, reduce"):
        ArcEager().apply(ArcEager().initial(1), "unshift")


def test_gold_arcs_are_counted():
    configuration = Configuration((0,), "R", 4, 3, frozenset({(0, 2), (2, 1), (2, 3)}))
    assert configuration.gold_arcs(np.array([-1, 2, 0, 1])) == 2
