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


TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
CLASSES = {node.name: node for tree in TREES.values() for node in tree.body if isinstance(node, ast.ClassDef)}
DOCUMENTED_ELSEWHERE = {"Function": {"forward", "backward"}}  # torch.autograd.Function


def base_documents(node, method):
    """Whether a class that ``node`` derives from has a docstring for its method of that name."""
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        if method in DOCUMENTED_ELSEWHERE.get(name, ()):
            return True
        if name in CLASSES:
            methods = (member for member in CLASSES[name].body if isinstance(member, ast.FunctionDef))
            if any(member.name == method and ast.get_docstring(member) for member in methods):
                return True
            if base_documents(CLASSES[name], method):
                return True
    return False


def undocumented(tree):
    """Public functions, classes and methods without a docstring, but for methods that a base class documents."""
    for node in public(tree):
        if not ast.get_docstring(node):
            yield node.name
        for member in public(node) if isinstance(node, ast.ClassDef) else ():
            if not ast.get_docstring(member) and not base_documents(node, member.name):
                yield f"{node.name}.{member.name}"


def public(node):
    """Public functions and classes directly in a module or class."""
    definitions = (child for child in node.body if isinstance(child, ast.FunctionDef | ast.ClassDef))
    return (child for child in definitions if not child.name.startswith("_"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_everything_public_has_a_docstring(path):
    assert ast.get_docstring(TREES[path])
    assert not list(undocumented(TREES[path]))


def test_an_override_needs_no_docstring_of_its_own_but_anything_else_does():
    source = "class Mine(Decoder):\n    def decode(self): ...\n    def other(self): ...\ndef lone(): ..."
    assert list(undocumented(ast.parse(source))) == ["Mine", "Mine.other", "lone"]


def test_the_parser_is_a_lazy_name_of_the_package():
    import mh4

    assert mh4.Parser is ChartParser
    with pytest.raises(AttributeError):
        _ = mh4.nothing
