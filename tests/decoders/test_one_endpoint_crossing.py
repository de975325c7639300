import itertools

import naive
import naive_1ec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paths import GOLDEN_FOLDER, UD

from mh4.decoders import InfeasibleError, get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.lanes import scratch
from mh4.decoders.one_endpoint_crossing.charts import BLOCKS
from mh4.decoders.one_endpoint_crossing.first_order import OneEndpointCrossingFirstOrder
from mh4.decoders.one_endpoint_crossing.grammar import _best_alternative, _total
from mh4.decoders.one_endpoint_crossing.third_order import TOP, OneEndpointCrossing, grammar
from mh4.decoders.one_endpoint_crossing.trees import is_one_endpoint_crossing, parts_of_tree
from mh4.decoders.trees import is_projective

TREEBANK = UD / "hu" / "hu-ud-train.conllu"
GOLDEN = np.load(GOLDEN_FOLDER / "1ec_o3.npz")
CASES = range(len(GOLDEN["n"]))
CROSSING = [-1, 3, 0, 2]
NOT_1EC = [-1, 4, 5, 0, 3, 3]  # 1–4 is crossed by 0–3 and 2–5, which share no endpoint

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(["normal", "crossing", "ties", "forbid"])


def make_scores(n, seed, kind):
    """Scores of all four channels and an arc bonus; "crossing" favours crossed arcs, "forbid" forbids many parts."""
    rng = np.random.default_rng(seed)
    size = n + 2
    if kind == "ties":
        scores, bonus = rng.integers(-2, 3, (4, size, size)), rng.integers(-1, 2, (size, size))
        return scores.astype(np.float32), bonus.astype(np.float32)
    scores = rng.normal(size=(4, size, size)).astype(np.float32)
    bonus = np.zeros((size, size), np.float32)
    if kind == "crossing":
        scores[3] += 1.5
    if kind == "forbid":
        scores[rng.random(scores.shape) < 0.15] = -np.inf
        bonus[rng.random(bonus.shape) < 0.3] = -np.inf
    return scores, bonus


def decode_or_none(decoder, scores, bonus=None):
    try:
        return decoder.decode(scores, bonus)
    except InfeasibleError:
        return None


def as_set(parts):
    return sorted(map(tuple, np.asarray(parts).tolist()))


def golden_scores(case):
    """Golden scores with channels and positions in the decoder's order; in the file, the padding comes first."""
    return np.roll(GOLDEN[f"scores_{case:03d}"], (-1, -1), (0, 1)).transpose(2, 0, 1)[[1, 0, 2, 3]].astype(np.float32)


def check_against_all_trees(n, seed, kind, single_root):
    scores, bonus = make_scores(n, seed, kind)
    found = decode_or_none(OneEndpointCrossing(single_root), scores, bonus)
    best = naive_1ec.best_score(scores, bonus, single_root)
    if best == -np.inf:
        assert found is None
    else:
        assert found is not None
        assert found.score == pytest.approx(best, abs=1e-5)
        assert naive.is_tree(found.heads)
        assert not single_root or (found.heads == 0).sum() == 1
        assert as_set(found.parts) == as_set(parts_of_tree(found.heads))


def check_first_order_against_all_trees(n, seed, kind, single_root):
    scores, bonus = make_scores(n, seed, kind)
    found = decode_or_none(OneEndpointCrossingFirstOrder(single_root), scores[:1], bonus)
    trees = naive_1ec.all_trees(n, single_root)[:, 1:]
    best = (scores[0] + bonus).astype(np.float64)[trees, np.arange(1, n + 1)].sum(axis=1).max()
    if best == -np.inf:
        assert found is None
    else:
        assert found is not None
        assert found.score == pytest.approx(best, abs=1e-5)
        assert is_one_endpoint_crossing(found.heads)
        assert as_set(found.parts) == [(0, h, d) for h, d in sorted((h, d) for d, h in enumerate(found.heads) if d > 0)]


@given(st.integers(1, 5), seeds, kinds, st.booleans())
@example(6, 0, "crossing", True)
@example(6, 1, "crossing", False)
@example(6, 2, "normal", True)
@example(6, 3, "forbid", False)
@example(6, 4, "ties", True)
def test_best_of_all_trees(n, seed, kind, single_root):
    check_against_all_trees(n, seed, kind, single_root)
    check_first_order_against_all_trees(n, seed, kind, single_root)


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("kind", ["normal", "crossing", "ties", "forbid"])
def test_best_of_all_longer_trees(n, kind):
    for seed in range(25):
        for single_root in (True, False):
            check_against_all_trees(n, seed, kind, single_root)
            check_first_order_against_all_trees(n, seed, kind, single_root)


@pytest.mark.parametrize(("n", "any_root", "one_root"), [(3, 16, 9), (4, 125, 64), (5, 1104, 545), (6, 10024, 4876)])
def test_number_of_trees(n, any_root, one_root):
    """The expected counts come from an independent enumeration."""
    trees = naive.all_trees(n)
    kept = [is_one_endpoint_crossing(tree) for tree in trees]
    assert sum(kept) == any_root == len(naive_1ec.all_trees(n))
    assert (trees[kept] == naive_1ec.all_trees(n)).all()
    assert len(naive_1ec.all_trees(n, single_root=True)) == one_root


def test_number_of_derivations():
    """Errors in rules change the number of derivations; the expected counts come from an independent program."""
    for n, count in enumerate([1, 3, 23, 231, 2412, 25702, 280212], start=1):
        goal = OneEndpointCrossing()._walk(n)[2]
        assert naive_1ec.count_derivations(grammar(), goal, n) == count


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_parts_of_each_tree(n):
    for tree in naive_1ec.all_trees(n).tolist():
        assert as_set(parts_of_tree(np.array(tree))) == as_set(naive_1ec.parts(tree))


def test_parts_next_to_crossed_arcs():
    # 3 → 1 and 0 → 2 cross. 2 → 3 has a sibling part but no grandparent part, as the arc to its head 2 is crossed.
    assert as_set(parts_of_tree(np.array(CROSSING))) == [(0, 2, 3), (2, 4, 3), (3, 0, 2), (3, 3, 1)]


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("decoder", [OneEndpointCrossing, OneEndpointCrossingFirstOrder])
def test_each_tree_is_found_when_all_other_arcs_are_forbidden(n, decoder):
    decoder = decoder(single_root=False)
    scores = make_scores(n, n, "normal")[0][: len(decoder.channels)]
    for tree in naive_1ec.all_trees(n):
        bonus = np.full((n + 2, n + 2), -np.inf, np.float32)
        bonus[tree[1:], np.arange(1, n + 1)] = 0
        found = decoder.decode(scores, bonus)
        assert (found.heads == tree).all()
        if len(decoder.channels) == 4:
            assert as_set(found.parts) == as_set(parts_of_tree(tree))


@pytest.mark.parametrize("n", [3, 12])
@pytest.mark.parametrize("decoder", [OneEndpointCrossing, OneEndpointCrossingFirstOrder])
def test_each_value_of_the_chart_is_the_best_of_its_rules(decoder, n):
    decoder = decoder(single_root=False)
    scores = make_scores(n, 1, "crossing")[0][: len(decoder.channels)]
    scores[np.random.default_rng(2).random(scores.shape) < 0.05] = -np.inf
    decoder.decode(scores)
    memory = scratch(decoder.chart_bytes(n) // 4)
    rules, places, _ = decoder._walk(n)
    seen = set()
    for kind in np.unique(rules.rules[:, 0]).tolist():
        name = rules.kinds[kind]
        for a, b in itertools.permutations(range(n + 1), 2):
            if a > b and rules.symmetric[kind]:
                continue
            inside = range(min(a, b) + 1, max(a, b))
            if places[kind, 3] == 0:
                third = [0]
            elif name in BLOCKS:
                third = inside
            else:
                third = [x for x in range(n + 3 if name in TOP else n + 1) if x not in (a, b, *inside)]
            for x in third:
                at = np.array([a, b, x, 0, 0, a + (1 if a < b else -1), b - (1 if a < b else -1), n + 1, n + 2])
                chosen = _best_alternative(memory, places, rules.rules, *rules.first[kind : kind + 2], at)
                best = -np.inf if chosen < 0 else _total(memory, places, rules.rules[chosen], at)
                if rules.empty[kind] and abs(a - b) == 1:
                    best = 0
                assert memory[places[kind] @ (1, a, b, x)] == pytest.approx(best, abs=1e-4), (name, a, b, x)
                seen.add(name)
    assert len(seen) == len(np.unique(rules.rules[:, 0]))


def test_what_is_no_one_endpoint_crossing_tree():
    assert is_one_endpoint_crossing(np.array(CROSSING))
    assert not is_one_endpoint_crossing(np.array(NOT_1EC))
    with pytest.raises(ValueError, match="not a tree"):
        is_one_endpoint_crossing(np.array([-1, 2, 1]))
    with pytest.raises(ValueError, match="1-endpoint-crossing"):
        parts_of_tree(np.array(NOT_1EC))
    found = closest_tree(np.array(NOT_1EC), "1ec", single_root=True)
    assert is_one_endpoint_crossing(found)
    assert (found[1:] == NOT_1EC[1:]).sum() == 4


def test_golden():
    """The golden values are agreed on by three programs; scores are dyadic fractions, so sums are exact."""
    for case in CASES:
        found = OneEndpointCrossing(single_root=False).decode(golden_scores(case))
        assert found.score == GOLDEN["value_exact"][case], case
        assert as_set(found.parts) == as_set(parts_of_tree(found.heads))
        if GOLDEN["unique_exact"][case]:
            assert (found.heads == GOLDEN[f"heads_exact_{case:03d}"]).all(), case


def test_golden_first_order():
    for case in CASES:
        found = OneEndpointCrossingFirstOrder(single_root=False).decode(golden_scores(case)[:1])
        assert found.score == GOLDEN["value_first_order"][case], case
        if GOLDEN["unique_first_order"][case]:
            assert (found.heads == GOLDEN[f"heads_first_order_{case:03d}"]).all(), case


@given(st.one_of(st.integers(6, 18), st.sampled_from([23, 24, 25, 31, 32, 33])), seeds, st.booleans(), st.booleans())
def test_first_order_is_third_order_without_siblings_and_grandparents(n, seed, single_root, forbid):
    rng = np.random.default_rng(seed)
    scores = np.zeros((4, n + 2, n + 2), np.float32)
    scores[0] = rng.integers(-512, 513, scores[0].shape) / 64
    if forbid:
        scores[0][rng.random(scores[0].shape) < 0.5] = -np.inf
    scores[3] = scores[0]
    third = decode_or_none(OneEndpointCrossing(single_root), scores)
    first = decode_or_none(OneEndpointCrossingFirstOrder(single_root), scores[:1])
    assert (third is None) == (first is None)
    if third is not None and first is not None:
        assert third.score == first.score
        assert is_one_endpoint_crossing(third.heads)
        assert is_one_endpoint_crossing(first.heads)


@given(st.integers(1, 20), seeds, st.booleans())
def test_between_projective_and_all_trees(n, seed, single_root):
    scores = np.random.default_rng(seed).normal(size=(1, n + 2, n + 2)).astype(np.float32)
    first_order = OneEndpointCrossingFirstOrder(single_root).decode(scores).score
    assert get_decoder("mst", single_root).decode(scores).score >= first_order - 1e-4
    assert first_order >= get_decoder("eisner", single_root).decode(scores).score - 1e-4


@pytest.mark.parametrize("n", [7, 12, 13, 14, 20, 21, 22, 29, 30, 40])
def test_a_favoured_tree_is_found_again_at_any_length(n):
    """Lengths around multiples of the vector width."""
    decoder = OneEndpointCrossing()
    tree = decoder.decode(make_scores(n, n, "crossing")[0]).heads
    assert is_one_endpoint_crossing(tree)
    scores, bonus = make_scores(n, n + 1, "normal")
    bonus[tree[1:], np.arange(1, n + 1)] = 12
    found = decoder.decode(scores, bonus)
    assert (found.heads == tree).all()
    assert as_set(found.parts) == as_set(parts_of_tree(tree))
    assert (OneEndpointCrossingFirstOrder().decode(scores[:1], bonus).heads == tree).all()


@given(st.integers(1, 14), seeds, kinds)
def test_no_other_tree_is_better(n, seed, kind):
    """Trees that are best for other scores do not beat the best tree when their parts are scored here."""
    scores, bonus = make_scores(n, seed, kind)
    best = decode_or_none(OneEndpointCrossing(), scores, bonus)
    for other in range(3):
        tree = OneEndpointCrossing().decode(make_scores(n, seed + other + 1, "crossing")[0]).heads
        score = sum(scores[tuple(p)] for p in parts_of_tree(tree)) + bonus[tree[1:], np.arange(1, n + 1)].sum()
        assert score == -np.inf or (best is not None and score <= best.score + 1e-4)


@pytest.mark.parametrize("decoder", [OneEndpointCrossing, OneEndpointCrossingFirstOrder])
@pytest.mark.parametrize("favour", [30.0, 3000.0])
def test_one_root_child_against_the_scores(decoder, favour):
    """With a large bonus on all root arcs, exactly one word is still attached to the root, and the tree is optimal."""
    decoder = decoder()
    for seed in range(5):
        scores, bonus = make_scores(5, seed, "normal")
        bonus[0] += favour
        found = decoder.decode(scores[: len(decoder.channels)], bonus)
        assert (found.heads == 0).sum() == 1
        if len(decoder.channels) == 4:
            best = naive_1ec.best_score(scores, bonus, single_root=True)
        else:
            trees = naive_1ec.all_trees(5, single_root=True)[:, 1:]
            best = (scores[0] + bonus).astype(np.float64)[trees, np.arange(1, 6)].sum(axis=1).max()
        assert found.score == pytest.approx(best, abs=2e-3 if favour > 1000 else 1e-4)


def read_heads(path):
    for sentence in path.read_text("utf-8").strip().split("\n\n"):
        rows = [line.split("\t") for line in sentence.splitlines() if line[0] != "#"]
        yield np.array([-1] + [int(row[6]) for row in rows if row[0].isdigit()])


@pytest.mark.skipif(not TREEBANK.exists(), reason="the treebanks of UD 2.0 are not at hand")
def test_treebank():
    """Coverage of Hungarian as published; decoding its non-projective gold trees yields their parts."""
    trees = list(read_heads(TREEBANK))
    covered = [tree for tree in trees if is_one_endpoint_crossing(tree)]
    others = [tree for tree in trees if not is_one_endpoint_crossing(tree)]
    assert (len(covered), len(others)) == (889, 21)
    first_order = OneEndpointCrossingFirstOrder(single_root=False)
    assert sum((closest_tree(tree, first_order) != tree).sum() for tree in others) == 22
    for tree in covered:
        n = len(tree) - 1
        if n <= 50 and not is_projective(tree):
            scores = make_scores(n, n, "normal")[0]
            bonus = np.full((n + 2, n + 2), -np.inf, np.float32)
            bonus[tree[1:], np.arange(1, n + 1)] = 0
            assert as_set(OneEndpointCrossing().decode(scores, bonus).parts) == as_set(parts_of_tree(tree))


@pytest.mark.parametrize("decoder", [OneEndpointCrossing, OneEndpointCrossingFirstOrder])
def test_what_is_no_part_is_not_read(decoder):
    """Cells that belong to no part and memory left over from earlier sentences have no influence."""
    decoder = decoder()
    scores = make_scores(9, 3, "crossing")[0][: len(decoder.channels)]
    expected = decoder.decode(scores)
    scores[:, :, 0] = scores[:, :, -1] = 99
    for channel in (0, -1):
        np.fill_diagonal(scores[channel], 99)
        scores[channel, -1] = 99
    scratch(decoder.chart_bytes(9) // 4)[:] = np.nan
    found = decoder.decode(scores)
    assert (found.heads == expected.heads).all()
    assert found.score == expected.score


def test_memory():
    assert OneEndpointCrossing().chart_bytes(60) < 40e6
    assert OneEndpointCrossingFirstOrder().chart_bytes(60) < 40e6
