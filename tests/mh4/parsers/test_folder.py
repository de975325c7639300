"""Model folders: loading reads every file once, and saving writes what was loaded."""

import errno
from collections import Counter

import pytest
import torch
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.errors import DataError
from mh4.models.network import ParserNetwork
from mh4.parsers import checksums
from mh4.parsers.config import GreedyConfig, PerceptronConfig
from mh4.parsers.folder import ModelFolder


@pytest.fixture
def reads(monkeypatch):
    """How often each file has been read."""
    counts, read = Counter(), checksums._read

    def counted(path):
        if path.name != checksums.SUMS:
            counts[path.name] += 1
        return read(path)

    monkeypatch.setattr(checksums, "_read", counted)
    return counts


def test_loading_reads_every_file_once_and_builds_the_network_once(text_model, reads, monkeypatch):
    built, make = [], ParserNetwork.__init__
    monkeypatch.setattr(ParserNetwork, "__init__", lambda self, *given: built.append(self) or make(self, *given))
    parser = mh4.load(text_model, device="cpu")
    assert built == [parser.network]
    of_a_model = {"config.json", "vocab.json", "encoder.words.json", "weights.safetensors", "meta.json"}
    beside = {"segmenter.json", "segmenter.safetensors", "calibration.json"}
    assert reads == dict.fromkeys(of_a_model | beside, 1)


def test_a_file_is_read_when_it_is_asked_for(small_model, reads):
    folder = ModelFolder(small_model)
    assert not reads
    assert folder.config.decoder == "mh4-hybrid"
    assert folder.config is folder.config
    assert folder.meta == folder.meta
    assert reads == {"config.json": 1, "meta.json": 1}
    assert folder.segmenter is None
    with pytest.raises(DataError, match="holds a chart parser, not a greedy parser"):
        folder.config_of(GreedyConfig)


@pytest.mark.parametrize("kind", ["chart", "greedy", "perceptron", "annotating"])
def test_what_is_loaded_is_saved(kind, tmp_path):
    """Models of earlier formats are saved in the current format."""
    parser = mh4.load(GOLDEN_FOLDER / "models" / kind, device="cpu")
    parser.save(tmp_path / "m")
    again = mh4.load(tmp_path / "m", device="cpu")
    assert (again.config, again.vocabulary) == (parser.config, parser.vocabulary)
    one, other = (ModelFolder(path).weights() for path in (GOLDEN_FOLDER / "models" / kind, tmp_path / "m"))
    assert one.keys() >= other.keys()
    assert all(torch.equal(one[name], other[name]) for name in other)
    if not isinstance(parser.config, PerceptronConfig):
        assert again.network.encoder.files() == parser.network.encoder.files()


def test_a_loaded_network_learns_from_where_it_is(small_model):
    network = mh4.load(small_model, device="cpu").network
    assert not network.training
    assert all(own.requires_grad and own.device.type == "cpu" for own in network.parameters())
    assert not any(own.is_inference() for own in network.parameters())


def test_a_folder_has_a_name():
    with pytest.raises(ValueError, match="the model folder has no name"):
        ModelFolder("")
    with pytest.raises(ValueError, match=r"^'a\\x00': holds NUL"):
        mh4.load("a\0")


def test_a_folder_that_the_system_refuses_is_named(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="xx: cannot be read: file name too long"):
        mh4.load(tmp_path / ("x" * 300))

    def refuse(folder):
        raise PermissionError(errno.EACCES, "Permission denied", str(folder))

    monkeypatch.setattr("mh4.parsers.packages.cache.os.listdir", refuse)
    with pytest.raises(DataError, match="secret: cannot be read: permission denied"):
        mh4.load(tmp_path / "secret")


@pytest.mark.parametrize("name", ["segmenter.json", "segmenter.safetensors"])
def test_a_damaged_segmenter_is_named_once(text_model, tmp_path, name):
    folder = tmp_path / "model"
    mh4.load(text_model).save(folder)
    with (folder / name).open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(DataError, match=r"is damaged or was changed") as caught:
        mh4.load(folder)
    assert str(caught.value).count(name) == 1
