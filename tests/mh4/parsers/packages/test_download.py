"""Downloads are complete or absent, resume where they broke off, and match their description in the index."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.errors import DataError
from mh4.parsers.packages import archive, cache, download
from mh4.parsers.packages.index import INDEX
from mh4.parsers.packages.packaging import package

PACKAGE = "xx.mh4.zip"


def change_index(folder, **values):
    index = json.loads((folder / INDEX).read_text())
    index["models"][0] |= values
    (folder / INDEX).write_text(json.dumps(index))


def left_behind(home):
    """Return the names of all files in the download folder of model xx, except its lock."""
    return sorted(path.name for path in (home / "models" / "xx").iterdir() if path.name != ".lock")


def test_a_model_is_downloaded_once_and_known_by_its_name(server, home, model):
    steps = []
    place = mh4.download("xx", server.address, on_progress=lambda done, size: steps.append((done, size)))
    assert place.is_relative_to(home / "models" / "xx")
    assert not (place / "training.safetensors").exists()
    assert steps[0][0] == 0
    assert steps[-1][0] == steps[-1][1] == json.loads((cache.models_home() / "xx" / "model.json").read_text())["size"]
    sentences = list(mh4.load("xx", device="cpu").parse(model / "dev.conllu"))
    assert sentences == list(mh4.read_conllu(GOLDEN_FOLDER / "models" / "chart" / "dev.conllu"))
    assert mh4.download("xx", server.address + "/index.json") == place
    assert [path for path, _ in server.requests].count("/" + PACKAGE) == 1


def test_a_folder_of_that_name_wins(folder, home, model, tmp_path):
    mh4.download("xx", folder)
    shutil.copytree(model, tmp_path / "xx")
    (tmp_path / "xx" / "config.json").write_text("{}")
    with pytest.raises(DataError, match=r"^xx/config\.json"):
        mh4.load("xx")


def test_an_index_is_a_folder_a_file_an_address_or_in_the_environment(folder, home, monkeypatch):
    for index in (folder, folder / INDEX, folder.as_uri(), f"{folder.as_uri()}/{INDEX}", os.path.relpath(folder)):
        assert mh4.download("xx", index).is_dir()
    with pytest.raises(ValueError, match=r"no index of models: .*MH4_INDEX"):
        mh4.download("xx")
    monkeypatch.setenv("MH4_INDEX", str(folder))
    assert mh4.download("xx").is_dir()
    monkeypatch.chdir(folder)
    assert mh4.download("xx", INDEX).is_dir()


def test_an_index_that_breaks_off_is_named(monkeypatch):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr(download.Source, "_open_remote", lambda *_: (Broken(), 0))
    with pytest.raises(DataError, match=r"^https://x\.test/index\.json: cannot be read: connection reset by peer"):
        mh4.download("xx", "https://x.test")


@pytest.mark.parametrize("index", ["http://example.org", "ftp://localhost", "http://localhost.example.org/x"])
def test_only_safe_addresses_are_asked(index, home):
    with pytest.raises(DataError, match="not safe to download from"):
        mh4.download("xx", index)


def test_a_redirection_to_an_unsafe_address_is_refused(server, home):
    server.faults = [("redirect", "http://example.org/xx.mh4.zip")]
    with pytest.raises(DataError, match=r"http://example\.org/xx\.mh4\.zip: is not safe"):
        mh4.download("xx", server.address)
    server.faults = [("redirect", f"{server.address}/{PACKAGE}")]
    assert mh4.download("xx", server.address).is_dir()


def test_an_interrupted_download_is_resumed(server, home):
    server.faults = 10 * [("cut", 1000)]
    with pytest.raises(DataError, match=r"broke off after 4000 of \d+ bytes: .* \(start it again to continue\)"):
        mh4.download("xx", server.address)
    with pytest.raises(DataError, match="no such folder, and no downloaded model"):
        mh4.load("xx")
    server.faults = []
    mh4.download("xx", server.address)
    assert [asked for path, asked in server.requests if asked] == [f"bytes={n}000-" for n in range(1, 5)]
    assert len(left_behind(home)) == 2  # the model and its entry


def test_a_server_that_cannot_resume_starts_anew(server, home):
    server.faults = [("cut", 1000), "whole"]
    assert mh4.download("xx", server.address).is_dir()
    assert server.requests[-1] == ("/" + PACKAGE, "bytes=1000-")


def test_a_part_that_is_too_long_for_the_server_is_given_up(server, home, folder):
    size = (folder / PACKAGE).stat().st_size
    change_index(folder, size=size + 1)
    with pytest.raises(DataError, match=f"broke off after {size} of {size + 1}"):
        mh4.download("xx", server.address)
    assert server.requests[-1] == ("/" + PACKAGE, None)


@pytest.mark.parametrize(("code", "tries"), [(503, download.TRIES), (404, 1), (403, 1)])
def test_errors_of_a_server(server, home, code, tries):
    server.faults = 10 * [("status", code)]
    with pytest.raises(DataError, match=f"server says {code}"):
        mh4.download("xx", server.address)
    assert len(server.requests) == 1 + tries
    server.faults = [("status", 503)]
    assert mh4.download("xx", server.address).is_dir()


@pytest.mark.parametrize("damage", ["flipped", "swapped", "longer", "shorter"])
def test_a_package_that_is_not_the_one_of_the_index_is_refused(server, home, folder, damage):
    path, size = folder / PACKAGE, (folder / PACKAGE).stat().st_size
    content = path.read_bytes()
    changed = {
        "flipped": content[:-30] + bytes([content[-30] ^ 1]) + content[-29:],
        "swapped": os.urandom(size),
        "longer": content + b"x",
        "shorter": content[:-1],
    }
    path.write_bytes(changed[damage])
    problem = {"longer": "is larger than", "shorter": f"after {size - 1} of {size}"}.get(damage, "damaged or another")
    with pytest.raises(DataError, match=problem):
        mh4.download("xx", server.address)
    assert left_behind(home) == (
        [f"{json.loads((folder / INDEX).read_text())['models'][0]['sha256']}.part"] * (damage == "shorter")
    )
    path.write_bytes(content)
    assert mh4.download("xx", server.address).is_dir()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[", "is not an index of models: not valid JSON"),
        (b'{"models": [{}]}', r"models\.0\.name: is missing"),
        (None, "server says 404"),
    ],
)
def test_an_index_that_is_none(server, home, folder, content, problem):
    (folder / INDEX).unlink()
    if content is not None:
        (folder / INDEX).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        mh4.download("xx", server.address)
    with pytest.raises(DataError, match=r"xx/nowhere/index\.json: cannot be read: no such file"):
        mh4.download("xx", "xx/nowhere")


@pytest.mark.parametrize(
    "value",
    [{"name": "../xx"}, {"name": ""}, {"name": "xx\n"}, {"file": "../xx.mh4.zip"}, {"file": "/etc/passwd"},
     {"sha256": "0" * 63}, {"sha256": "../" + "0" * 61}, {"size": 0}, {"size": "1"}],
)  # fmt: skip
def test_an_index_may_not_name_anything_outside_its_folder(folder, home, value):
    change_index(folder, **value)
    with pytest.raises(DataError, match=rf"is not an index of models: models\.0\.{next(iter(value))}: "):
        mh4.download("xx", folder)
    assert not home.exists()


def test_names_of_models_that_are_not_there(folder, home):
    with pytest.raises(DataError, match=r"has no model 'yy'; it has: xx$"):
        mh4.download("yy", folder)
    with pytest.raises(
        DataError, match=r"^yy: no such folder, and no downloaded model of this name \(mh4 download yy\)$"
    ):
        mh4.load("yy")
    with pytest.raises(DataError, match=r"^a/yy/config\.json: no such file"):
        mh4.load("a/yy")


def test_a_newer_version_replaces_an_older_one_once_it_is_whole(server, home, folder, model):
    first = mh4.download("xx", server.address)
    package(model, folder, licence="CC BY-NC 4.0")
    server.faults = 4 * [("cut", 10)]
    with pytest.raises(DataError, match="broke off"):
        mh4.download("xx", server.address)
    assert cache.find_model("xx") == first
    second = mh4.download("xx", server.address)
    assert cache.find_model("xx") == second != first
    assert not first.exists()
    assert cache.installed("xx").licence == "CC BY-NC 4.0"


def test_what_an_index_says_later_of_the_same_model_is_taken_without_a_download(server, home, folder):
    place = mh4.download("xx", server.address)
    change_index(folder, licence="CC BY 4.0")
    assert mh4.download("xx", server.address) == place
    assert cache.installed("xx").licence == "CC BY 4.0"
    assert [path for path, _ in server.requests].count("/" + PACKAGE) == 1


def test_two_downloads_of_one_name_in_threads(server, home):
    with ThreadPoolExecutor(4) as pool:
        places = set(pool.map(lambda _: mh4.download("xx", server.address), range(4)))
    assert places == {cache.find_model("xx")}
    assert [path for path, _ in server.requests].count("/" + PACKAGE) == 1


def run_python(program, **options):
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, **options)


def test_two_downloads_of_one_name_in_processes(server, home):
    program = f"import mh4; print(mh4.download('xx', {server.address!r}))"
    outputs = {one.communicate(timeout=120)[0].strip() for one in [run_python(program) for _ in range(2)]}
    assert outputs == {str(cache.find_model("xx"))}
    assert [path for path, _ in server.requests].count("/" + PACKAGE) == 1


def test_a_killed_download_is_resumed_and_leaves_nothing(server, home):
    program = f"""
import mh4, os, signal
die = lambda done, size: done > 999 and os.kill(os.getpid(), signal.SIGKILL)
mh4.download("xx", {server.address!r}, on_progress=die)
"""
    server.faults = [("cut", 1000)]
    assert run_python(program).wait(timeout=120) == -signal.SIGKILL
    assert any(name.startswith(".new-") for name in left_behind(home))
    mh4.download("xx", server.address)
    assert server.requests[-1] == ("/" + PACKAGE, "bytes=1000-")
    assert len(left_behind(home)) == 2


def test_an_interruption_leaves_a_part_to_resume_and_no_model(server, home):
    def interrupt(done, size):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mh4.download("xx", server.address, on_progress=interrupt)
    assert [Path(name).suffix for name in left_behind(home)] == [".part"]
    assert mh4.download("xx", server.address).is_dir()


def test_a_disk_that_is_too_small_is_noticed_before(server, home, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 1 << 10))
    with pytest.raises(DataError, match="xx needs 0 MiB, and the disk has 0 MiB left"):
        mh4.download("xx", server.address)
    assert left_behind(home) == []


def test_a_disk_that_becomes_full_leaves_nothing(server, home, monkeypatch):
    def full(path, folder):
        (folder / "config.json").write_text("{")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(download, "unpack", full)
    with pytest.raises(DataError, match="xx cannot be written here: no space left on device"):
        mh4.download("xx", server.address)
    assert left_behind(home) == []


def test_a_package_without_a_model_is_refused(folder, home):
    archive.pack(folder / PACKAGE, [("README.md", b"hello")])
    content = (folder / PACKAGE).read_bytes()
    change_index(folder, size=len(content), sha256=download.hashlib.sha256(content).hexdigest())
    with pytest.raises(DataError, match=r"config\.json: no such file"):
        mh4.download("xx", folder)
    assert cache.installed("xx") is None


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("../model.json", "{}", r"model\.json: name: is missing.*download the model again"),
        ("vocab.json", "{}", r"vocab\.json: is damaged"),
        ("vocab.json", None, r"vocab\.json: no such file"),
        (".", None, "no downloaded model"),
    ],
)
def test_a_model_that_was_damaged_later_is_downloaded_again(file, content, problem, folder, home):
    place = mh4.download("xx", folder)
    if content is not None:
        (place / file).write_text(content)
    elif file == ".":
        shutil.rmtree(place)
    else:
        (place / file).unlink()
    with pytest.raises(DataError, match=problem):
        mh4.load("xx")
    assert mh4.download("xx", folder) == place
    assert mh4.load("xx", device="cpu")
