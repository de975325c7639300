"""Compilation is announced once and can be done ahead of time."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mh4.cli import announcing
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


def test_a_model_is_warmed_up(small_model):
    program = [sys.executable, "-m", "mh4", "warm-up", str(small_model)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True)
    assert ended.stderr.endswith(f"mh4: kernels for {small_model} are compiled\n")
