"""A segmenter is trained beside the parser, in a process of its own."""

import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from small import small_config, train

import mh4
from mh4.training.segmenter import segmenter_beside, segmenter_options

QUICK = "epochs=1;dimension=16;segment_size=20"


def test_a_network_gets_one(small_treebanks, tmp_path, caplog):
    caplog.set_level(logging.INFO, "mh4")
    train(*small_treebanks, tmp_path / "n", small_config(max_steps=2), device="cpu", segmenter=QUICK)
    assert [line for line in caplog.messages if line.startswith("segmenter: epoch 1 of 1, dev tokens ")]
    document = mh4.load(tmp_path / "n", device="cpu")("Zub ulv. Tor teg.")
    assert document.text.split() == ["Zub", "ulv.", "Tor", "teg."]
    assert all(len(sentence.roots) == 1 for sentence in document)


def test_a_perceptron_gets_none_as_text_has_no_tags(small_treebanks, tmp_path):
    options = {"system": "arc-eager", "scorer": "perceptron", "epochs": 1}
    parser = mh4.train(*small_treebanks, tmp_path / "p", **options)
    assert parser.segmenter is None
    assert not (tmp_path / "p" / "segmenter.udpipe").exists()
    with pytest.raises(ValueError, match="a perceptron cannot parse text"):
        mh4.train(*small_treebanks, tmp_path / "q", segmenter="epochs=3", **options)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_treebanks_that_can_be_read_only_once_teach_a_segmenter_too(small_treebanks, tmp_path):
    """Standard input and the shell's <(…) are empty when they are read again."""
    pipes = [tmp_path / "train.pipe", tmp_path / "dev.pipe"]
    for pipe in pipes:
        os.mkfifo(pipe)

    def write():
        for pipe, treebank in zip(pipes, small_treebanks, strict=True):
            pipe.write_bytes(treebank.read_bytes())

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    config = small_config(max_steps=2)
    train(*pipes, tmp_path / "piped", config, device="cpu", segmenter=QUICK)
    writer.join()
    train(*small_treebanks, tmp_path / "files", config, device="cpu", segmenter=QUICK)
    models = [(tmp_path / name / "segmenter.udpipe").read_bytes() for name in ("piped", "files")]
    assert models[0] == models[1]


def test_a_model_that_is_replaced_loses_its_segmenter(text_model, small_treebanks, tmp_path):
    (tmp_path / "m").mkdir()
    for path in text_model.iterdir():
        (tmp_path / "m" / path.name).write_bytes(path.read_bytes())
    assert (tmp_path / "m" / "segmenter.udpipe").exists()
    train(*small_treebanks, tmp_path / "m", small_config(max_steps=1), device="cpu", overwrite=True)
    assert not (tmp_path / "m" / "segmenter.udpipe").exists()


def test_a_segmenter_that_fails_is_reported_and_the_parser_trained(small_treebanks, tmp_path, caplog):
    with segmenter_beside(tmp_path, *((path, ()) for path in small_treebanks), "epochs=many"):
        pass
    assert "the model will not cut text: training the segmenter failed" in caplog.text
    assert "many" in caplog.text
    assert not list(tmp_path.iterdir())


def test_a_parser_that_fails_ends_the_segmenter(small_treebanks, tmp_path):
    with pytest.raises(KeyError), segmenter_beside(tmp_path, *((path, ()) for path in small_treebanks), "epochs=1000"):
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_settings_are_checked(monkeypatch, caplog):
    assert segmenter_options(False) is None
    assert segmenter_options(True) == QUICK
    assert segmenter_options("epochs=7;dropout=.5").startswith("epochs=7;")
    with pytest.raises(ValueError, match=r"'epoch'.*known: epochs"):
        segmenter_options("epoch=3")
    with pytest.raises(ValueError, match="must be a number"):
        segmenter_options("epochs=many")
    assert segmenter_options(True, perceptron=True) is None
    for nothing in (None, 1, "off"):
        with pytest.raises((TypeError, ValueError), match="False"):
            segmenter_options(nothing)
    monkeypatch.setitem(__import__("sys").modules, "ufal.udpipe", None)
    assert segmenter_options(True) is None
    assert r"pip install 'mh4[text]'" in caplog.text
    with pytest.raises(ValueError, match="not installed"):
        segmenter_options("epochs=3")


KILLED = """
import os, signal, sys
from pathlib import Path
from mh4.training.segmenter import segmenter_beside
train, dev = ((path, ()) for path in sys.argv[2:])
with segmenter_beside(Path(sys.argv[1]), train, dev, "epochs=100000;dimension=16;segment_size=20"):
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    print(children, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux only")
def test_a_killed_training_takes_its_segmenter_along(small_treebanks, tmp_path):
    program = [sys.executable, "-c", KILLED, str(tmp_path), *map(str, small_treebanks)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        child = Path("/proc") / process.stdout.readline().strip()
        assert child.exists()
        process.kill()
    deadline = time.monotonic() + 60
    while child.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not child.exists()
