"""The report on confidence: treebanks are measured once, and the report is written from stored results."""

import json
import sys

import calibration
import pytest
from small import small_config, train

from mh4.data.sentence import Sentence


def test_violations_are_counted_below_words_alone():
    sentence = Sentence.from_words(["a", "b", "c", "d", "e"])
    relations = ["nsubj:pass", "nsubj", "x", "nsubj", "x"]
    assert calibration.violations([sentence.replace(heads=[3, 3, 0, 3, 3], relations=relations)]) == 2
    assert calibration.violations([sentence.replace(heads=[3, 3, 0, 1, 3], relations=relations)]) == 1
    assert calibration.violations([sentence.replace(heads=[0, 0, 1, 0, 3], relations=relations)]) == 0


@pytest.fixture
def treebank(small_treebanks, tmp_path):
    folder = tmp_path / "sample"
    folder.mkdir()
    for part, path in zip(("train", "dev", "test"), (*small_treebanks, small_treebanks[1]), strict=True):
        (folder / f"sample-{part}.conllu").write_bytes(path.read_bytes())
    return folder


def test_a_treebank_is_measured_once(treebank, tmp_path, monkeypatch, capsys):
    train(
        treebank / "sample-train.conllu", treebank / "sample-dev.conllu", tmp_path / "models" / "sample", small_config()
    )
    monkeypatch.setattr(calibration, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(calibration, "REPORT", tmp_path / "CALIBRATION.md")
    monkeypatch.setattr(calibration, "UNIQUE", ("nsubj", "obj"))
    monkeypatch.setattr(sys, "argv", ["calibration.py", str(treebank), "--models", str(tmp_path / "models")])
    calibration.main()
    result = json.loads((tmp_path / "results" / "sample.json").read_text())
    assert result["unique"]["unique"]["violations"] == 0
    assert result["dev"]["words"] == result["test"]["words"] > 0
    text = (tmp_path / "CALIBRATION.md").read_text()
    assert f"| sample dev | {result['dev']['words']} |" in text
    monkeypatch.setattr(calibration, "measure", None)
    calibration.main()
    assert (tmp_path / "CALIBRATION.md").read_text() == text
    assert capsys.readouterr().out.count("# Confidence") == 2
    path = treebank / "sample-test.conllu"
    path.write_bytes(path.read_bytes().partition(b"\n\n")[2])
    with pytest.raises(SystemExit, match="other test data"):
        calibration.main()
