"""Results of a forest are the same whether computed alone or after others, in any order."""

import itertools
from decimal import Decimal
from fractions import Fraction

import enumerated
import naive_mh
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_certainty import NAMES, kinds, problem

from mh4.decoders import Derivation, InfeasibleError, UnsupportedError, get_decoder
from mh4.decoders.fallback import Fallback
from mh4.decoders.k_best import Next, k_best_trees
from mh4.decoders.lanes import scratch

every_decoder = pytest.mark.parametrize("name", NAMES)
SPANNED = ["eisner", "mh3", "mh4-two", "mh4-hybrid"]
QUESTIONS = {
    "best": lambda forest: forest.best,
    "margins": lambda forest: forest.margins,
    "max_marginals": lambda forest: forest.max_marginals,
    "k_best": lambda forest: forest.k_best(4),
}


def flat(answer):
    """Convert all arrays in an answer to lists, also in nested tuples and lists."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    return [flat(one) for one in answer] if isinstance(answer, (tuple, list)) else answer


@every_decoder
@pytest.mark.parametrize("order", list(itertools.permutations(QUESTIONS)))
def test_the_order_of_questions_does_not_matter(name, order):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 7, 0)
    forest = decoder.forest(scores, bonus)
    for question in order:
        alone = QUESTIONS[question](decoder.forest(scores, bonus))
        assert flat(QUESTIONS[question](forest)) == flat(alone)
        assert flat(QUESTIONS[question](forest)) == flat(alone)


@every_decoder
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_chart_that_another_sentence_has_overwritten_is_filled_again(name, question):
    decoder = get_decoder(name)
    scores, bonus = problem(name, 9, 1)
    expected = QUESTIONS[question](decoder.forest(scores, bonus))
    forest = decoder.forest(scores, bonus)
    forest.best  # noqa: B018
    decoder.decode(-scores)
    scratch(1 << 16)[:] = np.nan
    assert flat(QUESTIONS[question](forest)) == flat(expected)


def test_one_fill_serves_all_questions(monkeypatch):
    decoder = get_decoder("mh4-hybrid")
    fills = []
    run = decoder._run
    monkeypatch.setattr(decoder, "_run", lambda *arguments: fills.append(1) or run(*arguments))
    monkeypatch.setattr("mh4.decoders.mh4._decode", counted(fills))
    forest = decoder.forest(*problem("mh4-hybrid", 12, 0))
    forest.best, forest.margins, forest.max_marginals, forest.k_best(5), forest.span(2, 6)
    assert len(fills) == 2  # a single fill: `_run` and the `_decode` in it


def counted(calls):
    """The kernel that fills charts, wrapped to append to ``calls`` at each call."""
    from mh4.decoders import mh4

    kernel = mh4._decode
    return lambda *arguments: calls.append(1) or kernel(*arguments)


@every_decoder
def test_nothing_is_allowed(name):
    scores, _ = problem(name, 4, 0)
    forest = get_decoder(name).forest(np.full_like(scores, -np.inf))
    for ask in (lambda: forest.best, lambda: forest.score, lambda: forest.margins):
        with pytest.raises(InfeasibleError):
            ask()
    assert (forest.max_marginals == -np.inf).all()
    assert forest.k_best(3) == []
    if name in SPANNED:
        assert (forest.span(1, 2), forest.span(0, 5)) == (0.0, -np.inf)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["mst", "mh4-hybrid"])
def test_a_temperature_may_be_a_number_of_any_type(name):
    torch = pytest.importorskip("torch")
    decoder = get_decoder(name)
    scores, bonus = problem(name, 5, 0)
    expected = decoder.forest(scores, bonus, 0.75)
    tensors = (torch.tensor(0.75, dtype=torch.bfloat16), torch.nn.Parameter(torch.tensor([0.75])))
    for temperature in (np.float16(0.75), np.float32(0.75), Fraction(3, 4), Decimal("0.75"), *tensors):
        forest = decoder.forest(scores, bonus, temperature)
        assert flat(forest.part_marginals) == flat(expected.part_marginals)
        assert flat(forest.sample(3, rng=0)) == flat(expected.sample(3, rng=0))


def test_short_forms_say_the_same():
    decoder = get_decoder("mh4-two")
    scores, bonus = problem("mh4-two", 6, 0)
    forest = decoder.forest(scores, bonus, temperature=2.0)
    assert flat(decoder.decode(scores, bonus)) == flat(forest.best)
    assert forest.score == forest.best.score
    assert flat(decoder.part_marginals(scores, bonus, 2.0)) == flat(forest.part_marginals)
    assert (forest.parts == forest.part_marginals.parts).all()
    assert (forest.marginals == decoder.marginals(scores, bonus, 2.0)).all()
    assert forest.log_partition == decoder.log_partition(scores, bonus, 2.0) == forest.part_marginals.log_partition
    assert flat(decoder.sample(scores, 3, bonus, 2.0, rng=1)) == flat(forest.sample(3, 1))
    assert repr(forest) == "<forest of 6 words, mh4-two decoder>"


def spans_by_enumeration(name, scores, bonus, single_root):
    """The best score of every span (i, l), float64 (n + 2, n + 2), by enumerating the derivations of its item."""
    n = len(bonus) - 2
    scores, bonus = scores.astype(np.float64), bonus.astype(np.float64)
    found = np.full((n + 2, n + 2), -np.inf)
    system = "mh3" if name == "eisner" else name
    for i, l in itertools.combinations(range(n + 2), 2):  # noqa: E741
        for moves, arcs in naive_mh._sequences((i, l), naive_mh.K[system], n + 1):
            of_root = sum(head == 0 for head, _ in arcs)
            if single_root and i == 0 and of_root != (l == n + 1):
                continue
            if name == "eisner":
                total = sum(scores[0][arc] for arc in arcs)
            else:
                total = sum(scores[part] for move in moves for part in naive_mh.parts_of(name, move))
            found[i, l] = max(found[i, l], total + sum(bonus[arc] for arc in arcs))
    return found


@pytest.mark.parametrize("name", SPANNED)
@given(n=st.integers(1, 4), seed=st.integers(0, 2**32 - 1), kind=kinds, single_root=st.booleans())
@settings(max_examples=25)
def test_a_span_is_worth_its_best_moves(name, n, seed, kind, single_root):
    scores, bonus = problem(name, n, seed, kind)
    forest = get_decoder(name, single_root).forest(scores, bonus)
    expected = spans_by_enumeration(name, scores, bonus, single_root)
    for i, l in itertools.combinations(range(n + 2), 2):  # noqa: E741
        assert forest.span(i, l) == pytest.approx(expected[i, l], abs=1e-4)


@pytest.mark.parametrize("name", SPANNED)
def test_spans_have_what_all_derivations_share(name):
    scores, bonus = problem(name, 4, 0)
    expected = spans_by_enumeration(name, scores, bonus + 1e6, True)
    forest = get_decoder(name).forest(scores, bonus + np.float32(1e6))
    assert forest.score == pytest.approx(expected[0, 5])
    for i, l in itertools.combinations(range(6), 2):  # noqa: E741
        assert forest.span(i, l) == pytest.approx(expected[i, l], rel=1e-6)


def test_what_is_no_span():
    scores, _ = problem("mh3", 4, 0)
    forest = get_decoder("mh3").forest(scores)
    for i, l in ((-1, 3), (2, 2), (3, 1), (0, 6)):  # noqa: E741
        with pytest.raises(IndexError, match="of 4 words"):
            forest.span(i, l)
    for name in ("mst", "1ec"):
        with pytest.raises(UnsupportedError, match=f"the chart of {name} does not support span"):
            get_decoder(name).forest(problem(name, 3, 0)[0]).span(0, 2)


def test_behind_a_fallback_that_does_not_fit():
    decoder = get_decoder("mh4-two")
    scores, _ = problem("mh4-two", 8, 0)
    assert Fallback(decoder).forest(scores).decoder is decoder
    decoder.memory_limit = decoder.chart_bytes(8) - 1
    forest = Fallback(decoder).forest(scores)
    assert isinstance(forest.best, Derivation)
    for ask in (lambda: forest.margins, lambda: forest.k_best(2), lambda: forest.max_marginals):
        with pytest.raises(UnsupportedError, match="beam:16 stands in"):
            ask()


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
@pytest.mark.parametrize("n", [3, 12, 40])
def test_without_differences_between_scores_there_are_k_trees_all_the_same(name, n):
    """All derivations tie for the best score, and there are too many to list."""
    decoder = get_decoder(name)
    trees = decoder.k_best(np.zeros((len(decoder.channels), n + 2, n + 2), np.float32), 7)
    assert len({tuple(tree.heads) for tree in trees}) == 7
    assert {tree.score for tree in trees} == {0.0}


@pytest.mark.parametrize("name", ["mh4-two", "mh4-hybrid"])
@pytest.mark.parametrize("kind", ["normal", "given"])
@given(seed=st.integers(0, 2**32 - 1), single_root=st.booleans(), k=st.sampled_from([2, 10, 40]))
@settings(max_examples=10)
def test_the_nearly_best_derivations_hold_what_margins_find(name, kind, seed, single_root, k):
    decoder = get_decoder(name, single_root)
    scores, bonus = problem(name, 14, seed, kind)
    forest = decoder.forest(scores, bonus)
    try:
        best = forest.best
    except InfeasibleError:
        return
    found, expected = forest.k_best(k), forest._k_best_by_margins(best, k)
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-3)
    assert len({tuple(one.heads) for one in found}) == len(found)
    words = np.arange(1, 15)
    for one in found:
        own = decoder.derive_batch(scores[None], [one.heads])[0]
        assert one.score == pytest.approx(own.score + bonus[own.heads[1:], words].sum(dtype=np.float64), abs=1e-3)
        assert one.score == pytest.approx(
            scores[tuple(one.parts.T)].sum(dtype=np.float64) + bonus[one.heads[1:], words].sum(dtype=np.float64)
        )


@pytest.mark.parametrize("seed", range(8))
def test_no_tree_is_listed_that_others_may_beat(seed):
    """Edges of nearly best derivations also combine into much worse trees, which must not displace better ones."""
    decoder = get_decoder("mh4-hybrid")
    forest = decoder.forest(*problem("mh4-hybrid", 12, seed))
    best, solved = forest.best, forest._current()
    nearly_best = decoder._nearly_best(solved, 4)
    found = k_best_trees(best, solved.arc_bonus.copy(), 100, nearly_best.next, nearly_best.decode)
    expected = forest._k_best_by_margins(best, len(found))
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-3)


def test_a_second_best_tree_that_is_known_is_not_decoded_again():
    none = np.empty((0, 3), np.int32)
    first, second = (
        Derivation(np.array(heads, np.int32), none, s) for heads, s in (([-1, 0, 1], 2.0), ([-1, 2, 0], 1.0))
    )
    found = k_best_trees(
        first,
        np.zeros((4, 4), np.float32),
        2,
        lambda bonus, best: Next(1, -second.score, np.inf, second),
        lambda bonus: pytest.fail("decoded again"),
    )
    assert found[0] is first
    assert found[1] is second


def test_more_is_looked_at_where_trees_are_missing(monkeypatch):
    decoder = get_decoder("mh4-hybrid")
    forest = decoder.forest(*problem("mh4-hybrid", 12, 0))
    ranks, find = [], decoder._nearly_best
    monkeypatch.setattr(decoder, "_nearly_best", lambda solved, rank: ranks.append(rank) or find(solved, rank - 9))
    found, expected = forest.k_best(10), forest._k_best_by_margins(forest.best, 10)
    assert ranks == [10, 20]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-3)


def test_a_large_gap_is_not_left_to_the_chart():
    """Every tree but the best pays at least one mask of −1e9; the others are found with full precision."""
    decoder = get_decoder("mh4-hybrid")
    scores, bonus = problem("mh4-hybrid", 5, 0)
    best = decoder.decode(scores, bonus)
    words = np.arange(1, 6)
    masked = np.where(np.isin(np.arange(7), best.heads[1:])[:, None], bonus, bonus - 1e9).astype(np.float64)
    masked[:, 1:-1] -= 1e9
    masked[best.heads[1:], words] += 1e9
    _, totals = enumerated.trees("mh4-hybrid", scores, masked, True)
    found = decoder.k_best(scores, 6, masked)
    assert [one.score for one in found] == pytest.approx(totals[:6].tolist(), rel=1e-12, abs=1e-3)


@pytest.mark.parametrize("name", ["mst", "eisner", "mh3", "mh4-hybrid", "1ec-first-order"])
@pytest.mark.parametrize("asked_first", ["max_marginals", "best"])
def test_max_marginals_belong_to_the_caller(name, asked_first):
    decoder, rng = get_decoder(name), np.random.default_rng(0)
    scores = rng.normal(size=(len(decoder.channels), 6, 6)).astype(np.float32)
    expected, forest = decoder.margins(scores), decoder.forest(scores)
    getattr(forest, asked_first)
    kept = forest.max_marginals.copy()
    forest.max_marginals[:] = 0
    np.testing.assert_array_equal(forest.max_marginals, kept)
    np.testing.assert_array_equal(forest.margins.values, expected.values)
