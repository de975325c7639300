"""The dynamic oracle against enumeration of all computations; the static one on all small trees and a treebank."""

import numpy as np
import pytest
from computations import all_trees, best_scores, configurations, reachable_trees

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.oracles.arc_hybrid import loss, optimal_computation, optimal_step
from mh4.transitions.arc_hybrid import ArcHybrid, Configuration

SINGLE_ROOT = pytest.mark.parametrize("single_root", [False, True])


def projective_trees(n, single_root):
    return [t for t in all_trees(n) if is_projective(t) and (not single_root or (t == 0).sum() == 1)]


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_scores_are_exact(n, single_root):
    """All configurations with all projective gold trees; of those of 4 words, only every fifth."""
    system = ArcHybrid(single_root)
    golds = np.array(projective_trees(n, single_root)[:: 5 if n == 4 else 1])
    checked = 0
    for configuration in configurations(system, n):
        if system.is_final(configuration):
            for gold in golds:
                assert loss(configuration, gold) == (system.heads(configuration) != gold).sum()
            continue
        expected = best_scores(reachable_trees(system, configuration), golds)
        for g, gold in enumerate(golds):
            step = optimal_step(configuration, gold, single_root)
            scores = {transition: score for transition, score in step.scores.items() if score is not None}
            assert scores == {transition: int(best[g]) for transition, best in expected.items()}
            assert step.score == n - loss(configuration, gold)
            checked += 1
    assert checked > 0


@SINGLE_ROOT
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_static_computations_build_every_projective_tree(n, single_root):
    system = ArcHybrid(single_root)
    for gold in projective_trees(n, single_root):
        *_, last = system.run(n, optimal_computation(gold, single_root))
        assert system.is_final(last)
        assert system.heads(last).tolist() == gold.tolist()


def test_static_computations_are_optimal():
    """No step costs an arc of the closest projective tree, which the computation builds."""
    for gold in all_trees(4):
        closest = closest_tree(gold, "projective", single_root=False)
        computation = optimal_computation(gold)
        *configurations, last = ArcHybrid().run(4, computation)
        assert ArcHybrid().heads(last).tolist() == closest.tolist()
        for configuration, transition in zip(configurations, computation, strict=True):
            assert transition in optimal_step(configuration, closest).best


def test_the_sample_is_rebuilt(tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text("".join(read_sample()["dev"]), encoding="utf-8")
    for sentence in read_conllu(path, trees="required"):
        *_, last = ArcHybrid(True).run(len(sentence), optimal_computation(sentence.padded_heads, True))
        assert (
            ArcHybrid().heads(last).tolist()
            == closest_tree(sentence.padded_heads, "projective", single_root=True).tolist()
        )


def test_a_determiner_before_its_noun():
    """In "He saw a star", with "a" on "saw", attaching "a" to "saw" costs one arc, shifting "star" both its arcs."""
    gold = np.array([-1, 2, 0, 4, 2])
    configuration = Configuration((0, 2, 3), 4, 4, frozenset({(2, 1)}))
    assert optimal_step(configuration, gold).scores == {"shift": 2, "la": 4, "ra": 3}
    assert optimal_step(configuration, gold).best == ("la",)
    assert loss(configuration, gold) == 0


def test_bad_gold_trees_are_errors():
    configuration = ArcHybrid().initial(4)
    with pytest.raises(ValueError, match="projective gold tree"):
        optimal_step(configuration, np.array([-1, 3, 4, 0, 3]))
    with pytest.raises(ValueError, match="has 4 words, but the gold tree has 2"):
        optimal_step(configuration, np.array([-1, 0, 1]))
    with pytest.raises(ValueError, match="not a tree"):
        optimal_computation(np.array([-1, 2, 1]))
    with pytest.raises(ValueError, match="one child of the root"):
        optimal_step(configuration, np.array([-1, 0, 0, 2, 3]), single_root=True)


@pytest.mark.parametrize(
    ("stack", "front"), [((0, 10**7), 1), ((0, 2, 1), 3), ((0, 1), 9), ((0, 1), 5), ((), 1), ((1,), 2), ((0, 2), 2)]
)
def test_what_is_no_configuration_is_an_error(stack, front):
    for function in (optimal_step, loss):
        with pytest.raises(ValueError, match="not a configuration of 3 words"):
            function(Configuration(stack, front, 3), np.array([-1, 2, 0, 2]))
