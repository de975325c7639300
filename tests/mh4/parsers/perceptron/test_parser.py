"""Perceptrons read the tags of words: a missing tag is an error."""

import pytest
from small import small_config

from mh4.data.errors import DataError
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import PerceptronConfig
from mh4.parsers.definition import Definition
from mh4.parsers.ensemble import EnsembleParser
from mh4.training.perceptron import fit
from mh4.training.treebanks import read_gold


@pytest.fixture(scope="module")
def sentences(small_treebanks):
    return read_gold(small_treebanks[0])


@pytest.fixture(scope="module", params=["upos", "xpos"])
def parser(request, sentences):
    return fit(PerceptronConfig(iterations=1, tag_column=request.param), sentences, sentences[:5], lambda *_: None)


def without(sentence, column, *words):
    values = list(getattr(sentence, column))
    for word in words:
        values[word - 1] = "_"
    return sentence.replace(**{column: values})


def test_a_word_without_the_tag_that_it_needs_is_an_error(parser, sentences):
    column = parser.vocabulary.tag_column
    bad = without(sentences[1], column, 2, 3)
    message = (
        rf"{sentences[1].name}: word 2 has no {column.upper()}.*--predict {column}; score it with --given {column}"
    )
    with pytest.raises(DataError, match=message):
        list(parser.parse([bad]))
    with pytest.raises(DataError, match=f"word 1 has no {column.upper()}"):
        parser(["Topebon", "rupo"])


def test_the_other_column_may_be_missing(parser, sentences):
    other = {"upos": "xpos", "xpos": "upos"}[parser.vocabulary.tag_column]
    untagged = without(sentences[0], other, *range(1, len(sentences[0]) + 1))
    (parsed,) = parser.parse([untagged])
    assert (parsed.heads >= 0).all()


def test_sentences_around_it_have_their_own_trees(parser, sentences):
    column, told = parser.vocabulary.tag_column, []
    mixed = [sentences[0], without(sentences[1], column, 1), sentences[2]]
    found = list(parser.parse(mixed, errors=told.append))
    assert found == list(parser.parse([sentences[0], sentences[2]]))
    assert len(told) == 1


def test_words_that_had_no_tag_in_training_need_none(sentences):
    part = [without(sentence, "upos", 1) for sentence in sentences[:10]]
    parser = fit(PerceptronConfig(iterations=1), part, part, lambda *_: None)
    assert len(parser(["a", "b"])) == 2


def test_in_an_ensemble_only_that_sentence_fails(parser, sentences):
    network = ChartParser(Definition.learn(small_config("mst"), sentences), "cpu")
    ensemble, told = EnsembleParser([network, parser]), []
    bad = without(sentences[1], parser.vocabulary.tag_column, 1)
    found = list(ensemble.parse([sentences[0], bad, sentences[2]], errors=told.append))
    assert [one.forms for one in found] == [sentences[0].forms, sentences[2].forms]
    assert "word 1 has no" in str(told[0])
