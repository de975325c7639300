"""Fixtures: a small model, a folder with its package and an index, a server of that folder, a home for downloads."""

import shutil

import pytest
from model_server import serving
from paths import GOLDEN_FOLDER

from mh4.parsers.model_files import write_json
from mh4.parsers.packages.packaging import package


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home for downloads, isolated from other settings of this machine."""
    monkeypatch.setenv("MH4_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MH4_INDEX", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path):
    """A model folder, including a file that only training needs."""
    folder = tmp_path / "trained" / "xx"
    shutil.copytree(GOLDEN_FOLDER / "models" / "chart", folder)
    meta = {"language": "xx", "licence": None, "version": "0.1.0", "command": "mh4 train a b", "created": "today"}
    write_json(folder / "meta.json", meta)
    (folder / "training.safetensors").write_bytes(b"large")
    return folder


@pytest.fixture
def folder(model, tmp_path):
    """A folder with a package and an index."""
    package(model, tmp_path / "zoo")
    return tmp_path / "zoo"


@pytest.fixture
def server(folder):
    """A server of the folder."""
    with serving(folder) as running:
        yield running
