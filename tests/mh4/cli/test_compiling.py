"""Compilation is announced once and can be done ahead of time."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mh4.cli import announcing, app
from mh4.cli.announcing import Announcer


def compiled(module):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def test_the_first_kernel_of_ours_is_announced_and_no_other(monkeypatch):
    said = []
    monkeypatch.setattr(announcing, "say", said.append)
    announcer = Announcer()
    announcer.on_start(compiled("numba.cpython.hashing"))
    assert not said
    for _ in range(2):
        announcer.on_start(compiled("mh4.decoders.mst"))
    assert len(said) == 1
    assert "compiling kernels" in said[0]


def warm_up(cache, *arguments):
    program = [sys.executable, "-m", "mh4", "warm-up", *map(str, arguments)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(program, capture_output=True, text=True, check=True, env=environment).stderr


@pytest.mark.slow
def test_what_is_warm_is_not_compiled_again(tmp_path):
    assert "compiling kernels" in warm_up(tmp_path, "--decoder", "eisner")
    assert not list(tmp_path.glob("*/mh4._decode*"))  # no other decoder is compiled
    assert "compiling kernels" not in warm_up(tmp_path, "--decoder", "eisner")


@pytest.mark.parametrize(("decoders", "trained"), [((), []), (("mst", "mh3"), ["mst", "mh3"])])
def test_models_and_decoders_that_are_named_are_warmed_up(decoders, trained, tmp_path, monkeypatch):
    jobs, parsed = [], []

    def load(model, **_):
        return SimpleNamespace(parse=lambda sentences: parsed.append((model.name, len(sentences))) or [])

    monkeypatch.setattr("mh4.training.running.run_training", jobs.append)
    monkeypatch.setattr("mh4.parsers.registry.load", load)
    options = [word for name in decoders for word in ("--decoder", name)]
    app(["warm-up", str(tmp_path / "a"), str(tmp_path / "b"), *options], standalone_mode=False)
    assert [(job.config.decoder, job.folder.name) for job in jobs] == [(name, name) for name in trained]
    assert parsed == [(name, 20) for name in ("a", "b", *trained)]


def test_a_model_is_warmed_up(small_model):
    program = [sys.executable, "-m", "mh4", "warm-up", str(small_model)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    assert ended.stderr.endswith(f"mh4: kernels for {small_model} are compiled\n")
