"""Import rules: a room (docs/architecture.md) imports only from rooms above it, even lazily; imports have no cycles."""

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest
from paths import ROOT

# Each room, from the top, and the rooms it may import from besides ``machine``; see docs/architecture.md.
LAYERS = {
    "machine": set(),
    "decoders": set(),
    "data": {"decoders"},
    "transitions": {"decoders"},
    "oracles": {"decoders", "transitions"},
    "trees": {"decoders", "data", "transitions", "oracles"},
    "models": {"decoders"},
    "parsers": {"decoders", "data", "transitions", "oracles", "trees", "models"},
    "training": {"decoders", "data", "transitions", "oracles", "trees", "models", "parsers"},
    "api": {"decoders", "data", "transitions", "oracles", "trees", "models", "parsers", "training"},
    "service": {"decoders", "data", "transitions", "oracles", "trees", "models", "parsers", "training", "api"},
    "spacy": {"decoders", "data", "transitions", "oracles", "trees", "models", "parsers", "training", "api"},
    "cli": {"decoders", "data", "transitions", "oracles", "trees", "models", "parsers", "training", "api", "service"},
}
# Third-party packages that a room may import; rooms not listed may import any.
LIBRARIES = {
    "decoders": {"numpy", "numba", "llvmlite"},
    "transitions": {"numpy", "numba"},
    "oracles": {"numpy", "numba"},
    "data": {"numpy", "conllu", "rich", "spacy", "pandas"},
    "trees": {"numpy", "rich"},
    "models": {"numpy", "numba", "llvmlite", "torch", "pydantic", "safetensors"},
}
SOURCE = ROOT / "src"
MOST_UNDER_THE_ROOF = 8  # largest number of modules directly in src/mh4
LONGEST_FILE = 500


@cache
def modules():
    """Map the name of each module of the package to its path and whether it is a package."""
    found = {}
    for folder, package in (("decoders", "mh4.decoders"), ("models", "mh4.models"), ("mh4", "mh4")):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            parts = [package, *path.relative_to(SOURCE / folder).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = path, is_package
    return found


def imported(path, name, is_package):
    """Full names of all imports in a module, lazy ones included; ``from a import b`` gives both a and a.b."""
    names = []
    parents = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return names


def room_of(name):
    """The room of a module (decoders, data, …); None for the package itself and its start-up files."""
    _, _, rest = name.partition(".")
    room = rest.partition(".")[0]
    return room if room in LAYERS else None


def test_every_module_is_in_a_room():
    for name in modules():
        assert room_of(name) or name in ("mh4", "mh4.__main__"), name


@pytest.mark.parametrize("name", modules())
def test_a_room_imports_from_rooms_above_only(name):
    path, is_package = modules()[name]
    here = room_of(name)
    for target in imported(path, name, is_package):
        if target.partition(".")[0] == "mh4":
            room = room_of(target)
            assert here is None or room in {None, here, "machine", *LAYERS[here]}, f"{name} imports {target}"
        elif here in LIBRARIES:
            library = target.partition(".")[0]
            assert library in LIBRARIES[here] or library in sys.stdlib_module_names, f"{name} imports {target}"


def test_no_two_modules_import_each_other():
    known = modules()
    graph = {}
    for name, (path, is_package) in known.items():
        targets = {target for target in imported(path, name, is_package) if target in known}
        graph[name] = {target for target in targets if target != name and not (is_package and target == "mh4")}
        if is_package:  # other modules may name their own package to import a sibling, without depending on it
            continue
        graph[name] -= {name.rpartition(".")[0], "mh4"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def test_the_house_stays_small():
    assert len(list((SOURCE / "mh4").glob("*.py"))) <= MOST_UNDER_THE_ROOF
    for name, (path, _) in modules().items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE, name


def test_relative_imports_are_resolved(tmp_path):
    file = tmp_path / "probe.py"
    file.write_text("def f():\n    from .mst import MST\nfrom . import trees\nfrom ..models import loss\nimport os")
    expected = {"mh4.decoders.mst", "mh4.decoders.mst.MST", "mh4.decoders.trees", "mh4.models.loss", "os"}
    assert expected <= set(imported(file, "mh4.decoders.probe", False))


def loaded_by(program):
    """Names of the modules that a Python program loads."""
    program += "; import sys; print(*sys.modules, file=sys.stderr)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ended.stderr.split()


def test_decoders_import_without_torch():
    loaded = loaded_by("import mh4.decoders as d; [d.get_decoder(name) for name in d.decoder_names()]; d.Derivation")
    assert "mh4.decoders.mst" in loaded
    assert "torch" not in loaded
    assert not [name for name in loaded if name.startswith("mh4.") and room_of(name) not in ("machine", "decoders")]


def test_sentences_are_read_without_numba():
    names = [name for name in modules() if room_of(name) == "data" and name != "mh4.data.spacy_docs"]
    assert not {"numba", "torch"} & set(loaded_by(f"import {', '.join(names)}"))


@pytest.mark.parametrize("arguments", [["--help"], ["parse", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    program = f"import sys; sys.argv = ['mh4', *{arguments}]; from mh4.cli import app; app(standalone_mode=False)"
    assert not {"numba", "numpy", "torch"} & set(loaded_by(program))


def test_extras_are_loaded_by_those_only_who_need_them(small_model):
    program = f"import mh4; mh4.load({str(small_model)!r}, device='cpu')(['Topebon', 'rupo'])"
    loaded = loaded_by(program)
    assert "torch" in loaded
    assert not {"transformers", "tokenizers", "huggingface_hub"} & set(loaded)


def test_modules_beside_tests_have_names_of_their_own():
    """Scripts of experiments and helpers of tests are on one path: of two with the same name, one would be hidden."""
    folders = ("experiments", "tests/support", "tests/decoders", "tests/experiments")
    names = Counter(path.stem for folder in folders for path in (ROOT / folder).glob("*.py") if path.stem != "conftest")
    assert [name for name, count in names.items() if count > 1] == []
