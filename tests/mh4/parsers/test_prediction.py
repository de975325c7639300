"""The arcs of a batch."""

import numpy as np

from mh4.decoders import Derivation
from mh4.parsers.prediction import Found, TreeArcs


def test_columns_belong_to_the_best_tree():
    trees = [Derivation(np.array(heads), np.empty((0, 3)), 0.0) for heads in ([-1, 0, 1], [-1, 2, 0])]
    arcs = TreeArcs.of([Found([]), Found(trees)])
    assert arcs.of_words([1, 2]).tolist() == [-1, 0, 1]
    none, (heads, relations) = arcs.best_trees(np.arange(4))
    assert none is None
    assert (heads.tolist(), relations.tolist()) == ([-1, 0, 1], [0, 1])
