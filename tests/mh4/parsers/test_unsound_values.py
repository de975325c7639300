"""Vocabularies with values not valid in CoNLL-U, as earlier versions learnt them or as JSON edited by hand has."""

import json
import shutil

import pytest
from paths import GOLDEN_FOLDER

from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.data.values import DEPREL, LEMMA, UPOS, sound
from mh4.parsers.registry import load

MODELS = GOLDEN_FOLDER / "models"
WORDS = Sentence(["Topebon", "rupo", "."], upos=["NOUN", "VERB", "PUNCT"])


def changed(kind, folder, change):
    """Copy a golden model to a folder, apply ``change`` to its vocabulary, and return the folder."""
    shutil.copytree(MODELS / kind, folder)
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    change(vocabulary)
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("value", "column", "expected"),
    [
        ("NOUN", UPOS, "NOUN"),
        ("NOUN ", UPOS, "NOUN"),
        ("", UPOS, "_"),
        (" ", LEMMA, "_"),
        ("a b", LEMMA, "a b"),
        ("a b", DEPREL, "_"),
    ],
)
def test_unsound_values_are_unknown_and_padding_goes(value, column, expected):
    assert sound(value, column) == expected


@pytest.mark.parametrize("kind", ["chart", "greedy", "perceptron", "annotating"])
@pytest.mark.parametrize("blank", ["", " ", "two words"])
def test_relations_that_no_file_may_hold_are_written_as_unknown(kind, blank, tmp_path):
    def change(vocabulary):
        vocabulary["relations"] = [blank, *[f" {name}" for name in vocabulary["relations"][1:]]]
        if "root_relation" in vocabulary:
            vocabulary["root_relation"] = vocabulary["relations"][-1]

    parser = load(changed(kind, tmp_path / "m", change), device="cpu")
    (parsed,) = parser.parse([WORDS])
    known = load(MODELS / kind, device="cpu").vocabulary.relations
    assert set(parsed.relations) <= {"_", *known}


def test_lemmas_that_no_file_may_hold_are_made_by_rules(tmp_path):
    def change(vocabulary):
        vocabulary["columns"]["lexicon"] = dict.fromkeys(vocabulary["columns"]["lexicon"], " ")

    parser = load(changed("annotating", tmp_path / "m", change), device="cpu")
    for sentence in parser.parse(MODELS / "annotating" / "dev.conllu", predict="lemmas", overwrite=True):
        assert all(lemma.strip() for lemma in sentence.lemmas)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda vocabulary: vocabulary["columns"].update(surprise=1),
            r"columns\.surprise: unknown option; known: analyses",
        ),
        (lambda vocabulary: vocabulary.pop("characters"), "characters: is missing$"),
        (lambda vocabulary: vocabulary.update(surprise=1), "surprise: unknown option; known: relations"),
    ],
)
def test_what_is_wrong_with_a_vocabulary_is_said_in_a_line(change, message, tmp_path):
    folder = changed("annotating", tmp_path / "m", change)
    with pytest.raises(DataError, match=message) as failure:
        load(folder, device="cpu")
    assert str(failure.value).startswith(f"{folder / 'vocab.json'}: ")
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("number", [True, 0, 5, "3", None, [3], 1.0])
def test_other_formats_are_refused(number, tmp_path):
    shutil.copytree(MODELS / "chart", tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8")) | {"format": number}
    (tmp_path / "m" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(DataError, match=r"config\.json: model format .*; this version reads formats 1 to 4"):
        load(tmp_path / "m", device="cpu")
