import naive
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mh4.decoders import ChartTooLargeError, InfeasibleError, get_decoder
from mh4.decoders.search import BeamSearch, beam_width
from mh4.decoders.trees import is_tree

# Hashes of stacks wrap around, which numpy reports when the JIT is off.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

SYSTEMS = ("mh3", "mh4-two", "mh4-hybrid")


def problem(system, n, seed, forbid=0.0, ties=False):
    """Random scores and arc bonus; a share ``forbid`` of the arcs is forbidden."""
    rng = np.random.default_rng(seed)
    shape = (len(get_decoder(system).channels), n + 2, n + 2)
    scores = rng.integers(-2, 3, shape) if ties else rng.normal(size=shape)
    bonus = rng.integers(-2, 3, shape[1:]).astype(np.float32)
    bonus[rng.random(bonus.shape) < forbid] = -np.inf
    return scores.astype(np.float32), bonus


def score_or_none(decoder, scores, bonus=None):
    try:
        return decoder.decode(scores, bonus).score
    except InfeasibleError:
        return None


def test_the_enumeration_knows_the_counts():
    assert [len(naive.transition_sequences("mh3", n)) for n in (1, 2, 3, 4)] == [1, 3, 13, 67]
    assert [len({heads for heads, _ in naive.transition_sequences("mh3", n)}) for n in (1, 2, 3, 4)] == [1, 3, 12, 55]


@pytest.mark.parametrize("system", SYSTEMS)
@given(
    n=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    forbid=st.sampled_from([0, 0.3, 0.6]),
    ties=st.booleans(),
    single_root=st.booleans(),
)
@example(n=4, seed=0, forbid=0, ties=False, single_root=True)
@example(n=4, seed=1, forbid=0.3, ties=True, single_root=False)
def test_a_wide_beam_is_exact_for_the_transition_system(system, n, seed, forbid, ties, single_root):
    scores, bonus = problem(system, n, seed, forbid, ties)
    best = naive.best_transition_score(system, scores, bonus, single_root)
    found = score_or_none(get_decoder(system, single_root, search="beam:5000"), scores, bonus)
    if best == -np.inf:
        assert found is None
    else:
        assert found == pytest.approx(best, abs=1e-5)
    chart = score_or_none(get_decoder(system, single_root), scores, bonus)
    if chart is not None:
        assert found is not None
        assert found >= chart - 1e-5


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_wider_beam_reaches_the_chart(system):
    scores, bonus = problem(system, 12, 5)
    chart = get_decoder(system).decode(scores, bonus).score
    assert get_decoder(system, search="greedy").decode(scores, bonus).score < chart
    wide = get_decoder(system, search="beam:20000").decode(scores, bonus).score
    assert wide >= chart - 1e-4


@pytest.mark.parametrize("system", SYSTEMS)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 15), single_root=st.booleans())
def test_greedy_never_dead_ends_and_is_a_beam_of_one(system, seed, n, single_root):
    scores, bonus = problem(system, n, seed)
    greedy = get_decoder(system, single_root, search="greedy").decode(scores, bonus)
    beam = get_decoder(system, single_root, search="beam:1").decode(scores, bonus)
    assert is_tree(greedy.heads, single_root)
    assert (greedy.heads == beam.heads).all()
    assert (greedy.parts == beam.parts).all()


def test_greedy_takes_the_best_move_each_time():
    """mh3 on three words: shift 1, shift 2 (rather than la), ra attaches 2 to 1, then la attaches 1 to 3."""
    scores = np.zeros((3, 5, 5), np.float32)
    shift, la, ra = scores
    shift[1, 2] = 2
    la[1, 2] = 1
    ra[2, 3] = 3
    la[1, 3] = 1
    found = get_decoder("mh3", search="greedy").decode(scores)
    assert found.heads.tolist() == [-1, 3, 1, 0]
    assert found.score == 6


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_long_sentence_takes_little_memory(system):
    n = 2000 if system == "mh3" else 600
    decoder = get_decoder(system, search="beam:4", memory_limit=10 << 20)
    scores = np.zeros((len(decoder.channels), n + 2, n + 2), np.float32)
    scores[0] = 1
    heads = decoder.decode(scores).heads
    assert is_tree(heads, single_root=True)


def test_a_chart_beyond_the_memory_limit():
    decoder = get_decoder("mh4-two", memory_limit=1 << 20)
    assert decoder.fits(10)
    assert not decoder.fits(200)
    with pytest.raises(ChartTooLargeError, match="200 words"):
        decoder.decode(np.zeros((7, 202, 202), np.float32))
    assert get_decoder("mh4-two", memory_limit=1 << 20, search="greedy").fits(200)


def test_a_beam_that_dies_out():
    """Greedy search shifts 2 rather than attach 1 to it; then only 1 → 2 is left, which is forbidden."""
    scores = np.zeros((3, 4, 4), np.float32)
    scores[0, 1, 2] = 1
    bonus = np.full((4, 4), -np.inf, np.float32)
    bonus[0, 2] = bonus[2, 1] = 0
    with pytest.raises(InfeasibleError, match="wider beam"):
        get_decoder("mh3", search="greedy").decode(scores, bonus)
    assert get_decoder("mh3", search="beam:2").decode(scores, bonus).heads.tolist() == [-1, 2, 0]


@pytest.mark.parametrize("search", ["beam:0", "beam:-1", "beam:", "beam", "beam:x", "beam:²", "foo", "", "Greedy"])
def test_an_unknown_search_lists_the_forms(search):
    with pytest.raises(ValueError, match="exact, greedy, beam:K"):
        get_decoder("mh3", search=search)


def test_forms_of_search():
    assert [beam_width(search) for search in ("exact", "greedy", "beam:1", "beam:64")] == [None, 1, 1, 64]
    assert not isinstance(get_decoder("mh3", search="exact"), BeamSearch)


@pytest.mark.parametrize("name", ["mst", "eisner"])
def test_no_beam_without_a_transition_system(name):
    with pytest.raises(ValueError, match=f"{name} has no transition system.*mh3, mh4-two, mh4-hybrid"):
        get_decoder(name, search="beam:8")


def test_a_beam_of_no_states():
    with pytest.raises(ValueError, match="width of a beam must be at least 1"):
        BeamSearch(type(get_decoder("mh3")), 0)


def test_repr_tells_the_search():
    assert repr(get_decoder("mh3", search="beam:8")) == "<mh3 decoder, one root child, beam of 8>"
    assert repr(get_decoder("mh3", False, search="greedy")) == "<mh3 decoder, any number of root children, greedy>"
