"""The best joint choice of analyses for a tree, checked against all choices."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small import ANNOTATOR

from mh4.data.sentence import Sentence
from mh4.models.annotator import Annotator, ColumnScores
from mh4.parsers.agreement import best_together
from mh4.parsers.column_reader import ColumnReader
from mh4.parsers.columns import Columns
from mh4.parsers.request import Request


def score_of(choice, heads, candidates, scores, values, gains):
    """Return the score of a choice of one candidate for each word, computed naively."""
    total = 0.0
    for d, own in enumerate(choice):
        total += scores[d, own]
        if heads[d + 1]:
            h = heads[d + 1] - 1
            for j, (a, b) in enumerate(zip(values[candidates[d, own]], values[candidates[h, choice[h]]], strict=True)):
                if a and b:
                    total += gains[d, j, int(a != b)]
    return total


@given(n=st.integers(1, 6), k=st.integers(1, 3), attributes=st.integers(0, 3), seed=st.integers(0, 2**32 - 1))
def test_no_other_candidates_are_better_together(n, k, attributes, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n) + 1  # each word depends on the root or on a word before it
    heads = np.full(n + 1, -1, np.int32)
    for at, word in enumerate(order):
        heads[word] = rng.choice([0, *order[:at]])
    values = rng.integers(0, 3, (7, attributes)).astype(np.int32)
    candidates = rng.integers(0, 7, (n, k)).astype(np.int32)
    scores, gains = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=(n, attributes, 2)).astype(np.float32)
    known = heads, candidates, scores, values, gains
    best = max(score_of(choice, *known) for choice in product(range(k), repeat=n))
    assert score_of(best_together(*known), *known) == pytest.approx(best, abs=1e-5)


def test_of_equal_candidates_the_first_is_taken():
    none = np.zeros((2, 0), np.int32)
    heads, candidates = np.array([-1, 2, 0], np.int32), np.array([[0, 1], [1, 0]], np.int32)
    chosen = best_together(heads, candidates, np.zeros((2, 2), np.float32), none, np.zeros((2, 0, 2), np.float32))
    assert chosen.tolist() == [0, 0]


SEEN = [
    Sentence.from_conllu(
        f"1\tx\tx\tADJ\t_\tCase={case}|Degree=Pos\t2\tamod\t_\t_\n2\ty\ty\tNOUN\t_\tCase={of_head}\t0\troot\t_\t_\n\n"
    )
    for case, of_head in (("Nom", "Nom"), ("Nom", "Nom"), ("Acc", "Acc"), ("Acc", "Nom"))
]


def test_how_often_heads_and_dependents_agree():
    without = SEEN[2].replace(feats=["Case=Acc|Degree=Pos", "_"])  # the head has no case
    columns = Columns.from_sentences([*SEEN, without])
    assert columns.agreement == {"amod\tADJ\tNOUN\tCase": (3, 1)}
    gains = columns.agreement_gains(["root", "amod"], 5.0)
    adjective, noun = columns.upos_index["ADJ"], columns.upos_index["NOUN"]
    case = list(columns.attributes).index("Case")
    chance = (5 / 9) ** 2 + (4 / 9) ** 2  # of words that have a case
    same = (3 + 5 * chance) / (4 + 5)
    expected = [np.log(same / chance), np.log((1 - same) / (1 - chance))]
    np.testing.assert_allclose(gains[1, adjective, noun, case], expected, rtol=1e-5)
    assert expected[0] > 0 > expected[1]
    gains[1, adjective, noun, case] = 0
    assert not gains.any()  # Degree has one value, nouns have none


def test_an_attribute_of_one_value_says_nothing():
    columns = Columns.from_sentences([SEEN[0].replace(feats=["Number=Sing"] * 2)])
    assert columns.agreement == {"amod\tADJ\tNOUN\tNumber": (1, 0)}
    assert not columns.agreement_gains(["root", "amod"], 5.0).any()


def test_a_head_decides_what_its_dependent_leaves_open():
    columns = Columns.from_sentences(SEEN)
    annotator = Annotator(*ANNOTATOR, 4, columns.classes)
    reader = ColumnReader(columns, annotator, torch.device("cpu"), ["root", "amod"])
    at = {analysis[::2]: k for k, analysis in enumerate(columns.analyses)}
    scores = ColumnScores(torch.zeros(2, len(columns.analyses)), torch.zeros(2, len(columns.rules)))
    scores.analyses[0, at["ADJ", "Case=Nom|Degree=Pos"]] = 0.1
    scores.analyses[1, at["NOUN", "Case=Acc"]] = 3
    sentence = Sentence.from_words(["new", "other"]).replace(upos=["ADJ", "NOUN"])
    choices = reader.choose(scores, [sentence])
    trees = [(np.array([-1, 2, 0], np.int32), np.array([1, 0]))]
    for known, cases in ((None, ["Nom", "Acc"]), ([None], ["Nom", "Acc"]), (trees, ["Acc", "Acc"])):
        (values,) = reader.read(choices, [sentence], Request(predict="feats"), known)
        assert [feats.partition("|")[0] for feats in values["feats"]] == [f"Case={case}" for case in cases]
