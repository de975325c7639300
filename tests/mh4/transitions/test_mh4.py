import pytest
from computations import all_trees, configurations
from naive_mh import derivations

from mh4.decoders.trees import is_projective
from mh4.transitions.arc_hybrid import ArcHybrid
from mh4.transitions.mh4 import MH4, Configuration
from mh4.transitions.transition_system import TransitionError

SINGLE_ROOT = pytest.mark.parametrize("single_root", [False, True])
NOT_IN_THE_CHART = [-1, 3, 0, 5, 2, 4]  # Gómez-Rodríguez et al. (2018), section 3.2


def trees(n, single_root):
    system = MH4(single_root)
    return {tuple(system.heads(c).tolist()) for c in configurations(system, n) if system.is_final(c)}


@pytest.mark.parametrize(
    ("n", "count", "one_root"),
    [(1, 1, 1), (2, 3, 2), (3, 16, 9), (4, 119, 60), (5, 1069, 500)],
)
def test_the_trees_are_those_of_the_chart_and_more(n, count, one_root):
    """Both have all trees of 3 words; the chart has 118 of 4 words (60 single-root) and 1019 of 5 words (485)."""
    found = trees(n, False)
    assert (len(found), len(trees(n, True))) == (count, one_root)
    assert trees(n, True) == {tree for tree in found if tree.count(0) == 1}
    chart = {tuple(heads) for heads in derivations("mh4-two", n)[0].tolist()}
    assert chart <= found
    assert (chart < found) == (n > 3)
    assert {tuple(tree.tolist()) for tree in all_trees(n) if is_projective(tree)} <= found


def test_the_tree_of_section_3_2():
    moves = ["shift"] * 3 + ["la2"] + ["shift"] * 2 + ["la2", "shift", "ra", "ra", "ra"]
    for single_root in (False, True):
        system = MH4(single_root)
        *_, last = system.run(5, moves[1:])  # the paper shifts the root too
        assert system.is_final(last)
        assert system.heads(last).tolist() == NOT_IN_THE_CHART
    assert NOT_IN_THE_CHART not in derivations("mh4-two", 5)[0].tolist()


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_nothing_gets_stuck_and_all_takes_two_transitions_a_word(n, single_root):
    system = MH4(single_root)
    for configuration in configurations(system, n):
        assert bool(system.legal(configuration)) != system.is_final(configuration)
        # words read and words removed
        assert system.is_final(configuration) == (configuration.front - 1 + len(configuration.arcs) == 2 * n)


@pytest.mark.parametrize(
    ("transition", "arc", "stack"),
    [
        ("ra2", (1, 3), (0, 1, 2)),
        ("ra", (2, 3), (0, 1, 2)),
        ("la", (4, 3), (0, 1, 2)),
        ("ra'", (1, 2), (0, 1, 3)),
        ("la'", (3, 2), (0, 1, 3)),
        ("la2", (4, 2), (0, 1, 3)),
    ],
)
def test_reductions(transition, arc, stack):
    before = Configuration((0, 1, 2, 3), 4, 5)
    assert MH4().arc(before, transition) == arc
    assert MH4().apply(before, transition) == Configuration(stack, 4, 5, frozenset({arc}))


@pytest.mark.parametrize(
    ("stack", "front", "legal", "single_root_legal"),
    [
        ((0,), 1, "shift", "shift"),
        ((0, 1), 2, "shift ra la", "shift la"),
        ((0, 1, 2), 3, "shift ra2 ra la ra' la' la2", "shift ra la la' la2"),
        ((0, 1, 2, 3), 4, "ra2 ra ra' la'", "ra2 ra ra' la'"),
        ((0, 1, 3), 4, "ra2 ra ra' la'", "ra la'"),
        ((0, 3), 4, "ra", "ra"),
        ((0,), 4, "", ""),
    ],
)
def test_legal_transitions(stack, front, legal, single_root_legal):
    configuration = Configuration(stack, front, 3)
    assert MH4().legal(configuration) == tuple(legal.split())
    assert MH4(single_root=True).legal(configuration) == tuple(single_root_legal.split())


def test_what_does_not_apply_is_an_error():
    with pytest.raises(TransitionError, match=r"la' does not apply to \(0 1, 2 3, ∅\)"):
        MH4().apply(Configuration((0, 1), 2, 3), "la'")
    with pytest.raises(TransitionError, match="known: shift, ra2, ra, la, ra', la', la2"):
        MH4().apply(MH4().initial(1), "left_arc")


def test_arc_hybrid_is_a_part():
    assert set(ArcHybrid.transitions) < set(MH4.transitions)
    for configuration in configurations(ArcHybrid(), 4):
        for transition in ArcHybrid().legal(configuration):
            assert MH4().apply(configuration, transition) == ArcHybrid().apply(configuration, transition)
