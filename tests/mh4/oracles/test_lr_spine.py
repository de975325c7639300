"""Correct transitions and scores against enumeration; the canonical computation on a whole treebank."""

from functools import cache

import numpy as np
import pytest
from computations import all_trees, best_scores, configurations, random_projective_tree, random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_projective
from mh4.oracles.lr_spine import correct_transitions, optimal_computation, optimal_step
from mh4.transitions.lr_spine import SHIFT, Configuration, Element, LRSpine, left_arc, right_arc

SYSTEM = LRSpine()


@cache
def reachable(configuration):
    """The heads of all trees that can be reached from a configuration."""
    if SYSTEM.is_final(configuration):
        return frozenset([tuple(SYSTEM.heads(configuration).tolist())])
    following = [reachable(SYSTEM.apply(configuration, t)) for t in SYSTEM.legal(configuration)]
    return frozenset().union(*following)


def correct_by_listing(configuration, gold):
    """The transitions after which a gold tree, a tuple of heads, can still be reached, by enumeration."""
    return tuple(t for t in SYSTEM.legal(configuration) if gold in reachable(SYSTEM.apply(configuration, t)))


@pytest.mark.parametrize("n", range(5))
def test_every_configuration_and_every_gold_tree(n):
    golds = [gold for gold in all_trees(n) if is_projective(gold)]
    for configuration in configurations(SYSTEM, n):
        after = {t: reachable(SYSTEM.apply(configuration, t)) for t in SYSTEM.legal(configuration)}
        for gold in golds:
            expected = tuple(t for t, trees in after.items() if tuple(gold.tolist()) in trees)
            assert correct_transitions(configuration, gold) == expected


@given(n=st.integers(4, 6), seed=st.integers(0, 2**32 - 1), stray=st.sampled_from([0.0, 0.1]))
def test_longer_sentences(n, seed, stray):
    """Random computations that rarely take an incorrect transition."""
    rng = np.random.default_rng(seed)
    gold = random_projective_tree(rng, n)
    configuration = SYSTEM.initial(n)
    while not SYSTEM.is_final(configuration):
        correct = correct_transitions(configuration, gold)
        assert correct == correct_by_listing(configuration, tuple(gold.tolist()))
        choices = correct if correct and rng.random() >= stray else SYSTEM.legal(configuration)
        configuration = SYSTEM.apply(configuration, choices[rng.integers(len(choices))])


def scores_by_listing(configuration, golds):
    """For each gold tree of int (gold trees, n + 1), a dict of the legal transitions' scores."""
    trees = {t: np.array(list(reachable(SYSTEM.apply(configuration, t)))) for t in SYSTEM.legal(configuration)}
    best = best_scores(trees, golds)
    return [{t: int(scores[g]) for t, scores in best.items()} for g in range(len(golds))]


@pytest.mark.parametrize("n", range(1, 5))
def test_scores_are_exact(n):
    """All configurations with all gold trees, projective or not; of those of 4 words, only every seventh."""
    golds = all_trees(n)[:: 7 if n == 4 else 1]
    for configuration in configurations(SYSTEM, n):
        for gold, scores in zip(golds, scores_by_listing(configuration, golds), strict=True):
            step = optimal_step(configuration, gold)
            assert step.scores == scores, (configuration, gold)
            assert step.best == tuple(t for t, score in scores.items() if score == max(scores.values()))


@given(n=st.integers(5, 6), seed=st.integers(0, 2**32 - 1))
def test_scores_are_exact_along_random_walks(n, seed):
    rng = np.random.default_rng(seed)
    golds = np.array([random_tree(rng, n), random_projective_tree(rng, n)])
    configuration = SYSTEM.initial(n)
    while not SYSTEM.is_final(configuration):
        for gold, scores in zip(golds, scores_by_listing(configuration, golds), strict=True):
            assert optimal_step(configuration, gold).scores == scores
        legal = SYSTEM.legal(configuration)
        configuration = SYSTEM.apply(configuration, legal[rng.integers(len(legal))])


@given(n=st.integers(7, 25), seed=st.integers(0, 2**32 - 1), crossing=st.booleans())
def test_best_steps_keep_what_they_promise(n, seed, crossing):
    """From a random configuration on, best steps keep the score, whichever of them is taken."""
    rng = np.random.default_rng(seed)
    gold = random_tree(rng, n) if crossing else random_projective_tree(rng, n)
    configuration = SYSTEM.initial(n)
    for _ in range(int(rng.integers(2 * n))):
        legal = SYSTEM.legal(configuration)
        configuration = SYSTEM.apply(configuration, legal[rng.integers(len(legal))])
    score = optimal_step(configuration, gold).score
    while not SYSTEM.is_final(configuration):
        step = optimal_step(configuration, gold)
        assert step.score == score
        assert None not in step.scores.values()
        if not crossing and (correct := correct_transitions(configuration, gold)):
            assert (step.best, step.score) == (correct, n)
        configuration = SYSTEM.apply(configuration, step.best[rng.integers(len(step.best))])
    assert (SYSTEM.heads(configuration) == gold)[1:].sum() == score


def test_the_next_word_can_be_given_up_to_cover_a_tree():
    """The stack holds the gold chain 1 → 2 → 3: attaching 4 to 3 loses one arc, all alternatives at least two."""
    configuration = Configuration(tuple(Element((i,), (i,)) for i in range(4)), 4, 5)
    gold = np.array([-1, 5, 1, 2, 5, 0])
    assert optimal_step(configuration, gold).scores[SHIFT] == 4
    assert scores_by_listing(configuration, gold[None])[0][SHIFT] == 4


@given(n=st.integers(1, 20), seed=st.integers(0, 2**32 - 1))
def test_correct_transitions_lead_to_the_gold_tree(n, seed):
    """One or two transitions are correct in each configuration, and any choice leads to the gold tree."""
    rng = np.random.default_rng(seed)
    gold = random_projective_tree(rng, n)
    configuration = SYSTEM.initial(n)
    while not SYSTEM.is_final(configuration):
        correct = correct_transitions(configuration, gold)
        assert 1 <= len(correct) <= 2
        configuration = SYSTEM.apply(configuration, correct[rng.integers(len(correct))])
    assert (SYSTEM.heads(configuration) == gold).all()


def test_figure_4():
    """Configurations (a) to (d) of the paper, on top of the root; the shift is correct in the last two."""
    stack = tuple(Element((i,), (i,)) for i in range(3))
    configuration = Configuration(stack, 3, 3)
    a = np.array([-1, 0, 1, 1])  # σ₂ → σ₁, and σ₁ has no child to come
    assert correct_transitions(configuration, a) == (right_arc(1),)
    deeper = Configuration((Element((0,), (0,)), Element((1,), (1, 2)), Element((3,), (3,))), 4, 4, frozenset({(1, 2)}))
    b = np.array([-1, 0, 1, 2, 1])  # the same, but the head is on the spine of σ₂
    assert correct_transitions(deeper, b) == (right_arc(2),)
    c = np.array([-1, 0, 1, 2])  # σ₁ has a child to come
    assert correct_transitions(configuration, c) == (SHIFT, right_arc(1))
    d = np.array([-1, 2, 3, 0])  # σ₁ → σ₂, and the head of σ₁ is to come
    assert correct_transitions(configuration, d) == (SHIFT, left_arc(1))


def test_nothing_is_correct_once_the_gold_tree_is_out_of_reach():
    stack = (Element((0,), (0,)), Element((1,), (1,)), Element((2,), (2,)))
    assert correct_transitions(Configuration(stack, 3, 2), np.array([-1, 0, 0])) == ()
    assert correct_transitions(Configuration(stack, 3, 2), np.array([-1, 0, 1])) == (right_arc(1),)
    wrong = Configuration((Element((0,), (0, 1)),), 2, 2, frozenset({(0, 1)}))
    assert correct_transitions(wrong, np.array([-1, 2, 0])) == ()


@given(n=st.integers(0, 15), seed=st.integers(0, 2**32 - 1))
def test_the_canonical_computation(n, seed):
    """It builds the projectivised tree, and makes an arc whenever one is correct."""
    gold = random_tree(np.random.default_rng(seed), n)
    target = closest_tree(gold, "projective", single_root=False)
    transitions = optimal_computation(gold)
    configuration = SYSTEM.initial(n)
    for transition in transitions:
        assert transition == correct_transitions(configuration, target)[-1]
        configuration = SYSTEM.apply(configuration, transition)
    assert SYSTEM.is_final(configuration)
    assert (SYSTEM.heads(configuration) == target).all()


def test_it_rebuilds_a_whole_treebank(tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text("".join(read_sample()["train"]), encoding="utf-8")
    sentences = list(read_conllu(path, trees="required"))
    changed = 0
    for sentence in sentences:
        *_, final = SYSTEM.run(len(sentence), optimal_computation(sentence.padded_heads))
        target = closest_tree(sentence.padded_heads, "projective", single_root=False)
        assert (SYSTEM.heads(final) == target).all()
        changed += not is_projective(sentence.padded_heads)
    assert len(sentences) > 100
    assert 0 < changed < len(sentences)


@pytest.mark.parametrize(
    ("front", "arcs"),
    [
        *((10**6, set()), (-1, set()), (3, {(2, 9)}), (3, {(2, -1)}), (2, {(2, 1)})),
        *((4, {(1, 2), (3, 2)}), (4, {(1, 2), (2, 1)}), (4, {(1, 3)}), (4, {(0, 2)})),
        *((4, {(-1, 2)}), (4, {(2, 1), (1, 3)})),
    ],
    ids=str,
)
def test_what_is_no_configuration_is_an_error(front, arcs):
    for function in (correct_transitions, optimal_step):
        with pytest.raises(ValueError, match="not a configuration of 3 words"):
            function(Configuration((), front, 3, frozenset(arcs)), np.array([-1, 2, 0, 2]))


def test_what_is_no_gold_tree_is_an_error():
    configuration = LRSpine().initial(4)
    for heads, message in (([-1, 3, 4, 0, 3], "need a projective gold tree"), ([-1, 2, 1, 0, 0], "not a tree")):
        with pytest.raises(ValueError, match=message):
            correct_transitions(configuration, np.array(heads))
    for function in (correct_transitions, optimal_step):
        with pytest.raises(ValueError, match="has 4 words, but the gold tree has 2"):
            function(configuration, np.array([-1, 0, 1]))
    with pytest.raises(ValueError, match="not a tree"):
        optimal_step(configuration, np.array([-1, 2, 1, 0, 0]))
    with pytest.raises(ValueError, match="not a tree"):
        optimal_computation(np.array([-1, 2, 1]))
