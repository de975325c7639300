"""Vocabularies: what is kept, what survives a round trip."""

import json
from dataclasses import asdict

import pytest

from mh4.data.sentence import Sentence
from mh4.models.checked import checked
from mh4.parsers.vocabulary import Vocabulary


def test_a_relation_without_a_head_teaches_nothing():
    """The head of its arc is unknown, and may be outside the annotated part of the sentence."""
    sentence = Sentence(["a", "b", "c"], heads=[-1, 0, 2], relations=["r9", "root", "obj"], upos=["X", "Y", "Z"])
    vocabulary = Vocabulary.from_sentences([sentence], annotates=True)
    assert sorted(vocabulary.relations) == ["obj", "root"]
    assert sorted(vocabulary.columns.by_relation) == ["obj", "root"]


def test_vocabularies_are_read_back():
    vocabulary = Vocabulary.from_sentences([Sentence.from_words(["The", "the", "cat"])])
    data = asdict(vocabulary)
    assert checked(Vocabulary, json.dumps(data)) == vocabulary
    data["features"] = ["Case=Nom"]  # of an auxiliary task in earlier versions
    assert checked(Vocabulary, json.dumps(data)) == vocabulary


@pytest.mark.parametrize(("forms", "spaced"), [(["10 000", *["word"] * 60], False), (["một hai", "ba"], True)])
def test_words_hold_spaces_as_a_rule_or_now_and_then(forms, spaced):
    assert Vocabulary.from_sentences([Sentence.from_words(forms)]).spaced == spaced
