"""Calibration: isotonic curves, confidences that match accuracy, and damaged files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.parsers.calibration import Calibration, Curve
from mh4.parsers.checksums import SUMS
from mh4.parsers.model_files import CALIBRATION


def pooled(values, right):
    """Return {value: fit} of isotonic regression by the max-min formula, over the means of intervals around a value."""
    order = np.argsort(values, kind="stable")
    values, right = np.array(values)[order], np.array(right, float)[order]
    points = np.unique(values)

    def mean(first, last):
        return right[(values >= first) & (values <= last)].mean()

    return {v: max(min(mean(a, b) for b in points if b >= v) for a in points if a <= v) for v in points}


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=25))
def test_the_curve_is_the_isotonic_regression(cases):
    values, right = np.array([v for v, _ in cases], float), np.array([r for _, r in cases])
    curve = Curve.fit(values, right)
    expected = pooled([*values, values.max(), values.min()], [*right, False, True])
    at = np.array(sorted(expected))
    np.testing.assert_allclose(curve(at), [expected[v] for v in at], atol=2e-6)
    assert 0 < curve(np.array([-100.0]))[0] <= curve(np.array([100.0]))[0] < 1
    assert np.isnan(curve(np.array([np.nan]))[0])


def predictions(seed, count=200, n=10):
    """Return predicted trees whose heads are right with probability 1 − 2^(−1 − margin), and gold trees."""
    rng = np.random.default_rng(seed)
    found, golds = [], []
    heads = np.array([0, *[1] * (n - 1)], np.int32)
    for _ in range(count):
        margins, shares = rng.exponential(2.0, n), rng.uniform(0.5, 1.0, n)
        wrong = rng.random(n) < 2 ** (-1 - margins)
        gold_heads = np.where(wrong, 2, heads)
        gold_relations = tuple("x" if p < s else "y" for p, s in zip(rng.random(n), shares, strict=True))
        found.append(Annotation(heads, ("x",) * n, confidence=Confidence(margins, np.zeros(n, np.int32), shares)))
        golds.append(Sentence.from_words(["w"] * n).replace(heads=gold_heads, relations=gold_relations))
    return found, golds


def test_probabilities_are_shares_of_what_is_right():
    calibration = Calibration.fit(*predictions(1))
    assert calibration.words == 2000
    found, golds = predictions(2)
    applied = [calibration.applied(one.confidence) for one in found]
    heads = np.concatenate([one.heads for one in applied])
    words = np.concatenate([one.words for one in applied])
    margins = np.concatenate([one.confidence.margins for one in found])
    assert abs(heads - (1 - 2 ** (-1 - margins))).mean() < 0.04
    right = np.concatenate([one.heads == gold.heads for one, gold in zip(found, golds, strict=True)])
    both = right & np.concatenate([np.array(gold.relations) == "x" for gold in golds])
    assert abs(words.mean() - both.mean()) < 0.02
    whole = both.reshape(200, 10).all(1).mean()
    assert abs(np.mean([one.tree for one in applied]) - whole) < 0.05


def test_what_was_given_is_certain_and_what_is_not_known_stays_so():
    calibration = Calibration.fit(*predictions(1))
    found = Confidence(np.array([np.inf, 1.0, np.nan]), np.array([-1, 1, -1]), np.array([np.inf, 0.9, 0.9]))
    applied = calibration.applied(found)
    assert applied.words[0] == applied.heads[0] == 1
    assert applied.words[1] == applied.heads[1] * calibration.relations(np.array([0.9]))[0]
    assert np.isnan(applied.words[2])
    assert applied.tree is None


def test_a_tree_is_as_certain_as_its_words():
    calibration = Calibration.fit(*predictions(1))
    assert calibration.trees.at[-1] < 0  # the data has no tree of certain words
    certain, doubtful = (np.array([margin, np.inf]) for margin in (np.inf, 0.5))
    relations, runners_up = np.array([np.inf, np.inf]), np.array([2, -1])
    assert calibration.applied(Confidence(certain, runners_up, relations)).tree == 1
    applied = calibration.applied(Confidence(doubtful, runners_up, relations))
    assert 0 < applied.tree <= applied.words[0] < 1


def test_too_few_words_are_an_error():
    found, golds = predictions(1, count=1)
    with pytest.raises(DataError, match="10 words are too few to calibrate on; take at least 20"):
        Calibration.fit(found, golds)
    with pytest.raises(DataError, match="nothing to calibrate on"):
        Calibration.fit([], [])


def test_a_calibration_is_kept_in_the_folder(tmp_path):
    calibration = Calibration.fit(*predictions(1))
    assert Calibration.load(tmp_path) is None
    calibration.save(tmp_path)
    assert Calibration.load(tmp_path) == calibration


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda content: content.pop("heads"), "heads: "),
        (lambda content: content.pop("words"), "words: "),
        (lambda content: content.update(more=1), "more: unknown option; known: heads, relations, trees, words"),
        (lambda content: content.pop("format"), "format None; this version reads format 1"),
        (lambda content: content.update(format=2), "format 2; this version reads format 1"),
        (lambda content: content.update(words="many"), "words: "),
        (lambda content: content.update(words=-1), "words: "),
        (lambda content: content.update(relations=3), "relations: "),
        (lambda content: content["heads"].update(at=[]), r"heads\.at: "),
        (lambda content: content["heads"].update(at=content["heads"]["at"][::-1]), "heads: knots and prob.* ascend"),
        (lambda content: content["heads"]["at"].append(1e9), "heads: .* knots have .* probabilities"),
        (lambda content: content["heads"]["probability"].reverse(), "heads: knots and probabilities must ascend"),
        (lambda content: content["trees"]["probability"].__setitem__(-1, 2.0), r"trees\.probability\."),
        (lambda content: content["trees"]["probability"].__setitem__(0, float("nan")), r"trees\.probability\.0"),
        (lambda content: content["trees"]["probability"].__setitem__(0, -0.1), r"trees\.probability\.0"),
        (lambda content: content["relations"].update(at="x"), r"relations\.at"),
        (lambda content: content["relations"]["at"].__setitem__(0, "x"), r"relations\.at\.0"),
    ],
)
def test_a_damaged_calibration_says_what_to_do(tmp_path, change, problem):
    Calibration.fit(*predictions(1)).save(tmp_path)
    path = tmp_path / CALIBRATION
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(
        DataError, match=r"calibration\.json: is damaged or was changed: .*; mh4 calibrate .* DEV makes a new one"
    ):
        Calibration.load(tmp_path)
    (tmp_path / SUMS).unlink()
    with pytest.raises(DataError, match=rf"calibration\.json: is not a calibration: {problem}.*; mh4 calibrate .* DEV"):
        Calibration.load(tmp_path)


def compared(relation_known, heads_right=0.8, relation_right=0.5, sentences=40, n=10):
    """Return predictions with one relation, and gold trees with some other heads and other or unknown relations."""
    rng = np.random.default_rng(3)
    heads = np.array([0, *[1] * (n - 1)], np.int32)
    found, golds = [], []
    for _ in range(sentences):
        certainty = Confidence(rng.exponential(2.0, n), np.zeros(n, np.int32), rng.uniform(0.5, 1.0, n))
        found.append(Annotation(heads, ("x",) * n, confidence=certainty))
        names = np.where(rng.random(n) < relation_right, "x", "y")
        names[rng.random(n) >= relation_known] = "_"
        gold = Sentence.from_words(["w"] * n)
        golds.append(gold.replace(heads=np.where(rng.random(n) < heads_right, heads, 2), relations=names.tolist()))
    return found, golds


def test_words_without_a_gold_relation_count_for_their_heads_alone():
    found, golds = compared(relation_known=1.0)
    whole = Calibration.fit(found, golds)
    rng = np.random.default_rng(4)
    hidden = [
        gold.replace(relations=[name if rng.random() < 0.5 else "_" for name in gold.relations]) for gold in golds
    ]
    half = Calibration.fit(found, hidden)
    assert half.heads == whole.heads
    assert half.words == whole.words
    at = np.array([0.75])
    assert whole.relations(at)[0] == pytest.approx(0.5, abs=0.15)
    assert half.relations(at)[0] == pytest.approx(0.5, abs=0.15)


def test_relations_are_calibrated_on_words_with_the_right_head():
    """Here, relations are right exactly where heads are."""
    found, golds = compared(relation_known=1.0, heads_right=0.5)
    golds = [
        gold.replace(relations=["x" if ok else "y" for ok in one.heads == gold.heads])
        for one, gold in zip(found, golds, strict=True)
    ]
    assert Calibration.fit(found, golds).relations(np.array([0.75]))[0] > 0.9


def test_a_tree_may_be_right_though_some_of_its_relations_are_not_known():
    """All heads and all known relations are right."""
    found, golds = compared(relation_known=0.5, heads_right=1.0, relation_right=1.0)
    assert "_" in golds[0].relations
    fitted = Calibration.fit(found, golds)
    assert fitted.trees.probability[-1] > 0.9
    known = np.array([name != "_" for name in golds[0].relations])
    one = Calibration.fit(found[:1] * 3, golds[:1] * 3)  # copies of one tree: a single knot
    applied = one.applied(found[0].confidence)
    expected = np.log(np.where(known, applied.words, applied.heads)).sum()
    assert one.trees.at == (pytest.approx(expected, abs=1e-5),)


def test_a_treebank_without_relations_is_an_error():
    with pytest.raises(DataError, match=r"the treebank has no relations \(DEPREL\) to calibrate on"):
        Calibration.fit(*compared(relation_known=0.0))
    with pytest.raises(DataError, match="no head is correct"):
        Calibration.fit(*compared(relation_known=1.0, heads_right=0.0))
    found, golds = compared(relation_known=1.0, heads_right=0.5)
    wrong = [
        gold.replace(relations=["_" if ok else "y" for ok in one.heads == gold.heads])
        for one, gold in zip(found, golds, strict=True)
    ]
    with pytest.raises(DataError, match="no word with a relation has the correct head"):
        Calibration.fit(found, wrong)


def test_a_model_without_relations_is_calibrated_for_heads():
    found, golds = compared(relation_known=0.5)
    found = [replace(one, relations=("_",) * 10) for one in found]
    fitted = Calibration.fit(found, golds)
    applied = fitted.applied(found[0].confidence)
    np.testing.assert_array_equal(applied.words, applied.heads)
    assert fitted.heads == Calibration.fit(*compared(relation_known=1.0)).heads
    _, right = compared(relation_known=0.5, heads_right=1.0)
    assert Calibration.fit(found, right).trees.probability[-1] > 0.9


def test_trees_with_unknown_margins_are_left_out():
    found, golds = compared(relation_known=1.0)
    unknown = np.full(10, np.nan)
    lost = replace(found[0], confidence=replace(found[0].confidence, margins=unknown, relations=unknown))
    assert Calibration.fit([lost, *found], [golds[0], *golds]) == Calibration.fit(found, golds)
