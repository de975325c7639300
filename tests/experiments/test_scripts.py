"""Every script of the experiments can be imported, and all names that it imports from mh4, also lazily, exist."""

import ast
import importlib

import pytest
from paths import ROOT

EXPERIMENTS = ROOT / "experiments"
SCRIPTS = sorted(EXPERIMENTS.rglob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(EXPERIMENTS)))
def test_imports(path):
    parts = path.relative_to(EXPERIMENTS).with_suffix("").parts
    importlib.import_module(".".join(part for part in parts if part != "__init__"))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mh4"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.import_module(f"{node.module}.{alias.name}")
