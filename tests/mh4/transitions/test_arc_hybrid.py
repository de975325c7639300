import numpy as np
import pytest
from computations import all_trees, configurations

from mh4.decoders.trees import is_projective
from mh4.transitions.arc_hybrid import ArcHybrid, Configuration
from mh4.transitions.transition_system import NO_HEAD, TransitionError

SINGLE_ROOT = pytest.mark.parametrize("single_root", [False, True])


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_the_trees_are_the_projective_ones(n, single_root):
    system = ArcHybrid(single_root)
    found = [system.heads(c).tolist() for c in configurations(system, n) if system.is_final(c)]
    trees = [t.tolist() for t in all_trees(n) if is_projective(t) and (not single_root or (t == 0).sum() == 1)]
    assert sorted(found) == sorted(trees)


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_nothing_gets_stuck_and_all_takes_two_transitions_a_word(n, single_root):
    system = ArcHybrid(single_root)
    for configuration in configurations(system, n):
        assert bool(system.legal(configuration)) != system.is_final(configuration)
        # words read and words removed
        assert system.is_final(configuration) == (configuration.front - 1 + len(configuration.arcs) == 2 * n)


def test_a_sentence():
    """He saw a star: he ← saw, saw → star, a ← star."""
    names = ["shift", "la", "shift", "shift", "la", "shift", "ra", "ra"]
    states = list(ArcHybrid(single_root=True).run(4, names))
    assert [repr(state) for state in states[:4]] == [
        "(0, 1 2 3 4, ∅)",
        "(0 1, 2 3 4, ∅)",
        "(0, 2 3 4, {(2, 1)})",
        "(0 2, 3 4, {(2, 1)})",
    ]
    assert ArcHybrid().heads(states[3]).tolist() == [NO_HEAD, 2, NO_HEAD, NO_HEAD, NO_HEAD]
    assert ArcHybrid().is_final(states[-1])
    assert ArcHybrid().heads(states[-1]).tolist() == [NO_HEAD, 2, 0, 4, 2]
    assert states[-1].gold_arcs(np.array([-1, 2, 0, 2, 2])) == 3


@pytest.mark.parametrize(
    ("stack", "front", "legal", "single_root_legal"),
    [
        ((0,), 1, "shift", "shift"),
        ((0, 1), 2, "shift la ra", "shift la"),
        ((0, 1, 2), 3, "shift la ra", "shift la ra"),
        ((0, 1, 3), 4, "ra", "ra"),
        ((0, 1), 4, "ra", "ra"),
        ((0,), 4, "", ""),
    ],
)
def test_legal_transitions(stack, front, legal, single_root_legal):
    configuration = Configuration(stack, front, 3)
    assert ArcHybrid().legal(configuration) == tuple(legal.split())
    assert ArcHybrid(single_root=True).legal(configuration) == tuple(single_root_legal.split())


def test_what_does_not_apply_is_an_error():
    with pytest.raises(TransitionError, match=r"ra does not apply to \(0 1, 2 3, ∅\)"):
        ArcHybrid(single_root=True).apply(Configuration((0, 1), 2, 3), "ra")
    with pytest.raises(TransitionError, match=r"la does not apply to \(0, 1, ∅\)"):
        ArcHybrid().apply(ArcHybrid().initial(1), "la")
    with pytest.raises(TransitionError, match="unknown transition 'la2'; known: shift, la, ra"):
        ArcHybrid().apply(Configuration((0, 1, 2), 3, 3), "la2")
