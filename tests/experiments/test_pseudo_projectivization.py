"""Lifting makes trees projective, one shortest non-projective arc at a time, the leftmost if several are shortest."""

import numpy as np
import pytest
from computations import all_trees
from hypothesis import given, settings
from hypothesis import strategies as st
from table6_projectivization import dominates, lifted

from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective, is_tree


def kept(first, second):
    return int(np.count_nonzero(np.asarray(first)[1:] == np.asarray(second)[1:]))


def check(heads):
    before = heads.copy()
    found = lifted(heads)
    assert heads.tolist() == before.tolist()
    assert is_tree(found)
    assert is_projective(found)
    optimal = closest_tree(heads, "projective", single_root=False)
    assert kept(found, heads) <= kept(optimal, heads)
    for word in range(1, len(heads)):
        assert dominates(heads, found[word], word)  # lifting keeps the head an ancestor
        assert found[word] != word
    if is_projective(heads):
        assert found.tolist() == heads.tolist()
    return kept(found, heads) < kept(optimal, heads)


def test_all_small_trees():
    worse = [sum(check(tree) for tree in all_trees(n)) for n in (1, 2, 3, 4)]
    assert worse[:3] == [0, 0, 0]
    assert worse[3] > 0


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 20))
@settings(max_examples=100, deadline=None)
def test_longer_trees(seed, n):
    rng = np.random.default_rng(seed)
    order = [0, *(rng.permutation(n) + 1).tolist()]
    heads = np.full(n + 1, -1)
    for at in range(1, n + 1):
        heads[order[at]] = order[rng.integers(0, at)]
    check(heads)


def by_definition(heads):
    """Non-projective arcs, as (length, left end, dependent): not all words between are descendants of the head."""
    found = []
    for word in range(1, len(heads)):
        head = heads[word]
        below = {head}
        while more := {d for d in range(1, len(heads)) if heads[d] in below} - below:
            below |= more
        if set(range(min(head, word) + 1, max(head, word))) - below:
            found.append((abs(head - word), min(head, word), word))
    return found


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_shortest_arc_is_lifted_first(n):
    for tree in all_trees(n)[:: 1 if n < 5 else 7]:
        heads = tree.tolist()
        while arcs := by_definition(heads):
            word = min(arcs)[2]
            heads[word] = heads[heads[word]]
        assert lifted(tree).tolist() == heads


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        ([-1, 3, 0, 2], [-1, 2, 0, 2]),  # 3 → 1 spans 2, which is not below 3, so 1 moves to the head of 3
        ([-1, 0, 4, 1, 1, 2], [-1, 0, 1, 1, 1, 1]),  # 4 → 2 is shorter than 2 → 5, so it is lifted first, to 1
    ],
)
def test_examples(heads, expected):
    assert lifted(np.array(heads)).tolist() == expected
