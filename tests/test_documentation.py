"""The README runs as it stands; everything public is documented."""

import ast
import re

import pytest
from paths import ROOT

from mh4.parsers.chart import ChartParser

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
SOURCES = sorted((ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_readme_code_runs(number, small_model, small_treebanks, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "hu").symlink_to(small_model)
    (tmp_path / "input.conllu").symlink_to(small_treebanks[1])
    exec(compile(BLOCKS[number], f"README block {number}", "exec"), {})
    assert capsys.readouterr().out


def test_readme_names_real_files_and_decoders():
    from mh4.decoders import decoder_names

    for name in decoder_names():
        assert f"| `{name}` |" in README
    for path in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / path).exists(), path


def public_definitions(tree):
    """Public functions and classes of a module and public methods of its public classes."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                        yield f"{node.name}.{member.name}", member


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_everything_public_has_a_docstring(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    overriding = {"chart_bytes", "decode", "closest_tree", "fits"}  # documented once, in Decoder
    missing = [
        name
        for name, node in public_definitions(tree)
        if not ast.get_docstring(node) and name.rpartition(".")[2] not in overriding
    ]
    assert not missing


def test_the_parser_is_a_lazy_name_of_the_package():
    import mh4

    assert mh4.Parser is ChartParser
    with pytest.raises(AttributeError):
        _ = mh4.nothing
