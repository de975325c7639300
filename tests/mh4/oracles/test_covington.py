"""Covington's loss, from scratch and incremental, against enumeration of all computations."""

from functools import cache

import numpy as np
import pytest
from computations import all_trees, configurations, random_tree
from hypothesis import given
from hypothesis import strategies as st

from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.oracles import covington
from mh4.oracles.covington.incremental import TRACK_ROWS, advance, start, transition_cost
from mh4.oracles.covington.loss import loss_on_arrays
from mh4.oracles.optimal_step import UNREACHABLE, OptimalStep
from mh4.transitions.covington import TRANSITIONS, Configuration, Covington
from mh4.transitions.transition_system import NO_HEAD

SYSTEM = Covington()


def gold(*heads):
    return np.array([-1, *heads], np.int32)


@cache
def final_trees(configuration):
    """The heads of all trees that can be reached from a configuration."""
    if SYSTEM.is_final(configuration):
        return frozenset([tuple(SYSTEM.heads(configuration).tolist())])
    following = (SYSTEM.apply(configuration, transition) for transition in SYSTEM.legal(configuration))
    return frozenset().union(*map(final_trees, following))


def losses_by_listing(configuration, golds):
    """The smallest possible number of wrong heads for each gold tree; ``golds`` is int (gold trees, n + 1)."""
    trees = np.array(list(final_trees(configuration)), np.int32)
    return (trees[:, None, 1:] != golds[None, :, 1:]).sum(axis=2).min(axis=0)


def check_every_configuration(n):
    golds = all_trees(n)
    for configuration in configurations(SYSTEM, n):
        expected = losses_by_listing(configuration, golds)
        heads = configuration.heads()
        for tree, loss in zip(golds, expected, strict=True):
            assert loss_on_arrays(heads, configuration.left, configuration.right, tree) == loss, (configuration, tree)


def check_every_transition(n):
    golds = list(all_trees(n))
    every = configurations(SYSTEM, n)
    pairs = [(configuration, tree) for configuration in every for tree in range(len(golds))]
    ours = covington.step_scores_batch(*covington.flat_configurations(pairs), golds)
    ours = ours.reshape(len(every), len(golds), len(TRANSITIONS))
    for configuration, scores in zip(every, ours, strict=True):
        expected = np.full_like(scores, UNREACHABLE)
        for transition in SYSTEM.legal(configuration):
            following = SYSTEM.apply(configuration, transition)
            expected[:, TRANSITIONS.index(transition)] = n - losses_by_listing(following, all_trees(n))
        np.testing.assert_array_equal(scores, expected, repr(configuration))


class IncrementalLoss:
    """The loss along a computation, updated at each transition."""

    def __init__(self, tree):
        self.loss = 0
        self.leaders, self.track = np.empty(len(tree), np.int32), np.empty((TRACK_ROWS, len(tree)), np.int32)
        start(tree, self.leaders, self.track)

    def optimal_step(self, configuration):
        scores = np.full(len(TRANSITIONS), UNREACHABLE)
        for number in map(TRANSITIONS.index, SYSTEM.legal(configuration)):
            cost = transition_cost(self.leaders, self.track, configuration.left, configuration.right, number)
            scores[number] = configuration.n - self.loss - cost
        return OptimalStep.from_array(TRANSITIONS, scores, configuration.n)

    def follow(self, configuration, transition):
        number = TRANSITIONS.index(transition)
        self.loss += advance(self.leaders, self.track, configuration.left, configuration.right, number)


def check_along_computation(configuration_steps, tree):
    """Check incremental losses and steps against those from scratch; ``configuration_steps`` chooses transitions."""
    n = len(tree) - 1
    configuration, tracked = SYSTEM.initial(n), IncrementalLoss(tree)
    while True:
        assert tracked.loss == covington.loss(configuration, tree), (configuration, tree)
        step = covington.optimal_step(configuration, tree)
        assert tracked.optimal_step(configuration) == step, (configuration, tree)
        if SYSTEM.is_final(configuration):
            return configuration
        transition = configuration_steps(configuration, step)
        tracked.follow(configuration, transition)
        configuration = SYSTEM.apply(configuration, transition)


@pytest.mark.parametrize("n", range(1, 5))
def test_every_configuration_with_every_gold_tree(n):
    check_every_configuration(n)
    check_every_transition(n)


@pytest.mark.parametrize(("n", "count"), [(5, 12), (6, 4)])
def test_longer_sentences(n, count):
    """Start in the middle of computations, from where there are few enough trees to enumerate."""
    rng = np.random.default_rng(n)
    golds = np.array([random_tree(rng, n) for _ in range(200)])
    for _ in range(count):
        configuration = SYSTEM.initial(n)
        while configuration.right < n - 1:
            legal = SYSTEM.legal(configuration)
            configuration = SYSTEM.apply(configuration, legal[rng.integers(len(legal))])
        expected = losses_by_listing(configuration, golds)
        for tree, loss in zip(golds, expected, strict=True):
            assert covington.loss(configuration, tree) == loss


def all_paths(tree):
    """Yield the transitions of every computation over the words of a tree."""
    n = len(tree) - 1

    def go(configuration, steps):
        if SYSTEM.is_final(configuration):
            yield steps
        for transition in SYSTEM.legal(configuration):
            yield from go(SYSTEM.apply(configuration, transition), (*steps, transition))

    return go(SYSTEM.initial(n), ())


@pytest.mark.parametrize("n", range(1, 4))
def test_the_incremental_loss_along_every_computation(n):
    for tree in all_trees(n):
        for path in all_paths(tree):
            following = iter(path)
            check_along_computation(lambda configuration, step, following=following: next(following), tree)


@given(n=st.integers(1, 14), seed=st.integers(0, 2**32 - 1), stray=st.sampled_from([0.1, 0.5, 1.0]))
def test_the_incremental_loss_of_longer_sentences(n, seed, stray):
    """The score promised for each step holds afterwards, and at the end it is the number of correct heads."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, n)
    promised = [n]

    def some(configuration, step):
        assert step.score == promised[-1]
        legal = SYSTEM.legal(configuration)
        # Prefer arcs when straying: most of them are wrong.
        options = (legal[2:] or legal) if rng.random() < stray else step.best
        transition = options[rng.integers(len(options))]
        promised.append(step.scores[transition])
        return transition

    final = check_along_computation(some, tree)
    assert (SYSTEM.heads(final)[1:] == tree[1:]).sum() == promised[-1]


def test_the_static_oracle_rebuilds_the_sample_treebank(tmp_path):
    path = tmp_path / "sample.conllu"
    path.write_text("".join(block for blocks in read_sample().values() for block in blocks), encoding="utf-8")
    for sentence in read_conllu(path, trees="required"):
        transitions = covington.optimal_computation(sentence.padded_heads)
        *_, final = SYSTEM.run(len(sentence), transitions)
        assert SYSTEM.is_final(final)
        assert SYSTEM.heads(final).tolist() == sentence.padded_heads.tolist()


@pytest.mark.parametrize("n", range(1, 5))
def test_the_static_oracle_keeps_the_loss_at_zero_and_is_shortest(n):
    for tree in all_trees(n):
        transitions = covington.optimal_computation(tree)
        for configuration in SYSTEM.run(n, transitions):
            assert covington.loss(configuration, tree) == 0
        assert SYSTEM.heads(configuration).tolist() == tree.tolist()
        if n < 4:
            finals = {path: [*SYSTEM.run(n, path)][-1] for path in all_paths(tree)}
            rebuild = [path for path, final in finals.items() if SYSTEM.heads(final).tolist() == tree.tolist()]
            assert len(transitions) == min(map(len, rebuild))


# Small examples to check by hand.


def test_arcs_that_are_reachable_one_by_one_may_not_be_together():
    """The situation of Figure 2: 2 → 3, 3 → 4 and 4 → 1 would all close a cycle with the existing arc 1 → 2."""
    configuration = Configuration(2, 3, 4, frozenset({(1, 2)}))
    tree = gold(4, 0, 2, 3)
    assert covington.loss(configuration, tree) == 2
    step = covington.optimal_step(configuration, tree)
    # One of the three arcs must be given up, so skipping the pair (2, 3) is as good as 2 → 3.
    assert step == OptimalStep(
        {"shift": 2, "no_arc": 2, "left_arc": None, "right_arc": 2}, ("shift", "no_arc", "right_arc"), 4
    )


def test_a_word_of_the_root_is_lost_only_when_it_gets_a_head():
    """The root takes all words without a head at the end, so only the arc 3 → 2 loses 0 → 2."""
    tree = gold(2, 0, 2)
    configuration = Configuration(2, 3, 3, frozenset({(2, 1)}))
    assert covington.optimal_step(configuration, tree).scores == {
        "shift": 2,
        "no_arc": 2,
        "left_arc": 1,
        "right_arc": 3,
    }
    assert covington.loss(Configuration(3, 4, 3, frozenset({(2, 1), (2, 3)})), tree) == 0


def test_a_shift_loses_all_arcs_to_the_left():
    tree = gold(3, 3, 0)
    configuration = Configuration(2, 3, 3)
    assert covington.optimal_step(configuration, tree).scores == {
        "shift": 1,
        "no_arc": 2,
        "left_arc": 3,
        "right_arc": 1,
    }


def test_a_final_configuration_has_no_step():
    configuration = Configuration(2, 3, 2, frozenset({(1, 2)}))
    step = covington.optimal_step(configuration, gold(0, 1))
    assert step.best == ()
    assert step.score is None
    assert covington.loss(configuration, gold(2, 0)) == 2


def test_a_batch_of_several_sentences_is_many_single_calls():
    rng = np.random.default_rng(5)
    golds = [random_tree(rng, n) for n in (1, 9, 4)]
    pairs = []
    for sentence in rng.integers(3, size=30).tolist():
        configuration = SYSTEM.initial(len(golds[sentence]) - 1)
        for _ in range(rng.integers(12)):
            if legal := SYSTEM.legal(configuration):
                configuration = SYSTEM.apply(configuration, legal[rng.integers(len(legal))])
        pairs.append((configuration, sentence))
    together = covington.step_scores_batch(*covington.flat_configurations(pairs), golds)
    for (configuration, sentence), scores in zip(pairs, together, strict=True):
        heads = configuration.heads()
        heads.setflags(write=False)
        focus = [configuration.left], [configuration.right]
        alone = covington.step_scores_batch(heads, *focus, [0], [golds[sentence]])
        assert scores.tolist() == alone[0].tolist()
        assert heads.tolist() == configuration.heads().tolist()


def test_an_empty_batch():
    assert covington.step_scores_batch(*covington.flat_configurations([]), []).shape == (0, 4)
    assert covington.step_scores_batch(*covington.flat_configurations([]), [gold(0)]).shape == (0, 4)


@pytest.mark.parametrize(
    ("heads", "left", "right"),
    [
        ([NO_HEAD] * 4, 1, 1),
        ([NO_HEAD] * 4, -1, 2),
        ([NO_HEAD] * 4, 3, 5),
        ([NO_HEAD] * 4, 2, 4),
        ([0, NO_HEAD, NO_HEAD, NO_HEAD], 0, 1),
        ([NO_HEAD, 0, NO_HEAD, NO_HEAD], 2, 3),
        ([NO_HEAD, 4, NO_HEAD, NO_HEAD], 3, 4),
        ([NO_HEAD, 1, NO_HEAD, NO_HEAD], 3, 4),
        ([NO_HEAD, NO_HEAD, NO_HEAD, 2], 1, 2),
        ([NO_HEAD, NO_HEAD, NO_HEAD, 1], 1, 3),
        ([NO_HEAD, 2, 1, NO_HEAD], 3, 4),
        ([NO_HEAD, 2, 3, 1], 3, 4),
    ],
)
def test_what_no_configuration_can_be_is_an_error(heads, left, right):
    with pytest.raises(ValueError, match="row 0 is not a configuration of 3 words"):
        covington.step_scores_batch(heads, [left], [right], [0], [gold(0, 0, 0)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rights": [1, 2]}, "1 lefts need as many rights and sentences: 2, 1"),
        ({"sentences": [1]}, "sentences must be 0 to 0: 1 to 1"),
        ({"heads": [-1, -1]}, "these sentences need 3 heads, the root's among them: 2"),
        ({"golds": [[-1, 2, 1]]}, "not a tree"),
    ],
)
def test_a_batch_that_does_not_fit_together_is_an_error(change, message):
    batch = {"heads": [-1, -1, -1], "lefts": [0], "rights": [1], "sentences": [0], "golds": [[-1, 0, 1]]}
    with pytest.raises(ValueError, match=message):
        covington.step_scores_batch(**batch | change)


def test_a_configuration_of_another_sentence_is_an_error():
    with pytest.raises(ValueError, match="the configuration has 1 words, but the gold tree has 2"):
        covington.optimal_step(Configuration(0, 1, 1), gold(0, 1))
    with pytest.raises(ValueError, match="not a configuration of 2 words: ⟨"):
        covington.loss(Configuration(1, 2, 2, frozenset({(1, 2)})), gold(0, 1))
    with pytest.raises(ValueError, match="not a tree"):
        covington.optimal_computation(gold(2, 1))
