"""The code in the README and docs runs and prints the output shown; every public name has a docstring."""

import ast
import re
import shlex
import subprocess
import sys

import pytest
import typer
from paths import ROOT
from small import changed, small_config, train

import mh4
from mh4.cli import app
from mh4.decoders import decoder_names

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}
EXAMPLES = {name: text for name, text in PAGES.items() if "```python" in text}
SOURCES = sorted((ROOT / "src").rglob("*.py"))
HUNGARIAN = """\
1\tA\ta\tDET\t_\t_\t2\tdet\t_\t_
2\tkutya\tkutya\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tugat\tugat\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""


def blocks(page):
    """Yield (code, expected output) of each Python block; the output is the text block right after it, or empty."""
    for block in re.finditer(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", page, flags=re.DOTALL):
        yield block[1], block[2] or ""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder with the files that the pages use: treebanks, and a model trained on a single Hungarian sentence."""
    folder = tmp_path_factory.mktemp("pages")
    wrong = HUNGARIAN.replace("nsubj", "obj")
    texts = {"train": 40 * HUNGARIAN, "dev": 8 * HUNGARIAN, "input": HUNGARIAN, "gold": HUNGARIAN, "system": wrong}
    for name, text in texts.items():
        (folder / f"{name}.conllu").write_text(text, encoding="utf-8")
    config = small_config(max_steps=60)
    train(
        folder / "train.conllu",
        folder / "dev.conllu",
        folder / "models" / "hu",
        changed(config, analysis_weight=1.0, lemma_weight=1.0),
        device="cpu",
        segmenter=True,
    )
    return folder


@pytest.mark.parametrize("name", EXAMPLES)
def test_python_on_a_page_prints_what_the_page_shows(name, workplace, monkeypatch, capsys):
    monkeypatch.chdir(workplace)
    namespace = {}
    for number, (code, output) in enumerate(blocks(EXAMPLES[name]), start=1):
        exec(compile(code, f"{name}, block {number}", "exec"), namespace)
        assert capsys.readouterr().out == output, code


def test_files_are_parsed_on_a_cluster_as_the_page_says(workplace):
    corpus = {"a": "A kutya ugat.", "b": "A kutya ugat. A kutya ugat."}
    (workplace / "corpus").mkdir()
    for name, text in corpus.items():
        (workplace / "corpus" / f"{name}.txt").write_text(text, encoding="utf-8")
    (words,) = commands_of(PAGES["pipelines.md"])
    subprocess.run([sys.executable, "-m", "mh4", *words], cwd=workplace, check=True, timeout=300)
    parser = mh4.load(workplace / "models" / "hu")
    for name, text in corpus.items():
        parsed = list(mh4.read_conllu(workplace / "parsed" / f"{name}.conllu"))
        written = "".join(sentence.to_conllu() for sentence in parsed)
        assert written.replace(f"# newdoc id = {name}\n", "# newdoc\n") == "".join(s.to_conllu() for s in parser(text))


def commands_of(page):
    """Yield the arguments of each mh4 command in the Bash blocks of a page."""
    for block in re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if found := re.search(r"(?:^|\| )mh4 ([^#|<>]*)", line):
                yield shlex.split(found[1])


@pytest.mark.parametrize("name", PAGES)
def test_commands_on_a_page_are_understood(name):
    for words in commands_of(PAGES[name]):
        command = typer.main.get_command(app)
        while (group := getattr(command, "commands", None)) is not None and words:
            command, words = group[words[0]], words[1:]
        command.make_context("mh4", words)


def test_all_commands_are_described():
    described = re.findall(r"^\| `mh4 ([\w-]+)` \|", PAGES["usage.md"], flags=re.MULTILINE)
    assert sorted(described) == sorted(typer.main.get_command(app).commands)


def test_an_output_that_is_not_shown_is_noticed():
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\nAnd:\n\n```python\nprint(2)\n```\n"
    assert list(blocks(page)) == [("print(1)\n", "1\n"), ("print(2)\n", "")]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    folder = ROOT if name == "README.md" else ROOT / "docs"
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", PAGES[name]):
        path = (folder / target).resolve() if target else folder / name
        assert path.exists(), target
        if heading:
            lines = path.read_text(encoding="utf-8").splitlines()
            titles = (re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()) for line in lines if line.startswith("#"))
            headings = {title.replace(" ", "-") for title in titles}  # GitHub's anchors
            assert heading in headings, target


def test_readme_names_all_decoders():
    for name in decoder_names():
        assert f"| `{name}` |" in README


def test_numbers_of_readme_are_those_of_the_results():
    section = README.partition("\n## In numbers\n")[2].partition("\n## ")[0]
    measured = re.findall(r"\d+(?:,\d+)*\.\d+|\d+,\d+", section.replace("UD 2.0", ""))
    assert len(measured) >= 10
    for number in measured:
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|,\d)", PAGES["results.md"]), number


TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
CLASSES = {node.name: node for tree in TREES.values() for node in tree.body if isinstance(node, ast.ClassDef)}
DOCUMENTED_ELSEWHERE = {"Function": {"forward", "backward"}}  # torch.autograd.Function


def base_documents(node, method):
    """Whether a direct or indirect base class of the class ``node`` documents its method of this name."""
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
    """Yield public functions, classes and methods without a docstring, except methods that a base class documents."""
    for node in public(tree):
        if not ast.get_docstring(node):
            yield node.name
        for member in public(node) if isinstance(node, ast.ClassDef) else ():
            if not ast.get_docstring(member) and not base_documents(node, member.name):
                yield f"{node.name}.{member.name}"


def public(node):
    """Public functions and classes defined directly in a module or class."""
    definitions = (child for child in node.body if isinstance(child, ast.FunctionDef | ast.ClassDef))
    return (child for child in definitions if not child.name.startswith("_"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_everything_public_has_a_docstring(path):
    assert ast.get_docstring(TREES[path])
    assert not list(undocumented(TREES[path]))


def test_an_override_needs_no_docstring_of_its_own_but_anything_else_does():
    source = "class Mine(Decoder):\n    def decode(self): ...\n    def other(self): ...\ndef lone(): ..."
    assert list(undocumented(ast.parse(source))) == ["Mine", "Mine.other", "lone"]


def test_architecture_names_real_files():
    files = {str(path) for folder in ("src", "tests") for path in (ROOT / folder).rglob("*")}
    for name in re.findall(r"`(?!src|tests|experiments)([a-z_0-9/]+(?:\.py|/))`", PAGES["architecture.md"]):
        assert any(f"{path}/".endswith(f"/{name.rstrip('/')}/") for path in files), name


def test_architecture_names_all_rooms():
    inside = (path for path in (ROOT / "src" / "mh4").iterdir() if path.name[:1] != "_" and path.suffix in ("", ".py"))
    rooms = {path.stem for path in inside} | {"decoders", "models"}
    assert set(re.findall(r"^\| `mh4\.(\w+)`", PAGES["architecture.md"], flags=re.MULTILINE)) == rooms
