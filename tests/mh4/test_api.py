"""What users guess before they read the documentation either works or raises an error that says what to write."""

import copy
import json
import os
import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mh4
from mh4.api import configure
from mh4.data.errors import DataError
from mh4.data.text import text_of
from mh4.decoders.search import BeamSearch
from mh4.parsers.config import ChartConfig, PerceptronConfig
from mh4.parsers.ensemble import EnsembleParser
from mh4.parsers.folder import ModelFolder

SMALL = {"hidden": 16, "word_size": 8, "character_size": 8, "character_hidden": 8, "mlp": 8, "segmenter": False}
FORMS = ["A", "kutya", "ugat", "."]


@pytest.fixture(scope="module")
def parser(small_model):
    return mh4.load(small_model, device="cpu")


def test_a_list_of_words_becomes_a_sentence(parser):
    sentence = parser(FORMS)
    assert [word.form for word in sentence] == FORMS
    assert sentence.heads.shape == (4,)
    assert len(sentence.relations) == 4
    assert sentence[0].id == 1
    assert {word.head for word in sentence} <= set(range(5))
    root = sentence.root
    assert root.parent is None
    assert all(child.parent == root for child in root.children)


def test_several_lists_become_a_document(parser):
    document = parser([FORMS, ["Ugat", "."]])
    assert isinstance(document, mh4.Document)
    assert [len(sentence) for sentence in document] == [4, 2]
    assert document[0] == parser(FORMS)
    assert list(parser.parse([FORMS, ["Ugat", "."]])) == list(document)


@pytest.fixture(scope="module")
def text_parser(text_model):
    return mh4.load(text_model, device="cpu")


@settings(max_examples=30)
@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff")) | st.text("\n\t a.😀\u200d'\\|")
)
def test_text_comes_back_from_the_words_of_its_trees(text_parser, text):
    sentences = text_parser(text)
    back = "".join(text_of(sentences))
    assert text.startswith(back)
    assert not text[len(back) :].strip()
    assert all(sentence.root for sentence in sentences)


def test_text_without_words_is_a_document_without_sentences(text_parser):
    assert len(text_parser("")) == len(text_parser(" \n")) == 0


def test_a_model_without_a_segmenter_parses_words(small_model):
    parser = mh4.load(small_model, device="cpu")
    with pytest.raises(ValueError, match="it has no segmenter"):
        parser("Zub ulv.")
    assert len(parser(FORMS)) == 4


def test_what_is_cut_has_the_name_of_its_source(text_parser):
    assert {sentence.source for sentence in text_parser.cut("A. B.", "letter.txt")} == {"letter.txt"}


def test_a_lone_surrogate_is_refused(text_parser):
    with pytest.raises(DataError, match="lone surrogate"):
        text_parser("a\ud800b")


def test_a_file_is_parsed_sentence_by_sentence(parser, small_treebanks, tmp_path):
    sentences = list(parser.parse(small_treebanks[1]))
    mh4.write_conllu(sentences, tmp_path / "out.conllu")
    assert list(mh4.read_conllu(tmp_path / "out.conllu")) == sentences
    count = parser.parse_file(small_treebanks[1], tmp_path / "again.conllu")
    assert count.sentences == len(sentences)
    assert (tmp_path / "again.conllu").read_bytes() == (tmp_path / "out.conllu").read_bytes()


def test_what_stands_before_a_bad_sentence_is_parsed(parser, tmp_path):
    good = mh4.Sentence(FORMS).to_conllu()
    (tmp_path / "in.conllu").write_text(2 * good + good.replace("\t_\n", "\n") + good, encoding="utf-8")
    sentences = parser.parse(tmp_path / "in.conllu")
    assert [next(sentences), next(sentences)] == 2 * [parser(FORMS)]
    with pytest.raises(DataError, match=r"in\.conllu:11: sentence 3: 9 tab-separated columns"):
        next(sentences)


def test_one_training_call_gives_the_best_parser(small_treebanks, tmp_path):
    train, dev = small_treebanks
    parser = mh4.train(train, dev, tmp_path / "m", decoder="eisner", epochs=1, seed=3, device="cpu", **SMALL)
    assert isinstance(parser, mh4.Parser)
    assert len(parser(FORMS)) == 4
    assert parser.meta["dev"]["las"] == pytest.approx(mh4.evaluate(dev, parser.parse(dev)).las, abs=0.01)
    with pytest.raises(DataError, match="overwrite=True"):
        mh4.train(train, dev, tmp_path / "m", decoder="eisner", device="cpu")


@pytest.mark.parametrize("resumes", [True, False])
def test_every_option_of_training_arrives(resumes, small_treebanks, tmp_path, monkeypatch):
    jobs, loaded = [], {}
    monkeypatch.setattr("mh4.api.run_training", jobs.append)
    monkeypatch.setattr("mh4.api.load", lambda folder, **options: loaded.update(folder=folder, **options))
    functions = {"errors": print, "on_step": len, "on_evaluation": repr}
    options = {"device": "cpu", "threads": 3, "resume": resumes, "overwrite": not resumes}
    mh4.train(*small_treebanks, tmp_path / "m", **options, segmenter=False, **functions)
    (job,) = jobs
    assert (job.train, job.dev, job.output) == (*small_treebanks, tmp_path / "m")
    assert job.segmenter is False
    assert {name: getattr(job, name) for name in options | functions} == options | functions
    assert loaded == {"folder": tmp_path / "m", "device": "cpu", "threads": 3}


def test_the_configuration_is_the_preset_then_what_is_chosen_then_the_settings():
    balanced = configure().training
    assert (balanced.learning_rate, balanced.patience, balanced.seed, balanced.max_epochs) == (0.004, 20, 1, 0)
    assert configure(preset="paper") == ChartConfig()
    chosen = configure(decoder="eisner", seed=7, epochs=3, settings={"patience": 2, "mlp": 10})
    assert (chosen.decoder, chosen.training.seed, chosen.training.max_epochs) == ("eisner", 7, 3)
    assert (chosen.training.patience, chosen.scorers.mlp, chosen.training.learning_rate) == (2, 10, 0.004)
    assert configure(seed=7, settings={"seed": 8}).training.seed == 8
    greedy = configure(system="arc-eager", oracle="static", seed=5, epochs=2)
    assert (greedy.kind, greedy.transitions.oracle, greedy.training.seed) == ("greedy", "static", 5)
    assert greedy.training.max_epochs == 2
    assert configure(system="covington", scorer="perceptron", seed=5, epochs=2) == PerceptronConfig(
        system="covington", seed=5, iterations=2
    )


@pytest.mark.parametrize(
    "options", [{"system": "arc-eager", "scorer": "perceptron", "segmenter": False}, {"system": "covington"}]
)
def test_greedy_parsers_are_trained_and_loaded_the_same_way(options, small_treebanks, tmp_path):
    if "scorer" not in options:
        options = options | SMALL
    parser = mh4.train(*small_treebanks, tmp_path / "m", epochs=1, **options)
    tagged = mh4.Sentence(FORMS, upos=["NOUN"] * len(FORMS))
    assert parser(tagged).heads.tolist() == mh4.load(tmp_path / "m")(tagged).heads.tolist()
    assert not parser.can_keep_heads
    with pytest.raises(ValueError, match="keep"):
        parser(tagged, keep_heads=True)


def test_options_reach_the_model(small_model):
    assert isinstance(mh4.load(small_model, device="cpu", search="beam:4").decoder, BeamSearch)
    assert mh4.load(small_model, device="cpu", threads=2).threads == 2


@pytest.mark.parametrize(
    "options", [{"system": "arc-eager", "scorer": "perceptron", "segmenter": False}, {"preset": "paper"}]
)
def test_bad_sentences_end_training_or_are_left_out(options, small_treebanks, tmp_path):
    train, skipped = tmp_path / "train.conllu", []
    cycle = "1\ta\ta\tX\t_\t_\t2\tdep\t_\t_\n2\tb\tb\tX\t_\t_\t1\tdep\t_\t_\n\n"
    train.write_text(small_treebanks[0].read_text(encoding="utf-8") + cycle, encoding="utf-8")
    with pytest.raises(DataError, match="cycle"):
        mh4.train(train, small_treebanks[1], tmp_path / "m", epochs=1, **options)
    if "preset" in options:
        options = options | SMALL
    dev = tmp_path / "dev.conllu"
    dev.write_text(small_treebanks[1].read_text(encoding="utf-8") + cycle, encoding="utf-8")
    mh4.train(train, dev, tmp_path / "m", epochs=1, errors=skipped.append, **options)
    assert [error.args[0].partition(":")[0] for error in skipped] == [str(train), str(dev)]
    with pytest.raises(DataError, match="holds a model already"):
        mh4.train(*small_treebanks, tmp_path / "m", epochs=1, **options)


def test_evaluation_takes_files_and_sentences(parser, small_treebanks, tmp_path):
    dev = small_treebanks[1]
    parser.parse_file(dev, tmp_path / "system.conllu")
    by_file = mh4.evaluate(dev, tmp_path / "system.conllu")
    by_sentence = mh4.evaluate(mh4.read_conllu(dev), parser.parse(dev))
    assert by_file == by_sentence
    assert 0 <= by_file.las <= by_file.uas <= 100
    assert mh4.evaluate(dev, dev).las == 100


def test_a_tree_is_drawn_as_text_and_in_notebooks(parser):
    drawing = mh4.draw(parser(FORMS))
    assert "kutya" in str(drawing)
    assert drawing._repr_svg_().startswith("<svg")
    assert parser(FORMS)._repr_svg_() == drawing._repr_svg_()


def test_two_models_are_an_ensemble(small_model, parser):
    pair = mh4.load(small_model, small_model, device="cpu")
    assert pair(FORMS).heads.tolist() == parser(FORMS).heads.tolist()


def test_known_heads_are_kept(parser):
    sentence = parser(FORMS)
    given = sentence.replace(heads=[-1, 1, -1, -1])
    assert parser(given, keep_heads=True)[1].head == 1
    assert parser(mh4.Sentence(FORMS, heads=given.heads), keep_heads=True)[1].head == 1
    with pytest.raises(TypeError, match=r"Sentence\(words, heads=.*keep_heads"):
        parser(FORMS, heads=given.heads)


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda parser: parser("A kutya ugat."), r"no segmenter.*parser\(\["),
        (lambda parser: list(parser.parse("A kutya ugat.")), "is not a file; write parser"),
        (lambda parser: list(parser.parse(parser(FORMS).to_conllu())), r"write parser\(mh4.Document.from_conllu\(text"),
        (lambda parser: mh4.Parser(), "FOLDER"),
        (lambda parser: mh4.Parser("m"), r"write mh4\.load\(\"FOLDER\"\)"),
        (lambda parser: mh4.load(), "FOLDER"),
        (
            lambda parser: mh4.load("no/such/folder"),
            r"^no/such/folder/config.json: no such file \(is no/such/folder a",
        ),
        (lambda parser: mh4.load(__file__), rf"^{re.escape(__file__)}: is a file, not a model folder"),
        (lambda parser: mh4.load(["a", "b"]), r"load\('A', 'B'\) for an ensemble"),
        (lambda parser: mh4.load("a", threads=0), "threads must be at least 1"),
        (lambda parser: parser(None), r"takes text, a list of words.*not None"),
        (lambda parser: parser([1, 2]), "takes text, a list of words.*not 1"),
        (lambda parser: parser(b"A kutya"), "takes text, a list of words.*not b'A kutya'"),
        (lambda parser: parser(mh4.Sentence(FORMS).to_pandas()), "takes text, a list of words"),
        (lambda parser: parser.pipe(mh4.Sentence(FORMS).to_pandas()), "takes text, a list of words"),
        (lambda parser: parser(list(mh4.Sentence(FORMS))), "takes text, a list of words.*not <Word 1"),
        (
            lambda parser: parser(["First text. Second.", "Another."]),
            r"'First text. Second.' is text .*parser.pipe\(texts",
        ),
        (lambda parser: parser(["Egy", "két szó"]), r"parser\(mh4.Sentence\(words\)\) if a space belongs"),
        (lambda parser: list(parser.parse(["One text.", "Two."])), r"parser.pipe\(texts\) for several texts"),
        (lambda parser: parser.pipe("A kutya ugat."), r"pipe takes many texts"),
        (lambda parser: parser.pipe(mh4.Sentence(FORMS)), r"pipe takes many texts"),
        (lambda parser: parser.pipe(5), r"not 5"),
        (lambda parser: list(parser.pipe([5])), r"not 5"),
        (lambda parser: list(parser.pipe(["Zub ulv."])), r"no segmenter"),
        (lambda parser: parser.pipe([FORMS], k_best=2), "k_best"),
        (lambda parser: list(parser.parse("")), "empty string is not a file"),
        (lambda parser: list(parser.parse("A kutya ugat. " * 1000)), "is not a file; write parser"),
        (lambda parser: mh4.train("t", "d", "m", epochs=0), "epochs.*at least 1"),
        (lambda parser: mh4.train("t", "d", "m", threads=0), "threads must be at least 1"),
        (lambda parser: mh4.train([parser(FORMS)], "d", "m"), r"not a list; mh4.write_conllu\(sentences, path\)"),
        (lambda parser: mh4.draw(FORMS), "takes a Sentence"),
        (lambda parser: mh4.Document("A kutya"), r"not 'A kutya'; write parser\(text\)"),
        (lambda parser: mh4.Document(None), r"not None; write .*from_conllu"),
        (lambda parser: mh4.Document(mh4.Sentence(FORMS)), r"mh4.Document\(\[sentence\]\)"),
        (lambda parser: mh4.Document([mh4.Sentence(FORMS), None]), "item 2 is None, not a sentence"),
        (lambda parser: mh4.Document([FORMS]), "item 1 is .*, not a sentence"),
        (lambda parser: mh4.Sentence(None), r"sequence of words such as \['A', 'kutya'\], not None"),
        (lambda parser: mh4.Sentence(b"A"), "sequence of words such as .* not b'A'"),
        (lambda parser: mh4.write_conllu(None, "p"), r"not None; write write_conllu\(sentences, path\)"),
        (lambda parser: mh4.write_conllu([], None), r"not None; write write_conllu\(sentences, path\)"),
        (lambda parser: mh4.read_conllu(None), "takes a path, not None"),
        (lambda parser: mh4.read_conllu([mh4.Sentence(FORMS)]), "takes a path, not"),
        (lambda parser: mh4.evaluate(parser, "gold"), r"not <ChartParser.*write parser.evaluate\(gold\)"),
        (lambda parser: mh4.evaluate([mh4.Sentence(FORMS)], parser), "not <ChartParser"),
        (lambda parser: mh4.evaluate([FORMS], [FORMS]), "is not a sentence; see mh4.Sentence"),
        (lambda parser: parser(FORMS, predict=5), 'as in predict="upos,lemmas"; got 5'),
        (lambda parser: parser(FORMS, predict=["upos", 5]), "got 5"),
        (lambda parser: parser(FORMS, predict="deprel"), 'predict="heads"'),
        (lambda parser: parser(FORMS, predict="word"), "unknown column 'word'; known: "),
        (lambda parser: parser(FORMS, unique=5), 'as in unique="nsubj,obj"; got 5'),
        (lambda parser: parser(FORMS, among=3), "among needs unique relations"),
        (lambda parser: parser(FORMS, confidence="yes"), "True, False or \"all\"; got 'yes'"),
        (lambda parser: parser(FORMS, overwrite="no"), "overwrite must be True or False; got 'no'"),
        (lambda parser: parser(FORMS, keep_heads="no"), "keep_heads must be True or False; got 'no'"),
        (lambda parser: parser(FORMS, keep_heads=None), "keep_heads must be True or False; got None"),
        (lambda parser: parser(FORMS, batch_size=3), r"no option 'batch_size'; write .*; it has: keep_heads, predict"),
        (lambda parser: parser.k_best(FORMS, "2"), "k_best must be a whole number; got '2'"),
        (lambda parser: parser.k_best(FORMS, 1.5), "k_best must be a whole number; got 1.5"),
        (lambda parser: parser.k_best(FORMS, 0), "k_best must be at least 1; got 0"),
        (lambda parser: parser.parse([FORMS], k_best=True), "k_best must be a whole number; got True"),
        (lambda parser: parser.parse_file("in", "out", batch_words="5"), "batch_words must be a whole number; got '5'"),
        (lambda parser: parser.parse([FORMS], errors="ignore"), 'errors must be "raise", "skip"'),
        (lambda parser: parser.parse([FORMS], format="conll"), "unknown input format 'conll'; known"),
        (lambda parser: mh4.load("m", threads=1.5), "threads must be a whole number; got 1.5"),
        (lambda parser: mh4.load("m", threads="2"), "threads must be a whole number; got '2'"),
        (lambda parser: mh4.load("m", search=None), "unknown search None; known: exact, greedy"),
        (lambda parser: mh4.load("m", search="Exact"), "unknown search 'Exact'; known: exact, greedy"),
        (lambda parser: mh4.load("m", device="meta"), "unknown device 'meta'; known: auto, cpu, cuda"),
        (lambda parser: mh4.load("m", device=None), "unknown device None; known: auto, cpu, cuda"),
        (lambda parser: mh4.load("m", combine="x"), "unknown combination 'x'; known: votes, scores"),
        (lambda parser: mh4.load(""), "the model folder has no name"),
        (lambda parser: mh4.train("t", "d", "m", overwrite="no"), "overwrite must be True or False; got 'no'"),
        (lambda parser: mh4.train("t", "d", "m", resume=1), "resume must be True or False; got 1"),
        (lambda parser: mh4.train("t", "d", "m", resume=True, overwrite=True), "would replace; choose one"),
        (lambda parser: mh4.train("t", "d", "m", segmenter=None), "segmenter must be True or False; got None"),
        (lambda parser: mh4.train("t", "d", "m", segmenter="epochs=9"), "segmenter must be True or False; got 'epochs"),
        (lambda parser: mh4.train("t", "d", "m", threads=1.5), "threads must be a whole number; got 1.5"),
        (lambda parser: mh4.train("t", "d", "m", epochs="3"), "epochs must be a whole number; got '3'"),
        (lambda parser: mh4.train("t", "d", "m", device="gpu"), "unknown device 'gpu'; known: auto, cpu, cuda"),
        (lambda parser: mh4.train("t", "d", "m", errors="ignore"), 'errors must be "raise", "skip"'),
        (lambda parser: mh4.train("t", "d", None), "output is the folder for the model; got None"),
        (lambda parser: mh4.train("t", None, "m"), "a treebank is a file, not a NoneType"),
        (lambda parser: parser.save(""), "the model folder has no name"),
        (lambda parser: parser.save(__file__), "no model can be written here"),
        (lambda parser: parser.save("m", overwrite="no"), "overwrite must be True or False; got 'no'"),
        (lambda parser: EnsembleParser([parser, parser]).save("m"), r"parser\.members\[0\]"),
        (lambda parser: parser.cut(["A"]), r"cut takes a text, not \['A'\]"),
        (lambda parser: parser.cut(None), "cut takes a text, not None"),
        (lambda parser: parser.predict([FORMS]), r"instead of \[\['A'"),
        (lambda parser: parser.predict(mh4.Sentence(FORMS)), "predict takes a list of sentences"),
        (lambda parser: parser.attempt(iter([])), "attempt takes a list of sentences"),
        (lambda parser: parser.attempt(None), "attempt takes a list of sentences"),
        (lambda parser: mh4.Sentence(FORMS, upos=[1, 2, 3, 4]), "UPOS takes a string or None, not 1$"),
        (lambda parser: mh4.train("t", "d", "m", on_step=3), "on_step is a function .* got 3"),
        (lambda parser: mh4.train("t", "d", "m", vectors=""), "word vectors are a file; its path is empty"),
        (lambda parser: mh4.Sentence(FORMS)[4], "word 4 of 4: the first word has the index 0"),
        (lambda parser: mh4.Sentence(FORMS)["A"], "must be an integer, not 'A'"),
    ],
)
def test_a_wrong_first_guess_says_what_to_write(parser, call, advice):
    with pytest.raises((ValueError, TypeError, IndexError), match=advice):
        call(parser)


def test_one_sentence_stands_for_a_list_of_it(parser):
    sentence = parser(FORMS)
    assert list(parser.parse(sentence)) == [sentence]
    assert mh4.evaluate(sentence, sentence).las == 100


def test_a_file_taken_as_text_is_said(text_parser, small_treebanks, caplog):
    text_parser(str(small_treebanks[1]))
    assert "is taken as text; write parser.parse(" in caplog.text


def test_a_parser_shows_what_it_is(parser, small_model):
    assert repr(parser) == f"<ChartParser: {parser.config.decoder}>"
    assert repr(EnsembleParser([parser, parser])).startswith("<EnsembleParser: <ChartParser")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"decoder": "mst", "system": "mh4"}, "not both"),
        ({"oracle": "static"}, "system"),
        ({"scorer": "svm", "system": "mh4"}, "bilstm, perceptron"),
        ({"preset": "fastest"}, "balanced"),
        ({"hiden": 3}, "hidden"),
        ({"decoder": "mh5"}, "mh4-hybrid"),
        ({"system": "arc-eager", "scorer": "perceptron", "device": "cuda"}, "trains on the CPU"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_work_starts(options, advice, small_treebanks, tmp_path):
    with pytest.raises(ValueError, match=advice):
        mh4.train(*small_treebanks, tmp_path / "m", **options)
    assert not (tmp_path / "m").exists()


def test_threads_share_a_parser(parser, small_treebanks):
    sentences = list(mh4.read_conllu(small_treebanks[1])) * 4
    alone = [parser(sentence) for sentence in sentences]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(parser, sentences)) == alone


def test_threads_share_what_is_being_parsed(parser, small_treebanks):
    """Each sentence goes to exactly one thread, and nothing crashes."""
    path = small_treebanks[1]
    alone = list(parser.parse(path))
    for source in (path, list(mh4.read_conllu(path)) * 20):
        stream = parser.parse(source)
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda _, stream=stream: list(stream), range(4)))
        count = 1 if source is path else 20
        assert sorted(one.to_conllu() for part in parts for one in part) == sorted(
            one.to_conllu() for one in alone * count
        )


def test_text_that_comes_in_pieces_is_parsed_as_it_comes(text_parser):
    reader, writer = os.pipe()
    try:
        os.write(writer, b"Zub ulv.\n\nZub ulv.\n\n")
        stream = text_parser.parse(f"/dev/fd/{reader}", format="text")
        assert isinstance(next(stream), mh4.Sentence)  # although more text may follow
        stream.close()
        assert list(stream) == []
    finally:
        os.close(writer)
        os.close(reader)


def test_an_error_of_a_callback_leaves_no_file(text_parser, tmp_path):
    (tmp_path / "a.txt").write_text("Zub ulv.\n\n" * 2000)

    def stop(count):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        text_parser.parse_file(tmp_path / "a.txt", tmp_path / "out", format="text", on_progress=stop)
    assert not (tmp_path / "out").exists()


def test_a_loaded_parser_needs_its_folder_no_more(text_model, tmp_path, monkeypatch):
    shutil.copytree(text_model, tmp_path / "model")
    (tmp_path / "a.txt").write_text("Zub ulv. Zub ulv.\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pair, alone = mh4.load("model", "model", device="cpu"), mh4.load("model", device="cpu")
    shutil.rmtree(tmp_path / "model")
    monkeypatch.chdir("/")
    for parser in (alone, pair):
        document = parser("Zub ulv. Zub ulv.")
        assert [one.forms for one in parser.parse(tmp_path / "a.txt", format="text")] == [one.forms for one in document]
        assert parser(FORMS).root


def test_many_texts_and_lists_of_words_are_parsed_in_a_pipe(text_parser, monkeypatch):
    texts = ["Zub ulv. Zub ulv.", "", "Zub."]
    items = [*texts, FORMS, mh4.Sentence(FORMS), tuple(FORMS)]
    expected = [*map(text_parser, texts), *[text_parser(FORMS)] * 3]
    for words in (1, 5, 20_000):
        monkeypatch.setattr("mh4.parsers.sources.WINDOW_WORDS", words)
        found = list(text_parser.pipe(iter(items)))
        assert [type(one) for one in found] == [type(one) for one in expected]
        assert found == expected
    assert all(word.upos is None for word in next(text_parser.pipe([FORMS], predict="heads")))


@pytest.mark.parametrize("bad", ["Zub\0ulv", ["a\tb"], 3])
def test_a_pipe_yields_the_results_before_an_invalid_item(text_parser, bad):
    stream = text_parser.pipe(["Zub ulv.", FORMS, bad, FORMS])
    assert [next(stream), next(stream)] == [text_parser("Zub ulv."), text_parser(FORMS)]
    with pytest.raises((mh4.DataError, TypeError)):
        next(stream)


def test_a_pipe_names_the_invalid_text(text_parser):
    with pytest.raises(mh4.DataError, match=r"^text 2:1: holds a NUL"):
        list(text_parser.pipe(["Zub.", "a\0b"]))


def test_a_pipe_takes_what_comes_in_windows(text_parser, monkeypatch):
    monkeypatch.setattr("mh4.parsers.sources.WINDOW_WORDS", 8)
    asked = []

    def items():
        for number in range(100):
            asked.append(number)
            yield FORMS

    stream = text_parser.pipe(items())
    assert next(stream).root
    assert len(asked) == 2
    stream.close()


def test_words_with_spaces_are_words_where_the_treebank_has_them(tmp_path, small_model):
    words = mh4.Sentence(["học sinh", "đi"], upos=["NOUN", "VERB"])
    mh4.write_conllu([words.replace(heads=[2, 0], relations=["nsubj", "root"])] * 3, tmp_path / "t.conllu")
    paths = [tmp_path / "t.conllu"] * 2
    perceptron = mh4.train(*paths, tmp_path / "p", system="arc-eager", scorer="perceptron", epochs=1, segmenter=False)
    network = mh4.train(*paths, tmp_path / "n", decoder="eisner", epochs=1, device="cpu", **SMALL)
    for parser in (perceptron, network, mh4.load(small_model, tmp_path / "n", device="cpu")):
        assert parser.spaced_words
        assert len(parser(words)) == 2
    assert len(network(["học sinh", "đi"])) == 2
    assert not mh4.load(small_model, device="cpu").spaced_words


def test_words_with_spaces_can_always_be_given(parser):
    for words in (["10 000", "kutya"], [["học sinh", "đi"]], mh4.Sentence(["học sinh", "đi"])):
        assert parser(words)


def test_public_names_are_looked_up_when_they_are_used():
    assert all(getattr(mh4, name) is not None for name in mh4.__all__)
    assert set(mh4.__all__) <= set(dir(mh4))
    with pytest.raises(AttributeError, match=r"it has .*Parser"):
        _ = mh4.Pipeline


def test_a_loaded_model_is_saved_elsewhere(text_model, annotating_model, parser, tmp_path):
    for folder in (text_model, annotating_model):
        loaded = mh4.load(folder, device="cpu")
        loaded.save(tmp_path / "new" / folder.name)
        again = mh4.load(tmp_path / "new" / folder.name, device="cpu")
        assert again(FORMS, confidence=True) == loaded(FORMS, confidence=True)
        assert again(FORMS, confidence=True).confidence == loaded(FORMS, confidence=True).confidence
        assert (again.meta, again.annotates) == (loaded.meta, loaded.annotates)
        assert (again.segmenter is None) == (loaded.segmenter is None)
        if loaded.segmenter is not None:
            assert again("Zub ulv.") == loaded("Zub ulv.")
    with pytest.raises(DataError, match=r"holds a model already \(replace it with overwrite=True\)"):
        parser.save(tmp_path / "new" / text_model.name)
    parser.save(tmp_path / "new" / text_model.name, overwrite=True)
    assert mh4.load(tmp_path / "new" / text_model.name).segmenter is None


def test_a_model_stays_until_the_new_one_is_whole(small_model, parser, tmp_path, monkeypatch):
    parser.save(tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    monkeypatch.setattr(ModelFolder, "write_definition", lambda *_: [][0])
    with pytest.raises(IndexError):
        parser.save(tmp_path / "m", overwrite=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


def test_a_model_may_be_saved_over_itself(small_model, tmp_path):
    shutil.copytree(small_model, tmp_path / "m")
    parser = mh4.load(tmp_path / "m", device="cpu")
    parser.save(tmp_path / "m", overwrite=True)
    assert mh4.load(tmp_path / "m", device="cpu")(FORMS) == parser(FORMS)


def test_a_perceptron_is_saved_too(small_treebanks, tmp_path):
    parser = mh4.train(*small_treebanks, tmp_path / "m", system="arc-eager", scorer="perceptron", epochs=1)
    parser.save(tmp_path / "n")
    tagged = next(mh4.read_conllu(small_treebanks[1]))
    assert mh4.load(tmp_path / "n")(tagged) == parser(tagged)


@pytest.mark.parametrize("name", ["HEADS", "Heads", "HEAD", "heads", "HEAD,DEPREL", ["head", "relations"]])
def test_columns_may_be_named_in_capitals(name, annotating_model):
    annotating = mh4.load(annotating_model, device="cpu")
    found = annotating(FORMS, predict=name)
    assert found.root
    assert set(found.upos) == {"_"}
    assert set(annotating(FORMS, predict="UPOS,LEMMA").upos) != {"_"}


def test_words_do_not_change(parser):
    sentence = parser(FORMS)
    word = sentence[0]
    columns = {"upos": "upos", "head": "heads", "deprel": "relations", "lemma": "lemmas", "form": "forms"}
    for name, column in {**columns, "text": "forms", "relation": "relations", "feats": "feats"}.items():
        with pytest.raises(AttributeError, match=rf"words are immutable; write new = sentence.replace\({column}="):
            setattr(word, name, "X")
    for one, name in ((sentence, "heads"), (sentence[0], "index")):
        with pytest.raises(AttributeError, match="are immutable"):
            delattr(one, name)
    with pytest.raises(AttributeError, match="words are immutable"):
        word.colour = "red"
    tagged = sentence.replace(feats=["Case=Nom"] * 4)[0]
    with pytest.raises(TypeError):
        tagged.feats["Case"] = "Acc"
    assert tagged.to_dict()["feats"] == "Case=Nom"
    assert pickle.loads(pickle.dumps(word)) == copy.deepcopy(word) == copy.copy(word) == word


@pytest.mark.parametrize(
    "remade", [lambda one: one, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_arrays_of_a_sentence_are_read_only(parser, remade):
    sentence = remade(parser(FORMS, confidence=True))
    arrays = [sentence.heads, remade(mh4.Sentence(FORMS)).heads, remade(sentence.replace(heads=sentence.heads)).heads]
    for array in (*arrays, sentence.confidence.margins, sentence.confidence.words):
        with pytest.raises(ValueError, match="read-only"):
            array[1] = 0
    heads = sentence.heads.copy()
    heads[1] = 0
    assert sentence.replace(heads=heads).heads[1] == 0


def test_what_users_of_other_libraries_write_works(text_parser, small_treebanks):
    document = text_parser("Zub ulv. Zub ulv.")
    assert document.sentences == tuple(document)
    assert document.to_dict() == json.loads(document.to_json()) == [one.to_dict() for one in document.sentences]
    assert mh4.Document.from_conllu(document.to_conllu()) == document
    word = document.sentences[0].words[0]
    assert (word.text, word.relation) == (word.form, word.deprel)
    evaluation = mh4.evaluate(small_treebanks[1], text_parser.parse(small_treebanks[1]))
    assert evaluation["LAS"] == evaluation.las
    assert evaluation["UPOS"] == 100 * evaluation.scores["UPOS"].f1
    assert dict(evaluation) == {name: 100 * score.f1 for name, score in evaluation.scores.items()}
    with pytest.raises(KeyError, match=r"no metric 'las'; known: Tokens, .*LAS"):
        evaluation["las"]


@pytest.mark.parametrize(
    ("what", "name", "advice"),
    [
        ("word", "pos_", "word.upos"),
        ("word", "dep_", "word.deprel"),
        ("word", "lemma_", "word.lemma"),
        ("word", "i", "word.index"),
        ("sentence", "deprel", "sentence.relations"),
        ("sentence", "serialize", "sentence.to_conllu"),
        ("document", "sents", "document.sentences"),
        ("document", "heads", r"\[sentence.heads for sentence in document\]"),
        ("document", "upos", r"\[sentence.upos for sentence in document\]"),
        ("document", "to_disk", r"mh4.write_conllu\(document, path\)"),
        ("document", "colour", "it has: .*sentences, .*to_conllu"),
        ("parser", "annotate", r"parser\(words\)"),
        ("parser", "model", "parser itself"),
        ("parser", "train", r"mh4\.train\(train, dev, folder\)"),
        ("parser", "to_disk", r"parser.save\(folder\)"),
        ("parser", "colour", "it has: .*parse_file"),
        ("evaluation", "mlas", r'evaluation\["MLAS"\]'),
        ("evaluation", "upos", r'evaluation\["UPOS"\]'),
        ("evaluation", "f1", r'evaluation.scores\["LAS"\]'),
    ],
)
def test_a_name_of_another_library_is_translated(what, name, advice, parser):
    sentence = parser(FORMS)
    objects = {
        "word": sentence[0],
        "sentence": sentence,
        "document": mh4.Document([sentence]),
        "parser": parser,
        "evaluation": mh4.evaluate(sentence, sentence),
    }
    with pytest.raises(AttributeError, match=f"{name!r}; .*{advice}"):
        getattr(objects[what], name)
    assert not hasattr(objects[what], name)
    assert not hasattr(objects[what], f"_{name}_")


@pytest.mark.parametrize("load", [mh4.load, mh4.Parser.load])
def test_options_of_loading_reach_every_model(load, small_model):
    parser = load(small_model, small_model, device="cpu", search="beam:3", threads=2, combine="scores")
    assert parser.combine == "scores"
    for member in parser.members:
        assert (member.decoder.width, member.threads, member.device.type) == (3, 2, "cpu")
