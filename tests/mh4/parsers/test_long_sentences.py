"""Parsers of every kind parse sentences beyond a limit in pieces, with a warning that names them."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from paths import GOLDEN_FOLDER
from small import small_config, small_greedy_config, train

from mh4.api import load
from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.data.shards import cut_shards
from mh4.decoders.trees import is_tree
from mh4.parsers.answers import Answers
from mh4.parsers.config import PerceptronConfig, TransitionConfig
from mh4.parsers.ensemble import EnsembleParser
from mh4.parsers.long_sentences import LONGEST, PIECE, cut, in_pieces, joined
from mh4.parsers.request import Request
from mh4.service.cluster import parse_shard

ROOT = frozenset({"root"})
WORDS = ["A", "kutya", "ugat", "és", "morog", "."]


@pytest.fixture(scope="module")
def models(small_model, small_treebanks, tmp_path_factory):
    """A model folder of each kind."""
    folder = tmp_path_factory.mktemp("models")
    greedy = small_greedy_config(TransitionConfig(system="covington"), max_steps=2, evaluation_steps=2)
    train(*small_treebanks, folder / "greedy", greedy, device="cpu", threads=1)
    train(*small_treebanks, folder / "perceptron", PerceptronConfig(iterations=1))
    train(*small_treebanks, folder / "mst", small_config("mst", max_steps=2), device="cpu", threads=1)
    return {"chart": small_model, **{name: folder / name for name in ("greedy", "perceptron", "mst")}}


def tagged(words):
    """Return a sentence with UPOS, which perceptrons need."""
    return Sentence.from_words(words).replace(upos=["NOUN"] * len(words))


def long_file(path, n):
    long = tagged((WORDS * n)[:n]).with_comment("sent_id", "all-of-it")
    short = tagged(WORDS).to_conllu()
    path.write_text(short + long.to_conllu() + short, encoding="utf-8")
    return path


@pytest.mark.parametrize("kinds", [["chart"], ["greedy"], ["perceptron"], ["mst", "perceptron"]])
def test_a_sentence_of_12000_words_is_parsed_within_a_file(models, kinds, tmp_path, caplog):
    source = long_file(tmp_path / "in.conllu", 12_000)
    parser = load(*(models[kind] for kind in kinds), device="cpu", threads=1)
    with caplog.at_level(logging.WARNING, "mh4"):
        assert parser.parse_file(source, tmp_path / "out.conllu") == (3, 12_012)
    before, long, after = read_conllu(tmp_path / "out.conllu", trees="required")
    assert before.heads.tolist() == after.heads.tolist() == parser(tagged(WORDS)).heads.tolist()
    assert is_tree(long.padded_heads, single_root=True)
    assert long.sent_id == "all-of-it"
    assert f"{source}:8: sentence all-of-it: of 12000 words, more than {LONGEST}, is parsed in pieces" in caplog.text


def test_the_cluster_parses_them_too(models, tmp_path):
    source = long_file(tmp_path / "in.conllu", LONGEST + 1)
    (shard,) = cut_shards(source)
    assert parse_shard(load(models["perceptron"]), shard, tmp_path / "out.conllu").words == LONGEST + 13
    sentences = list(read_conllu(tmp_path / "out.conllu", trees="required"))
    assert len(sentences[1]) == LONGEST + 1


def test_up_to_the_limit_a_sentence_is_parsed_as_one(models, tmp_path, caplog):
    parser = load(models["perceptron"])
    with caplog.at_level(logging.WARNING, "mh4"):
        parser(tagged(WORDS * (LONGEST // len(WORDS))))
    assert not caplog.records


def test_heads_are_kept_up_to_the_limit_and_longer_sentences_are_named(models, tmp_path):
    source = long_file(tmp_path / "in.conllu", LONGEST + 1)
    parser = load(models["mst"], device="cpu", threads=1)
    message = rf"in.conllu:8: sentence all-of-it: has {LONGEST + 1} words; heads can be kept in sentences of up to"
    with pytest.raises(DataError, match=message):
        parser.parse_file(source, tmp_path / "out.conllu", keep_heads=True)
    errors = []
    assert parser.parse_file(source, tmp_path / "out.conllu", keep_heads=True, errors=errors.append) == (2, 12)
    assert len(errors) == 1


@pytest.mark.parametrize("keep_heads", [False, True])
def test_without_trees_words_are_annotated_in_pieces(keep_heads):
    def answer(pieces):
        return Answers([Annotation(lemmas=("x",) * len(piece)) for piece in pieces])

    sentence = Sentence.from_words(["a"] * 7, source="in.conllu")
    found = in_pieces(answer, [sentence], Request(predict="lemmas", keep_heads=keep_heads), ROOT, 3)
    assert found.annotations == [Annotation(lemmas=("x",) * 7)]
    assert found.warnings == ["in.conllu:1: sentence 1: of 7 words, more than 3, is annotated in pieces of at most 3"]
    assert not found.errors


@pytest.mark.parametrize("together", [False, True])
def test_a_missing_tag_is_named_by_its_place_in_the_file(together, tmp_path):
    tags = ["NOUN"] * (LONGEST + 1)
    tags[1500] = "_"
    sentence = Sentence.from_words(["a"] * (LONGEST + 1)).replace(upos=tags).with_comment("sent_id", "long")
    (tmp_path / "in.conllu").write_text(sentence.to_conllu(), encoding="utf-8")
    parser = load(GOLDEN_FOLDER / "models" / "perceptron")
    parser = EnsembleParser([parser]) if together else parser
    with pytest.raises(DataError, match=r"in.conllu:1502: sentence long: word 1501 has no UPOS"):
        list(parser.parse(tmp_path / "in.conllu"))


def test_training_leaves_them_out(small_treebanks, tmp_path, caplog):
    tree = Sentence.from_words(["a"] * (LONGEST + 1)).replace(heads=np.arange(LONGEST + 1))
    treebank = tmp_path / "train.conllu"
    treebank.write_text(small_treebanks[0].read_text(encoding="utf-8") + tree.to_conllu(), encoding="utf-8")
    with caplog.at_level(logging.WARNING, "mh4"):
        train(treebank, small_treebanks[1], tmp_path / "model", small_config("mst", max_steps=1), device="cpu")
    assert "1 training sentences are left out" in caplog.text


def test_pieces_end_behind_punctuation_and_hold_all_columns():
    forms = ["a"] * (PIECE - 10) + ["."] + ["b"] * PIECE
    columns = {name: tuple(f"{name}={i}" for i in range(len(forms))) for name in ("upos", "xpos", "feats", "lemmas")}
    pieces = cut(Sentence.from_words(forms).replace(**columns))
    assert [len(piece) for piece in pieces] == [PIECE - 9, PIECE]
    for name, values in columns.items():
        assert sum((tuple(getattr(piece, name)) for piece in pieces), ()) == values
    own = cut(Sentence.from_words(forms, source="FILE", number=7))
    assert [(piece.source, piece.number) for piece in own] == [("FILE", 7)] * 2  # named in warnings
    assert [len(piece) for piece in cut(Sentence.from_words(["a"] * (2 * PIECE + 1)))] == [PIECE, PIECE, 1]


@pytest.mark.parametrize("end", [0, PIECE // 2 - 1])
def test_pieces_do_not_end_in_their_first_half(end):
    forms = ["a"] * (PIECE + 10)
    forms[end] = "."
    assert [len(piece) for piece in cut(Sentence.from_words(forms))] == [PIECE, 10]


def test_a_piece_may_end_anywhere_in_its_second_half():
    for end in (PIECE // 2, PIECE // 2 + 1, PIECE - 1):
        forms = ["a"] * (PIECE + 10)
        forms[PIECE // 2 - 1] = forms[end] = "."
        assert [len(piece) for piece in cut(Sentence.from_words(forms))] == [end + 1, PIECE + 9 - end]


def test_the_last_end_in_a_piece_counts():
    forms = ["a"] * (PIECE + 10)
    forms[PIECE - 30] = forms[PIECE - 20] = "!"
    assert len(cut(Sentence.from_words(forms))[0]) == PIECE - 19


@pytest.mark.parametrize("end", ["?!", "...", "।", "؟", "።"])
def test_a_piece_ends_with_any_scripts_punctuation(end):
    forms = ["a"] * (PIECE + 10)
    forms[PIECE - 20] = end
    forms[PIECE - 10] = "a."  # an abbreviation does not end a sentence
    assert len(cut(Sentence.from_words(forms))[0]) == PIECE - 19


def test_a_sentence_has_a_score_if_all_its_pieces_have():
    pieces = [Sentence.from_words(["a"])] * 3
    trees = [Annotation(np.array([0], np.int32), ("root",), score=score) for score in (1.5, 2.0, 4.0)]
    assert joined(trees, pieces, ROOT).score == 7.5
    assert joined([trees[0], replace(trees[1], score=None), trees[2]], pieces, ROOT).score is None


@pytest.mark.parametrize(
    ("options", "lost"), [({"confidence": True}, ", without confidence"), ({"k_best": 3}, ", without other trees")]
)
def test_what_a_sentence_in_pieces_goes_without_is_said(options, lost, models, monkeypatch, caplog):
    monkeypatch.setattr("mh4.parsers.base.LONGEST", 10)
    monkeypatch.setattr("mh4.parsers.long_sentences.PIECE", 6)
    parser = load(models["chart"], device="cpu", threads=1)
    (long,) = parser.parse([WORDS * 2], **options)
    assert long.confidence is None
    (warning,) = caplog.messages
    assert warning.endswith(f"below the first one's root{lost}")
    caplog.clear()
    list(parser.parse([WORDS * 2]))
    assert caplog.messages[0].endswith("below the first one's root")


def test_annotations_are_put_together():
    first = Annotation(np.array([2, 0], np.int32), ("det", "root"), upos=("D", "N"), score=1.0)
    second = Annotation(np.array([0, 1], np.int32), ("root", "obj"), upos=("V", "N"), score=2.5)
    whole = Annotation(
        np.array([2, 0, 2, 3], np.int32), ("det", "root", "parataxis", "obj"), upos=("D", "N", "V", "N"), score=3.5
    )
    pieces = [
        Sentence.from_words(["a", "b"]),
        Sentence.from_words(["c", "d"]).replace(lemmas=["C", "D"], feats=["N=1"] * 2),
    ]
    assert joined([first, second], pieces, ROOT) == whole
    first, second = replace(first, lemmas=("A", "B"), feats=("N=2", "_")), replace(second, upos=None)
    given = [pieces[0], pieces[1].replace(upos=["X", "Y"])]
    both = joined([first, second], given, ROOT)  # given values fill in where none are predicted
    assert both.lemmas == ("A", "B", "C", "D")
    assert both.upos == ("D", "N", "X", "Y")
    assert both.feats is None  # FEATS given for one word count as given for the sentence


def test_the_first_error_of_a_piece_is_that_of_its_sentence(monkeypatch):
    monkeypatch.setattr("mh4.parsers.long_sentences.PIECE", 2)
    short, long = (Sentence.from_words(list(letters)) for letters in ("ab", "cdefgh"))

    def answer(pieces):
        assert [one.forms for one in pieces] == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("a", "b")]
        annotation = Annotation(np.array([0, 1], np.int32), ("root", "obj"))
        return Answers([annotation] * 5, {2: DataError("e f"), 3: DataError("g h")}, ["last"])

    answers = in_pieces(answer, [short, long, short], Request(), ROOT, 4)
    assert {i: str(error) for i, error in answers.errors.items()} == {1: "e f"}
    assert [one.heads is None for one in answers.annotations] == [False, True, False]
    assert "of 6 words, more than 4, is parsed in pieces of at most 2" in answers.warnings[0]
    assert answers.warnings[1:] == ["last"]
    with pytest.raises(DataError, match="e f"):
        answers.checked()


@pytest.mark.parametrize("predict", ["upos", "upos,heads"])
def test_whole_sentences_need_to_be_parsable_only_for_trees(predict):
    long = Sentence.from_words(["a"] * 10)
    request, error = Request(predict=predict), DataError("word 1 has no tag")
    answers = in_pieces(lambda pieces: Answers([Annotation()] * len(pieces)), [long], request, ROOT, 4, lambda _: error)
    assert answers.errors == ({0: error} if "heads" in predict else {})


def test_pieces_are_no_longer_than_sentences_may_be():
    sizes = []

    def answer(pieces):
        sizes.extend(map(len, pieces))
        return Answers([Annotation()] * len(pieces))

    in_pieces(answer, [Sentence.from_words(["a"] * 10)], Request(predict="upos"), ROOT, 4)
    assert sizes == [4, 4, 2]


def test_pieces_are_called_as_their_sentence():
    sentence = Sentence.from_words(["a"] * (PIECE + 1), source="a.conllu", number=7)
    assert [(piece.source, piece.number) for piece in cut(sentence)] == [("a.conllu", 7)] * 2


def test_of_several_roots_the_first_has_what_follows():
    parts = [Annotation(np.array(heads, np.int32), ("x",) * 3) for heads in ([2, 0, 0], [0, 1, 0])]
    pieces = [Sentence.from_words(["a", "b", "c"])] * 2
    assert joined(parts, pieces, ROOT).heads.tolist() == [2, 0, 0, 2, 4, 2]


def test_relations_of_the_root_alone_stay_with_the_first_piece():
    one = Annotation(np.array([0, 1], np.int32), ("SENT", "root"))
    other = Annotation(np.array([0, 0], np.int32), ("root", "SENT"))
    pieces = [Sentence.from_words(["a", "b"])] * 2
    assert joined([one, other], pieces, frozenset({"SENT"})).relations == ("SENT", "root", "root", "parataxis")
