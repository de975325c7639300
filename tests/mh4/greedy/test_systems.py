"""The state kernels against the systems of `mh4.transitions`, step by step; the oracles against brute force."""

import numpy as np
import pytest
from computations import all_trees, computations, configurations
from hypothesis import given
from hypothesis import strategies as st

from mh4.decoders.projectivization import projectivize
from mh4.decoders.trees import is_projective
from mh4.greedy.state import (
    DEPENDENT,
    DEPTH,
    DYNAMIC,
    FRONT,
    HEAD,
    LEFTMOST,
    NEAREST_LEFT,
    NEAREST_RIGHT,
    RIGHTMOST,
    SECOND_LEFT,
    SECOND_RIGHT,
    STATIC,
    TRANSITION,
    new_candidates,
    new_state,
)
from mh4.greedy.systems import SYSTEMS, apply, find_costs, get_system, initialize, list_candidates, prepare
from mh4.sample import generate_sample
from mh4.transitions.arc_eager import REDUCE, SHIFT, ArcEager
from mh4.transitions.shift_reduce import ShiftReduce
from mh4.treebank import read_treebank

FRIENDLY = {"arc-standard": ShiftReduce(), "arc-eager": ArcEager()}
names = pytest.mark.parametrize("name", FRIENDLY)


class Kernels:
    """The kernels of one system on one sentence."""

    def __init__(self, name, n, longest=None):
        self.code, self.system = get_system(name)
        self.state = new_state(longest or n)
        self.candidates = new_candidates(self.system, longest or n)
        self.initialize(n)

    def initialize(self, n):
        initialize(self.code, self.state, n)
        self.list()

    def list(self):
        self.count, self.contexts = list_candidates(self.code, self.state, self.candidates)

    @property
    def rows(self):
        return self.candidates.rows[: self.count]

    @property
    def legal(self):
        return [self.system.transitions[row[TRANSITION]] for row in self.rows]

    def token(self, name):
        return self.candidates.tokens[0, self.system.tokens.index(name)]

    def step(self, c, relation=0):
        _, transition, argument, _, _ = self.rows[c]
        apply(self.code, self.state, transition, argument, relation)
        self.list()

    def go_to(self, configuration):
        """Put a configuration of `mh4.transitions` in place, arcs left out."""
        initialize(self.code, self.state, configuration.n)
        depth = len(configuration.stack)
        self.state.stack[:depth] = configuration.stack
        self.state.labels[:depth] = ["RLN".index(label) for label in getattr(configuration, "labels", "R" * depth)]
        self.state.counters[[DEPTH, FRONT]] = depth, configuration.front
        self.list()

    def costs(self, oracle, gold):
        find_costs(self.code, self.state, oracle, gold, self.candidates, self.count)
        return self.candidates.costs[: self.count].tolist()


def plain(transition):
    return REDUCE if transition == "reduce_correct" else transition


@names
@given(n=st.integers(1, 9), choices=st.lists(st.integers(0, 3), min_size=18, max_size=18))
def test_kernels_do_what_the_systems_do(name, n, choices):
    friendly, kernels = FRIENDLY[name], Kernels(name, n, longest=12)
    configuration = friendly.initial(n)
    for choice in choices[: 2 * n]:
        legal = friendly.legal(configuration)
        assert tuple(map(plain, kernels.legal)) == legal
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
    for transition, relation in (("shift", 0), ("shift", 0), ("reduce_right", 4), ("shift", 0), ("reduce_right", 62)):
        kernels.step(kernels.legal.index(transition), relation)
    assert kernels.state.relation_sets[0, 2] == 1 << 4
    assert kernels.state.relation_sets[0, 3] == 1 << 62


def test_tokens_of_arc_eager():
    kernels = Kernels("arc-eager", 5)
    for transition in ("shift", "left_arc", "right_arc", "right_arc"):  # 1 under 2, 2 under 0, 3 under 2
        kernels.step(kernels.legal.index(transition))
    expected = {"s0": 3, "n0": 4, "n1": 5, "n2": -1, "s0h": 2, "s0h2": 0, "s0l": -1, "s0r": -1, "n0l": -1}
    assert {name: kernels.token(name) for name in expected} == expected


def test_tokens_of_arc_standard():
    kernels = Kernels("arc-standard", 6)
    for transition in ("shift", "shift", "reduce_right", "shift", "reduce_left", "shift", "shift", "reduce_right"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s1": 5, "s2": 2, "s3": 0, "q1": 6, "q2": -1, "s1l": 4, "s1l2": -1, "s1r": -1, "s2l": 1, "s2r": 3}
    assert {name: kernels.token(name) for name in tokens} == tokens


def follow_static(kernels, gold, relations):
    """Run the static oracle; returns the tree."""
    kernels.initialize(len(gold) - 1)
    prepare(kernels.code, kernels.state, STATIC, gold)
    while kernels.count:
        costs = kernels.costs(STATIC, gold)
        assert sorted(costs)[:2] in ([0], [0, 1])
        c = costs.index(0)
        kernels.step(c, relations[kernels.rows[c][DEPENDENT]])
    n = len(gold) - 1
    return kernels.state.heads[: n + 1], kernels.state.relations[: n + 1]


@pytest.mark.parametrize("name", [name for name, (_, system) in SYSTEMS.items() if "static" in system.oracles])
def test_static_oracles_rebuild_the_sample(name, tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text("".join(s for part in generate_sample(1).values() for s in part), encoding="utf-8")
    sentences = list(read_treebank(path, gold=True))
    kernels = Kernels(name, 1, longest=max(map(len, sentences)))
    for sentence in sentences:
        gold = projectivize(sentence.heads) if kernels.system.projective else sentence.heads
        relations = np.arange(len(gold), dtype=np.int32) % 50
        heads, built = follow_static(kernels, gold, relations)
        heads = np.where(heads < 0, 0, heads)  # words without a head are attached to the root
        assert heads[1:].tolist() == gold[1:].tolist(), (sentence.name, name)
        assert built[(built >= 0)].tolist() == relations[built >= 0].tolist()


@names
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_static_oracles_rebuild_every_projective_tree(name, n):
    kernels = Kernels(name, n)
    for gold in all_trees(n):
        if is_projective(gold):
            assert follow_static(kernels, gold, np.zeros(n + 1, np.int32))[0].tolist() == gold.tolist()


def kept(friendly, configuration, legal, shifted):
    """The most gold arcs after each legal transition: {transition: heads (trees, n + 1)}, from the step on."""
    trees = {}
    for transition in legal:
        following = friendly.apply(configuration, transition)
        trees[transition] = set()
        for steps, final in computations(friendly, following):
            if transition == SHIFT and shifted and corrects(friendly, following, steps, configuration.front):
                continue
            trees[transition].add(tuple(friendly.heads(final)))
    return trees


def corrects(friendly, configuration, steps, word):
    """Whether a word labelled L is reduced, and so becomes a right child all the same."""
    for step in steps:
        if step == REDUCE and configuration.stack[-1] == word:
            return True
        configuration = friendly.apply(configuration, step)
    return False


@names
@pytest.mark.parametrize("n", [2, 3])
def test_dynamic_costs_are_exact(name, n):
    """Every configuration, every projective gold tree. A word that arc-eager shifts is to become a left child."""
    friendly, kernels = FRIENDLY[name], Kernels(name, n)
    golds = [gold for gold in all_trees(n) if is_projective(gold)]
    for configuration in configurations(friendly, n):
        legal = friendly.legal(configuration)
        trees = kept(friendly, configuration, legal, name == "arc-eager")
        if not legal:
            continue
        kernels.go_to(configuration)
        assert tuple(map(plain, kernels.legal)) == legal
        for gold in golds:
            prepare(kernels.code, kernels.state, DYNAMIC, gold)
            most = [
                max(((np.array(tree[1:]) == gold[1:]).sum() for tree in trees[transition]), default=-9)
                for transition in legal
            ]
            costs = kernels.costs(DYNAMIC, gold)
            lost = [max(most) - score for score in most]
            found = [cost - min(costs) for cost in costs]
            for loss, cost, score in zip(lost, found, most, strict=True):
                assert cost == loss or (score < 0 and cost > n), (configuration, gold)


def test_unknown_systems_are_named():
    with pytest.raises(ValueError, match="unknown system 'x'; known: arc-standard, arc-eager"):
        get_system("x")
