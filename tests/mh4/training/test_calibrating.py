"""Fitting a model's calibration: its weights, words and halves, and treebanks that are too small."""

import logging
import shutil

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import mh4
from mh4.cli import app
from mh4.data.annotation import Annotation
from mh4.data.confidence import Confidence
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.parsers.calibration import Calibration, Curve
from mh4.parsers.chart import ChartParser
from mh4.parsers.model_files import CALIBRATION
from mh4.parsers.ownership import sole_owner
from mh4.training.calibrating import calibrate, calibrate_best, compared, cross_fitted


@pytest.fixture
def model(small_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(small_model, folder)
    return folder


@pytest.fixture
def dev(small_treebanks):
    return list(read_conllu(small_treebanks[1], trees="required"))


def write(path, sentences):
    path.write_bytes(b"".join(sentence.to_bytes() for sentence in sentences))
    return path


def predicted(right, margin=1.0):
    """Return a predicted tree of 20 words, all with gold relations and ``right`` with gold heads, and its gold tree."""
    gold = np.array([0, *[1] * 19], np.int32)
    heads = np.where(np.arange(20) < right, gold, 2)
    certainty = Confidence(np.full(20, margin), np.zeros(20, np.int32), np.full(20, 0.5))
    names = ("x",) * 20
    return (
        Annotation(heads, names, confidence=certainty),
        Sentence.from_words(["w"] * 20).replace(heads=gold, relations=names),
    )


def test_each_half_is_measured_by_the_other():
    """One half, sentences 1 and 3, has 19 of 20 heads right, the other 2 of 20."""
    predictions, golds = zip(*(predicted(right) for right in (19, 2, 19, 2)), strict=True)
    report = cross_fitted(predictions, golds)
    low, high = (one.confidence for one in report.heads.bins)
    assert (low, high) == (pytest.approx(5 / 42, abs=1e-6), pytest.approx(39 / 42, abs=1e-6))
    assert [one.right for one in report.heads.bins] == [0.95, 0.1]


def test_a_word_is_right_if_head_and_relation_are():
    prediction, gold = predicted(10)
    gold = gold.replace(relations=["x"] * 5 + ["y"] * 10 + ["_"] * 5)
    calibration = Calibration(*[Curve((0.0, 1.0), (0.0, 0.8))] * 3, words=20)
    margins, heads, words, head_right, right = compared(calibration, prediction, gold)
    assert (margins == 1).all()
    np.testing.assert_allclose(heads, 0.8)
    np.testing.assert_allclose(words, [0.8 * 0.4] * 15 + [np.nan] * 5)
    assert head_right.tolist() == [True] * 10 + [False] * 10
    assert right.tolist() == [True] * 5 + [False] * 10 + [True] * 5  # an unknown relation counts as right


def test_the_weights_in_the_folder_are_calibrated(model, dev):
    parser = ChartParser.load(model, device="cpu")
    expected = Calibration.fit(parser.predict_with_margins(dev), dev)
    with torch.no_grad():
        for weights in parser.network.parameters():
            weights.mul_(0.5)
    assert Calibration.fit(parser.predict_with_margins(dev), dev) != expected
    (model / CALIBRATION).unlink()
    calibrate_best(parser, dev, model)
    assert Calibration.load(model) == expected


def test_a_model_is_not_calibrated_while_it_is_trained(model, small_treebanks):
    """Its calibration would be that of weights that training replaces meanwhile."""
    before = (model / CALIBRATION).read_bytes()
    with sole_owner(model), pytest.raises(DataError, match="is working on the model in this folder"):
        calibrate(model, small_treebanks[1], device="cpu")
    assert (model / CALIBRATION).read_bytes() == before


def test_every_option_arrives(model, small_treebanks, tmp_path, monkeypatch):
    loaded, skipped, bad = [], [], tmp_path / "dev.conllu"
    bad.write_bytes(small_treebanks[1].read_bytes() + b"1\ta\t_\t_\t_\t_\t7\tx\t_\t_\n\n")
    monkeypatch.setattr(
        "mh4.training.calibrating.load", lambda folder, **options: loaded.append(options) or mh4.load(folder, **options)
    )
    calibrate(model, bad, device="cpu", threads=1, errors=skipped.append)
    assert loaded == [{"device": "cpu", "threads": 1}]
    assert len(skipped) == 1


def test_sentences_that_are_parsed_in_pieces_are_left_out(model, dev, monkeypatch):
    monkeypatch.setattr("mh4.parsers.base.LONGEST", 14)
    short = [sentence for sentence in dev if len(sentence) <= 14]
    assert 0 < len(short) < len(dev)
    parser = ChartParser.load(model, device="cpu")
    expected = Calibration.fit(parser.predict_with_margins(short), short)
    for fast in (True, False):
        monkeypatch.setattr(type(parser.decoder), "has_fast_margins", fast)
        (model / CALIBRATION).unlink()
        calibrate_best(parser, dev, model)
        assert Calibration.load(model) == expected
    monkeypatch.setattr("mh4.parsers.base.LONGEST", 1)
    with pytest.raises(DataError, match=r"dev\.conllu: every sentence has more than 1 words"):
        calibrate(model, dev[0].source, device="cpu")


def test_sentences_whose_margins_are_slow_are_left_out(model, dev, monkeypatch):
    short = [sentence for sentence in dev if len(sentence) <= 14]
    parser = ChartParser.load(model, device="cpu")
    expected = [Calibration.fit(parser.predict_with_margins(own), own) for own in (dev, short)]
    monkeypatch.setattr("mh4.training.calibrating.SLOW_BEYOND", 14)
    for fast, calibration in zip((True, False), expected, strict=True):
        monkeypatch.setattr(type(parser.decoder), "has_fast_margins", fast)
        (model / CALIBRATION).unlink()
        calibrate_best(parser, dev, model)
        assert Calibration.load(model) == calibration


@pytest.mark.parametrize("lengths", [(30,), (12, 12), (29, 1)])
def test_few_words_suffice_though_their_halves_do_not(model, tmp_path, lengths):
    sentences = [
        Sentence.from_words(["w"] * n).replace(heads=[0, *[1] * (n - 1)], relations=["root", *["x"] * (n - 1)])
        for n in lengths
    ]
    parser = ChartParser.load(model, device="cpu")
    own = [  # gold trees that are the model's own, so that some heads are right
        sentence.replace(heads=found.heads, relations=found.relations)
        for sentence, found in zip(sentences, parser.predict(sentences), strict=True)
    ]
    path = write(tmp_path / "few.conllu", own)
    (model / CALIBRATION).unlink()
    calibration, report = calibrate(model, path, device="cpu")
    assert calibration.words == sum(n for n in lengths if n > 1)
    assert report is None
    assert Calibration.load(model) == calibration
    result = CliRunner().invoke(app, ["calibrate", str(model), str(path), "--device", "cpu"])
    assert result.exit_code == 0
    assert f"{calibration.words} words, too few to measure the calibration error" in result.output


def test_too_few_words_name_the_file(model, tmp_path):
    few = write(tmp_path / "few.conllu", [Sentence(["a", "b"], heads=[0, 1], relations=["root", "x"])] * 3)
    before = (model / CALIBRATION).read_bytes()
    with pytest.raises(DataError, match=r"few\.conllu: 6 words are too few to calibrate on; take at least 20 that can"):
        calibrate(model, few, device="cpu")
    assert (model / CALIBRATION).read_bytes() == before


def test_a_treebank_without_relations_replaces_no_calibration(model, dev, tmp_path, caplog):
    path = write(tmp_path / "bare.conllu", [one.replace(relations=["_"] * len(one)) for one in dev])
    before = (model / CALIBRATION).read_bytes()
    with pytest.raises(DataError, match=r"bare\.conllu: the treebank has no relations \(DEPREL\) to calibrate on"):
        calibrate(model, path, device="cpu")
    assert (model / CALIBRATION).read_bytes() == before
    (model / CALIBRATION).unlink()
    with caplog.at_level(logging.WARNING, "mh4"):
        calibrate_best(ChartParser.load(model, device="cpu"), list(read_conllu(path)), model)
    assert "no confidence yet: the treebank has no relations" in caplog.text
    assert not (model / CALIBRATION).exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 2}', b'{"format": 1, "heads": 3}'])
@pytest.mark.parametrize("listed", [True, False])
def test_a_damaged_calibration_stops_nothing_else_and_is_repaired(model, small_treebanks, content, listed):
    before = (model / CALIBRATION).read_bytes()
    (model / CALIBRATION).write_bytes(content)
    if not listed:
        (model / "SHA256SUMS").unlink()
    parser = mh4.load(model, device="cpu")
    assert len(parser(["a", "b"])) == 2
    assert len(parser.k_best(["a", "b"], 2)) == 2
    with pytest.raises(DataError, match=rf"calibration\.json: .*; mh4 calibrate {model} DEV makes a new one"):
        parser(["a", "b"], confidence=True)
    calibrate(model, small_treebanks[1], device="cpu")
    assert (model / CALIBRATION).read_bytes() == before
    assert mh4.load(model, device="cpu")(["a", "b"], confidence=True)[0].confidence
