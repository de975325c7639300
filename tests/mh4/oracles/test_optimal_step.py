import numpy as np
import pytest

from mh4.decoders.one_endpoint_crossing.trees import parts_of_tree
from mh4.oracles import arc_eager, arc_hybrid, arc_standard, covington, lr_spine
from mh4.oracles.optimal_step import UNREACHABLE, OptimalStep, best_transitions
from mh4.transitions.arc_eager import Configuration as ArcEagerConfiguration
from mh4.transitions.arc_standard import Configuration as ArcStandardConfiguration
from mh4.transitions.covington import Configuration as CovingtonConfiguration
from mh4.transitions.registry import TRANSITION_SYSTEMS

NAMES = ("shift", "reduce_left", "reduce_right")


def test_ties_and_transitions_that_do_not_apply():
    step = OptimalStep.from_array(NAMES, np.array([3, UNREACHABLE, 3], np.int32), 4)
    assert step.scores == {"shift": 3, "reduce_left": None, "reduce_right": 3}
    assert list(step.scores) == list(NAMES)
    assert step.best == ("shift", "reduce_right")
    assert (step.score, step.accuracy) == (3, 0.75)


def test_a_score_of_nothing_is_a_score():
    step = OptimalStep.from_array(NAMES, np.array([0, UNREACHABLE, UNREACHABLE], np.int32), 2)
    assert (step.best, step.score, step.accuracy) == (("shift",), 0, 0.0)


def test_no_transition_at_all():
    step = OptimalStep.from_array(NAMES, np.full(3, UNREACHABLE, np.int32), 2)
    assert (step.best, step.score, step.accuracy) == ((), None, None)
    assert not best_transitions(np.full((2, 3), UNREACHABLE, np.int32)).any()


def test_without_words_nothing_is_lost():
    assert OptimalStep.from_array(NAMES, np.array([0, UNREACHABLE, UNREACHABLE], np.int32), 0).accuracy == 1.0


@pytest.mark.parametrize("gold", [[-1, 0.5, 1.9], [-1, 2**32, 1]])
def test_heads_that_int32_would_make_a_tree_are_none(gold):
    gold = np.array(gold)
    hybrid, spine = TRANSITION_SYSTEMS["arc-hybrid"].initial(2), TRANSITION_SYSTEMS["lr-spine"].initial(2)
    for ask in (
        lambda: arc_eager.step_scores_batch([0], [0], [0, 1], [1], [0], [gold], algorithm="exact"),
        lambda: arc_hybrid.loss(hybrid, gold),
        lambda: arc_hybrid.optimal_step(hybrid, gold),
        lambda: covington.step_scores_batch([-1, -1, -1], [0], [1], [0], [gold]),
        lambda: lr_spine.correct_transitions(spine, gold),
        lambda: parts_of_tree(gold),
    ):
        with pytest.raises(ValueError, match="not a tree"):
            ask()


@pytest.mark.parametrize("wrong", [0.5, 2**32])
def test_configurations_that_int32_would_change_are_none(wrong):
    gold = [np.array([-1, 0, 1])]
    of_eager = {"stacks": [0], "labels": [0], "offsets": [0, 1], "fronts": [1], "sentences": [0]}
    of_covington = {"heads": [-1, -1, -1], "lefts": [0], "rights": [1], "sentences": [0]}
    for oracle, arrays in ((arc_eager, of_eager), (covington, of_covington)):
        for name, values in arrays.items():
            if wrong != 2**32 or name not in ("offsets", "sentences"):  # these two are int64
                with pytest.raises(ValueError, match=f"{name} must be int"):
                    oracle.step_scores_batch(**arrays | {name: [values[0] + wrong, *values[1:]]}, golds=gold)


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("arc-standard", arc_standard),
        ("arc-eager", arc_eager),
        ("arc-hybrid", arc_hybrid),
        ("covington", covington),
        ("lr-spine", lr_spine),
    ],
)
def test_a_list_of_heads_is_a_gold_tree(name, oracle):
    configuration, gold = TRANSITION_SYSTEMS[name].initial(2), [-1, 0, 1]
    assert oracle.optimal_step(configuration, gold) == oracle.optimal_step(configuration, np.array(gold))


IMPOSSIBLE = {
    "a word of the remaining input": {(2, 1), (3, 4)},
    "two heads": {(2, 1), (3, 1)},
    "a word beyond the sentence": {(2, 9)},
    "a head beyond the sentence": {(9, 1)},
    "a negative position": {(2, -3)},
    "its own head": {(1, 1)},
}


@pytest.mark.parametrize("arcs", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_arcs_that_cannot_have_been_made_are_errors(arcs):
    gold, arcs = np.array([-1, 2, 0, 2, 3, 3]), frozenset(arcs)
    of_standard = ArcStandardConfiguration((0, 2), 3, 5, arcs)
    of_eager = ArcEagerConfiguration((0, 2), "RR", 3, 5, arcs)
    of_covington = CovingtonConfiguration(2, 3, 5, arcs)
    for ask, configuration in (
        (arc_standard.optimal_step, of_standard),
        (arc_hybrid.optimal_step, of_standard),
        (arc_hybrid.loss, of_standard),
        (arc_eager.optimal_step, of_eager),
        (arc_eager.normalized.optimal_step, of_eager),
        (covington.optimal_step, of_covington),
        (covington.loss, of_covington),
    ):
        with pytest.raises(ValueError, match="not a configuration of 5 words"):
            ask(configuration, gold)


def test_words_of_the_stack_have_no_heads_but_arcs_may_be_missing():
    gold = np.array([-1, 2, 0, 2, 3, 3])
    assert arc_standard.optimal_step(ArcStandardConfiguration((0, 3), 4, 5), gold).score == 2
    for oracle in (arc_standard, arc_hybrid):
        with pytest.raises(ValueError, match="not a configuration of 5 words"):
            oracle.optimal_step(ArcStandardConfiguration((0, 2), 3, 5, frozenset({(0, 2)})), gold)
