"""What Dockerfile and compose.yaml copy, install and start exists; they are not run here."""

import json
import re
import shlex
import tomllib

import typer
from paths import ROOT

from mh4.cli import app

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_what_is_copied_exists_and_is_not_ignored():
    copied = [name for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.MULTILINE) for name in line.split()[:-1]]
    assert {"pyproject.toml", "src"} <= set(copied)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name


def test_extras_that_are_installed_exist():
    extras = re.search(r"'\.\[(.+)\]'", DOCKERFILE)[1].split(",")
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(extras) <= set(known)


def test_the_command_is_understood():
    entry, command = (
        json.loads(re.search(rf"^{key} (.+)$", DOCKERFILE, re.MULTILINE)[1]) for key in ("ENTRYPOINT", "CMD")
    )
    program, name, *arguments = [*entry, *command]
    assert program == "mh4"
    typer.main.get_command(app).commands[name].make_context("mh4", arguments.copy())
    port = arguments[arguments.index("--port") + 1]
    assert f"EXPOSE {port}" in DOCKERFILE
    assert f":{port}/health" in DOCKERFILE
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert f":{port}:{port}" in compose
    assert shlex.quote(command[0]) in compose
