import numpy as np

from mh4.oracles.optimal_step import UNREACHABLE, OptimalStep

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


def test_without_words_nothing_is_lost():
    assert OptimalStep.from_array(NAMES, np.array([0, UNREACHABLE, UNREACHABLE], np.int32), 0).accuracy == 1.0
