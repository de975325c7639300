"""A small model, packaged into a folder with an index, a server of that folder, and a home for what is downloaded."""

import shutil

import pytest
from model_server import serving
from paths import GOLDEN_FOLDER

from mh4.parsers.model_files import write_json
from mh4.parsers.packages.packaging import package


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where downloads go; nothing else of this machine is looked at."""
    monkeypatch.setenv("MH4_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MH4_INDEX", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path):
    """A model folder, with what only training needs, too."""
    folder = tmp_path / "trained" / "xx"
    shutil.copytree(GOLDEN_FOLDER / "models" / "chart", folder)
    meta = {"language": "xx", "licence": None, "version": "0.1.0", "command": "mh4 train a b", "created": "today"}
    write_json(folder / "meta.json", meta)
    (folder / "training.safetensors").write_bytes(b"large")
    return folder


@pytest.fixture
def folder(model, tmp_path):
    """A folder with an index."""
    package(model, tmp_path / "zoo")
    return tmp_path / "zoo"


@pytest.fixture
def server(folder):
    """A server of the folder."""
    with serving(folder) as running:
        yield running
