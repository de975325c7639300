"""Times of the arc-eager step: the configurations of normalized parsing, and what is measured for each length."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
from figure4_arc_eager_time import CURVES, mean_times, shifted

from mh4.oracles.arc_eager.batch import flat_configurations
from mh4.transitions.arc_eager import Configuration, NormalizedArcEager

CONFIGURATIONS = (Configuration((0, 1), "RL", 2, 3), Configuration((0,), "R", 3, 2), Configuration((0, 1), "RR", 2, 2))
GOLDS = [np.array([-1, 2, 0, 2]), np.array([-1, 0, 1])]


def test_the_next_word_is_shifted_and_undecided():
    batch = flat_configurations(zip(CONFIGURATIONS, (0, 1, 1), strict=True))
    system = NormalizedArcEager()
    expected = [system.apply(one, "shift") if one.front <= one.n else one for one in CONFIGURATIONS]
    ours = shifted(batch, np.array([3, 2]))
    for found, known in zip(ours, flat_configurations(zip(expected, (0, 1, 1), strict=True)), strict=True):
        np.testing.assert_array_equal(found, known)


def test_every_length_has_a_record():
    batch = flat_configurations(zip(CONFIGURATIONS, (0, 1, 1), strict=True))
    records = mean_times(batch, GOLDS, "shift-before-reduce", seconds=0)
    assert [(record["length"], record["configurations"]) for record in records] == [(1, 1), (3, 1), (4, 1)]
    assert all(record[name] > 0 for record in records for name in CURVES)
