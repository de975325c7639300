"""Confidence of words and trees, how it is written to MISC and comments, and uncertain words left to annotators."""

from dataclasses import replace

import numpy as np
import pytest

from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence, with_entries
from mh4.data.confidence_columns import (
    Output,
    least_certain,
    ranked,
    read_confidence,
    with_confidence,
    without_confidence,
)
from mh4.data.sentence import Sentence

TEXT = """\
# sent_id = s1
# text = A kutya ugat.
1\tA\ta\tDET\t_\t_\t_\t_\t_\tGloss=the|Zeta=1
2\tkutya\tkutya\tNOUN\t_\tCase=Nom\t_\t_\t_\tConfidence=0.1|HeadConfidence=0.2|Margin=0.5|NextHead=1
3-4\tugat.\t_\t_\t_\t_\t_\t_\t_\t_
3\tugat\tugat\tVERB\t_\t_\t_\t_\t_\tb|A=2
4\t.\t.\tPUNCT\t_\t_\t_\t_\t_\t_

"""
FOUND = Confidence(
    margins=np.array([3.14159, 0.0, np.inf, np.nan]),
    runners_up=np.array([3, 4, -1, -1], np.int32),
    relations=np.array([0.9, 0.8, np.inf, 0.7]),
    heads=np.array([0.97, 0.5, 1.0, np.nan]),
    words=np.array([0.95, 0.4, 1.0, np.nan]),
    tree=0.25,
)
TREE = Annotation(np.array([2, 3, 0, 3]), ("det", "nsubj", "root", "punct"), score=12.5, confidence=FOUND)


@pytest.fixture
def parsed():
    return Sentence.from_conllu(TEXT).annotated(TREE)


def test_words_say_how_sure_the_parser_is(parsed):
    assert [word.confidence for word in parsed] == [0.95, 0.4, 1.0, None]
    assert [word.head_confidence for word in parsed] == [0.97, 0.5, 1.0, None]
    assert [word.margin for word in parsed] == [3.14159, 0.0, np.inf, None]
    assert [word.alternatives for word in parsed] == [[(3, 3.14159)], [(4, 0.0)], [], []]
    assert parsed[0].to_dict()["confidence"] == 0.95
    unparsed = Sentence.from_conllu(TEXT)[0]
    assert (unparsed.confidence, unparsed.margin, unparsed.alternatives) == (None, None, [])
    assert "confidence" not in unparsed.to_dict()


def test_all_alternatives_come_by_their_cost():
    losses = np.full((4, 3), np.inf, np.float32)
    losses[[0, 1, 3], 1] = 5.0, 0.5, 5.0
    found = Confidence(np.full(3, 0.5), np.array([-1, 1, -1]), np.full(3, 0.9), losses=losses)
    assert found.alternatives(2) == [(1, 0.5), (0, 5.0), (3, 5.0)]
    assert found.alternatives(1) == []


def test_new_heads_and_comments_keep_or_drop_the_confidence(parsed):
    assert parsed.with_comment("a", "b").confidence is FOUND
    assert parsed.replace(lemmas=["x"] * 4).confidence is FOUND
    assert parsed.replace(heads=[2, 3, 0, 3]).confidence is None


def test_annotations_compare_their_confidence():
    assert Annotation(*TREE.tree, score=12.5, confidence=Confidence(**vars(FOUND))) == TREE
    changed = Confidence(**{**vars(FOUND), "tree": 0.5})
    assert Annotation(*TREE.tree, score=12.5, confidence=changed) != TREE != Annotation(*TREE.tree, score=12.5)


def test_misc_and_a_comment_tell_it_and_all_else_stays(parsed):
    before, after = TEXT.splitlines(), with_confidence(parsed).to_conllu().splitlines()
    misc = [line.split("\t")[-1] for line in after if "\t" in line]
    assert misc == [
        "Confidence=0.95|Gloss=the|HeadConfidence=0.97|Margin=3.142|NextHead=3|Zeta=1",
        "Confidence=0.4|HeadConfidence=0.5|Margin=0|NextHead=4",
        "_",
        "b|A=2|Confidence=1|HeadConfidence=1",
        "_",
    ]
    assert after[2] == "# tree_confidence = 0.25"
    del after[2]
    for old, new in zip(before, after, strict=True):
        columns, others = old.split("\t"), new.split("\t")
        assert columns[:6] == others[:6]
    again = with_confidence(Sentence.from_conllu(with_confidence(parsed).to_conllu()).annotated(TREE))
    assert again.to_conllu() == with_confidence(parsed).to_conllu()


@pytest.mark.parametrize(
    ("misc", "entries", "expected"),
    [
        ("_", {"Margin": "1"}, "Margin=1"),
        ("A=1|Z=2", {"Margin": "1"}, "A=1|Margin=1|Z=2"),
        ("SpaceAfter=No", {"NextHead": "4", "Margin": "1"}, "Margin=1|NextHead=4|SpaceAfter=No"),
        ("Z=2|A=1", {"Margin": "1"}, "Margin=1|Z=2|A=1"),
        ("A=1|Margin=7|b", {"Margin": "1"}, "A=1|b|Margin=1"),
        ("A=1|b", {}, "A=1|b"),
    ],
)
def test_entries_are_merged_in_order(misc, entries, expected):
    assert with_entries(misc, entries) == expected


def test_less_certain_words_are_left_to_people(parsed):
    written = Output(min_confidence=0.9)(parsed)
    assert written.heads.tolist() == [2, -1, 0, -1]
    assert written.relations == ("det", "_", "root", "_")
    assert written.misc == parsed.misc
    assert Output(min_confidence=0.0)(parsed).heads.tolist() == [2, 3, 0, -1]  # the last word has no confidence
    with pytest.raises(ValueError, match=r"probability from 0 to 1; got 1\.5"):
        Output(min_confidence=1.5)


def test_limits_are_inclusive(parsed):
    assert Output(min_confidence=0.95)(parsed).heads.tolist() == [2, -1, 0, -1]
    assert Output(min_confidence=0.4)(parsed).relations == ("det", "nsubj", "root", "_")
    assert Output(min_confidence=1)(parsed).heads.tolist() == [-1, -1, 0, -1]
    for outside in (-0.001, 1.001):
        with pytest.raises(ValueError, match="probability"):
            Output(min_confidence=outside)


def test_of_equally_certain_words_the_smaller_margin_comes_first_and_then_the_first_word():
    def sentence(number, words, margins):
        found = Confidence(np.array(margins), np.zeros(3, np.int32), np.ones(3), np.ones(3), np.array(words))
        plain = Sentence.from_words(["a", "b", "c"], number=number)
        return plain.replace(heads=[2, 0, 2], confidence=found)

    sentences = [sentence(1, [0.5, 0.2, 0.5], [3.0, 9.0, 1.0]), sentence(2, [0.5, 1.0, 0.5], [1.0, 0.0, 3.0])]
    found = [(word.sentence, word.id) for word in least_certain(sentences, 10)]
    assert found == [("1", 2), ("1", 3), ("2", 1), ("1", 1), ("2", 3)]  # the certain word is not listed
    assert [(word.sentence, word.id) for word in least_certain(sentences, 3)] == found[:3]


def test_confidences_are_listed_with_as_many_digits_as_are_written():
    found = Confidence(np.ones(1), np.zeros(1, np.int32), np.ones(1), np.ones(1), np.array([0.123456]))
    sentence = Sentence.from_words(["a"]).replace(heads=[0], confidence=found)
    assert least_certain([sentence], 1)[0].confidence == 0.123


def test_what_was_given_stays(parsed):
    given = Sentence.from_conllu(TEXT).replace(heads=[-1, 3, -1, 3], relations=["_", "_", "_", "x"])
    written = Output(min_confidence=0.99)(
        parsed.replace(relations=["a", "b", "c", "x"], score=1.0, confidence=FOUND), given
    )
    assert written.heads.tolist() == [-1, 3, 0, 3]
    assert written.relations == ("_", "_", "c", "x")
    unknown = parsed.replace(heads=parsed.heads)  # new heads drop the confidence
    assert Output(min_confidence=0.5)(unknown, given).heads.tolist() == [-1, 3, -1, 3]


def test_a_relation_that_was_given_without_a_head_stays_unless_the_parser_is_sure(parsed):
    """`parsed` is sure of words 1 and 3."""
    given = Sentence.from_conllu(TEXT).replace(relations=["_", "obl", "_", "_"])
    written = Output(min_confidence=0.9)(parsed, given)
    assert written.heads.tolist() == [2, -1, 0, -1]
    assert written.relations == ("det", "obl", "root", "_")
    again = Output(min_confidence=0.9)(parsed, given.replace(relations=["x", "obl", "_", "obl"]))
    assert again.relations == ("det", "obl", "root", "obl")


def test_what_an_earlier_parser_said_goes(parsed):
    noted = with_confidence(parsed)
    unknown = noted.replace(heads=noted.heads)
    assert with_confidence(unknown) == unknown.replace(
        misc=["Gloss=the|Zeta=1", "_", "b|A=2", "_"], comments=noted.comments[:-1]
    )
    assert with_confidence(noted) == noted


def test_entries_and_comments_of_others_stay_under_the_same_names():
    misc = "Confidence=high|Margin=wide|Margin=3.14159|Margin=1cm|NextHead=x|NextHead|MarginX=1"
    comments = ("# tree_confidence = low", "# tree_confidence")
    sentence = Sentence(["a"]).replace(misc=[misc], comments=comments)
    assert without_confidence(sentence) == sentence
    both = sentence.replace(misc=[f"Confidence=1|{misc}|Margin=12.5|NextHead=0"])
    both = both.replace(comments=[*comments, "# tree_confidence = 0.125"])
    assert without_confidence(both) == sentence


@pytest.mark.parametrize("least", ["0.9", True, [0.9]])
def test_a_least_confidence_is_a_number(least):
    with pytest.raises(TypeError, match="min_confidence must be a number; got"):
        Output(min_confidence=least)
    assert Output(min_confidence=np.float32(0.5)) == Output(min_confidence=0.5)


def test_words_that_can_have_no_other_head_are_not_uncertain(parsed):
    found = replace(FOUND, words=np.array([0.95, 0.4, 0.3, np.nan]))
    words = least_certain([parsed.replace(heads=parsed.heads, confidence=found)], 10)
    assert [word.id for word in words] == [2, 1]


def test_a_sentence_of_several_trees_has_ids_of_its_own(parsed):
    second = ranked(parsed, 2)
    other = ranked(Sentence.from_conllu("#sent_id=s1\n1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n"), 2)
    assert (other.sent_id, other.comments) == ("s1-k2", ("# sent_id = s1-k2", "# rank = 2"))
    odd = ranked(Sentence(["b"], comments=["# sent_id =", "# sent_id = a", "# sent_id = b "]), 2)
    assert odd.comments == ("# sent_id =", "# sent_id = a-k2", "# sent_id = b-k2", "# rank = 2")
    lines = [
        "# global.Entity = x",
        "#newdoc id = d",
        "# newpar",
        "# newdoc_extra = a",
        "# sent_id = s1",
        "#parallel_id=p/1",
    ]
    lines += ["# newdocument", "# text = b", "# sent_id"]
    of_first, of_second = (ranked(Sentence(["b"], comments=lines), rank).comments for rank in (1, 2))
    assert list(of_first) == [*lines[:4], "# sent_id = s1-k1", *lines[5:], "# rank = 1"]
    assert list(of_second) == [lines[3], "# sent_id = s1-k2", *lines[6:], "# rank = 2"]
    assert second.sent_id == "s1-k2"
    assert second.comments[-2:] == ("# rank = 2", "# score = 12.5")
    assert second.confidence is FOUND
    text = "# newdoc id = d\r\n# newpar\r\n# sent_id = s1\r\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\r\n\r\n"
    first, second = (ranked(Sentence.from_conllu(text), rank).to_bytes().decode() for rank in (1, 2))
    assert first == text.replace("s1", "s1-k1").replace("1\ta", "# rank = 1\r\n1\ta")
    assert second.startswith("# sent_id = s1-k2\r\n# rank = 2\r\n1\t")  # newdoc and newpar are not repeated
    nameless = ranked(Sentence.from_words(["a"]), 1)
    assert nameless.comments == ("# rank = 1",)


def test_what_is_written_can_be_read(parsed):
    found = [read_confidence(misc) for misc in with_confidence(parsed).misc]
    np.testing.assert_array_equal(
        found, [(0.95, 0.97, 3.142), (0.4, 0.5, 0.0), (1.0, 1.0, np.nan), (np.nan, np.nan, np.nan)]
    )
    with pytest.raises(ValueError, match="could not convert"):
        read_confidence("Confidence=high")


def test_of_heads_that_cost_as_much_the_next_best_comes_first():
    losses = np.array([[0.5, 0.7], [np.inf, np.inf], [0.5, 0.1], [0.5, 0.7]], np.float32)
    found = Confidence(np.array([0.5, 0.1]), np.array([2, 2], np.int32), np.ones(2), losses=losses)
    assert [head for head, _ in found.alternatives(1)] == [2, 0, 3]
    assert [head for head, _ in found.alternatives(2)] == [2, 0, 3]


def test_annotations_are_equal_if_all_that_they_say_is():
    same = replace(TREE, heads=TREE.heads.copy())
    assert same == TREE
    assert replace(TREE, heads=np.array([2, 3, 0, 2])) != TREE
    assert replace(TREE, heads=None) != TREE
    assert replace(TREE, upos=("X",) * 4) != TREE
    assert replace(TREE, confidence=replace(FOUND, tree=0.5)) != TREE
    assert replace(TREE, next_best=(same,)) != TREE
