import pytest
from computations import all_trees, computations, configurations
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.trees import checked_tree
from mh4.transitions.covington import LEFT_ARC, NO_ARC, RIGHT_ARC, SHIFT, Configuration, Covington
from mh4.transitions.transition_system import NO_HEAD, TransitionError

SYSTEM = Covington()


def test_a_computation():
    """1 → 3 and 4 → 2 cross; 4 remains without a head."""
    steps = [SHIFT, SHIFT, NO_ARC, RIGHT_ARC, SHIFT, NO_ARC, LEFT_ARC, LEFT_ARC, SHIFT]
    path = list(SYSTEM.run(4, steps))
    assert [repr(configuration) for configuration in path] == [
        "⟨[], [], [1, 2, 3, 4], ∅⟩",
        "⟨[1], [], [2, 3, 4], ∅⟩",
        "⟨[1, 2], [], [3, 4], ∅⟩",
        "⟨[1], [2], [3, 4], ∅⟩",
        "⟨[], [1, 2], [3, 4], {(1, 3)}⟩",
        "⟨[1, 2, 3], [], [4], {(1, 3)}⟩",
        "⟨[1, 2], [3], [4], {(1, 3)}⟩",
        "⟨[1], [2, 3], [4], {(1, 3), (4, 2)}⟩",
        "⟨[], [1, 2, 3], [4], {(1, 3), (4, 1), (4, 2)}⟩",
        "⟨[1, 2, 3, 4], [], [], {(1, 3), (4, 1), (4, 2)}⟩",
    ]
    assert [SYSTEM.is_final(configuration) for configuration in path] == [False] * 9 + [True]
    assert SYSTEM.heads(path[4]).tolist() == [NO_HEAD, NO_HEAD, NO_HEAD, 1, NO_HEAD]
    assert SYSTEM.heads(path[-1]).tolist() == [NO_HEAD, 4, 4, 1, 0]


def test_one_head_and_no_cycles():
    assert SYSTEM.legal(SYSTEM.initial(2)) == (SHIFT,)
    assert SYSTEM.legal(Configuration(1, 2, 2)) == (SHIFT, NO_ARC, LEFT_ARC, RIGHT_ARC)
    has_head = Configuration(1, 3, 3, frozenset({(2, 1)}))
    assert SYSTEM.legal(has_head) == (SHIFT, NO_ARC, RIGHT_ARC)
    would_close = Configuration(1, 3, 3, frozenset({(1, 2), (2, 3)}))
    assert SYSTEM.legal(would_close) == (SHIFT, NO_ARC)
    assert SYSTEM.legal(Configuration(2, 3, 2)) == ()


@pytest.mark.parametrize("n", range(1, 5))
def test_the_trees_are_all_trees(n):
    finals = [configuration for configuration in configurations(SYSTEM, n) if SYSTEM.is_final(configuration)]
    assert {tuple(SYSTEM.heads(final).tolist()) for final in finals} == {tuple(tree) for tree in all_trees(n).tolist()}


def test_the_number_of_computations():
    """The number of computations of each tree of three words, from the choices for pairs (1, 2), (2, 3) and (1, 3)."""
    trees = {}
    for _, final in computations(SYSTEM, SYSTEM.initial(3)):
        heads = tuple(SYSTEM.heads(final).tolist())
        trees[heads] = trees.get(heads, 0) + 1
    # The last pair of a right word can be left without an arc in two ways: by no_arc or by shift.
    assert trees[-1, 0, 0, 0] == 2 * 3
    assert trees[-1, 0, 1, 2] == 1 * 2
    assert trees[-1, 3, 3, 0] == 2 * 1
    assert len(trees) == 16


@pytest.mark.parametrize("n", range(1, 5))
def test_every_configuration_is_a_forest_over_the_words_passed(n):
    for configuration in configurations(SYSTEM, n):
        assert SYSTEM.is_final(configuration) == (not SYSTEM.legal(configuration))
        heads = configuration.heads()
        assert len(configuration.arcs) == (heads != NO_HEAD).sum()  # at most one head per word
        heads[1:] = heads[1:].clip(0)
        checked_tree(heads)
        words = [*configuration.lambda1, *configuration.lambda2, *configuration.buffer]
        assert words == list(range(1, n + 1))
        for arc in configuration.arcs:
            left, right = min(arc), max(arc)
            assert left >= 1
            assert right < configuration.right or (right == configuration.right and left > configuration.left)


@given(st.integers(0, 9), st.data())
def test_nothing_gets_stuck(n, data):
    configuration, steps = SYSTEM.initial(n), 0
    while not SYSTEM.is_final(configuration):
        configuration = SYSTEM.apply(configuration, data.draw(st.sampled_from(SYSTEM.legal(configuration))))
        steps += 1
    checked_tree(SYSTEM.heads(configuration))
    assert n <= steps <= n + n * (n - 1) // 2


@pytest.mark.parametrize(
    ("configuration", "transition"),
    [
        (Configuration(0, 1, 2), NO_ARC),
        (Configuration(0, 1, 2), LEFT_ARC),
        (Configuration(0, 1, 2), RIGHT_ARC),
        (Configuration(2, 3, 2), SHIFT),
        (Configuration(2, 3, 2), NO_ARC),
        (Configuration(1, 3, 3, frozenset({(2, 1)})), LEFT_ARC),
        (Configuration(1, 3, 3, frozenset({(2, 3)})), RIGHT_ARC),
        (Configuration(1, 3, 3, frozenset({(1, 2), (2, 3)})), LEFT_ARC),
        (Configuration(1, 3, 3, frozenset({(3, 2), (2, 1)})), RIGHT_ARC),
    ],
)
def test_what_does_not_apply_is_an_error(configuration, transition):
    with pytest.raises(TransitionError, match=f"{transition} does not apply to ⟨"):
        SYSTEM.apply(configuration, transition)


def test_an_unknown_transition_lists_the_known_ones():
    with pytest.raises(TransitionError, match="known: shift, no_arc, left_arc, right_arc"):
        SYSTEM.apply(SYSTEM.initial(1), "left-arc")
