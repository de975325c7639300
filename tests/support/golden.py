"""Golden results of the chart decoders in `tests/golden`: one .npz each, where arrays of case 7 are named ``c07_…``."""

import numpy as np
import pytest
from paths import GOLDEN_FOLDER

from mh4.decoders import InfeasibleError


def load_golden(name):
    """The arrays of a file, and the name prefixes of its cases."""
    data = np.load(GOLDEN_FOLDER / f"{name}.npz")
    return data, [f"c{case:02}_" for case in range(int(data["count"]))]


def padded_arcs(arc):
    """The golden arc scores, float32, with an additional row and column for the end."""
    bonus = np.zeros((len(arc) + 1,) * 2, np.float32)
    bonus[:-1, :-1] = arc
    return bonus


def check_golden(decoder, scores, bonus, value, heads, parts):
    """Check that the decoder finds the golden value and tree, and that the golden parts have this value.

    ``scores``, ``bonus`` and ``parts`` are as in the contract; ``value`` is −inf if no derivation exists.
    """
    scores = np.ascontiguousarray(scores, np.float32)
    if value == -np.inf:
        with pytest.raises(InfeasibleError):
            decoder.decode(scores, bonus)
        return
    found = decoder.decode(scores, bonus)
    assert found.score == pytest.approx(float(value), abs=1e-4)
    assert found.heads.tolist() == heads.tolist()
    arcs = bonus[heads[1:], np.arange(1, len(heads))]
    assert scores[tuple(np.transpose(parts))].sum(dtype=float) + arcs.sum(dtype=float) == pytest.approx(value, abs=1e-6)
    assert len(found.parts) == len(parts)
