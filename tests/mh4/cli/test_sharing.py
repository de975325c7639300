"""``mh4 package`` and ``mh4 download``, and the names of downloaded models in other commands."""

import shutil

import pytest
from command_line import fails_with_one_line
from paths import GOLDEN_FOLDER

from mh4.cli.options import output
from mh4.service.served_models import ServedModels

DEV = GOLDEN_FOLDER / "models" / "chart" / "dev.conllu"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model folder; downloads go beside it."""
    monkeypatch.setenv("MH4_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MH4_INDEX", raising=False)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DEV.parent, tmp_path / "models" / "xx")
    return "models/xx"


def test_from_a_model_to_a_downloaded_model_that_commands_know(model, run):
    packaged = run("package", model, "-o", "zoo/", "--licence", "CC BY-NC-SA 3.0").stderr.decode()
    assert packaged.startswith("xx.mh4.zip: ")
    assert "is CC BY-NC-SA 3.0. It forbids commercial use" in packaged
    listed = run("download", "--index", "zoo").stdout.decode()
    assert listed.splitlines()[1].split() == ["xx", "0.0", "CC", "BY-NC-SA", "3.0"]
    downloaded = run("download", "xx", "--index", "zoo")
    assert downloaded.returncode == 0
    assert "It forbids commercial use" in downloaded.stderr.decode()
    assert run("download", "--index", "zoo").stdout.decode().splitlines()[1].rstrip().endswith("yes")
    run("package", model, "-o", "zoo", "--licence", "CC BY-SA 4.0")
    assert run("download", "--index", "zoo").stdout.decode().splitlines()[1].rstrip().endswith("an older version")
    expected = run("parse", model, DEV).stdout
    assert run("parse", "xx", DEV).stdout == expected
    assert run("parse", "--ensemble", "xx", "xx", DEV).stdout
    (served,) = ServedModels(["xx"], device="cpu").models
    assert (served.name, served.licence) == ("xx", "CC BY-NC-SA 3.0")
    assert b"UAS" in run("eval", DEV, "--model", "xx").stdout
    assert run("parse", "--ensemble", "xx", model, "-", stdin=DEV.read_bytes()).returncode == 0
    assert run("calibrate", "xx", DEV).returncode == 0
    assert run("parse", "xx", DEV, "--confidence").stdout != expected


def test_names_are_whole_and_nothing_of_an_index_controls_the_terminal(model, run, monkeypatch):
    name = 90 * "x"
    run("package", model, "-o", "zoo/", "--licence", "CC BY 4.0 \x1b[31m", "--name", name)
    monkeypatch.setattr(output, "_width", 40)
    listed = run("download", "--index", "zoo").stdout.decode()
    assert listed.splitlines()[1].startswith(f"{name}  ")
    assert "CC BY 4.0 \ufffd[31m" in listed
    told = run("download", name, "--index", "zoo").stderr.decode()
    assert "CC BY 4.0 \ufffd[31m" in told
    assert "\x1b" not in listed + told


def test_a_licence_that_nobody_knows(model, run):
    said = run("package", model, "-o", "xx.mh4.zip").stderr.decode().splitlines()
    assert said[1:] == [
        "The licence of the treebank is unknown: ask its authors before you use or share the model.",
        'name it with --licence "CC BY-SA 4.0", for instance',
    ]


def test_mistakes(model, run):
    fails_with_one_line(
        run("parse", "xx", DEV), "xx: no such folder, and no downloaded model of this name (mh4 download xx)"
    )
    fails_with_one_line(run("eval", DEV, "--model", "xx"), "mh4 download xx")
    fails_with_one_line(run("download", "xx"), "as in --index models, or set MH4_INDEX")
    fails_with_one_line(run("download", "xx", "--index", "nowhere"), "nowhere/index.json: cannot be read")
    fails_with_one_line(run("package", model, "-o", "a.zip"), "a package must be named NAME.mh4.zip")
    fails_with_one_line(run("package", model, "-o", "zoo", "--name", "a b"), "as in --name hu")
