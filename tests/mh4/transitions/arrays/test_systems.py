"""The compiled version of every system, step by step against its definition in `mh4.transitions`."""

import numpy as np
import pytest
from computations import configurations
from hypothesis import given
from hypothesis import strategies as st
from kernels import FRIENDLY, Kernels, has_one_root, trees_of

from mh4.decoders.mh4_transitions import REDUCE_NAMES, REDUCES
from mh4.transitions.arc_eager import LABELS, ArcEager, NormalizedArcEager
from mh4.transitions.arc_hybrid import ArcHybrid
from mh4.transitions.arc_standard import ArcStandard
from mh4.transitions.arrays import arc_eager, arc_eager_normalized, arc_hybrid, arc_standard, mh4
from mh4.transitions.arrays.state import (
    DEPENDENT,
    DEPTH,
    FRONT,
    HEAD,
    LEFTMOST,
    NEAREST_LEFT,
    NEAREST_RIGHT,
    NONE,
    RIGHTMOST,
    SECOND_LEFT,
    SECOND_RIGHT,
    add_arc,
    reset,
)
from mh4.transitions.mh4 import MH4

names = pytest.mark.parametrize("name", FRIENDLY)


def test_the_table_of_mh4_is_that_of_the_definition():
    """The table is in the decoders, as they may not import from the transition systems."""
    assert dict(zip(REDUCE_NAMES, map(tuple, REDUCES.tolist()), strict=True)) == MH4.reduces
    assert MH4.transitions == ("shift", *REDUCE_NAMES)


def by_labels(module, reduce_correct):
    """`applies` and `move` of an arc-eager system, adapted to the arguments of the other systems."""
    return (
        lambda t, stack, labels, depth, front, n: module.applies(t, reduce_correct, labels, depth, front, n),
        lambda t, stack, labels, depth, front, n: module.move(t, stack, labels, depth, front),
    )


def by_table(reduces):
    """`applies` (there is none) and `move` of a system defined by a table of reduces."""
    return None, lambda t, stack, labels, depth, front, n: arc_hybrid.move(reduces, t, stack, depth, front, n)


ON_STACKS = [
    (
        ArcStandard(),
        lambda t, stack, labels, depth, front, n: arc_standard.applies(t, depth, front, n),
        lambda t, stack, labels, depth, front, n: arc_standard.move(t, stack, depth, front),
    ),
    (ArcEager(True), *by_labels(arc_eager, True)),
    (ArcEager(False), *by_labels(arc_eager, False)),
    (NormalizedArcEager(True), *by_labels(arc_eager_normalized, True)),
    (NormalizedArcEager(False), *by_labels(arc_eager_normalized, False)),
    (ArcHybrid(), *by_table(arc_hybrid.REDUCES)),
    (MH4(), *by_table(mh4.REDUCES)),
]


@pytest.mark.parametrize(("system", "applies", "move"), ON_STACKS, ids=lambda value: getattr(value, "name", ""))
def test_transitions_on_stacks_are_those_of_the_definition(system, applies, move):
    """All transitions in all configurations of 4 words."""
    n = 4
    for configuration in configurations(system, n):
        legal, depth = system.legal(configuration), len(configuration.stack)
        stack, labels = np.zeros(n + 2, np.int32), np.zeros(n + 2, np.int8)
        stack[:depth] = configuration.stack
        labels[:depth] = [LABELS.index(label) for label in getattr(configuration, "labels", "R" * depth)]
        for number, transition in enumerate(system.transitions):
            if applies is not None:
                assert applies(number, stack, labels, depth, configuration.front, n) == (transition in legal)
            if transition not in legal:
                continue
            following = system.apply(configuration, transition)
            stack_after, labels_after = stack.copy(), labels.copy()
            after, front, *arc = move(number, stack_after, labels_after, depth, configuration.front, n)
            assert (tuple(stack_after[:after].tolist()), front) == (following.stack, following.front)
            assert [tuple(arc)] == ([*following.arcs - configuration.arcs] or [(NONE, NONE)])
            if hasattr(following, "labels"):
                assert "".join(LABELS[label] for label in labels_after[:after]) == following.labels


@names
@given(n=st.integers(1, 9), choices=st.lists(st.integers(0, 6), min_size=18, max_size=18))
def test_kernels_do_what_the_systems_do(name, n, choices):
    friendly, kernels = FRIENDLY[name], Kernels(name, n, longest=12)
    configuration = friendly.initial(n)
    for choice in choices:
        legal = friendly.legal(configuration)
        if not legal:
            break
        assert kernels.friendly == legal
        c = choice % len(legal)
        row = kernels.rows[c].copy()
        kernels.step(c)
        following = friendly.apply(configuration, legal[c])
        made = following.arcs - configuration.arcs
        if made and row[DEPENDENT] >= 0:
            assert made == {(row[HEAD], row[DEPENDENT])}
        configuration = following
        assert tuple(kernels.state.stack[: kernels.state.counters[DEPTH]]) == configuration.stack
        assert kernels.state.counters[FRONT] == configuration.front
        promised = set()
        if name == "arc-eager":
            assert "".join("RL"[label] for label in kernels.state.labels[: len(configuration.stack)]) == (
                configuration.labels
            )
            stack = configuration.stack
            promised = {(stack[p - 1], stack[p]) for p in range(1, len(stack)) if configuration.labels[p] == "R"}
        arcs = {(head, d) for d, head in enumerate(kernels.state.heads[: n + 1].tolist()) if head >= 0}
        assert arcs == configuration.arcs | promised
        check_dependents(kernels.state, n)
    assert friendly.is_final(configuration)
    assert kernels.count == 0
    assert has_one_root(kernels.state.heads[: n + 1])


@names
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_trees_with_one_word_below_the_root_are_built_and_nothing_gets_stuck(name, n):
    """In all configurations that can be reached, whatever transitions are chosen."""
    friendly, kernels = FRIENDLY[name], Kernels(name, n)
    derived = set()
    for configuration in configurations(friendly, n):
        kernels.go_to(configuration)
        assert kernels.friendly == tuple(friendly.legal(configuration))
        assert (kernels.count == 0) == friendly.is_final(configuration)
        if kernels.count == 0:
            derived.add(tuple(friendly.heads(configuration).tolist()))
        elif (kernels.rows[:, HEAD] == 0).any():
            assert configuration.front > n
            assert len(configuration.arcs) == n - 1
    assert derived == {tuple(gold.tolist()) for gold in trees_of(name, n)}


def check_dependents(state, n):
    heads = state.heads[: n + 1]
    for head in range(n + 1):
        left = [d for d in range(head) if heads[d] == head]
        right = [d for d in range(n, head, -1) if heads[d] == head]
        for side, (dependents, rows) in enumerate(
            (
                (left, (LEFTMOST, SECOND_LEFT, NEAREST_LEFT)),
                (right, (RIGHTMOST, SECOND_RIGHT, NEAREST_RIGHT)),
            )
        ):
            padded = [*dependents, -1, -1]
            nearest = dependents[-1] if dependents else -1
            assert [int(state.dependents[row, head]) for row in rows] == [padded[0], padded[1], nearest]
            assert state.valencies[side, head] == len(dependents)
            assert state.relation_sets[side, head] == (1 if dependents else 0)


def test_relation_sets_hold_relations():
    kernels = Kernels("arc-standard", 3)
    for transition, relation in (("reduce_right", 4), ("reduce_right", 62)):
        kernels.step(kernels.legal.index(transition), relation)
    assert kernels.state.relation_sets[0, 2] == 1 << 4
    assert kernels.state.relation_sets[0, 3] == 1 << 62


def test_outermost_and_nearest_dependents_in_any_order_until_the_next_sentence():
    kernels = Kernels("mh4", 9)
    state = kernels.state
    for dependent in (1, 4, 2, 3, 9, 6, 8, 7):
        add_arc(state, 5, dependent, 3)
    rows = [LEFTMOST, SECOND_LEFT, NEAREST_LEFT, RIGHTMOST, SECOND_RIGHT, NEAREST_RIGHT]
    assert state.dependents[rows, 5].tolist() == [1, 2, 4, 9, 8, 6]
    assert state.valencies[:, 5].tolist() == [4, 4]
    reset(state, 9)
    assert (state.dependents[:, :10] == NONE).all()
    assert not state.valencies[:, :10].any()
    assert not state.relation_sets[:, :10].any()


def test_tokens_of_arc_eager():
    kernels = Kernels("arc-eager", 5)
    for transition in ("left_arc", "right_arc"):  # 1 under 2, 3 under 2
        kernels.step(kernels.legal.index(transition))
    expected = {"s0": 3, "n0": 4, "n1": 5, "n2": -1, "s0h": 2, "s0h2": -1, "s0l": -1, "s0r": -1, "n0l": -1}
    assert {name: kernels.token(name) for name in expected} == expected


def test_tokens_of_arc_standard():
    kernels = Kernels("arc-standard", 6)
    for transition in ("reduce_right", "reduce_left", "shift", "reduce_right"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s1": 5, "s2": 2, "s3": 0, "q1": 6, "q2": -1, "s1l": 4, "s1l2": -1, "s1r": -1, "s2l": 1, "s2r": 3}
    assert {name: kernels.token(name) for name in tokens} == tokens


@pytest.mark.parametrize("name", ["arc-hybrid", "mh4"])
def test_tokens_of_arc_hybrid(name):
    kernels = Kernels(name, 9)
    # 1 and 2 under 3, 4 under 5, 5 and 6 under 3
    for transition in ("shift", "shift", "la", "la"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s0": 0, "b0": 3, "b0l": 1, "b0l2": 2}
    assert {token: kernels.token(token) for token in tokens} == tokens
    for transition in ("shift", "shift", "la", "shift", "ra", "shift", "ra", "shift"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s0": 7, "b0": 8, "s1": 3, "s2": 0, "b1": 9, "b2": -1, "s0l": -1, "s0r2": -1, "b0l": -1, "b0l2": -1}
    tokens |= {"s1l": 1, "s1l2": 2, "s1r": 6, "s1r2": 5}
    assert {token: kernels.token(token) for token in tokens} == tokens
    assert set(kernels.system.tokens) == {*tokens, "s0l2", "s0r"}
    for transition in ("la", "shift", "shift"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s0": 9, "b0": -1, "s1": 8, "s2": 3, "b1": -1, "b2": -1, "s1l": 7, "s1r": -1, "b0l": -1}
    assert {token: kernels.token(token) for token in tokens} == tokens
