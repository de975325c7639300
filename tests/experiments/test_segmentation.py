"""Segmentation with a UDPipe model trained in the test."""

import json
from dataclasses import replace

import numpy as np
import pytest
from grid_runs import find_treebank, score_run
from segmentation import MODEL_SUFFIX, main, segment_file

from mh4.cli.bench.udpipe import train_udpipe
from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.data.text import text_of
from mh4.parsers.answers import Answers
from mh4.parsers.base import Parser


class Chain(Parser):
    """A parser that attaches every word to the one before it."""

    def _answer(self, sentences, request):
        return Answers([Annotation(np.arange(len(s)), ("root", *("dep",) * (len(s) - 1))) for s in sentences])


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segmented")
    for part, count in (("train", 60), ("dev", 15), ("test", 15)):
        sentences = read_sample()[part][:count]
        (folder / f"{part}.conllu").write_text("".join(sentences), encoding="utf-8")
    model = train_udpipe(folder / "train.conllu", folder / "dev.conllu", "epochs=1;dimension=16;segment_size=20")
    (folder / f"model{MODEL_SUFFIX}").write_bytes(model)
    return replace(find_treebank(f"u={folder}"), segmented=folder / f"model{MODEL_SUFFIX}")


def test_a_trained_model_cuts_all_of_a_text_into_words(treebank, tmp_path):
    text = "".join(text_of(read_conllu(treebank.test)))
    path = segment_file(treebank.segmented, treebank.test, tmp_path / "cut.conllu")
    sentences = list(read_conllu(path))
    assert "".join(form for sentence in sentences for form in sentence.forms) == "".join(text.split())
    assert len(sentences) > 1
    assert "".join(text_of(sentences)) == text


def test_runs_are_scored_on_what_the_model_cuts(treebank, tmp_path):
    scores = score_run(Chain(), treebank, tmp_path)
    cut = list(read_conllu(tmp_path / "segmented.conllu"))
    parsed = list(read_conllu(tmp_path / "test-segmented.conllu"))
    assert [sentence.forms for sentence in parsed] == [sentence.forms for sentence in cut]
    assert scores["test"]["f1"]["Sentences"] == 100
    assert 0 < scores["test_segmented"]["f1"]["Sentences"] <= 100
    assert scores["test_segmented"]["f1"]["Words"] > 90


def test_bad_models_and_treebanks_are_named(treebank, tmp_path, monkeypatch):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["segmentation.py", *map(str, arguments), "-o", str(tmp_path / "out")])
        main()

    broken = tmp_path / f"broken{MODEL_SUFFIX}"
    broken.write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"broken\.udpipe: is damaged"):
        run("segment", broken, treebank.test)
    with pytest.raises(ValueError, match=r"train\.conllu: .*'many'"):
        run("train", treebank.train, treebank.dev, "--options", "epochs=many")
    unreadable = tmp_path / "bad.conllu"
    unreadable.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"bad\.conllu: "):
        run("segment", treebank.segmented, unreadable)
    assert not (tmp_path / "out").exists()


def test_both_segmenters_are_scored_once(treebank, tmp_path, monkeypatch):
    output = tmp_path / "u-1.json"
    files = [str(path) for path in (treebank.train, treebank.dev, "--udpipe", treebank.segmented, "-o", output)]
    monkeypatch.setattr("sys.argv", ["segmentation.py", "score", *files])
    main()
    result = json.loads(output.read_text())
    assert result["mh4"].keys() == result["udpipe"].keys() == {"Tokens", "Words", "Sentences"}
    assert result["mh4"]["Tokens"] > 90
    assert result.keys() >= {"commit", "versions", "hardware"}
    before = output.stat().st_mtime_ns
    main()
    assert output.stat().st_mtime_ns == before
