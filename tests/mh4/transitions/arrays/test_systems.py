"""The state kernels against the systems of `mh4.transitions`, step by step; the oracles against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from computations import all_trees, computations, configurations
from hypothesis import given
from hypothesis import strategies as st
from paths import UD

from mh4.data.conllu import read_conllu
from mh4.data.sample import generate_sample
from mh4.decoders.trees import is_projective
from mh4.oracles.mh4 import is_derivable
from mh4.parsers.systems import SYSTEMS, apply, find_costs, get_system, initialize, list_candidates, prepare
from mh4.transitions.arc_eager import REDUCE, RIGHT_ARC, SHIFT, ArcEager
from mh4.transitions.arc_hybrid import ArcHybrid
from mh4.transitions.arrays.state import (
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
from mh4.transitions.mh4 import MH4
from mh4.transitions.shift_reduce import REDUCE_LEFT, ShiftReduce
from mh4.trees.closest import training_tree


class RootLast:
    """A system of `mh4.transitions` in which an arc from the root is the last step; forced shifts are not asked for."""

    def __init__(self, system):
        self.system, self.heads, self.is_final = system, system.heads, system.is_final

    def _after_shifts(self, configuration):
        while self.legal(configuration) == (SHIFT,):
            configuration = self.system.apply(configuration, SHIFT)
        return configuration

    def initial(self, n):
        return self._after_shifts(self.system.initial(n))

    def legal(self, configuration):
        if configuration.front > configuration.n:
            return tuple(self.system.legal(configuration))
        from_root = {1: [RIGHT_ARC], 2: [REDUCE, REDUCE_LEFT]}.get(len(configuration.stack), [])
        return tuple(transition for transition in self.system.legal(configuration) if transition not in from_root)

    def apply(self, configuration, transition):
        return self._after_shifts(self.system.apply(configuration, transition))


FRIENDLY = {
    "arc-standard": RootLast(ShiftReduce()),
    "arc-eager": RootLast(ArcEager()),
    "arc-hybrid": ArcHybrid(single_root=True),
    "mh4": MH4(single_root=True),
}
names = pytest.mark.parametrize("name", FRIENDLY)
dynamic_names = pytest.mark.parametrize("name", [name for name in FRIENDLY if "dynamic" in SYSTEMS[name][1].oracles])


def has_one_root(gold):
    return (gold[1:] == 0).sum() == 1


def trees_of(name, n):
    """Every tree that a system builds."""
    system = get_system(name)[1]
    trees = [tree for tree in all_trees(n) if has_one_root(tree) or not system.single_root]
    if system.projective:
        return [tree for tree in trees if is_projective(tree)]
    return [tree for tree in trees if name != "mh4" or is_derivable(tree)]


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
@given(n=st.integers(1, 9), choices=st.lists(st.integers(0, 6), min_size=18, max_size=18))
def test_kernels_do_what_the_systems_do(name, n, choices):
    friendly, kernels = FRIENDLY[name], Kernels(name, n, longest=12)
    configuration = friendly.initial(n)
    for choice in choices:
        legal = friendly.legal(configuration)
        if not legal:
            break
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
    assert has_one_root(kernels.state.heads[: n + 1])


@names
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_all_trees_with_one_word_below_the_root_are_built_and_nothing_gets_stuck(name, n):
    """Whatever is chosen, in every configuration that can be reached."""
    friendly, kernels = FRIENDLY[name], Kernels(name, n)
    derived = set()
    for configuration in configurations(friendly, n):
        kernels.go_to(configuration)
        assert tuple(map(plain, kernels.legal)) == tuple(friendly.legal(configuration))
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
    for transition in ("shift", "shift", "la", "la", "shift", "shift", "la", "shift", "ra", "shift", "ra", "shift"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s0": 7, "b0": 8, "s1": 3, "s2": 0, "b1": 9, "b2": -1, "s0l": -1, "s0r2": -1, "b0l": -1, "b0l2": -1}
    tokens |= {"s1l": 1, "s1l2": 2, "s1r": 6, "s1r2": 5}
    assert {token: kernels.token(token) for token in tokens} == tokens
    assert set(kernels.system.tokens) == {*tokens, "s0l2", "s0r"}
    for transition in ("la", "shift", "shift"):
        kernels.step(kernels.legal.index(transition))
    tokens = {"s0": 9, "b0": -1, "s1": 8, "s2": 3, "b1": -1, "b2": -1, "s1l": 7, "s1r": -1, "b0l": -1}
    assert {token: kernels.token(token) for token in tokens} == tokens


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_training_tree_is_that_of_the_system(name, tmp_path):
    path = tmp_path / "trees.conllu"
    trees = [tree for tree in all_trees(4) if (tree == 0).sum() < 3]
    sentences = ["".join(f"{d}\tw\t_\tX\t_\t_\t{tree[d]}\tx\t_\t_\n" for d in range(1, 5)) for tree in trees]
    path.write_text("\n".join(sentences) + "\n")
    built = [tree.tolist() for tree in trees_of(name, 4)]
    found = [training_tree(sentence, get_system(name)[1]) for sentence in read_conllu(path, trees="required")]
    for gold, tree in zip(trees, found, strict=True):
        assert tree.tolist() in built
        assert (tree.tolist() == gold.tolist()) == (gold.tolist() in built)


@pytest.mark.parametrize("positions", [(), ("s9",)])
def test_positions_are_tokens(positions):
    with pytest.raises(ValueError, match="are not among the tokens: s0, b0"):
        replace(get_system("arc-hybrid")[1], positions=positions)


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


@pytest.fixture(scope="module", params=["sample", "hu", "got"])
def treebank(request, tmp_path_factory):
    if request.param == "sample":
        path = tmp_path_factory.mktemp("sample") / "sample.conllu"
        path.write_text("".join(s for part in generate_sample(1).values() for s in part), encoding="utf-8")
    else:
        path = UD / request.param / f"{request.param}-ud-train.conllu"
        if not path.exists():
            pytest.skip("the UD treebanks are not at hand")
    return list(read_conllu(path, trees="required"))


@pytest.mark.parametrize("name", SYSTEMS)
def test_static_oracles_rebuild_whole_treebanks(name, treebank):
    kernels = Kernels(name, 1, longest=max(map(len, treebank)))
    for sentence in treebank:
        gold = training_tree(sentence, kernels.system)
        relations = np.arange(len(gold), dtype=np.int32) % 50
        heads, built = follow_static(kernels, gold, relations)
        heads = np.where(heads < 0, 0, heads)  # words without a head are attached to the root
        assert heads[1:].tolist() == gold[1:].tolist(), (sentence.name, name)
        assert has_one_root(heads) or not kernels.system.single_root
        assert built[(built >= 0)].tolist() == relations[built >= 0].tolist()


@names
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_static_oracles_rebuild_every_tree(name, n):
    kernels = Kernels(name, n)
    for gold in trees_of(name, n):
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


@dynamic_names
@pytest.mark.parametrize("n", [2, 3, 4])
def test_dynamic_costs_are_exact(name, n):
    """Every configuration, every gold tree. A word that arc-eager shifts is to become a left child."""
    friendly, kernels = FRIENDLY[name], Kernels(name, n)
    golds = trees_of(name, n)
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


def test_the_static_arc_standard_oracle_makes_left_arcs_at_once():
    """The verb of "dogs chase cats daily" gets its subject before anything else is read."""
    kernels, steps = Kernels("arc-standard", 4), []
    gold = np.array([-1, 2, 0, 2, 2], np.int32)
    prepare(kernels.code, kernels.state, STATIC, gold)
    while kernels.count:
        c = kernels.costs(STATIC, gold).index(0)
        steps.append(kernels.legal[c])
        kernels.step(c)
    assert steps == ["reduce_right", "reduce_left", "reduce_left", "reduce_left"]


def test_unknown_systems_are_named():
    with pytest.raises(ValueError, match="unknown system 'x'; known: arc-standard, arc-eager"):
        get_system("x")
