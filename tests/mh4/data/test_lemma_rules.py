"""Rules from forms to lemmas."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paths import SHARED

from mh4.data.conllu import read_conllu
from mh4.data.lemma_rules import ABSOLUTE, LemmaRule, lemma_rule

WORDS = st.text(max_size=8) | st.text("abAB", max_size=6)  # with much in common and with nothing


@given(WORDS, WORDS)
@example("İstanbul", "istanbul")  # lower case has one character more
@example("", "")
@example("Straße", "STRASSE")
def test_a_rule_makes_the_lemma_that_it_was_made_of(form, lemma):
    assert lemma_rule(form, lemma).apply(form) == lemma


@pytest.mark.parametrize(
    ("form", "lemma", "rule"),
    [
        ("világban", "világ", LemmaRule("lower", 0, "", 3, "")),
        ("Világban", "világ", LemmaRule("lower", 0, "", 3, "")),
        ("Budapesten", "Budapest", LemmaRule("as is", 0, "", 2, "")),
        ("BUDAPEST", "Budapest", LemmaRule("title", 0, "", 0, "")),
        ("legnagyobb", "nagy", LemmaRule("lower", 3, "", 3, "")),
        ("atsteigands", "at-steigan", LemmaRule("lower", 2, "at-", 2, "")),
        ("is", "be", LemmaRule(ABSOLUTE, 0, "be", 0, "")),
    ],
)
def test_rules_are_those_a_linguist_expects(form, lemma, rule):
    assert lemma_rule(form, lemma) == rule


def test_a_rule_is_not_for_forms_that_it_would_cut_to_nothing():
    rule = LemmaRule("lower", 1, "", 2, "x")
    assert rule.apply("abcd") == "bx"
    assert rule.apply("abc") is None
    assert rule.cut == 3


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((SHARED / "ud").glob("*/*/*.conllu")), ids=lambda path: path.stem)
def test_every_word_of_a_treebank_gets_its_lemma(path):
    pairs = {pair for sentence in read_conllu(path) for pair in zip(sentence.forms, sentence.lemmas, strict=True)}
    assert pairs
    for form, lemma in pairs:
        assert lemma_rule(form, lemma).apply(form) == lemma
