"""Treebanks with IDs in FEATS, UPOS or XPOS: values that describe words are learnt, IDs are not."""

import logging

import pytest
from small import ANNOTATING, changed, small_config, train

from mh4.data.conllu import write_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.parsers.vocabulary import Vocabulary
from mh4.training.treebanks import read_gold, without_ids


def treebank(values, column="feats", words=3):
    """Return sentences of ``words`` words, with the values in ``column``, one per word."""
    rows = [values[start : start + words] for start in range(0, len(values), words)]
    columns = {"upos": "NOUN", "xpos": "N", "feats": "_"}
    return [
        Sentence(
            ["a"] * len(row),
            heads=[0, *[1] * (len(row) - 1)],
            relations=["root", *["dep"] * (len(row) - 1)],
            **{name: row if name == column else [value] * len(row) for name, value in columns.items()},
        )
        for row in rows
    ]


def test_an_attribute_with_a_value_for_each_sentence_is_left_out(caplog):
    feats = [value for i in range(40) for value in (f"Case=Nom|senID={i}", "Case=Acc", "_")]
    sentences = without_ids(treebank(feats), "t.conllu")
    assert {value for sentence in sentences for value in sentence.feats} == {"Case=Nom", "Case=Acc", "_"}
    (message,) = caplog.messages
    assert message.startswith("t.conllu: FEATS, attribute senID, has 40 different values in 40 words, such as '0', '1'")


def test_only_ids_is_no_features():
    sentences = without_ids(treebank([f"wordID={i}" for i in range(99)]), "t.conllu")
    assert {value for sentence in sentences for value in sentence.feats} == {"_"}


@pytest.mark.parametrize(("column", "count"), [("upos", 60), ("xpos", 900)])
def test_a_tag_of_each_word_is_left_out(column, count, caplog):
    sentences = without_ids(treebank([f"T{i}" for i in range(count)], column), "t.conllu")
    assert {tag for sentence in sentences for tag in getattr(sentence, column)} == {"_"}
    assert column.upper() in caplog.text
    other = "xpos" if column == "upos" else "upos"
    assert "_" not in getattr(sentences[0], other)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([f"NounClass=Bantu{i}" for i in range(30)], "feats"),  # each on one word, but few values
        ([f"Form={i // 2}" for i in range(200)], "feats"),  # each on two words
        ([f"N-{i}" for i in range(399)], "xpos"),  # positional tags of a small treebank
        ([f"N-{i // 2}" for i in range(2000)], "xpos"),
        (["NOUN"] * 90, "upos"),
    ],
)
def test_what_describes_words_stays(values, column, caplog):
    sentences = treebank(values, column)
    assert without_ids(sentences, "t.conllu") == sentences
    assert not caplog.messages


def test_training_warns_and_learns_the_rest(tmp_path, caplog):
    feats = [value for i in range(40) for value in (f"Case=Nom|senID={i}", "Case=Acc", "_")]
    path = tmp_path / "t.conllu"
    write_conllu(treebank(feats), path)
    config = changed(small_config("eisner", max_steps=1), **ANNOTATING)
    with caplog.at_level(logging.WARNING, "mh4"):
        train(path, path, tmp_path / "m", config, device="cpu")
    assert f"{path}: FEATS, attribute senID" in caplog.text
    assert "senID" not in (tmp_path / "m" / "vocab.json").read_text(encoding="utf-8")


def test_too_many_values_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.parsers.columns.MOST_CELLS", 1000)
    path = tmp_path / "t.conllu"
    write_conllu(treebank([f"Form={i // 2}" for i in range(90)]), path)
    config = changed(small_config("eisner", max_steps=1), **ANNOTATING)
    with pytest.raises(DataError, match=r"t\.conllu: .*attribute Form alone 45 \(remove") as failure:
        train(path, path, tmp_path / "m", config, device="cpu")
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "m" / "config.json").exists()


def test_real_treebanks_are_left_alone(small_treebanks):
    sentences = read_gold(small_treebanks[0])
    assert without_ids(sentences, "sample") == sentences
    assert Vocabulary.from_sentences(sentences, annotates=True).columns.known == {"upos", "xpos", "feats", "lemmas"}


@pytest.mark.parametrize(("column", "count"), [("upos", 60), ("xpos", 900)])
def test_words_without_a_tag_do_not_make_ids_of_the_others_common(column, count):
    sentences = without_ids(treebank([*(f"T{i}" for i in range(count)), *["_"] * 3 * count], column), "t.conllu")
    assert {tag for sentence in sentences for tag in getattr(sentence, column)} == {"_"}
