"""Rules that turn forms into lemmas."""

from difflib import SequenceMatcher

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paths import SHARED

from mh4.data import lemma_rules
from mh4.data.conllu import read_conllu
from mh4.data.lemma_rules import ABSOLUTE, LemmaRule, lemma_rule

WORDS = st.text(max_size=8) | st.text("abAB", max_size=6)  # words with little and with much in common


@given(WORDS, WORDS)
@example("İstanbul", "istanbul")  # one character longer in lower case
@example("", "")
@example("Straße", "STRASSE")
def test_a_rule_makes_the_lemma_that_it_was_made_of(form, lemma):
    assert lemma_rule(form, lemma).apply(form) == lemma


@pytest.mark.parametrize(
    ("form", "lemma", "rule"),
    [
        ("világban", "világ", LemmaRule("lowered", 0, "", 3, "")),
        ("Világban", "világ", LemmaRule("lowered", 0, "", 3, "")),
        ("Budapesten", "Budapest", LemmaRule("as is", 0, "", 2, "")),
        ("BUDAPEST", "Budapest", LemmaRule("titled", 0, "", 0, "")),
        ("legnagyobb", "nagy", LemmaRule("lowered", 3, "", 3, "")),
        ("atsteigands", "at-steigan", LemmaRule("lowered", 2, "at-", 2, "")),
        ("is", "be", LemmaRule(ABSOLUTE, 0, "be", 0, "")),
        ("Rock'n'Roll", "rock'n'roll", LemmaRule("lowered", 0, "", 0, "")),
        ("ROCK'N'ROLL", "Rock'n'roll", LemmaRule("titled", 0, "", 0, "")),
        ("L'AQUILA", "L'aquila", LemmaRule("titled", 0, "", 0, "")),
        ("İlk", "ilk", LemmaRule("lowered", 0, "", 0, "")),
        ("ÇİN", "Çin", LemmaRule("titled", 0, "", 0, "")),
    ],
)
def test_rules_are_those_a_linguist_expects(form, lemma, rule):
    assert lemma_rule(form, lemma) == rule


@pytest.mark.parametrize(
    ("casing", "lemmas"),
    [("lower", ["i\u0307lk", "yeni\u0307"]), ("title", ["I\u0307lk", "Yeni\u0307"]), ("as is", ["İlk", "YENİ"])],
)
def test_rules_of_older_models_make_the_same_lemmas_as_then(casing, lemmas):
    assert [LemmaRule(casing, 0, "", 0, "").apply(form) for form in ("İlk", "YENİ")] == lemmas


@given(WORDS, WORDS)
def test_the_shared_substring_is_the_first_of_the_longest(form, lemma):
    expected = SequenceMatcher(None, form, lemma, autojunk=False).find_longest_match()
    assert lemma_rules._longest_match(form, lemma) == tuple(expected)


def test_very_long_words_have_their_rules_at_once(monkeypatch):
    """Finding a common substring takes quadratic time: minutes for 20,000 letters."""
    monkeypatch.setattr(lemma_rules, "SequenceMatcher", lambda *_, **__: pytest.fail("quadratic"))
    long = "ab" * 10_000
    assert lemma_rule("Z" + long, "z" + long) == LemmaRule("lowered", 0, "", 0, "")
    assert lemma_rule(long + "en", long) == LemmaRule("lowered", 0, "", 2, "")
    assert lemma_rule(long, "ge" + long) == LemmaRule("lowered", 0, "ge", 0, "")
    for form, lemma in ((long + "x", long + "y"), ("x" * 1001, "xy"), ("xy", "x" * 1001)):
        rule = lemma_rule(form, lemma)
        assert rule == LemmaRule(ABSOLUTE, 0, lemma, 0, "") or {*form} == {"x"}
        assert rule.apply(form) == lemma


def test_words_of_some_length_still_share_what_they_can():
    form, lemma = "x" + "ab" * 400, "ab" * 400 + "y"
    assert lemma_rule(form, lemma) == LemmaRule("lowered", 1, "", 0, "y")


def test_a_rule_is_not_for_forms_that_it_would_cut_to_nothing():
    rule = LemmaRule("lowered", 1, "", 2, "x")
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
