"""Annotation experiments: runs, and the table of their results."""

from dataclasses import replace

import annotation
import pytest
from annotation import METRICS, run_of, score_words, table
from grid_runs import settings_of

from mh4.parsers.config import from_dict


@pytest.fixture
def treebank(small_treebanks):
    return f"xx={','.join(map(str, small_treebanks))}"


def test_runs_with_and_without_columns(treebank):
    run, alone = run_of(treebank, "balanced", 2, False), run_of(treebank, "balanced", 2, True)
    assert run.name == "xx-mh4-hybrid-balanced-2"
    assert alone.name == "xx-mh4-hybrid-balanced.trees-2"
    assert from_dict(settings_of(run)).weights.annotates
    weights = from_dict(settings_of(alone)).weights
    assert not weights.annotates
    assert weights.tagger_weight == 0.2


def test_models_are_scored_on_words_alone(annotating_model, small_treebanks, tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    for path in annotating_model.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    scores = score_words(folder, small_treebanks[1])["f1"]
    assert scores["Words"] == 100
    assert 0 < scores["UPOS"] < 100
    assert 0 < scores["Lemmas"] < 100


def test_what_is_done_is_not_done_again(treebank, tmp_path, monkeypatch):
    trained = []

    def pretend(run, folder, device, on_step):
        trained.append(run.name)
        return {"minutes": 1}

    monkeypatch.setattr(annotation, "train_run", pretend)
    monkeypatch.setattr(annotation, "score_words", lambda folder, dev: {"f1": {"UAS": 1.0}})
    run = run_of(treebank, "balanced", 1, False)
    first = annotation.complete(run, tmp_path, tmp_path)
    assert annotation.complete(run, tmp_path, tmp_path)["dev"] == first["dev"]
    assert trained == [run.name]
    other = replace(run, treebank=replace(run.treebank, train=run.treebank.dev))
    with pytest.raises(SystemExit, match="other train data"):
        annotation.complete(other, tmp_path, tmp_path)


def test_tags_that_a_model_of_trees_was_given_are_not_shown_as_its_scores(treebank, tmp_path, monkeypatch, capsys):
    scores = {"dev": {"f1": dict.fromkeys(METRICS, 100.0) | {"UAS": 80.0, "LAS": 70.0}}}
    monkeypatch.setattr(annotation, "complete", lambda *_: scores)
    arguments = ("--seeds", "1", "--work", str(tmp_path), "--results", str(tmp_path))
    for option, shown in (("--without", ["UAS", "80.00", "LAS", "70.00"]), ("--preset=balanced", ["UPOS", "100.00"])):
        monkeypatch.setattr("sys.argv", ["annotation.py", treebank, option, *arguments])
        annotation.main()
        _, *found = capsys.readouterr().out.splitlines()[0].split()
        assert found[: len(shown)] == shown


def test_the_table_has_means_and_what_is_published():
    def result(preset, seed, value):
        return {"treebank": "hu", "preset": preset, "seed": seed, "dev": {"f1": dict.fromkeys(METRICS, value)}}

    lines = table([result("balanced", 1, 90.0), result("balanced", 2, 91.0), result("balanced.trees", 1, 80.0)])
    assert "| hu, balanced | 2 | 90.50 | 90.50 |" in lines
    assert "| hu, balanced.trees | 1 | – | – | – | – | – | 80.00 | 80.00 | – | – |" in lines
    assert "| hu, UDPipe 2 |  | 96.87 | – | 94.45 |" in lines
    assert "got" not in lines
