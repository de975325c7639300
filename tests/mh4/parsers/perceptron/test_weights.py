import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mh4.parsers.perceptron.weights import (
    FEATURES,
    add_scores,
    averaged_lists,
    find_blocks,
    from_lists,
    new_weights,
    update,
    with_room,
)

ACTIONS = 40


def scores(weights, keys):
    blocks, result = np.zeros(len(keys), np.int64), np.zeros(ACTIONS, np.float32)
    find_blocks(weights, keys, len(keys), blocks)
    add_scores(weights, blocks, len(keys), result)
    return result


def naive_mean(changes, steps):
    """Return the mean of each weight over all steps: {(key, action): mean}."""
    weights, total = {}, {}
    for step in range(1, steps + 1):
        for at, key, action, change in changes:
            if at == step:
                weights[key, action] = weights.get((key, action), 0) + change
        for cell, weight in weights.items():
            total[cell] = total.get(cell, 0) + weight
    return {cell: np.float32(value / steps) for cell, value in total.items() if value}


def as_dict(lists):
    keys, offsets, actions, values = lists
    return {
        (int(keys[f]), int(actions[i])): values[i] for f in range(len(keys)) for i in range(offsets[f], offsets[f + 1])
    }


def apply_all(changes):
    weights = new_weights(10, 10, True)
    for step, key, action, change in changes:
        weights = with_room(weights, 1, ACTIONS)
        update(weights, np.array([key]), 1, action, np.float32(change), step)
    return weights


@given(
    st.lists(
        st.tuples(
            st.integers(1, 12),
            st.integers(1, 9) | st.integers(-(2**63), 2**63 - 1).filter(bool),
            st.integers(0, ACTIONS - 1),
            st.sampled_from((-1, 1)),
        ),
        max_size=60,
    )
)
@settings(max_examples=80)
def test_lazy_averages_equal_naive_ones(changes):
    changes.sort(key=lambda change: change[0])
    weights = apply_all(changes)
    expected = naive_mean(changes, 12)
    found = as_dict(averaged_lists(weights, 12))
    assert found.keys() == expected.keys()
    assert all(found[cell] == pytest.approx(expected[cell], rel=1e-6) for cell in found)


def test_scores_survive_growth_of_table_and_blocks():
    rng = np.random.default_rng(1)
    keys = rng.integers(1, 2**62, 5000)
    expected = np.zeros((len(keys), ACTIONS), np.float32)
    weights = new_weights(10, 10, True)
    for step in range(1, 9):
        action, change = step * 3, 1.0 if step % 2 else -2.0
        weights = with_room(weights, len(keys), ACTIONS)
        update(weights, keys, len(keys), action, np.float32(change), step)
        expected[:, action] += change
    assert weights.sizes[FEATURES] == len(keys)
    for k in range(0, len(keys), 97):
        assert (scores(weights, keys[k : k + 1]) == expected[k]).all()
    assert (scores(weights, keys[:50]) == expected[:50].sum(0)).all()


def test_unknown_features_score_nothing():
    weights = apply_all([(1, 5, 3, 1)])
    assert scores(weights, np.array([5]))[3] == 1
    assert not scores(weights, np.array([6, 7])).any()
    assert not scores(new_weights(1, 1, False), np.array([6, 7])).any()


def test_averaged_weights_come_back_from_their_lists():
    rng = np.random.default_rng(2)
    changes = [(step, int(rng.integers(1, 200)), int(rng.integers(ACTIONS)), 1) for step in range(1, 1500)]
    lists = averaged_lists(apply_all(changes), 1500)
    weights, expected = from_lists(*lists), naive_mean(changes, 1500)
    for key in range(1, 201):
        found = scores(weights, np.array([key]))
        assert found == pytest.approx([expected.get((key, action), 0) for action in range(ACTIONS)])
