"""``mh4 eval``: files and models against gold trees, alone and side by side."""

import json
import os
from dataclasses import replace

import pytest
from command_line import fails_with_one_line

import mh4
from mh4.cli import evaluation
from mh4.cli.options import output
from mh4.data.conllu import read_conllu
from mh4.trees.evaluation import METRICS, Evaluation, Score
from mh4.trees.significance import Compared


@pytest.fixture(scope="module")
def gold(small_treebanks):
    return small_treebanks[1]


@pytest.fixture(scope="module")
def words(gold, tmp_path_factory):
    """The gold file with every column but FORM and MISC empty."""
    path = tmp_path_factory.mktemp("words") / "words.conllu"
    lines = []
    for line in gold.read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 10:
            fields[2:9] = "_______"
        lines.append("\t".join(fields) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def calibrated_file(small_model, gold, run, tmp_path):
    """The gold file parsed with confidences."""
    assert run("calibrate", small_model, gold).returncode == 0
    assert run("parse", small_model, gold, "--confidence", "-o", tmp_path / "sure.conllu").returncode == 0
    return tmp_path / "sure.conllu"


def scores(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_model_parses_the_words_alone(annotating_model, gold, words, run, tmp_path):
    assert run("parse", annotating_model, words, "-o", tmp_path / "parsed.conllu").returncode == 0
    expected = scores(run("eval", gold, tmp_path / "parsed.conllu", "--json"))
    assert scores(run("eval", "--model", annotating_model, gold, "--json")) == expected
    assert expected["scores"]["UPOS"]["f1"] > 0
    assert mh4.load(annotating_model, device="cpu").evaluate(gold).as_dict() == expected
    table = run("eval", gold, "--model", annotating_model, "--threads", 1, "--device", "cpu")
    assert table.stdout == run("eval", gold, tmp_path / "parsed.conllu").stdout
    assert table.stderr == b""


def test_a_model_can_be_given_columns(annotating_model, gold, run):
    given = scores(run("eval", "--model", annotating_model, gold, "--json", "--given", "upos,lemmas"))["scores"]
    assert given["UPOS"]["f1"] == given["Lemmas"]["f1"] == 1
    alone = scores(run("eval", "--model", annotating_model, gold, "--json"))["scores"]
    assert alone["Lemmas"]["f1"] < 1
    parser = mh4.load(annotating_model, device="cpu")
    assert parser.evaluate(list(read_conllu(gold)), given=["upos", "lemmas"]).as_dict()["scores"] == given
    for wrong, problem in (("heads", "cannot be given heads"), ("nothing", "unknown column")):
        fails_with_one_line(run("eval", "--model", annotating_model, gold, "--given", wrong), problem)


def test_what_was_given_is_told(small_model, gold, words, run, tmp_path):
    run("parse", small_model, gold, "-o", tmp_path / "flattered.conllu")
    run("parse", small_model, words, "-o", tmp_path / "alone.conllu")
    told = run("eval", gold, tmp_path / "flattered.conllu").stderr.decode()
    assert f"flattered.conllu: UPOS, XPOS, FEATS, LEMMA equal those of {gold}" in told
    assert told.count("\n") == 1
    assert "those of" not in run("eval", gold, tmp_path / "alone.conllu").stderr.decode()
    assert "those of" not in run("eval", gold, "--model", small_model).stderr.decode()


def test_what_models_were_given_is_told_of_each(gold, monkeypatch, capsys):
    monkeypatch.setattr("mh4.trees.significance.SAMPLES", 2)
    sentences = list(read_conllu(gold))
    monkeypatch.setattr(evaluation, "_parsed", lambda models, *_: {str(model): iter(sentences) for model in models})
    for models in (["a"], ["a", "b"]):
        for given, told in ((None, 0), ("upos", len(models))):
            evaluation.evaluate(str(gold), models=models, given=given)
            assert capsys.readouterr().err.count(f"equal those of {gold}") == told


@pytest.mark.parametrize(("missing", "named"), [((), "g"), (("HEAD", "UPOS"), "s")])
def test_the_file_without_trees_is_named(missing, named, capsys):
    evaluation._tell_what_is_odd("g", "s", Evaluation({}, None, {}, missing), predicted=False)
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == f'{named}: there are no trees (every HEAD is "_")'
    assert told[:-1] == ['s: every UPOS is "_"'] * bool(missing)


@pytest.mark.parametrize("lacking", [0, 1])
def test_what_a_system_lacks_is_not_compared(lacking, capsys):
    compared = [
        Compared(Evaluation({"UPOS": Score(7, 8, 8)}, None, {}, missing), {"UPOS": (0.2, 0.9)}, {"UPOS": 0.123})
        for missing in ((), ())
    ]
    compared[lacking] = replace(compared[lacking], evaluation=Evaluation({"UPOS": Score(0, 8, 8)}, None, {}, ("UPOS",)))
    evaluation._tell_several("g", {"a": compared[0], "b": compared[1]}, as_json=False, predicted=set())
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("UPOS"))
    assert row == [["UPOS", "–", "87.50", "20.00–90.00"], ["UPOS", "87.50", "20.00–90.00", "–"]][lacking]


def test_classes_that_occur_on_neither_side_have_no_score(run, tmp_path):
    files = [tmp_path / name for name in ("gold", "a", "b")]
    for file in files:
        file.write_text("1\tA\t_\tX\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    alone, compared = (
        {line[:18].strip(): line[18:].split() for line in run("eval", *some).stdout.decode().splitlines()}
        for some in (files[:2], files)
    )
    for row in ("crossing arcs", "arcs of length 7+"):
        assert alone[row] == ["–", "–", "–", "–", "0"]
        assert compared[row] == ["–", "–"]
    assert alone["root arcs"] == ["100.00"] * 4 + ["1"]
    assert compared["root arcs"] == ["100.00", "100.00–100.00"] * 2 + ["1.000"]


def test_small_probabilities_are_bounded():
    assert [evaluation._probability(p) for p in (0.005, 0.001, 0.0009)] == ["0.005", "0.001", "<0.001"]


def test_systems_side_by_side(small_model, annotating_model, gold, words, run, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.trees.significance.SAMPLES", 50)
    file = tmp_path / "parsed.conllu"
    run("parse", small_model, words, "-o", file)
    both = ("--model", annotating_model, "--model", small_model)
    told = scores(run("eval", gold, file, *both, "--json"))
    assert list(told) == [str(file), str(annotating_model), str(small_model)]
    expected = scores(run("eval", gold, file, "--json"))
    for name in (str(file), str(small_model)):
        assert {key: told[name][key] for key in expected} == expected
    assert told[str(small_model)]["intervals"] == told[str(file)]["intervals"]
    assert set(told[str(small_model)]["p_values"].values()) == {1}
    assert told[str(file)]["p_values"] == {}
    result = run("eval", gold, file, *both)
    header, *rows = result.stdout.decode().splitlines()
    shown = [str(one.relative_to(os.path.commonpath([file, *both[1::2]]))) for one in (file, *both[1::2])]
    assert header.split() == ["F1", shown[0], "95%", shown[1], "95%", "p", shown[2], "95%", "p"]
    assert [row.split()[0] for row in rows[: len(METRICS)]] == list(METRICS)
    uas = next(row for row in rows if row.startswith("UAS")).split()
    low, high = told[str(file)]["intervals"]["UAS"]
    f1 = 100 * expected["scores"]["UAS"]["f1"]
    assert uas[1:3] == uas[-3:-1] == [f"{f1:.2f}", f"{100 * low:.2f}–{100 * high:.2f}"]
    assert uas[-1] == "1.000"
    upos = next(row for row in rows if row.startswith("UPOS")).split()
    assert upos[1] == upos[-1] == "–"  # the small model does not predict it
    assert "paired randomisation test" in rows[-1]
    assert result.stderr.decode().splitlines() == [
        f'{name}: every UPOS, XPOS, FEATS, LEMMA is "_"' for name in (file, small_model)
    ]


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (("parsed/one/dev.conllu", "parsed/other/dev.conllu"), ["one/dev.conllu", "other/dev.conllu"]),
        (("/a/models/hu", "/a/models/hu-mst"), ["hu", "hu-mst"]),
        (("models", "models/hu"), ["models", "models/hu"]),
        (("/a/x", "/b/x"), ["/a/x", "/b/x"]),
        (("a/x", "/a/x", "./-", "-"), ["a/x", "/a/x", "./-", "-"]),
        ((".", "../a/b", "../a/c"), [".", "../a/b", "../a/c"]),
    ],
)
def test_systems_are_shown_without_the_folders_that_they_share(paths, shown):
    assert evaluation._without_shared_folder(paths) == dict(zip(paths, shown, strict=True))


def test_tables_are_whole_on_narrow_terminals(calibrated_file, gold, run, tmp_path, monkeypatch):
    other = tmp_path / f"{30 * 'name-'}.conllu"
    other.write_bytes(gold.read_bytes())
    commands = (
        ("eval", gold, gold),
        ("eval", gold, gold, other),
        ("eval", gold, calibrated_file, "--calibration"),
        ("coverage", gold, other),
    )
    wide = [run(*command).stdout.decode().splitlines() for command in commands]
    monkeypatch.setattr(output, "_width", 30)
    for command, expected in zip(commands, wide, strict=True):
        narrow = run(*command).stdout.decode().splitlines()
        rows = [line for line in expected if not line.startswith(("crossing arcs, arc", "95%: "))]
        assert narrow[: len(rows)] == rows
        assert all(len(line) <= 30 for line in narrow[len(rows) :])  # sentences are broken between words


def test_one_model_is_in_memory_at_a_time(small_model, annotating_model, gold, run, monkeypatch):
    events = []

    def load(*models, **options):
        events.append(("load", *models, options))
        parser = mh4.load(*models, **options)

        def parse(*arguments, **more):
            yield from type(parser).parse(parser, *arguments, **more)
            events.append("parsed")

        monkeypatch.setattr(parser, "parse", parse, raising=False)
        return parser

    monkeypatch.setattr("mh4.parsers.registry.load", load)
    both = ("--model", annotating_model, "--model", small_model)
    assert run("eval", gold, *both, "--threads", 1, "--device", "cpu").returncode == 0
    options = {"device": "cpu", "threads": 1}
    assert events == [("load", annotating_model, options), "parsed", ("load", small_model, options), "parsed"]


def test_the_system_may_come_from_standard_input(gold, run):
    expected = run("eval", gold, gold, "--json")
    assert run("eval", gold, "-", "--json", stdin=gold.read_bytes()).stdout == expected.stdout
    assert run("eval", "-", gold, "--json", stdin=gold.read_bytes()).stdout == expected.stdout


def test_a_file_called_like_standard_input_is_a_file(gold, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(gold.read_bytes())
    assert scores(run("eval", gold, "./-", "--json")) == scores(run("eval", "./-", gold, "--json"))


def test_mistakes(small_model, gold, run, tmp_path):
    other = tmp_path / "other.conllu"
    other.write_bytes(gold.read_bytes())
    fails_with_one_line(run("eval", gold), "--model")
    fails_with_one_line(run("eval", gold, other, other), "other.conllu: is named twice")
    fails_with_one_line(run("eval", gold, "--model", small_model, "--model", small_model), "is named twice")
    fails_with_one_line(run("eval", "-", "-", stdin=gold.read_bytes()), "only one of the files")
    fails_with_one_line(run("eval", gold, other, "--given", "upos"), "for --model")
    fails_with_one_line(run("eval", gold, other, "--threads", 2), "for --model")
    fails_with_one_line(run("eval", gold, "--model", tmp_path / "nothing"), "nothing", "model folder")
    for paths in ((small_model, gold), (gold, small_model), (small_model,)):
        fails_with_one_line(run("eval", *paths), f"write mh4 eval --model {small_model} GOLD")
    fails_with_one_line(run("eval", gold, "--model", gold), "dev.conllu")
    fails_with_one_line(run("eval", gold, "--calibration", "--model", small_model), "--calibration takes")
    fails_with_one_line(run("eval", gold, "--calibration", other, gold), "--calibration takes")


def test_a_model_that_is_none_is_found_before_others_parse(small_model, gold, run, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "words_bar", None)
    models = ("--model", small_model, "--model", tmp_path / "nothing")
    fails_with_one_line(run("eval", gold, *models), "nothing", "model folder")
