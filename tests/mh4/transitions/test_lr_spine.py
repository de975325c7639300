import numpy as np
import pytest
from computations import computations, configurations
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.trees import is_projective
from mh4.transitions.lr_spine import SHIFT, Configuration, Element, LRSpine, Transition, left_arc, right_arc
from mh4.transitions.transition_system import NO_HEAD, TransitionError

NUMBER_OF_PROJECTIVE_TREES = [1, 1, 3, 12, 55, 273]  # C(3n, n) / (2n + 1)
SYSTEM = LRSpine()


def shown(system, n, transitions):
    return [repr(configuration) for configuration in system.run(n, transitions)]


def test_an_attachment_is_put_off_until_the_phrase_is_complete():
    """Sartorio et al. (2013), Figure 1: in verb, noun, P, noun, P gets its head after its phrase is complete."""
    before = [SHIFT, SHIFT, SHIFT, right_arc(1), SHIFT, SHIFT, right_arc(1)]
    assert shown(LRSpine(), 4, before) == [
        "(ε, 0 1 2 3 4, ∅)",
        "(⟨0 | 0⟩, 1 2 3 4, ∅)",
        "(⟨0 | 0⟩ ⟨1 | 1⟩, 2 3 4, ∅)",
        "(⟨0 | 0⟩ ⟨1 | 1⟩ ⟨2 | 2⟩, 3 4, ∅)",
        "(⟨0 | 0⟩ ⟨1 | 1 2⟩, 3 4, {(1, 2)})",
        "(⟨0 | 0⟩ ⟨1 | 1 2⟩ ⟨3 | 3⟩, 4, {(1, 2)})",
        "(⟨0 | 0⟩ ⟨1 | 1 2⟩ ⟨3 | 3⟩ ⟨4 | 4⟩, ε, {(1, 2)})",
        "(⟨0 | 0⟩ ⟨1 | 1 2⟩ ⟨3 | 3 4⟩, ε, {(1, 2), (3, 4)})",
    ]
    *_, configuration = LRSpine().run(4, before)
    assert LRSpine().legal(configuration) == (left_arc(1), right_arc(1), right_arc(2))
    to_verb = LRSpine().apply(configuration, right_arc(1))
    to_noun = LRSpine().apply(configuration, right_arc(2))
    assert to_verb.stack[-1] == Element((1,), (1, 3, 4))
    assert to_noun.stack[-1] == Element((1,), (1, 2, 3, 4))
    final = LRSpine().apply(to_noun, right_arc(1))
    assert LRSpine().is_final(final)
    assert LRSpine().heads(final).tolist() == [NO_HEAD, 0, 1, 2, 3]


def test_a_left_arc_hides_the_lower_end_of_the_left_spine():
    start = Configuration((Element((0,), (0,)), Element((2, 1), (2, 3)), Element((6, 5, 4), (6,))), 7, 7)
    following = LRSpine().apply(start, left_arc(2))
    assert repr(following) == "(⟨0 | 0⟩ ⟨6 5 2 1 | 6⟩, 7, {(5, 2)})"
    following = LRSpine().apply(start, right_arc(1))
    assert repr(following) == "(⟨0 | 0⟩ ⟨2 1 | 2 6⟩, 7, {(2, 6)})"


@pytest.mark.parametrize("n", range(6))
def test_the_trees_are_the_projective_ones(n):
    finals = [c for c in configurations(SYSTEM, n) if SYSTEM.is_final(c)]
    trees = {tuple(SYSTEM.heads(final).tolist()) for final in finals}
    assert len(trees) == NUMBER_OF_PROJECTIVE_TREES[n]
    assert all(is_projective(np.array(heads)) for heads in trees)


@pytest.mark.parametrize("n", range(5))
def test_every_computation_has_2n_plus_1_transitions(n):
    assert {len(transitions) for transitions, _ in computations(SYSTEM, SYSTEM.initial(n))} == {2 * n + 1}


def test_elements_are_trees_with_their_spines():
    """The elements are the trees over all words read; each node of a spine is the outermost child of the one before."""
    for configuration in configurations(SYSTEM, 4):
        heads = SYSTEM.heads(configuration)
        roots = [position for position in range(configuration.front) if heads[position] == NO_HEAD]
        assert [element.root for element in configuration.stack] == roots
        for element in configuration.stack:
            assert element.right[0] == element.root
            for spine, side in ((element.left, -1), (element.right, 1)):
                for position, following in zip(spine, (*spine[1:], None), strict=True):
                    children = np.flatnonzero(heads == position)
                    children = children[(children > position) == (side > 0)].tolist()
                    outermost = (children[0] if side < 0 else children[-1]) if children else None
                    assert following == outermost


@given(st.integers(0, 9), st.data())
def test_nothing_gets_stuck(n, data):
    system = LRSpine()
    configuration = system.initial(n)
    while not system.is_final(configuration):
        configuration = system.apply(configuration, data.draw(st.sampled_from(system.legal(configuration))))
    assert is_projective(system.heads(configuration))


@pytest.mark.parametrize(
    ("stack", "front", "transition"),
    [
        ([], 0, right_arc(1)),
        ([(0,)], 1, right_arc(1)),
        ([(0,), (1,)], 2, left_arc(1)),
        ([(0,), (1,), (2,)], 3, SHIFT),
        ([(0,), (1,), (2,)], 3, left_arc(2)),
        ([(0,), (1,), (2,)], 3, right_arc(0)),
        ([(0,), (1,), (2,)], 3, Transition("shift", 1)),
    ],
)
def test_what_does_not_apply_is_an_error(stack, front, transition):
    configuration = Configuration(tuple(Element(spine, spine) for spine in stack), front, 2)
    assert transition not in LRSpine().legal(configuration)
    with pytest.raises(TransitionError, match="does not apply to"):
        LRSpine().apply(configuration, transition)


def test_a_name_alone_is_a_transition_without_k():
    system = LRSpine()
    two = [*system.run(2, ["shift", "shift", "shift"])][-1]
    assert [len(element.left) for element in two.stack] == [1, 1, 1]
    with pytest.raises(TransitionError, match="does not apply to"):
        system.apply(two, "left_arc")


def test_an_unknown_transition_lists_the_known_ones():
    with pytest.raises(TransitionError, match="unknown transition 'reduce'; known: shift, left_arc, right_arc"):
        LRSpine().apply(LRSpine().initial(1), Transition("reduce"))


def test_transitions_are_readable():
    assert [str(t) for t in (SHIFT, left_arc(2), right_arc())] == ["shift", "left_arc(2)", "right_arc(1)"]


def test_gold_arcs_are_counted():
    configuration = Configuration((), 4, 3, frozenset({(0, 2), (2, 1), (2, 3)}))
    assert configuration.gold_arcs(np.array([-1, 2, 0, 1])) == 2
