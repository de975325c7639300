"""The costs of candidates against enumeration of all computations; static oracles lead to the gold tree."""

import numpy as np
import pytest
from computations import all_trees, computations, configurations
from kernels import FRIENDLY, Kernels, has_one_root, trees_of
from paths import UD

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.oracles.costs import APPROXIMATE, DYNAMIC, EXACT, STATIC
from mh4.parsers.systems import GREEDY_SYSTEMS
from mh4.transitions.arc_eager import REDUCE, SHIFT
from mh4.trees.closest import training_tree

names = pytest.mark.parametrize("name", FRIENDLY)
dynamic_names = pytest.mark.parametrize(
    "name", [name for name in FRIENDLY if "dynamic" in GREEDY_SYSTEMS[name].oracles]
)


@pytest.fixture(scope="module", params=["sample", "hu", "got"])
def treebank(request, tmp_path_factory):
    if request.param == "sample":
        path = tmp_path_factory.mktemp("sample") / "sample.conllu"
        path.write_text("".join(s for part in read_sample().values() for s in part), encoding="utf-8")
    else:
        path = UD / request.param / f"{request.param}-ud-train.conllu"
        if not path.exists():
            pytest.skip("the UD treebanks are not at hand")
    return list(read_conllu(path, trees="required"))


@pytest.mark.parametrize("name", GREEDY_SYSTEMS)
def test_static_oracles_rebuild_whole_treebanks(name, treebank):
    kernels = Kernels(name, 1, longest=max(map(len, treebank)))
    for sentence in treebank:
        gold = training_tree(sentence, kernels.system)
        relations = np.arange(len(gold), dtype=np.int32) % 50
        heads, built = kernels.follow_static(gold, relations)
        heads = np.where(heads < 0, 0, heads)  # words without a head are attached to the root
        assert heads[1:].tolist() == gold[1:].tolist(), (sentence.name, name)
        assert has_one_root(heads) or not kernels.system.single_root
        assert built[(built >= 0)].tolist() == relations[built >= 0].tolist()


@names
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_static_oracles_rebuild_every_tree(name, n):
    kernels = Kernels(name, n)
    for gold in trees_of(name, n):
        assert kernels.follow_static(gold, np.zeros(n + 1, np.int32))[0].tolist() == gold.tolist()


def kept(friendly, configuration, legal, shifted):
    """Map each legal transition to the heads of all trees that can be reached after it.

    If ``shifted``, computations that correct a word just shifted by a reduce are left out.
    """
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
    """Whether ``steps`` reduce ``word``, which was shifted, so that it becomes a right child after all."""
    for step in steps:
        if step == REDUCE and configuration.stack[-1] == word:
            return True
        configuration = friendly.apply(configuration, step)
    return False


def costs_are_exact(name, n, oracle, golds):
    """Check the costs in every configuration; a word that arc-eager shifts must become a left child."""
    friendly, kernels = FRIENDLY[name], Kernels(name, n)
    for configuration in configurations(friendly, n):
        legal = friendly.legal(configuration)
        trees = kept(friendly, configuration, legal, name == "arc-eager")
        if not legal:
            continue
        kernels.go_to(configuration)
        assert kernels.friendly == legal
        for gold in golds:
            kernels.prepare(oracle, gold)
            most = [
                max(((np.array(tree[1:]) == gold[1:]).sum() for tree in trees[transition]), default=-9)
                for transition in legal
            ]
            costs = kernels.costs(oracle, gold)
            lost = [max(most) - score for score in most]
            found = [cost - min(costs) for cost in costs]
            for loss, cost, score in zip(lost, found, most, strict=True):
                assert cost == loss or (score < 0 and cost > n), (configuration, gold)


@dynamic_names
@pytest.mark.parametrize("n", [2, 3, 4])
def test_dynamic_costs_are_exact(name, n):
    costs_are_exact(name, n, DYNAMIC, trees_of(name, n))


@pytest.mark.parametrize("name", ["arc-standard", "arc-eager"])
@pytest.mark.parametrize("n", [2, 3, 4])
def test_exact_costs_are_exact_for_any_tree(name, n):
    costs_are_exact(name, n, EXACT, [tree for tree in all_trees(n) if has_one_root(tree)])


def test_approximate_costs_take_no_notice_of_crossing_arcs():
    """0 → 2 and 3 → 1 cross, but by approximate costs, shifting 1 and then 2 loses nothing."""
    kernels, gold = Kernels("arc-eager", 4), np.array([-1, 3, 0, 2, 2], np.int32)
    costs = {}
    for oracle in (EXACT, APPROXIMATE):
        kernels.initialize(4)
        kernels.prepare(oracle, gold)
        costs[oracle] = kernels.costs(oracle, gold)
    assert costs[EXACT] != costs[APPROXIMATE]


def test_the_static_arc_standard_oracle_makes_left_arcs_at_once():
    """The verb of "dogs chase cats daily" gets its subject before the next word is read."""
    kernels, steps = Kernels("arc-standard", 4), []
    gold = np.array([-1, 2, 0, 2, 2], np.int32)
    kernels.prepare(STATIC, gold)
    while kernels.count:
        c = kernels.costs(STATIC, gold).index(0)
        steps.append(kernels.legal[c])
        kernels.step(c)
    assert steps == ["reduce_right", "reduce_left", "reduce_left", "reduce_left"]
