"""Settings for all tests; small treebanks and a small trained model."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported; tests run in parallel processes

import pytest
import torch
from hypothesis import settings
from pretend_gpu import PretendGPU
from small import ANNOTATING, changed, small_config, train

from mh4.cli.bench.udpipe import train_udpipe
from mh4.data.document import Document
from mh4.data.sample import read_sample
from mh4.data.udpipe import UDPIPE_FILE
from mh4.machine import Terminated
from mh4.parsers.checksums import write_file
from mh4.parsers.segmenter import NeuralSegmenter
from mh4.training.segmenter import Recipe, train_segmenter

# No deadline: the first call of a kernel compiles it.
settings.register_profile("mh4", deadline=None, max_examples=60)
settings.load_profile("mh4")

QUICK_SEGMENTER = Recipe(size=16, hidden=16, epochs=2)


@pytest.fixture(autouse=True)
def _quick_segmenters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep segmenter training short in every test."""
    monkeypatch.setattr("mh4.training.segmenter.RECIPE", QUICK_SEGMENTER)


@pytest.fixture(autouse=True)
def _signals_end_with_their_test() -> Iterator[None]:
    """Restore what the command line sets when a test calls it, so that no later test is interrupted."""
    before = [(number, signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in before:
        signal.signal(number, handler)
    Terminated.asked = None


@pytest.fixture(scope="session")
def small_treebanks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A training file with 40 and a development file with 12 sentences of the sample."""
    folder = tmp_path_factory.mktemp("treebanks")
    sample = read_sample()
    paths = folder / "train.conllu", folder / "dev.conllu"
    for path, sentences in zip(paths, (sample["train"][:40], sample["dev"][:12]), strict=True):
        path.write_text("".join(sentences), encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def small_model(small_treebanks: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a briefly trained mh4-hybrid model."""
    folder = tmp_path_factory.mktemp("model") / "mh4-hybrid"
    train(*small_treebanks, folder, small_config(), device="cpu")
    return folder


_REAL = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(params=["pretended", pytest.param("real", marks=[pytest.mark.cuda, _REAL])])
def gpu(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make device="cuda" usable; the ``tolerance`` of the yielded object bounds differences from CPU results.

    The pretended GPU is a `PretendGPU`, which documents its other attributes.
    """
    if request.param == "real":
        yield SimpleNamespace(tolerance=1e-4)
        return
    with PretendGPU() as pretended:
        yield pretended


def _sentences_of_text() -> list[str]:
    """The first 40 training sentences of the sample, then all with contractions."""
    sentences = read_sample()["train"]
    return sentences[:40] + [sentence for sentence in sentences if re.search(r"^\d+-", sentence, re.MULTILINE)]


@pytest.fixture(scope="session")
def segmenter() -> NeuralSegmenter:
    """A segmenter briefly trained on sample sentences, contractions included."""
    sentences = Document.from_conllu("".join(_sentences_of_text()))
    return train_segmenter(
        sentences, sentences, 1, Recipe(size=16, hidden=16, epochs=15, dropout=0.0, learning_rate=0.02)
    )


@pytest.fixture(scope="session")
def udpipe_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a UDPipe segmenter trained on the same sentences as `segmenter`."""
    folder = tmp_path_factory.mktemp("udpipe")
    treebank = folder / "train.conllu"
    treebank.write_text("".join(_sentences_of_text()), encoding="utf-8")
    path = folder / UDPIPE_FILE
    path.write_bytes(train_udpipe(treebank, treebank, "epochs=1;dimension=16;segment_size=20"))
    return path


@pytest.fixture(scope="session")
def text_model(small_model: Path, segmenter: NeuralSegmenter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of `small_model` with `segmenter`."""
    folder = tmp_path_factory.mktemp("text") / "model"
    shutil.copytree(small_model, folder)
    for name, content in segmenter.files.items():
        write_file(folder / name, content)
    return folder


@pytest.fixture(scope="session")
def older_text_model(small_model: Path, udpipe_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of `small_model` with a UDPipe segmenter, as in models of older versions."""
    folder = tmp_path_factory.mktemp("older") / "model"
    shutil.copytree(small_model, folder)
    shutil.copy(udpipe_model, folder)
    return folder


@pytest.fixture(scope="session")
def annotating_model(small_treebanks: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an eisner model briefly trained to predict UPOS, XPOS, FEATS and lemmas as well."""
    folder = tmp_path_factory.mktemp("model") / "columns"
    config = small_config("eisner", max_steps=200, evaluation_steps=200, learning_rate=0.02)
    train(*small_treebanks, folder, changed(config, **ANNOTATING), device="cpu")
    return folder
