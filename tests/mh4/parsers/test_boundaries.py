"""Sentence boundaries chosen jointly by segmenter and trees, checked against all ways to cut a short text."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mh4
from mh4.data.segmenter import LONGEST_SENTENCE
from mh4.data.text import Span, text_of
from mh4.parsers import boundaries
from mh4.parsers.boundaries import JointSegmenter, Spans, best_ends, likely_spans
from mh4.parsers.segmenter import Proposal

ODDS = st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=8)
TEXT = "Zub ulv. Tor teg.\n\nNew: “zub”. Tor\tteg\n"


def cuts(size):
    """Yield all ways to cut ``size`` tokens into sentences, as lists of spans."""
    for inner in product((False, True), repeat=size - 1):
        stops = [i + 1 for i, ends in enumerate([*inner, True]) if ends]
        yield list(pairwise([0, *stops]))


def spans_of(*paragraphs):
    found = likely_spans(np.concatenate([[*odds[:-1], np.inf] for odds in paragraphs]))
    return list(zip(found.starts.tolist(), found.stops.tolist(), strict=True)), found


def posteriors(odds):
    """Return the probability that each span is a sentence, summed over all ways to cut."""
    ends = 1 / (1 + np.exp(-np.array(odds, float)))
    ends[-1] = 1
    found = {}
    for cut in cuts(len(odds)):
        inner = {stop - 1 for _, stop in cut}
        probability = np.prod([p if t in inner else 1 - p for t, p in enumerate(ends)])
        for span in cut:
            found[span] = found.get(span, 0) + probability
    return found


@given(ODDS)
def test_the_likeliest_spans_and_those_of_the_segmenter_are_proposed(odds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "MOST_WORDS", 1000)
        found, _ = spans_of(odds)
    known = posteriors(odds)
    stops = [i + 1 for i, one in enumerate(odds[:-1]) if one > 0] + [len(odds)]
    taken = set(pairwise([0, *stops]))
    near = {span for span, one in known.items() if abs(np.log(one) - boundaries.LEAST_LOG) < 1e-9}
    assert (
        set(found) - near
        == ({span for span, one in known.items() if np.log(one) >= boundaries.LEAST_LOG} | taken) - near
    )
    assert len(found) == len(set(found))


@given(ODDS, st.floats(0, 6))
def test_spans_beyond_the_budget_are_the_least_likely_ones(odds, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "MOST_WORDS", 1000)
        everything, _ = spans_of(odds)
        patch.setattr(boundaries, "MOST_WORDS", most)
        found, _ = spans_of(odds)
    known = posteriors(odds)
    stops = [i + 1 for i, one in enumerate(odds[:-1]) if one > 0] + [len(odds)]
    taken = set(pairwise([0, *stops]))
    assert taken <= set(found) <= set(everything)
    others = [known[span] for span in found if span not in taken]
    left_out = [known[span] for span in everything if span not in found]
    assert min(others, default=2) >= max(left_out, default=0) - 1e-9
    if others:
        assert sum(stop - start for start, stop in found) <= most * len(odds)


@given(st.lists(ODDS, min_size=1, max_size=3))
def test_paragraphs_are_proposed_alone(paragraphs):
    """So the result does not depend on how the text arrives."""
    stops = np.cumsum([len(one) for one in paragraphs]).tolist()
    together, found = spans_of(*paragraphs)
    alone = []
    for start, odds in zip([0, *stops], paragraphs, strict=False):
        own, of_one = spans_of(odds)
        alone += [(i + start, j + start, known) for (i, j), known in zip(own, of_one.contested.tolist(), strict=True)]
    assert [(*span, known) for span, known in zip(together, found.contested.tolist(), strict=True)] == alone


@given(ODDS)
def test_spans_are_contested_if_others_have_tokens_of_them(odds):
    own, found = spans_of(odds)
    for (start, stop), known in zip(own, found.contested, strict=True):
        assert known == any(i < stop and j > start for i, j in own if (i, j) != (start, stop))


@given(ODDS, st.randoms())
def test_the_best_cut_is_that_of_all(odds, random):
    own, found = spans_of(odds)
    values = np.array([random.uniform(-5, 5) for _ in own])
    known = dict(zip(own, values, strict=True))
    best = max(sum(known[span] for span in cut) for cut in cuts(len(odds)) if set(cut) <= set(own))
    ends = best_ends(values, found, len(odds))
    chosen = list(pairwise([0, *(np.flatnonzero(ends) + 1).tolist()]))
    assert sum(known[span] for span in chosen) == pytest.approx(best)


def test_a_sentence_does_not_end_where_that_is_as_good_as_not():
    """As without trees, where odds of 0 are no end."""
    spans = Spans(np.array([0, 0, 1]), np.array([1, 2, 2]), np.ones(3, bool))
    assert best_ends(np.array([0.0, 1.0, 1.0]), spans, 2).tolist() == [False, True]


def test_sentences_that_are_too_long_are_proposed_in_pieces():
    odds = np.full(2 * LONGEST_SENTENCE + 7, -20.0)
    found, _ = spans_of(odds)
    assert found == [(0, 250), (250, 500), (500, 507)]


class Proposing:
    """A segmenter with fixed odds: each letter is a token, and only a capital is likely to begin a sentence."""

    def __init__(self):
        self.files = {"a": b"b"}

    def propose(self, texts):
        for text in texts:
            letters = [i for i, letter in enumerate(text) if not letter.isspace()]
            following = [text[i] for i in letters[1:]]
            odds = np.array([-1.0 if letter.isupper() else -20.0 for letter in following] + [np.inf], np.float32)
            words = [("x", "y") if text[i] == "w" else () for i in letters]
            tokens = [Span(i, i + 1, own) for i, own in zip(letters, words, strict=True)]
            yield Proposal(tokens, odds[: len(letters)])


def test_odds_and_trees_decide_together(monkeypatch):
    asked = []
    monkeypatch.setattr(boundaries, "MOST_WORDS", 1000)

    def tree_scores(sentences):
        asked.extend("".join(sentence.forms) for sentence in sentences)
        return np.array([10.0 if sentence.forms[-1] == "y" else 0.0 for sentence in sentences])

    joint = JointSegmenter(Proposing(), tree_scores)
    assert joint.files == {"a": b"b"}
    found = [sentence.text for sentence in joint.cut("a b w A b B c\n\nd e")]
    assert found == ["a b w", "A b B c", "d e"]
    assert set(asked) == {"abxy", "abxyAb", "abxyAbBc", "Ab", "AbBc", "Bc"}  # not "de", which has no competitor
    assert list(joint.cut(" \n")) == []


@pytest.fixture(scope="module")
def parser(text_model):
    return mh4.load(text_model, device="cpu", threads=1)


def test_a_sentence_costs_something():
    def asked(scores):
        joint = JointSegmenter(Proposing(), lambda own: np.array([scores[len(one)] for one in own]))
        return len(list(joint.cut("a B")))

    assert asked({1: 1.7, 2: 1.8}) == 2  # 2 × 1.7 − 1 (log-odds) − 2 × 0.5 > 1.8 − 0.5
    assert asked({1: 1.3, 2: 1.2}) == 1


def test_the_segmenter_decides_alone_where_a_score_is_unknown():
    """Scores of other spans, however high, are not compared with none."""
    scores = {"a": 100.0, "B": 100.0, "C": 100.0, "aB": 100.0, "BC": 100.0, "aBC": np.nan}
    joint = JointSegmenter(Proposing(), lambda own: np.array([scores["".join(one.forms)] for one in own]))
    assert [one.text for one in joint.cut("a B\n\na B C\n\na B")] == ["a", "B", "a B C", "a", "B"]


def test_charts_that_do_not_fit_have_no_score(text_model):
    parser = mh4.load(text_model, device="cpu", threads=1)
    sentences = [mh4.Sentence(["Zub"] * length) for length in (2, 30, 3)]
    parser.limit_charts(parser.decoder.chart_bytes(10))
    assert np.isnan(parser.tree_scores(sentences)).tolist() == [False, True, False]


def test_text_comes_back_and_is_parsed(parser, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    parsed = list(parser.parse(path, format="text", boundaries="joint"))
    assert "".join(text_of(parsed)) == TEXT
    assert [one.forms for one in parser(TEXT, boundaries="joint")] == [one.forms for one in parsed]
    assert [one.forms for one in parser.cut(TEXT, boundaries="joint")] == [one.forms for one in parsed]
    (piped,) = parser.pipe([TEXT], boundaries="joint")
    assert [one.heads.tolist() for one in piped] == [one.heads.tolist() for one in parsed]


def test_trees_change_boundaries(parser, monkeypatch):
    """The parser's scores of spans count, not only the segmenter's odds."""
    text = "Zub ulv tor teg zub ulv tor teg"
    monkeypatch.setattr(boundaries, "LEAST_LOG", -np.inf)
    monkeypatch.setattr(boundaries, "MOST_WORDS", 1000)
    words = text.split()
    monkeypatch.setattr(parser, "tree_scores", lambda own, **_: np.array([50.0 * (len(one) == 2) for one in own]))
    assert [one.forms for one in parser.cut(text, boundaries="joint")] == [
        tuple(words[i : i + 2]) for i in range(0, 8, 2)
    ]


def test_scores_are_those_of_the_best_trees(parser):
    sentences = [mh4.Sentence(words) for words in (["Zub", "ulv", "."], ["Tor"], ["Tor", "teg"])]
    scores = [parser.decoder.decode(own).score for own in parser.score(sentences)]
    assert parser.tree_scores(sentences) == pytest.approx(scores)
    assert parser.tree_scores([]).shape == (0,)


def test_spans_are_scored_as_sentences_of_the_treebank_that_is_asked_for(parser, monkeypatch):
    asked = []
    monkeypatch.setattr(parser, "tree_scores", lambda own, treebank, **_: asked.append(treebank) or np.zeros(len(own)))
    for treebank in ("one", None):
        list(parser.segmenter_for(mh4.Request(boundaries="joint", treebank=treebank)).cut(TEXT))
    assert asked == ["one", None]


def test_scoring_trees_can_be_stopped(parser, monkeypatch):
    monkeypatch.setattr(boundaries, "LEAST_LOG", -np.inf)
    segmenter = parser.segmenter_for(mh4.Request(boundaries="joint"), {}.popitem)
    with pytest.raises(KeyError):
        list(segmenter.cut("Zub ulv tor teg. Zub ulv tor teg."))


def test_who_cannot_choose_says_so(parser, text_model, older_text_model, small_model):
    with pytest.raises(ValueError, match="need a single model with an exact decoder"):
        mh4.load(text_model, text_model, device="cpu")("Zub ulv.", boundaries="joint")
    for search in ("beam:2", "greedy"):
        with pytest.raises(ValueError, match="need a single model with an exact decoder"):
            mh4.load(text_model, device="cpu", search=search)("Zub ulv.", boundaries="joint")
    with pytest.raises(ValueError, match="UDPipe segmenter of this model has no probabilities"):
        mh4.load(older_text_model, device="cpu")("Zub ulv.", boundaries="joint")
    with pytest.raises(ValueError, match="it has no segmenter"):
        mh4.load(small_model, device="cpu")("Zub ulv.", boundaries="joint")
    with pytest.raises(ValueError, match="boundaries can be chosen only in raw text"):
        parser.parse("dev.conllu", boundaries="joint")
    with pytest.raises(ValueError, match="boundaries is segmenter or joint; got 'trees'"):
        parser("Zub ulv.", boundaries="trees")
