"""Wrong arguments of scripts: one clear line on standard error, and exit status 2."""

import importlib
import re
import subprocess
import sys

import pytest
from paths import ROOT
from scripting import run_script

from mh4.data.errors import DataError

EXPERIMENTS = ROOT / "experiments"
NOPE = "/nope"


def fail(error):
    raise error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataError("x.conllu:1: is wrong"), "script.py: x.conllu:1: is wrong\n"),
        (ValueError("one\n  two"), "script.py: one two\n"),
        (SystemExit("x.json: was made with other settings"), "script.py: x.json: was made with other settings\n"),
    ],
)
def test_errors_are_a_line(error, line, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["experiments/script.py"])
    assert run_script(fail, error) == 2
    assert capsys.readouterr().err == line


def test_other_ends_stay():
    assert run_script(print) == 0
    for error in (SystemExit(130), KeyError("a mistake in the script")):
        with pytest.raises(type(error)) as raised:
            run_script(fail, error)
        assert raised.value is error


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.py")), ids=lambda path: path.stem)
def test_every_script_ends_in_this_way(path):
    text = path.read_text(encoding="utf-8")
    assert ("__main__" in text) == ("raise SystemExit(run_script(" in text) or path.stem == "scripting"
    for count in ("iterations", "epochs", "steps", "threads", "rounds"):
        assert not re.search(rf'\("--{count}", type=int', text)


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("boundaries", [NOPE, NOPE, "-o", "b.json"], NOPE),
        ("covington_dynamic", [NOPE, "-o", "r"], "0 files *-train.conllu, need one"),
        ("covington_dynamic", [NOPE, "-o", "r", "--seeds", "0"], "'0' is not an integer, 1 or more"),
        ("exact_training", [NOPE, "-o", "r"], "0 files *-train.conllu, need one"),
        ("exact_training", [NOPE, "-o", "r", "--seeds", "0"], "'0' is not an integer, 1 or more"),
        ("figure4_arc_eager_time", [NOPE, "-o", "f"], NOPE),
        ("figure8_optimal_trees", [NOPE, "-o", "f"], NOPE),
        ("figure9_step_time", [NOPE, "-o", "f"], NOPE),
        ("label_bonus", [NOPE, "--model", NOPE, "--name", "x", "--results", "r"], NOPE),
        ("losses", ["--results", "r"], "a treebank is needed"),
        ("losses", ["TREEBANK", "--results", "r", "--decoders", "foo", "--work", "w"], "foo"),
        ("lr_spine_table2", [NOPE, "-o", "r"], "0 files *-train.conllu, need one"),
        ("mh4_oracle_shares", [NOPE], NOPE),
        ("mh_k_coverage", [NOPE, "-o", "m.json"], NOPE),
        ("operations", [NOPE], NOPE),
        ("page_time", [NOPE, NOPE], NOPE),
        ("preset_speed", [NOPE, "-o", "p.json"], "0 files *-train.conllu, need one"),
        ("pretrained", [], "treebanks and --encoder are needed"),
        ("pretrained", [NOPE, "--encoder", "none"], "none: holds no pretrained encoder"),
        ("published_cell", ["--results", "r"], "a treebank is needed"),
        ("published_code", ["--results", "r"], "a treebank is needed"),
        ("published_code", ["TREEBANK", "--code", NOPE, "--results", "r"], "/nope: holds no clone"),
        ("report", ["--results", NOPE, "-o", "r.md", "--html", "r.html"], "/nope: no such folder"),
        ("segmentation", ["segment", NOPE, NOPE, "-o", "s.conllu"], NOPE),
        ("table11_approximation", [NOPE, "-o", "t"], NOPE),
        ("table3_coverage", [NOPE], NOPE),
        ("table6_projectivization", [NOPE], NOPE),
        ("table7_training_conditions", [NOPE, "-o", "r"], "0 files *-train.conllu, need one"),
        ("which_projectivization", [NOPE, "-o", "r"], "0 files *-train.conllu, need one"),
        ("zoo", [NOPE, "-o", "z"], "/nope: holds no treebanks"),
    ],
)
def test_wrong_arguments(script, arguments, message, small_treebanks, tmp_path, monkeypatch, capsys):
    treebank = tmp_path / "xx"
    treebank.mkdir()
    for part, path in zip(("train", "dev"), small_treebanks, strict=True):
        (treebank / f"xx-ud-{part}.conllu").write_bytes(path.read_bytes())
    given = [str(treebank) if argument == "TREEBANK" else argument for argument in arguments]
    monkeypatch.setattr(sys, "argv", [f"{script}.py", *given])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        raise SystemExit(run_script(importlib.import_module(script).main))
    assert end.value.code == 2
    *usage, line = capsys.readouterr().err.splitlines()
    assert message in line
    assert line.startswith(f"{script}.py: ")
    assert not usage or usage[0].startswith("usage: ")
    assert not list(tmp_path.rglob("*.json"))


def test_a_script_as_it_is_called(tmp_path):
    command = [sys.executable, EXPERIMENTS / "table3_coverage.py", tmp_path / "none.conllu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"table3_coverage\.py: \S+none\.conllu: .*\n", done.stderr)
