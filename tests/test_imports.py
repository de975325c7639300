"""Imports go down only: mh4.decoders ← mh4.models ← mh4."""

import ast
import subprocess
import sys

import pytest
from paths import ROOT

SOURCE = ROOT / "src"
DECODERS = sorted((SOURCE / "decoders").glob("*.py"))
MODELS = sorted((SOURCE / "models").glob("*.py"))


def imported(path, package):
    """Absolute names of the modules that a file of ``package`` imports, anywhere in the file."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*parent, *([node.module] if node.module else [])])
            # `from mh4 import models` names a module only in its second half
            names += [f"{module}.{alias.name}" for alias in node.names] if module == "mh4" else [module]
    return names


def within(name, *packages):
    return any(name == package or name.startswith(package + ".") for package in packages)


def test_there_is_something_to_check():
    assert {"decoder.py", "mst.py"} <= {path.name for path in DECODERS}
    assert MODELS


@pytest.mark.parametrize("path", DECODERS, ids=lambda path: path.name)
def test_decoders_need_numpy_and_numba_only(path):
    for name in imported(path, "mh4.decoders"):
        assert within(name, "mh4.decoders", "numpy", "numba", "llvmlite", *sys.stdlib_module_names), name


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_models_know_nothing_above_them(path):
    for name in imported(path, "mh4.models"):
        assert not within(name, "mh4") or within(name, "mh4.decoders", "mh4.models"), name


def test_relative_imports_are_resolved(tmp_path):
    file = tmp_path / "probe.py"
    file.write_text(
        "from .mst import MST\nfrom . import trees\nfrom ..models import loss\nfrom mh4 import cli\nimport os"
    )
    expected = ["mh4.decoders.mst", "mh4.decoders", "mh4.models", "mh4.cli", "os"]
    assert imported(file, "mh4.decoders") == expected


def test_decoders_import_without_torch():
    program = "import sys, mh4.decoders; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "mh4.decoders.mst" in modules
    assert not [m for m in modules if within(m, "torch")]
    assert not [m for m in modules if within(m, "mh4") and m != "mh4" and not within(m, "mh4.decoders", "mh4.machine")]
