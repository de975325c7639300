"""Splitting multiword tokens into words."""

import pytest

from mh4.models.checked import as_json, checked
from mh4.parsers.multiword import MultiwordTokens

SPANISH = [("al", ("a", "el")), ("Del", ("De", "el")), ("dámelo", ("da", "me", "lo")), ("cómelo", ("come", "lo"))]
ARABIC = [("وقال", ("و", "قال")), ("وكان", ("و", "كان"))]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("al", ("a", "el")),
        ("Al", ("A", "el")),
        ("AL", ("A", "EL")),
        ("del", ("de", "el")),
        ("DEL", ("DE", "EL")),
        ("rómelo", ("rome", "lo")),  # split at the longest known ending
        ("Tómelo", ("Tome", "lo")),
        ("aL", ("a", "el")),
        ("x", ()),
        ("", ()),
    ],
)
def test_of_endings(form, words):
    assert MultiwordTokens.learn(SPANISH).words(form) == words


def test_of_beginnings():
    known = MultiwordTokens.learn(ARABIC)
    assert known.words("وذهب") == ("و", "ذهب")
    assert known.words("ذهب") == ()


def test_the_longest_match_counts():
    rules = MultiwordTokens({}, {"o": (1, ("", "o")), "melo": (4, ("", "me", "lo"))}, {"dam": (2, ("da", ""))})
    assert rules.words("damelo") == ("da", "me", "lo")
    assert rules.words("damo") == ("da", "mo")


def test_the_commonest_reading_counts():
    tokens = [("im", ("in", "dem")), ("im", ("i", "m")), ("Im", ("In", "dem"))]
    assert MultiwordTokens.learn(tokens).words("im") == ("in", "dem")


def test_rules_of_commoner_tokens_count_more():
    known = MultiwordTokens.learn([("cal", ("c", "al"))] * 3 + [("bal", ("ba", "l"))])
    assert known.endings["al"] == (2, ("", "al"))
    known = MultiwordTokens.learn([("abd", ("ab", "d"))] * 3 + [("abc", ("a", "bc"))])
    assert known.beginnings["ab"] == (2, ("ab", ""))


def test_one_capital_letter_does_not_make_all_words_capital():
    assert MultiwordTokens({"á": ("da", "a")}, {}, {}).words("Á") == ("Da", "a")


def test_a_rule_that_leaves_an_empty_word_does_not_apply():
    assert MultiwordTokens({}, {"lo": (2, ("", "lo"))}, {}).words("lo") == ()


@pytest.mark.parametrize("order", [1, -1])
def test_of_readings_that_are_as_common_the_first_of_the_alphabet_counts(order):
    tokens = [("im", ("in", "dem")), ("im", ("i", "m"))]
    known = MultiwordTokens.learn(tokens[::order])
    assert known.words("im") == ("i", "m")
    assert known.endings["im"] == (1, ("", "m"))


def test_rules_know_three_letters_beyond_those_that_they_change():
    known = MultiwordTokens.learn([("abcdefgh", ("abcdefgX", "Y")), ("stuvwxyz", ("S", "Tuvwxyz"))])
    last = (1, ("X", "Y"))
    assert known.endings == dict.fromkeys(("h", "gh", "fgh", "efgh"), last) | {"stuvwxyz": (8, ("S", "Tuvwxyz"))}
    first = (2, ("S", "T"))
    assert known.beginnings == dict.fromkeys(("st", "stu", "stuv", "stuvw"), first) | {
        "abcdefgh": (8, ("abcdefgX", "Y"))
    }


def test_words_that_are_parts_of_a_token_keep_its_capitals():
    known = MultiwordTokens.learn([("IBM's", ("IBM", "'s")), ("d'Éireann", ("do", "Éireann")), ("d'or", ("do", "or"))])
    for form, words in (
        ("IBM's", ("IBM", "'s")),
        ("McCain's", ("McCain", "'s")),
        ("IBM'S", ("IBM", "'S")),
        ("d'Éireann", ("do", "Éireann")),
        ("D'Éireann", ("Do", "Éireann")),
        ("d'or", ("do", "or")),
        ("D'OR", ("DO", "OR")),
    ):
        assert known.words(form) == words


@pytest.mark.parametrize("form", ["içdeki", "İçdeki", "İÇDEKİ", "İldeki"])
def test_a_capital_with_a_dot_is_the_letter_with_a_dot(form):
    """Although Python's lower case of it has two characters."""
    for learnt in ("içdeki", "İçdeki"):
        known = MultiwordTokens.learn([(learnt, (learnt[:-2], "ki"))])
        assert known.words(form) == (form[:-2], form[-2:])


def test_without_any_nothing_is_known():
    assert MultiwordTokens.learn([]).words("al") == ()


def test_it_is_written_and_read():
    known = MultiwordTokens.learn(SPANISH + ARABIC)
    data = {"known": known.known, "endings": known.endings, "beginnings": known.beginnings}
    assert checked(MultiwordTokens, as_json(data)) == known


@pytest.mark.parametrize(
    "data",
    [
        {"known": {"al": ["a\tb", "c"]}},
        {"known": {"al": ["a"]}},
        {"known": {"al": ["a", " "]}},
        {"endings": {"al": [3, ["a", "b"]]}},
        {"endings": {"al": [1, ["a"]]}},
        {"endings": {"al": [1, ["a", "b\n"]]}},
        {"beginnings": {"al": [-1, ["a", "b"]]}},
    ],
)
def test_what_would_make_bad_lines_is_refused(data):
    with pytest.raises(ValueError, match="al"):
        checked(MultiwordTokens, as_json({"known": {}, "endings": {}, "beginnings": {}} | data))
