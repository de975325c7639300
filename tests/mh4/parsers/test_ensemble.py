"""Ensembles: votes are counted exactly, and the result is always a tree of the decoder's class."""

import itertools
import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import small_config

from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.decoders import get_decoder
from mh4.decoders.closest import closest_tree
from mh4.decoders.trees import is_tree
from mh4.parsers.answers import Answers
from mh4.parsers.base import Parser
from mh4.parsers.chart import ChartParser
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser, _elected, arc_probabilities, vote_on_relations
from mh4.parsers.registry import load
from mh4.parsers.relation_places import RelationPlaces
from mh4.parsers.request import Request

DECODERS = ("mst", "mh4-two", "mh4-hybrid", "1ec")


class Fixed(Parser):
    """A parser that returns the given trees."""

    def __init__(self, *trees, relations=None):
        self.trees = [np.array(tree, np.int32) for tree in trees]
        self.relations = relations

    def _answer(self, sentences, request):
        relations = [self.relations or tuple("root" if head == 0 else "x" for head in tree[1:]) for tree in self.trees]
        return Answers([Annotation(tree[1:], names) for tree, names in zip(self.trees, relations, strict=True)])


def words(n):
    return Sentence.from_words(["w"] * n)


def trees_of(n):
    """All trees of n words with one root child."""
    for heads in itertools.product(range(n + 1), repeat=n):
        tree = np.array((-1, *heads), np.int32)
        if is_tree(tree, single_root=True):
            yield tree


def shared(one, other):
    return int((one[1:] == other[1:]).sum())


def combined(decoder, *trees):
    return EnsembleParser([Fixed(tree) for tree in trees], decoder).predict([words(len(trees[0]) - 1)])[0].padded_heads


ALL = {n: list(trees_of(n)) for n in range(1, 6)}
SOME_TREES = st.integers(1, 5).flatmap(lambda n: st.lists(st.sampled_from(ALL[n]), min_size=1, max_size=4))


@pytest.mark.parametrize("decoder", DECODERS)
@given(trees=SOME_TREES)
def test_most_votes_then_closest_to_the_first(decoder, trees):
    """Checked against all trees of the class: the most votes, then the most arcs of the first tree."""
    chart = get_decoder(decoder)
    in_class = [tree for tree in ALL[len(trees[0]) - 1] if (closest_tree(tree, chart) == tree).all()]
    heads = combined(decoder, *trees)
    assert any((heads == tree).all() for tree in in_class)

    def worth(tree):
        return sum(shared(tree, other) for other in trees), shared(tree, trees[0])

    assert worth(heads) == max(map(worth, in_class))


@pytest.mark.parametrize("decoder", DECODERS)
def test_one_member_is_followed_as_far_as_the_class_goes(decoder, small_treebanks):
    chart = get_decoder(decoder)
    for sentence in read_conllu(small_treebanks[0], trees="required"):
        heads = combined(decoder, sentence.padded_heads)
        assert shared(heads, sentence.padded_heads) == shared(
            closest_tree(sentence.padded_heads, chart), sentence.padded_heads
        )


def test_a_majority_wins_and_a_tie_goes_to_the_first():
    one, other = [-1, 0, 1, 2], [-1, 2, 0, 2]
    for first, second, third, expected in ((one, other, other, other), (other, one, one, one)):
        assert combined("mst", np.array(first), np.array(second), np.array(third)).tolist() == expected
    assert combined("mst", np.array(one), np.array(other)).tolist() == one
    assert combined("mst", np.array(other), np.array(one)).tolist() == other


def test_relations_are_voted_on_by_those_who_have_the_arc():
    heads = np.array([-1, 0, 1, 1], np.int32)
    trees = [
        (np.array([-1, 0, 1, 2]), ("root", "nsubj", "obj")),
        (np.array([-1, 0, 1, 1]), ("root", "obj", "obl")),
        (np.array([-1, 2, 0, 2]), ("nsubj", "root", "obj")),
    ]
    assert vote_on_relations(heads, trees) == ("root", "nsubj", "obl")
    assert vote_on_relations(heads, trees[::-1]) == ("root", "obj", "obl")
    majority = [*trees, (np.array([-1, 0, 1, 1]), ("root", "obj", "iobj"))]
    assert vote_on_relations(heads, majority) == ("root", "obj", "obl")


def test_relations_of_arcs_that_nobody_has():
    trees = [(np.array([-1, 0, 1]), ("root", "x")), (np.array([-1, 0, 1]), ("root", "x"))]
    assert vote_on_relations(np.array([-1, 2, 0]), trees) == ("dep", "root")
    other = (np.array([-1, 0, 1, 1]), ("root", "x", "y"))
    assert vote_on_relations(np.array([-1, 0, 3, 1]), [other]) == ("root", "x", "y")


def test_relations_stay_where_members_have_them():
    """Whatever the relations of roots are called."""
    one = (np.array([-1, 0, 1, 1]), ("SENT", "x", "y"))
    other = (np.array([-1, 3, 1, 0]), ("z", "x", "FRAG"))
    assert vote_on_relations(np.array([-1, 3, 0, 2]), [one, other]) == ("z", "SENT", "y")
    assert vote_on_relations(np.array([-1, 3, 0, 2]), [one]) == ("dep", "SENT", "y")


@pytest.fixture(scope="module")
def dev(small_treebanks):
    return list(read_conllu(small_treebanks[1], trees="required"))


@pytest.fixture(scope="module")
def members(small_treebanks):
    """Untrained parsers: they agree on little."""
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    decoders = ("mst", "mh4-hybrid", "1ec")
    return [ChartParser(Definition.learn(small_config(name), sentences), device="cpu") for name in decoders]


@pytest.mark.parametrize("combine", ["votes", "scores"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_always_a_tree_of_the_class_with_one_root_child(decoder, combine, members, dev):
    chart = get_decoder(decoder)
    ensemble = EnsembleParser(members, decoder, combine)
    proposals = [member.predict(dev) for member in members]
    for i, prediction in enumerate(ensemble.predict(dev)):
        heads = prediction.padded_heads
        assert is_tree(heads, single_root=True)
        np.testing.assert_array_equal(closest_tree(heads, chart), heads)
        assert [relation == "root" for relation in prediction.relations] == [head == 0 for head in heads[1:]]
        if combine == "votes" and decoder == "mst":
            trees = [predicted[i].padded_heads for predicted in proposals]
            votes = [sum(shared(one, other) for other in trees) for one in trees]
            assert sum(shared(heads, tree) for tree in trees) >= max(votes)


def test_an_ensemble_of_one_is_its_member(small_model, dev):
    parser = ChartParser.load(small_model, device="cpu")
    for decoder in ("mst", "mh4-hybrid"):
        ensemble = EnsembleParser([load(small_model, device="cpu")], decoder)
        for alone, together in zip(parser.predict(dev), ensemble.predict(dev), strict=True):
            np.testing.assert_array_equal(alone.heads, together.heads)
            assert alone.relations == together.relations


def test_scores_of_arc_factored_members(members, dev):
    """Scores become probabilities of heads; an ensemble of one member takes the tree with the highest sum."""
    mst = members[0]
    for sentence, scores in zip(dev, mst.score(dev), strict=True):
        n, matrix = len(sentence), arc_probabilities(scores)
        np.testing.assert_allclose(matrix.sum(0)[1 : n + 1], 1.0, atol=1e-5)
        assert matrix.min() >= 0.0
        assert not matrix.diagonal().any()
        assert not matrix[n + 1].any()
        heads = EnsembleParser([mst], combine="scores").predict([sentence])[0].padded_heads
        expected = get_decoder("mst").decode(matrix[None]).heads
        np.testing.assert_array_equal(heads, expected)


def test_scores_of_the_best_head_are_those_of_the_scorer(members, dev):
    """The most probable head of each word is the one that the member scores highest."""
    (scores,) = members[0].score(dev[:1])
    n = len(dev[0])
    own = scores[0, : n + 1, 1 : n + 1].copy()
    own[np.arange(1, n + 1), np.arange(n)] = -np.inf
    matrix = arc_probabilities(scores)
    np.testing.assert_array_equal(matrix[: n + 1, 1 : n + 1].argmax(0), own.argmax(0))


def test_members_see_every_sentence_once(members, dev, monkeypatch):
    seen = []
    for member in members:
        encode = member.network.encode
        monkeypatch.setattr(
            member.network, "encode", lambda batch, encode=encode: (seen.append(len(batch.lengths)), encode(batch))[1]
        )
    EnsembleParser(members, combine="scores").predict(dev)
    assert sum(seen) == len(members) * len(dev)


def test_members_without_arc_scores_vote_when_scores_are_combined(dev):
    tree = dev[0].padded_heads
    ensemble = EnsembleParser([Fixed(tree), Fixed(tree)], combine="scores")
    np.testing.assert_array_equal(ensemble.predict(dev[:1])[0].padded_heads, tree)


@pytest.mark.parametrize("trees", [([-1, 0, 1, 2], [-1, 2, 0, 2]), ([-1, 2, 0, 2], [-1, 0, 1, 2])])
def test_ties_go_to_the_first_member_when_scores_are_combined(trees):
    ensemble = EnsembleParser([Fixed(tree) for tree in trees], combine="scores")
    assert ensemble.predict([words(3)])[0].padded_heads.tolist() == trees[0]


def test_votes_are_counted_as_votes_when_nobody_has_scores(members, dev):
    without_scores = [members[1], members[2]]
    votes = EnsembleParser(without_scores).predict(dev)
    scores = EnsembleParser(without_scores, combine="scores").predict(dev)
    assert votes == scores


def test_scores_that_are_level_leave_the_choice_to_the_first_member(members, dev, monkeypatch):
    """Two members disagree and the third scores all trees equally: the first member breaks the tie."""
    one, other = [-1, 0, 1, 2], [-1, 2, 0, 2]
    level = Annotation(np.array([0, 1, 1], np.int32), ("root", "x", "x"))
    mst = members[0]
    monkeypatch.setattr(mst, "annotate_and_score", lambda *_: (Answers([level]), [np.zeros((1, 5, 5), np.float32)]))
    for first, second in ((one, other), (other, one)):
        ensemble = EnsembleParser([Fixed(first), Fixed(second), mst], combine="scores")
        assert ensemble.predict([words(3)])[0].padded_heads.tolist() == first


def test_given_heads_are_kept(members, dev):
    generator = np.random.default_rng(1)
    ensemble = EnsembleParser(members)
    for sentence in dev:
        known = np.where(generator.random(len(sentence) + 1) < 0.3, sentence.padded_heads, -1).astype(np.int32)
        partial = Sentence.from_words(sentence.forms).replace(heads=known[1:])
        heads = ensemble.predict([partial], keep_heads=True)[0].padded_heads
        assert (heads[known >= 0] == known[known >= 0]).all()
        assert is_tree(heads, single_root=True)
    for sentence, prediction in zip(dev, ensemble.predict(dev, keep_heads=True), strict=True):
        np.testing.assert_array_equal(prediction.padded_heads, sentence.padded_heads)
        assert prediction.relations == sentence.relations


def test_several_roots_where_a_member_has_them():
    member = Fixed([-1, 0, 0])
    assert EnsembleParser([member]).decoder.single_root
    member.single_root = False
    np.testing.assert_array_equal(EnsembleParser([member]).predict([words(2)])[0].heads, [0, 0])
    assert EnsembleParser([member], single_root=True).decoder.single_root
    assert not EnsembleParser([member, Fixed([-1, 0])]).decoder.single_root  # only if all members have one


def test_given_heads_that_no_tree_has():
    cycle = words(2)
    object.__setattr__(cycle, "padded_heads", np.array([-1, 2, 1], np.int32))
    with pytest.raises(DataError, match=r"sentence 1: .* form a cycle"):
        EnsembleParser([Fixed([-1, 0, 1])]).predict([cycle], keep_heads=True)


def test_too_long_for_the_chart(caplog):
    n = 50
    tree = np.arange(-1, n, dtype=np.int32)
    ensemble = EnsembleParser([Fixed(tree)], "mh4-two")
    ensemble.decoder.memory_limit = ensemble.decoder.chart_bytes(n - 1)
    with caplog.at_level(logging.WARNING):
        heads = ensemble.predict([words(n)])[0].padded_heads
    np.testing.assert_array_equal(heads, tree)
    assert "mh4-two chart of 50 words would not fit into memory; combined with mst" in caplog.text


def test_an_ensemble_knows_what_its_members_know():
    def member(treebanks=(), spaced=False, only_root=(), only_words=()):
        made = Fixed([-1, 0])
        made.treebanks, made.spaced_words = treebanks, spaced
        made.places = RelationPlaces(frozenset(only_root), frozenset(only_words))
        return made

    first = member(("a", "b", "c"), only_root=["root"], only_words=["x"])
    ensemble = EnsembleParser([first, member(), member(("c", "d", "b"), True, ["SENT"], ["y"])])
    assert ensemble.treebanks == ("b", "c")  # known to all members that know any
    assert ensemble.spaced_words
    assert ensemble.places == RelationPlaces(frozenset({"root", "SENT"}), frozenset({"x", "y"}))
    with pytest.raises(ValueError, match="unknown treebank 'a'; the model does not tell treebanks apart"):
        EnsembleParser([member(("a", "b")), member(("c",))])(["x"], treebank="a")


def test_an_ensemble_needs_what_its_members_need():
    class Needy(Fixed):
        needs = frozenset({"upos"})

        def unparsable(self, sentence):
            return sentence.error("has no tags")

    ensemble = EnsembleParser([Fixed([-1, 0]), Needy([-1, 0])])
    assert ensemble.needs == {"upos"}
    assert "has no tags" in str(ensemble.unparsable(words(1)))
    assert EnsembleParser([Fixed([-1, 0])]).unparsable(words(1)) is None


def test_of_several_errors_of_a_sentence_the_first_counts():
    class Failing(Fixed):
        def _answer(self, sentences, request):
            return Answers([Annotation()], {0: DataError(self.problem)})

    members = [Fixed([-1, 0]), Failing(), Failing()]
    members[1].problem, members[2].problem = "one", "other"
    assert str(EnsembleParser(members).attempt([words(1)]).errors[0]) == "one"


@pytest.mark.parametrize("single_root", [True, False])
def test_a_copy_combines_in_the_same_way(single_root):
    make, arguments = EnsembleParser([Fixed([-1, 0])], "eisner", "scores", single_root).__reduce__()
    copy = make(*arguments)
    assert (copy.decoder.name, copy.combine) == ("eisner", "scores")
    assert copy.single_root == copy.decoder.single_root == single_root


def test_limits_of_members_are_those_of_the_ensemble():
    limited = []

    class Limited(Fixed):
        longest = None

        def __init__(self, longest):
            super().__init__([-1, 0])
            self.longest = longest

        def limit_charts(self, most):
            limited.append((self.longest, most))

    ensemble = EnsembleParser([Limited(70), Limited(50), Limited(60)])
    assert ensemble.longest == 50
    ensemble.limit_charts(9)
    assert limited == [(70, 9), (50, 9), (60, 9)]


@pytest.mark.parametrize("combine", ["votes", "scores"])
def test_charts_are_limited_in_members_and_in_the_ensemble(combine, small_treebanks):
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    member = ChartParser(Definition.learn(small_config("eisner"), sentences), device="cpu")
    ensemble = EnsembleParser([member], "mh4-two", combine)
    ensemble.limit_charts(10)
    assert ensemble.fallback.memory_limit == 10
    chart = "words: sentence 1: the exact {} chart of 8 words would not fit into memory; {}"
    assert ensemble.attempt([words(8)]).warnings == [
        chart.format("eisner", "parsed with mst"),
        chart.format("mh4-two", "combined with mst"),
    ]


def test_warnings_of_members_are_those_of_the_ensemble():
    class Warning(Fixed):
        def _answer(self, sentences, request):
            return replace(super()._answer(sentences, request), warnings=["a chart does not fit"])

    request = Request(predict="heads")
    assert EnsembleParser([Fixed([-1, 0]), Warning([-1, 0])]).attempt([words(1)], request).warnings == [
        "a chart does not fit"
    ]


class Tags(Fixed):
    """Predicts the same UPOS for all words; given tags stay unless they are to be overwritten."""

    def __init__(self, tag):
        super().__init__([-1, 0])
        self.tag, self.annotates = tag, frozenset({"upos"})

    def _answer(self, sentences, request):
        given = [sentence.upos if not request.overwrite else ("_",) * len(sentence) for sentence in sentences]
        tags = [tuple(self.tag if old == "_" else old for old in one) for one in given]
        trees = super()._answer(sentences, request)
        return Answers([replace(tree, upos=own) for tree, own in zip(trees.annotations, tags, strict=True)])


def test_given_tags_are_overwritten_on_request():
    sentence = words(1).replace(upos=["X"])
    ensemble = EnsembleParser([Tags("NOUN"), Tags("NOUN"), Tags("VERB")])
    assert ensemble(sentence).upos == ("X",)
    assert ensemble(sentence, overwrite=True).upos == ("NOUN",)
    assert ensemble(sentence, overwrite=True, predict="heads").upos == ("X",)
    assert ensemble(words(1)).upos == ("NOUN",)


def test_members_without_a_column_have_a_vote_on_the_next():
    several = [Annotation(xpos=("a",)), Annotation(xpos=("a",)), Annotation(upos=("X",), xpos=("b",))]
    assert _elected(several) == {"upos": ("X",), "xpos": ("a",)}


def test_columns_are_those_of_the_requested_treebank():
    asked = []

    class Asked(Tags):
        treebanks = ("a", "b")

        def _answer(self, sentences, request):
            asked.append((request.columns, request.treebank))
            return super()._answer(sentences, request)

    EnsembleParser([Asked("X"), Tags("Y")])(words(1), treebank="b")
    assert asked == [({"heads"}, "b"), ({"upos"}, "b")]


def test_text_is_cut_by_the_first_member_that_can(small_model, text_model):
    for models in ((small_model, text_model), (text_model, small_model)):
        ensemble = load(*models, device="cpu")
        assert ensemble.segmenter is not None
        assert len(ensemble("Zub ulv.")) >= 1
    assert load(small_model, device="cpu").segmenter is None


def test_files(members, small_treebanks, tmp_path):
    EnsembleParser(members).parse_file(small_treebanks[1], tmp_path / "out.conllu")
    assert len(list(read_conllu(tmp_path / "out.conllu", trees="required"))) == 12


def test_wrong_arguments():
    with pytest.raises(ValueError, match="at least one model"):
        EnsembleParser([])
    with pytest.raises(ValueError, match="known: votes, scores"):
        EnsembleParser([Fixed()], combine="mean")
    with pytest.raises(ValueError, match="unknown decoder"):
        EnsembleParser([Fixed()], "cky")


def test_a_single_folder_is_not_an_ensemble(small_model):
    with pytest.raises(DataError, match=r"holds a chart parser, which EnsembleParser cannot load; write mh4\.load"):
        EnsembleParser.load(small_model, device="cpu")
