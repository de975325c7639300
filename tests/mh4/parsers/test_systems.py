"""The registry of systems, and the trees that they are trained on."""

from dataclasses import replace

import pytest
from computations import all_trees
from kernels import trees_of

from mh4.data.conllu import read_conllu
from mh4.oracles.registry import STATIC_ORACLES, get_oracle
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.systems import GREEDY_SYSTEMS, get_system
from mh4.transitions.registry import TRANSITION_SYSTEMS
from mh4.trees.closest import training_tree


def test_one_system_has_one_name_everywhere():
    assert list(STATIC_ORACLES) == list(TRANSITION_SYSTEMS)
    assert set(GREEDY_SYSTEMS) == set(TRANSITION_SYSTEMS) - {"arc-eager-normalized"}
    for name, system in GREEDY_SYSTEMS.items():
        assert system.name == name
        assert system.transitions[: len(TRANSITION_SYSTEMS[name].transitions)] == TRANSITION_SYSTEMS[name].transitions
    for name, oracle in STATIC_ORACLES.items():
        assert oracle.system.name == name


def test_arc_standard_is_also_known_as_shift_reduce():
    assert get_system("shift-reduce") is get_system("arc-standard")
    assert get_oracle("shift-reduce", None) == get_oracle("arc-standard", None)
    assert PerceptronConfig("shift-reduce") == PerceptronConfig("arc-standard")


@pytest.mark.parametrize("name", GREEDY_SYSTEMS)
def test_the_training_tree_is_that_of_the_system(name, tmp_path):
    path = tmp_path / "trees.conllu"
    trees = [tree for tree in all_trees(4) if (tree == 0).sum() < 3]
    sentences = ["".join(f"{d}\tw\t_\tX\t_\t_\t{tree[d]}\tx\t_\t_\n" for d in range(1, 5)) for tree in trees]
    path.write_text("\n".join(sentences) + "\n")
    built = [tree.tolist() for tree in trees_of(name, 4)]
    found = [training_tree(sentence, get_system(name)) for sentence in read_conllu(path, trees="required")]
    for gold, tree in zip(trees, found, strict=True):
        assert tree.tolist() in built
        assert (tree.tolist() == gold.tolist()) == (gold.tolist() in built)


@pytest.mark.parametrize("positions", [(), ("s9",)])
def test_positions_are_tokens(positions):
    with pytest.raises(ValueError, match="are not among the tokens: s0, b0"):
        replace(get_system("arc-hybrid"), positions=positions)


def test_unknown_systems_are_named():
    with pytest.raises(ValueError, match="unknown system 'x'; known: arc-standard, arc-eager"):
        get_system("x")
