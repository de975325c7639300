"""When training evaluates, lowers the learning rate and ends, tested without a network."""

import pytest

from mh4.parsers.config import TrainingConfig
from mh4.training.schedule import Progress, Schedule


def run(epoch_steps, scores, **settings):
    """Run a schedule whose evaluations have the given LAS, then 0.

    Returns (step, fewest_left, most_left) after each step, (step, learning rate, best) of each evaluation, and the
    final progress.
    """
    settings = TrainingConfig(learning_rate=0.01, decay_factor=0.5, **settings)
    schedule, progress = Schedule(settings, epoch_steps), Progress(learning_rate=0.01)
    steps, evaluations = [], []
    while not progress.finished:
        schedule.advance(progress, epoch_steps)
        progress.seconds += 2.0
        steps.append((progress.step, progress.fewest_left, progress.most_left))
        if schedule.evaluates(progress):
            best = schedule.note(progress, 90.0, scores[len(evaluations)] if len(evaluations) < len(scores) else 0.0)
            evaluations.append((progress.step, progress.learning_rate, best))
            schedule.move_on(progress)
    return steps, evaluations, progress


def test_patience_then_decays_then_the_end():
    steps, evaluations, progress = run(8, [40.0], patience=2, decays=2, evaluation_steps=3)
    assert [step for step, _, _ in evaluations] == [3, 6, 9, 12, 15, 18, 21]
    assert [rate for _, rate, _ in evaluations] == [0.01] * 3 + [0.005] * 2 + [0.0025] * 2
    assert [best for _, _, best in evaluations] == [True] + [False] * 6
    assert (progress.step, progress.epoch, progress.batch) == (21, 2, 5)
    assert (progress.best_step, progress.best_las, progress.best_uas, progress.decays) == (3, 40.0, 90.0, 3)
    assert [fewest for _, fewest, _ in steps] == list(range(20, -1, -1))
    assert [most for _, _, most in steps] == [100_000 - step for step, _, _ in steps]


def test_an_improvement_is_waited_for_again_and_a_tie_is_none():
    steps, evaluations, progress = run(8, [40.0, 0.0, 41.0, 41.0], patience=2, decays=0, evaluation_steps=2)
    assert [step for step, _, best in evaluations if best] == [2, 6]
    assert progress.step == 10
    assert [fewest for _, fewest, _ in steps] == [5, 4, 3, 2, 1, 0, 3, 2, 1, 0]


def test_while_no_relation_is_right_heads_decide():
    """As on a development treebank whose DEPREL is "_" throughout."""
    schedule, progress = Schedule(TrainingConfig(), 8), Progress()
    scores = [(10.0, 0.0), (9.0, 0.0), (30.0, 0.0), (30.0, 0.0), (20.0, 1.0), (40.0, 1.0), (50.0, 0.0)]
    assert [schedule.note(progress, *one) for one in scores] == [True, False, True, False, True, False, False]
    assert (progress.best_uas, progress.best_las) == (20.0, 1.0)


@pytest.mark.parametrize(("setting", "interval"), [(1, 5), (4, 5), (6, 6)])
def test_evaluation_is_not_more_frequent_than_every_quarter_of_an_epoch(setting, interval):
    steps, evaluations, _ = run(17, range(99), evaluation_steps=setting, max_steps=27)
    assert [step for step, _, _ in evaluations] == [*range(interval, 27, interval), 27]
    assert steps[-1] == (27, 0, 0)
    assert steps[0][1:] == (26, 26)  # before patience runs out


def test_epochs_are_a_limit():
    steps, evaluations, progress = run(8, [], max_epochs=2, evaluation_steps=100)
    assert [step for step, _, _ in evaluations] == [16]
    assert [most for _, _, most in steps] == list(range(15, -1, -1))
    assert (progress.step, progress.epoch, progress.batch) == (16, 2, 0)
    assert run(8, [], max_epochs=2, max_steps=11)[2].step == 11


def test_seconds_left():
    assert Progress().seconds_left == (float("inf"), float("inf"))
    assert Progress(step=4, seconds=8.0, fewest_left=3, most_left=10).seconds_left == (6.0, 20.0)


def test_the_rate_rises_and_falls_linearly():
    settings = TrainingConfig(warm_up=4, rate_fall="linear", max_epochs=5)
    schedule = Schedule(settings, 2)
    progress = Progress(learning_rate=0.1)
    rates = []
    for _ in range(10):
        rates.append(schedule.rate(progress))
        schedule.advance(progress, 2)
    assert rates[:4] == pytest.approx([0.1 * (step + 1) / 4 * (1 - step / 10) for step in range(4)])
    assert rates[4:] == pytest.approx([0.1 * (1 - step / 10) for step in range(4, 10)])
    assert schedule.rate(progress) == 0.0
    assert schedule.evaluates(progress)


def test_a_linear_fall_needs_an_end():
    with pytest.raises(ValueError, match="max_epochs"):
        TrainingConfig(rate_fall="linear")


def test_patience_counts_evaluations_as_published_unless_it_grows():
    for epoch_steps in (10, 100, 10_000):
        assert Schedule(TrainingConfig(patience=7), epoch_steps).patience == 7


@pytest.mark.parametrize(
    ("epoch_steps", "evaluations"),
    [
        (10, 12),  # small treebanks wait as long as one of 20,000 words
        (100, 12),
        (400, 24),  # four times the words: twice the steps
        (1600, 24),  # four times the steps, in evaluations of 400
        (10_000, 10),
    ],
)
def test_patience_grows_less_than_the_treebank(epoch_steps, evaluations):
    settings = TrainingConfig(patience=12, patience_growth=0.5, evaluation_steps=200, batch_words=200)
    assert Schedule(settings, epoch_steps).patience == evaluations


def test_grown_patience_is_waited_for():
    scores = [40.0] + [0.0] * 99
    settings = {"patience": 3, "patience_growth": 0.5, "evaluation_steps": 100, "batch_words": 200, "decays": 0}
    steps, evaluations, progress = run(400, scores, **settings)  # 80,000 words
    assert len(evaluations) == 1 + 6
    assert progress.step == steps[-1][0] == 700
    assert steps[0][1:] == (699, 100_000 - 1)
