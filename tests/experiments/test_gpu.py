"""A rehearsal of the GPU measurements without a GPU: all stages, their results and the report."""

import importlib.metadata
import json
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import gpu_stages
import pytest
from benchmark import machine
from gpu_report import NOTHING, gpu_markdown, write_report
from paths import ROOT

SCRIPT = ROOT / "experiments" / "gpu.py"


def test_everything_is_rehearsed_and_reported(tmp_path):
    command = [sys.executable, SCRIPT, "--rehearse", "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    results = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in tmp_path.glob("*.json")}
    assert results.keys() == gpu_stages.STAGES.keys()
    assert results["parity"]["passed"]
    assert all(result.keys() >= {"commit", "machine"} for result in results.values())
    assert results["training"]["presets"].keys() == {"paper", "balanced", "large", "large bf16"}
    assert results["accuracy"]["runs"]["sample large"]["steps"] == 2
    assert len(results["jobs"]["together"]) == gpu_stages.REHEARSAL.jobs
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- gpu: begin -->\nold\n<!-- gpu: end -->\nafter\n", encoding="utf-8")
    write_report(tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert "a pretended GPU" in text
    assert re.search(r"Agreement with the CPU: tests passed \(\d+ passed", text), text
    assert text.count("words/s") >= 6
    assert "old" not in text
    assert "not measured" not in text
    (tmp_path / "jobs.json").unlink()
    assert "Several trainings at once: not measured" in gpu_markdown(tmp_path)


def test_nothing_is_claimed_without_results(tmp_path):
    assert gpu_markdown(tmp_path) == NOTHING
    committed = ROOT / "experiments" / "results" / "gpu"
    assert gpu_markdown(committed) in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def test_without_a_gpu_nothing_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="no CUDA device"):
        gpu_stages.run_stages(gpu_stages.FULL, {}, tmp_path, tmp_path, 25, None)


def test_what_is_done_is_not_done_again_and_what_fails_keeps_nothing_back(tmp_path, monkeypatch):
    def fail(setting):
        raise ValueError("broken")

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpu_stages, "machine", lambda threads: {})
    monkeypatch.setattr(gpu_stages, "STAGES", {"one": fail, "two": lambda setting: {"found": 2}, "three": fail})
    (tmp_path / "three.json").write_text("{}")
    arguments = gpu_stages.REHEARSAL, {}, tmp_path, tmp_path / "work"
    assert gpu_stages.run_stages(*arguments, 25, None) == ["one"]
    assert json.loads((tmp_path / "two.json").read_text()).keys() == {"found", "seconds", "commit", "machine"}
    (tmp_path / "two.json").unlink()
    assert gpu_stages.run_stages(*arguments, -1, ["two"]) == ["two"]
    assert not (tmp_path / "two.json").exists()


@pytest.mark.parametrize("found", [{"passed": False, "output": [], "errors": []}, {"runs": {}, "unfinished": ["got"]}])
def test_what_failed_or_is_unfinished_goes_on(found, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(gpu_stages, "machine", lambda threads: {})
    monkeypatch.setattr(gpu_stages, "STAGES", {"one": lambda setting: found})
    arguments = gpu_stages.REHEARSAL, {}, tmp_path, tmp_path / "work", 25, None
    assert gpu_stages.run_stages(*arguments) == ["one"]
    found = {"passed": True, "unfinished": []}
    assert gpu_stages.run_stages(*arguments) == []
    assert json.loads((tmp_path / "one.json").read_text())["passed"]


def test_there_is_time_for_some_trainings(tmp_path, monkeypatch):
    """If time runs out, finished trainings are reported and the others listed."""
    done = []

    def run_training(job):
        if done:
            raise gpu_stages.OutOfTimeError
        done.append(job)
        return SimpleNamespace(best_uas=80.0, best_las=70.0, step=3, seconds=60.0)

    monkeypatch.setattr(gpu_stages, "run_training", run_training)
    size = replace(gpu_stages.REHEARSAL, presets=("large", "balanced"))
    found = gpu_stages.accuracy(gpu_stages.Setting(size, {}, tmp_path, 0.0))
    assert found["runs"].keys() == {"sample large"}
    assert found["unfinished"] == ["sample balanced"]
    (tmp_path / "accuracy.json").write_text(json.dumps(found | {"machine": machine(None)}))
    assert "in 1.0 minutes; sample balanced not measured" in gpu_markdown(tmp_path)


def test_what_the_machine_lacks_is_said(monkeypatch):
    """Packages that are missing or too old are named, as on a machine that comes with an older PyTorch alone."""
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import gpu

    assert gpu.missing_packages() == []
    gpu.check_packages()
    installed = importlib.metadata.version

    def version(name):
        if name == "conllu":
            raise importlib.metadata.PackageNotFoundError(name)
        return "2.5.1+cu124" if name == "torch" else installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert gpu.missing_packages() == ["conllu>=6", "torch>=2.6"]
    with pytest.raises(SystemExit, match=r"missing here: conllu>=6, torch>=2.6\.(.|\n)*--target vendor"):
        gpu.check_packages()


def test_sources_are_laid_out_as_a_package(tmp_path):
    program = (
        "import sys, pathlib; sys.path[:0] = sys.argv[1:]; import gpu; gpu.lay_out(pathlib.Path(sys.argv[1])); "
        "import mh4.decoders.registry; print(mh4.decoders.registry.__file__)"
    )
    command = [sys.executable, "-c", program, tmp_path, SCRIPT.parent]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))
    assert (tmp_path / "mh4" / "models" / "network.py").exists()
