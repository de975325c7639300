"""LR-spine parsing on arrays, against the reference system and its oracle, which have their own tests."""

from functools import cache

import numpy as np
from computations import random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.closest import closest_tree
from mh4.oracles.costs import DYNAMIC, STATIC, note_children
from mh4.oracles.lr_spine import correct_transitions
from mh4.oracles.lr_spine.costs import costs
from mh4.transitions.arrays import lr_spine
from mh4.transitions.arrays.state import (
    ARGUMENT,
    CONTEXT,
    DEPENDENT,
    HEAD,
    NONE,
    TRANSITION,
    new_candidates,
    new_state,
    reset,
)
from mh4.transitions.lr_spine import KINDS, SHIFT, LRSpine, Transition

SYSTEM = LRSpine()


def context(configuration, transition):
    """The tokens of Sartorio et al. (2013), Table 1, taken literally."""
    elements = [None, *reversed(configuration.stack)]  # elements[1] is the topmost
    u = {(j, k): x for j in range(1, len(elements)) for k, x in enumerate(elements[j].left, 1)}
    v = {(j, k): x for j in range(1, len(elements)) for k, x in enumerate(elements[j].right, 1)}
    b = {i: configuration.front + i - 1 for i in (1, 2) if configuration.front + i - 1 <= configuration.n}
    kind, k = transition
    tokens = {"s1": u[1, 1], "s2": u[2, 1], "s3": u.get((3, 1)), "q1": b.get(1), "q2": b.get(2)}
    if kind == "left_arc":
        tokens["s1"] = u[1, k]
        if k > 1:
            tokens |= {"q1": u[1, k - 1], "q2": u[1, k - 2] if k > 2 else b.get(1), "gp": u[1, k - 1]}
        if k > 2:
            tokens["gg"] = u[1, k - 2]
    if kind == "right_arc":
        tokens["s2"] = v[2, k]
        if k > 1:
            tokens |= {"s3": v[2, k - 1], "gp": v[2, k - 1]}
        if k > 2:
            tokens["gg"] = v[2, k - 2]
    children = {word: [d for h, d in configuration.arcs if h == word] for word in range(configuration.n + 1)}
    for token in ("s1", "s2"):
        head = tokens[token]
        left = sorted(d for d in children[head] if d < head)
        right = sorted((d for d in children[head] if d > head), reverse=True)
        for side, found in (("l", left), ("r", right)):
            tokens |= {token + side: found[0] if found else None, f"{token}{side}2": found[1] if found[1:] else None}
    return [NONE if tokens.get(name) is None else tokens[name] for name in lr_spine.TOKENS]


def shifted(configuration):
    """The configuration after all automatic shifts."""
    while len(configuration.stack) < 3 and configuration.front <= configuration.n:
        configuration = SYSTEM.apply(configuration, SHIFT)
    return configuration


def listed(state, room):
    """Candidates as (transition, head, dependent), contexts as lists of tokens."""
    count, contexts = lr_spine.list_candidates(state, room)
    assert contexts == count
    assert room.rows[:count, CONTEXT].tolist() == list(range(count))
    assert room.groups[:count].tolist() == room.rows[:count, TRANSITION].tolist()
    steps = [
        (Transition(KINDS[row[TRANSITION]], int(row[ARGUMENT])), int(row[HEAD]), int(row[DEPENDENT]))
        for row in room.rows[:count]
    ]
    return steps, room.tokens[:count].tolist()


def arc(configuration, transition):
    """The head and dependent of a transition's arc; `NONE` twice for a shift."""
    if transition == SHIFT:
        return NONE, NONE
    following = SYSTEM.apply(configuration, transition)
    (new,) = following.arcs - configuration.arcs
    return new


@given(n=st.integers(1, 9), seed=st.integers(0, 2**32 - 1), stray=st.sampled_from([0.0, 1.0]))
def test_the_kernels_do_what_the_system_does(n, seed, stray):
    """Compare candidates, contexts, costs and steps along computations that lead to a gold tree, and random ones."""
    rng = np.random.default_rng(seed)
    gold = closest_tree(random_tree(rng, n), "projective", single_root=True)
    state, room = new_state(n), new_candidates(len(lr_spine.TOKENS), n)
    reset(state, n)
    lr_spine.initialize(state)
    note_children(gold, state.oracle)
    configuration = shifted(SYSTEM.initial(n))
    while not SYSTEM.is_final(configuration):
        steps, tokens = listed(state, room)
        legal = SYSTEM.legal(configuration)
        assert all(head != 0 for _, head, _ in steps if len(configuration.stack) > 2)
        assert steps == [(transition, *arc(configuration, transition)) for transition in legal]
        assert tokens == [context(configuration, transition) for transition in legal]
        correct = correct_transitions(configuration, gold)
        if correct:
            for oracle, right in ((DYNAMIC, correct), (STATIC, correct[-1:])):
                costs(state, oracle, gold, room, len(legal))
                assert room.costs[: len(legal)].tolist() == [int(t not in right) for t in legal]
        choices = correct if correct and rng.random() >= stray else legal
        transition = choices[rng.integers(len(choices))]
        configuration = shifted(SYSTEM.apply(configuration, transition))
        lr_spine.apply(state, KINDS.index(transition.kind), transition.k, 0)
    assert listed(state, room) == ([], [])
    assert state.heads[: n + 1].tolist() == SYSTEM.heads(configuration).tolist()
    assert stray or (state.heads[: n + 1] == gold).all()


@cache
def least_losses(configuration, gold):
    """The smallest possible number of wrong heads after each legal transition and the automatic shifts."""
    losses = []
    for transition in SYSTEM.legal(configuration):
        following = shifted(SYSTEM.apply(configuration, transition))
        final = SYSTEM.is_final(following)
        losses.append(int((SYSTEM.heads(following) != gold).sum()) if final else min(least_losses(following, gold)))
    return losses


@given(n=st.integers(3, 7), seed=st.integers(0, 2**32 - 1))
def test_dynamic_costs_are_exact_where_the_gold_tree_is_out_of_reach(n, seed):
    """Random computations with a gold tree with one word below the root."""
    rng = np.random.default_rng(seed)
    gold = closest_tree(random_tree(rng, n), "projective", single_root=True)
    state, room = new_state(n), new_candidates(len(lr_spine.TOKENS), n)
    reset(state, n)
    lr_spine.initialize(state)
    note_children(gold, state.oracle)
    configuration = shifted(SYSTEM.initial(n))
    while not SYSTEM.is_final(configuration):
        legal = SYSTEM.legal(configuration)
        lr_spine.list_candidates(state, room)
        costs(state, DYNAMIC, gold, room, len(legal))
        if not correct_transitions(configuration, gold):
            assert room.costs[: len(legal)].tolist() == least_losses(configuration, tuple(gold.tolist()))
        transition = legal[rng.integers(len(legal))]
        configuration = shifted(SYSTEM.apply(configuration, transition))
        lr_spine.apply(state, KINDS.index(transition.kind), transition.k, 0)


def test_figure_5():
    """The context of la_2 in a configuration like the one in Figure 5 of the paper."""
    n = 8
    state, room = new_state(n), new_candidates(len(lr_spine.TOKENS), n)
    reset(state, n)
    lr_spine.initialize(state)
    # ⟨0 | 0⟩ ⟨1 | 1⟩ ⟨2 | 2 3⟩ ⟨6 5 4 | 6⟩, 7 8
    for kind in (0, 2, 0, 0, 1, 0, 1):
        lr_spine.apply(state, kind, int(kind > 0), 0)
    steps, tokens = listed(state, room)
    assert [str(transition) for transition, _, _ in steps] == [
        "shift",
        *("left_arc(1)", "left_arc(2)", "left_arc(3)"),
        *("right_arc(1)", "right_arc(2)"),
    ]
    named = dict(zip(lr_spine.TOKENS, tokens[2], strict=True))
    expected = {"s3": 1, "s2": 2, "s1": 5, "q1": 6, "q2": 7, "gp": 6, "gg": NONE}
    assert {name: named[name] for name in expected} == expected
