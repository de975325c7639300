"""Names and options of other libraries: each error says what to write instead."""

import io
import pickle
from pathlib import Path

import pytest

import mh4
from mh4.cli import app
from mh4.cli.guesses import COMMANDS, advised
from mh4.data import guesses
from mh4.data.drawing import Drawing
from mh4.data.stream import Stream
from mh4.data.writing import output_format
from mh4.parsers.request import Request
from mh4.trees.scores import Evaluation

FORMS = ["A", "kutya", "ugat", "."]


@pytest.fixture(scope="module")
def parser(text_model):
    return mh4.load(text_model, device="cpu")


@pytest.mark.parametrize("kind", [mh4.Document, mh4.Sentence, mh4.Word, mh4.Parser, Stream, Drawing, Evaluation])
def test_every_name_with_advice_is_missing(kind):
    assert kind._guesses
    for name, advice in kind._guesses.items():
        with pytest.raises(AttributeError) as error:
            getattr(kind, name)
        assert str(error.value).endswith(f"; write {advice}")


def test_the_module_and_requests_know_guesses_too():
    for name, advice in guesses.MODULE.items():
        with pytest.raises(AttributeError) as error:
            getattr(mh4, name)
        assert f"; write {advice} (it has DataError" in str(error.value)
    for name, advice in guesses.OPTIONS.items():
        with pytest.raises(TypeError) as error:
            Request(**{name: 1})
        assert f"; write {advice}; it has: keep_heads" in str(error.value)


def test_what_is_listed_is_public_and_of_every_parser(parser):
    with pytest.raises(AttributeError, match=r"'x'; it has: annotates, attempt, .*parse, parse_file") as one:
        _ = parser.x
    assert "start_scores" not in str(one.value)
    with pytest.raises(AttributeError, match=r"type object|Document has no attribute 'x'; it has: .*sentences"):
        _ = mh4.Document.x


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda parser: mh4.load("m", gpu=True), r'write device="cuda".*it has: device, threads, search, combine'),
        (lambda parser: mh4.load("m", thread=1), "load has no option 'thread'; it has: folders|it has: device"),
        (lambda parser: parser(FORMS, fixed={1: 2}), r"write mh4\.Sentence\(words, heads="),
        (lambda parser: parser("A kutya.", format="text"), r"write parser\.parse\(path, format="),
        (lambda parser: parser([FORMS], errors="skip"), r"write parser\.parse\(…, errors="),
        (lambda parser: parser([("A", "DET"), ("kutya", "NOUN")]), r"write mh4\.Sentence\(words, upos=tags\)"),
        (lambda parser: parser([{"form": "A"}]), "not {'form': 'A'}"),
        (lambda parser: parser({"A"}), "not {'A'}"),
        (lambda parser: parser(io.StringIO("A kutya.")), r"open files cannot be parsed; write parser\.parse\(path\)"),
        (lambda parser: list(parser.parse(io.StringIO("A kutya."))), r"open files cannot be parsed"),
        (lambda parser: list(parser.pipe([Path("a.txt")])), r"a\.txt is a path .*write parser\.parse\(path\)"),
        (lambda parser: list(parser.parse([parser("A kutya ugat.")])), r"is a document.*write parser\.pipe"),
        (lambda parser: parser.attempt([FORMS]), r"write \[mh4\.Sentence\(words\)"),
        (lambda parser: parser.attempt(mh4.Sentence(FORMS)), r"write \[mh4\.Sentence\(words\)"),
        (lambda parser: parser.attempt([mh4.Sentence(FORMS)], {}), r"such as mh4\.Request\(keep_heads=True\), not {}"),
        (lambda parser: parser.attempt([], keep_heads=True), r"write request=mh4\.Request\(keep_heads=True\)"),
        (lambda parser: parser.k_best(FORMS, 2, confidence=True), "about the best tree; it has: words, k, keep_heads"),
        (lambda parser: mh4.evaluate(gold="a", pred="b"), "no option 'pred'; it has: gold, system"),
        (lambda parser: parser.evaluate("a", confidence=True), "no option 'confidence'; it has: gold, given"),
        (lambda parser: mh4.compare("a", "b"), r"write mh4\.compare\(gold, {"),
        (lambda parser: mh4.train("t", "d", "m", lr=1), "unknown setting 'lr'; write learning_rate; known"),
        (lambda parser: mh4.Sentence(FORMS, heads=[2, None, None, None]), r"-1 if it is unknown; got \[2, None"),
        (lambda parser: mh4.Sentence(FORMS, tags=FORMS), r"write upos=\[…\]; known: heads"),
        (lambda parser: mh4.Sentence(FORMS, words=FORMS), "no column 'words'; known: heads"),
        (lambda parser: mh4.Sentence(FORMS)[0]["tag"], r"write word\.xpos"),
        (lambda parser: mh4.Sentence(FORMS)[0]["upos"], r"write word\.upos"),
        (lambda parser: parser(FORMS).draw("a.svg"), r"width is a number of columns.*drawing\.svg"),
        (lambda parser: mh4.draw(parser(FORMS), "a.svg"), "width is a number of columns"),
        (lambda parser: mh4.draw(parser("A kutya ugat.")), r"write mh4\.draw\(document\[0\]\)"),
        (lambda parser: parser.parse_file([FORMS], io.BytesIO()), 'an output must be a path, or "-"'),
        (
            lambda parser: output_format("a.csv.gz"),
            "csv files cannot be written .name the file .conllu, .json or .jsonl",
        ),
    ],
)
def test_a_wrong_guess_says_what_to_write(parser, call, advice):
    with pytest.raises((TypeError, ValueError), match=advice):
        call(parser)


def test_a_text_file_taken_as_conllu_says_how_to_parse_text(parser, tmp_path):
    (tmp_path / "a.txt").write_text("A kutya ugat.\n", encoding="utf-8")
    with pytest.raises(mh4.DataError, match=r'raw text needs format="text"'):
        list(parser.parse(tmp_path / "a.txt"))


def test_a_document_of_spacy_is_told_to_be_words(parser):
    spacy = pytest.importorskip("spacy")
    doc = spacy.blank("xx")("A kutya ugat.")
    for given in (doc, doc[:2], [doc]):
        with pytest.raises(TypeError, match=r"write parser\(\[token\.text for token in doc\]\)"):
            parser(given)


def test_json_taken_as_conllu_says_how_to_read_it():
    document = mh4.Document([mh4.Sentence(FORMS)])
    with pytest.raises(mh4.DataError, match=r"JSON is read by mh4\.Document\.from_json"):
        mh4.Document.from_conllu(document.to_json())


def test_open_files_give_a_text_in_each_line_and_documents_stay_documents(parser, caplog, tmp_path):
    first, second = parser.pipe(io.StringIO("A kutya ugat.\nUgat.\n"))
    assert isinstance(first, mh4.Document)
    assert next(parser.pipe([first])).text == first.text
    (tmp_path / "a.txt").touch()
    list(parser.pipe([str(tmp_path / "a.txt")]))
    assert "is taken as text; write parser.parse(" in caplog.text
    assert len(second) == 1


def test_streams_and_drawings_show_and_copy(parser):
    stream = parser.parse([FORMS])
    assert "list(…) keeps them" in repr(stream)
    drawing = next(stream).draw()
    again = pickle.loads(pickle.dumps(drawing))
    assert (again, again.svg) == (drawing, drawing.svg)
    assert mh4.draw(parser(FORMS), width=10) == parser(FORMS).draw(10)


def test_no_command_has_advice_to_write_another():
    assert {command.name or command.callback.__name__ for command in app.registered_commands}.isdisjoint(COMMANDS)


@pytest.mark.parametrize(
    ("command", "problem", "advice"),
    [
        ("mh4", "No such command 'tag'.", "No such command 'tag'; write mh4 parse MODEL"),
        ("mh4", "No such command 'eval2'. Did you mean 'eval'?", "Did you mean 'eval'?"),
        ("mh4 parse", "No such option: --json (Possible options: --among)", "--json; write --output FILE.json"),
        ("mh4 parse", "No such option: --batch-size", "--batch-size; write --batch-words N"),
        ("mh4 train", "No such option: --batch-size", "--batch-size; write --set batch_words=N"),
        ("mh4 train", "No such option: --train_file (Possible options: --oracle)", "--train_file; write TRAIN as"),
        ("mh4 train", "No such option: --model", "--model; write --output FOLDER"),
        ("mh4 parse", "No such option: --model", "--model; write MODEL as the first argument"),
        ("mh4 train", "No such option: --test", "--test; write mh4 eval --model FOLDER TEST afterwards"),
        ("mh4 train", "No such option: --tokenizer", "--tokenizer; write --no-segmenter"),
        ("mh4 serve", "No such option: -p", "-p; write --port N"),
        ("mh4 eval", "No such option: --gold (Possible options: --model)", "--gold; write mh4 eval GOLD SYSTEM"),
        ("mh4 parse", "Missing argument 'MODEL [INPUT]'.", "Missing argument 'MODEL [INPUT]'."),
    ],
)
def test_commands_and_options_of_other_programs(command, problem, advice):
    found = advised(command, problem)
    assert advice in found
    assert "Possible options" not in found
