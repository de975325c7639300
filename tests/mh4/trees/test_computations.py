"""Optimal computations of whole treebanks."""

import numpy as np
import pytest

from mh4.data.conllu import read_conllu, write_conllu
from mh4.data.errors import DataError
from mh4.data.sample import write_sample
from mh4.data.sentence import Sentence
from mh4.decoders.closest import closest_tree
from mh4.oracles import arc_eager, arc_standard
from mh4.oracles.mh4 import closest_derivable
from mh4.oracles.registry import STATIC_ORACLES, get_oracle, optimal_computation
from mh4.transitions.covington import Covington
from mh4.transitions.lr_spine import Transition
from mh4.trees.computations import write_computations

CHOICES = [(name, policy) for name, oracle in STATIC_ORACLES.items() for policy in oracle.policies]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    return write_sample(tmp_path_factory.mktemp("sample"))["dev"]


@pytest.mark.parametrize(("system", "policy"), CHOICES)
def test_the_computation_builds_an_optimal_tree(system, policy, treebank):
    """Optimal: the closest projective tree; for Covington the gold tree; for MH4 depending on the policy."""
    transition_system = STATIC_ORACLES[system].system
    for sentence in read_conllu(treebank, trees="required"):
        transitions, arcs = optimal_computation(sentence.padded_heads, system, policy)
        if system == "lr-spine":
            transitions = [spine_transition(transition) for transition in transitions]
        *_, last = transition_system.run(len(sentence), transitions)
        assert transition_system.is_final(last)
        assert arcs == np.count_nonzero(transition_system.heads(last)[1:] == sentence.heads)
        tree_class = "all" if system == "covington" else "projective"
        closest = closest_tree(sentence.padded_heads, tree_class, single_root=False)
        if policy == "chart-order":
            closest = closest_tree(sentence.padded_heads, "mh4", single_root=False)
        elif system == "mh4":
            closest = closest_derivable(sentence.padded_heads)
        assert arcs == np.count_nonzero(closest[1:] == sentence.heads)


@pytest.mark.parametrize(("name", "oracle"), [("arc-standard", arc_standard), ("arc-eager", arc_eager)])
def test_a_policy_chooses_among_computations(name, oracle):
    heads = np.array([-1, 2, 0, 2, 5, 2])
    found = {policy: optimal_computation(heads, name, policy)[0] for policy in STATIC_ORACLES[name].policies}
    assert found == {policy: oracle.optimal_computation(heads, policy) for policy in found}
    assert len(set(found.values())) == 2


def test_a_computation_of_covington_is_not_run_again_to_count_arcs(monkeypatch):
    """Its steps grow with the square of the number of words, and each takes linear time."""
    monkeypatch.delattr(Covington, "apply")
    transitions, arcs = optimal_computation(np.arange(-1, 100), "covington")
    assert (len(transitions), arcs) == (199, 100)


def spine_transition(name):
    """Return the spine transition written as ``name`` or ``name(k)``."""
    kind, _, k = name.rstrip(")").partition("(")
    return Transition(kind, int(k or 0))


def test_annotation_adds_two_comments_and_nothing_else(treebank, tmp_path):
    target = tmp_path / "annotated.conllu"
    totals = write_computations(treebank, target, "arc-eager")
    lines = target.read_text(encoding="utf-8").splitlines()
    added = [line for line in lines if line.startswith(("# transitions = ", "# attainable_arcs = "))]
    assert len(added) == 2 * totals.sentences
    assert [line for line in lines if line not in added] == treebank.read_text(encoding="utf-8").splitlines()
    assert sum(int(line.split(" = ")[1]) for line in added[1::2]) == totals.attainable_arcs
    again = tmp_path / "again.conllu"
    write_computations(target, again, "arc-eager")
    assert again.read_bytes() == target.read_bytes()


def test_windows_line_ends_stay(treebank, tmp_path):
    source, target = tmp_path / "source.conllu", tmp_path / "target.conllu"
    source.write_bytes(treebank.read_bytes().replace(b"\n", b"\r\n"))
    write_computations(source, target, "shift-reduce")
    written = target.read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n")


def test_sequences_only(treebank, tmp_path):
    target = tmp_path / "sequences.tsv"
    totals = write_computations(treebank, target, "shift-reduce", sequences_only=True)
    rows = [line.split("\t") for line in target.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == totals.sentences
    assert [row[0] for row in rows] == [sentence.label for sentence in read_conllu(treebank)]
    for (_, arcs, words, transitions), sentence in zip(rows, read_conllu(treebank, trees="required"), strict=True):
        assert int(words) == len(sentence)
        assert int(arcs) <= len(sentence)
        assert transitions.split().count("shift") == len(sentence)


def test_unknown_names_list_the_known_ones(treebank, tmp_path):
    with pytest.raises(ValueError, match="arc-eager-normalized"):
        get_oracle("arc-lazy", None)
    with pytest.raises(ValueError, match="right-before-left"):
        write_computations(treebank, tmp_path / "out", "shift-reduce", "shift-before-reduce")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="unknown system"):
        write_computations(tmp_path / "missing", tmp_path / "out", "arc-lazy")
    with pytest.raises(DataError, match="is the input and would be replaced"):
        write_computations(treebank, treebank, "shift-reduce", sequences_only=True)


def test_bad_trees_are_named(tmp_path):
    source = tmp_path / "bad.conllu"
    source.write_text("1\ta\t_\tX\t_\t_\t2\tdep\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdep\t_\t_\n\n")
    with pytest.raises(DataError, match=r"bad\.conllu"):
        write_computations(source, tmp_path / "out", "shift-reduce")


def test_sentences_too_long_for_a_chart_are_named_or_left_out(tmp_path):
    source, target = tmp_path / "long.conllu", tmp_path / "out"
    sentences = [Sentence(["a"] * n, heads=range(n)).with_comment("sent_id", n) for n in (2, 201, 3)]
    write_conllu(sentences, source)
    with pytest.raises(
        DataError, match=r"long\.conllu:5: sentence 201: chart-order is for sentences of up to 200 words"
    ):
        write_computations(source, target, "mh4", "chart-order")
    assert not target.exists()
    errors = []
    totals = write_computations(source, target, "mh4", "chart-order", errors=errors.append)
    assert (totals.sentences, totals.words, len(errors)) == (2, 5, 1)
