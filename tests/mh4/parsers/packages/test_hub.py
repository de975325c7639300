"""The Hugging Face hub without its servers: a hand-made cache and a fake API."""

import os
import shutil
import sys
from types import SimpleNamespace

import pytest
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.errors import DataError

hub = pytest.importorskip("huggingface_hub", reason="needs the extra mh4[hub]")
COMMIT = "0123456789" * 4


@pytest.fixture
def cached(tmp_path, model):
    """A cache in the layout of `huggingface_hub`, with a model and a pickle."""
    repository = tmp_path / "hub" / "models--some--xx"
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "blobs").mkdir()
    for path in model.iterdir():
        blob = repository / "blobs" / path.name
        shutil.copy(path, blob)
        (snapshot / path.name).symlink_to(os.path.relpath(blob, snapshot))
    (snapshot / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    return tmp_path / "hub"


def heads(parser):
    return [list(sentence.heads) for sentence in parser.parse(GOLDEN_FOLDER / "models" / "chart" / "dev.conllu")]


def test_a_model_of_the_hub_is_loaded_from_its_cache(cached, model, home):
    parser = mh4.Parser.from_pretrained("some/xx", cache_dir=cached, local_files_only=True, device="cpu")
    assert heads(parser) == heads(mh4.load(model, device="cpu"))
    again = mh4.Parser.from_pretrained("some/xx", cache_dir=cached, local_files_only=True, revision=COMMIT)
    assert type(again) is type(parser)


def test_only_json_and_tensors_are_asked_for(monkeypatch, model, home):
    asked = {}
    monkeypatch.setattr(hub, "snapshot_download", lambda name, **options: asked.update(options) or str(model))
    mh4.Parser.from_pretrained("some/xx", revision="v1", token="t", device="cpu")
    assert set(asked.pop("allow_patterns")) == {"*.json", "*.safetensors", "SHA256SUMS"}
    assert asked == {"revision": "v1", "token": "t", "cache_dir": None, "local_files_only": False}


def test_a_model_that_the_hub_does_not_have(cached, home):
    with pytest.raises(DataError, match=r"^some/yy: no such folder, and it cannot be fetched from the hub: \S.*"):
        mh4.Parser.from_pretrained("some/yy", cache_dir=cached, local_files_only=True)


def test_folders_and_downloaded_models_are_loaded_without_the_hub(folder, model, home, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    mh4.download("xx", folder)
    assert heads(mh4.Parser.from_pretrained("xx", device="cpu")) == heads(mh4.Parser.from_pretrained(model))
    shutil.copytree(model, tmp_path / "some" / "xx")
    assert mh4.Parser.from_pretrained("some/xx", device="cpu")
    with pytest.raises(ValueError, match=r"huggingface_hub is not installed: pip install 'mh4\[hub\]'"):
        mh4.Parser.from_pretrained("some/yy")
    with pytest.raises(TypeError, match="from_pretrained has no option 'gpu'; write device"):
        mh4.Parser.from_pretrained("xx", gpu=True)


def test_what_is_saved_is_loaded_again_and_has_a_card(model, tmp_path):
    parser = mh4.load(model, device="cpu")
    for _ in range(2):  # the second replaces the first
        parser.save_pretrained(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: mh4\n")
    assert "| weights.safetensors | " in card
    assert 'mh4.load("saved")' in card
    assert heads(mh4.Parser.from_pretrained(tmp_path / "saved", device="cpu")) == heads(parser)
    metadata = hub.ModelCard.load(tmp_path / "saved" / "README.md").data
    assert (metadata.language, metadata.library_name, metadata.license) == ("xx", "mh4", "unknown")


def test_an_upload_replaces_the_whole_model_but_no_other_file(model, monkeypatch, tmp_path):
    remote = tmp_path / "remote"
    shutil.copytree(GOLDEN_FOLDER / "models" / "chart", remote)
    model_files = ("segmenter.json", "segmenter.safetensors", "segmenter.udpipe", "calibration.json", "encoder.x.bin")
    others = ("README.md", "figures.json", "notes/config.json")
    (remote / "notes").mkdir()
    for name in (*model_files, *others):
        (remote / name).write_text("{}")

    class Api:
        def __init__(self, token):
            pass

        def create_repo(self, *_, **__):
            pass

        def upload_folder(self, *, folder_path, delete_patterns, **_):
            there = [str(path.relative_to(remote)) for path in remote.rglob("*") if path.is_file()]
            for name in hub.utils.filter_repo_objects(there, allow_patterns=delete_patterns):
                (remote / name).unlink()
            shutil.copytree(folder_path, remote, dirs_exist_ok=True)
            return SimpleNamespace(commit_url="")

    monkeypatch.setattr(hub, "HfApi", Api)
    parser = mh4.load(model, device="cpu")
    parser.push_to_hub("some/xx")
    assert not [name for name in model_files if (remote / name).exists()]
    assert all((remote / name).exists() for name in others)
    assert 'parser = mh4.Parser.from_pretrained("some/xx")\n' in (remote / "README.md").read_text()
    assert heads(mh4.Parser.from_pretrained(remote, device="cpu")) == heads(parser)


def test_an_upload_has_the_model_and_its_card(model, monkeypatch):
    done = []

    class Api:
        def __init__(self, token):
            done.append(token)

        def create_repo(self, repository, *, private, exist_ok):
            done.append((repository, private, exist_ok))

        def upload_folder(self, *, repo_id, folder_path, revision, commit_message, delete_patterns):
            card = (folder_path / "README.md").read_text()
            done.append((repo_id, revision, commit_message, "# xx" in card, sorted(os.listdir(folder_path))))
            return SimpleNamespace(commit_url="https://example.org/1")

    monkeypatch.setattr(hub, "HfApi", Api)
    parser = mh4.load(model, device="cpu")
    assert parser.push_to_hub("some/xx", private=True, token="t") == "https://example.org/1"
    own = ["config.json", "encoder.words.json", "meta.json", "vocab.json", "weights.safetensors"]
    files = ["README.md", "SHA256SUMS", *own]
    assert done == ["t", ("some/xx", True, True), ("some/xx", None, "Upload model", True, files)]
    with pytest.raises(ValueError, match="a repository has the form \"USER/NAME\", not 'xx'"):
        parser.push_to_hub("xx")
    ensemble = mh4.load(model, model, device="cpu")
    with pytest.raises(ValueError, match="an ensemble has no folder of its own"):
        ensemble.push_to_hub("some/xx")
