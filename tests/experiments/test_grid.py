"""A tiny grid from end to end: killed or failing runs lose nothing and end with the results of undisturbed ones."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import grid
import pytest
import torch
from grid import Options, OutOfTimeError, is_over, score_again, work_on
from grid_results import FORMAT, attempts, read_result, read_results, write_result
from grid_runs import Treebank, find_treebank, has_former_task, has_settings_of, make_grid, same_settings, settings_of
from scripting import run_script

from mh4.data.sample import read_sample

EXPERIMENTS = Path(grid.__file__).parent
TINY = [
    *("word_size=16", "character_size=8", "character_hidden=16", "character_layers=1", "hidden=24", "layers=1"),
    *("mlp=16", "batch_words=60", "evaluation_steps=4", "learning_rate=0.01"),
]


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    """A treebank of 40 training, 12 development and 12 test sentences."""
    folder = tmp_path_factory.mktemp("treebank") / "ulvari"
    folder.mkdir()
    for part, count in (("train", 40), ("dev", 12), ("test", 12)):
        sentences = read_sample()[part][:count]
        (folder / f"{part}.conllu").write_text("".join(sentences), encoding="utf-8")
    return find_treebank(str(folder))


@pytest.fixture
def options(tmp_path):
    made = Options(tmp_path / "work", tmp_path / "results", "cpu", 2, time.time() + 3600, 0.1, 60.0, "0123")
    (made.work / "locks").mkdir(parents=True)
    made.results.mkdir()
    return made


@pytest.fixture(autouse=True)
def usual_signals():
    """Restore the SIGTERM handler, which `work_on` replaces: it expects to run in its own process."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


def runs_of(treebank, systems, seeds=(1,), steps=12):
    return make_grid([treebank], systems, ["tiny"], [*TINY, f"max_steps={steps}"], seeds)


def outcome(result):
    """The curve, without times, and the fields of a result that must not depend on interruptions."""
    curve = [[step, *rest] for step, _, *rest in result["curve"]]
    keys = ("treebank", "system", "settings", "dev_uas", "dev_las", "best_step", "steps", "dev", "test", "status")
    return curve, {key: result[key] for key in keys}


def test_a_worker_is_killed_and_the_result_is_the_same(treebank, options, tmp_path):
    steps = 100
    run = runs_of(treebank, ["mst"], steps=steps)[0]
    quiet = replace(options, results=tmp_path / "quiet", work=tmp_path / "quiet-work")
    (quiet.work / "locks").mkdir(parents=True)
    quiet.results.mkdir()
    work_on([run], quiet)

    command = [sys.executable, EXPERIMENTS / "grid.py", "--work", options.work, "--results", options.results]
    command += ["--treebanks", treebank.train.parent, "--systems", "mst", "--seeds", "1", "--presets", "tiny"]
    command += ["--device", "cpu", *(word for text in [*TINY, f"max_steps={steps}"] for word in ("--set", text))]
    log = options.model_folder(run) / "log.jsonl"
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and not (log.exists() and log.read_text().count("\n") >= 2):
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(json.loads(options.lock_path(run).read_text())["pid"], signal.SIGKILL)
        output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, output
    assert "another takes its place" in output
    assert "continues" in output
    result = read_result(options.result_path(run))
    assert outcome(result) == outcome(read_result(quiet.result_path(run)))
    assert [interruption["step"] >= 8 for interruption in result["interruptions"]] == [True]
    assert not options.lock_path(run).exists()
    assert output.splitlines()[-4:] == ["1 done", "0 running", "0 open", "0 failed"]


def test_scores_are_added_to_the_results_of_models_that_are_there(treebank, options, capsys):
    systems = ["ensemble", "mst", "mh4-hybrid", "1ec"]
    work_on(runs_of(replace(treebank, test=None), systems), options)
    before = {result["system"]: result for result in read_results(options.results)}
    assert {result["test"] for result in before.values()} == {None}
    path = options.results / "ulvari-mst-tiny-1.json"
    path.write_text(path.read_text().replace(f'"dev_uas": {before["mst"]["dev_uas"]}', '"dev_uas": 99.0'))
    shutil.rmtree(options.work / "models" / "ulvari-1ec-tiny-1")
    score_again(runs_of(replace(treebank, segmented=treebank.test), systems), options)
    after = {result["system"]: result for result in read_results(options.results)}
    for system in systems:
        known = after[system]
        if system == "mh4-hybrid":
            assert known["test"]["f1"]["Words"] == 100
            assert known["test"] == known["test_segmented"]
            assert known["files"]["segmented"] == "test.conllu"
            known = known | {"test": None, "test_segmented": None, "files": before[system]["files"]}
        if system == "mst":
            assert known["dev_uas"] == 99
            known = known | {"dev_uas": before[system]["dev_uas"]}
        assert known == before[system]  # left alone: the ensemble lacks a member, the mst model differs
    said = capsys.readouterr().out
    assert "ulvari-mst-tiny-1: left as it is: its model is another one" in said
    assert "ulvari-1ec-tiny-1: left as it is: its model is gone" in said
    score_again(runs_of(replace(treebank, test=None), systems), options)  # nothing to score without a test file
    assert {result["system"]: result for result in read_results(options.results)} == after


def test_everything_that_a_result_tells(treebank, options):
    runs = runs_of(replace(treebank, segmented=treebank.test), ["ensemble", "mst", "mh4-hybrid", "1ec"])
    work_on(runs, options)
    results = {result["system"]: result for result in read_results(options.results)}
    assert set(results) == {"ensemble", "mst", "mh4-hybrid", "1ec"}
    for system, result in results.items():
        assert result["dev"]["f1"]["UAS"] == pytest.approx(result["dev_uas"], abs=1e-3)
        assert result["dev"]["f1"]["LAS"] == pytest.approx(result["dev_las"], abs=1e-3)
        assert result["test"] == result["test_segmented"]
        lengths = result["dev"]["by_length"]
        right = sum(recall * gold for recall, _, gold, _ in lengths.values())
        gold = sum(gold for _, _, gold, _ in lengths.values())
        assert right / gold == pytest.approx(result["dev_uas"], abs=1e-3)
        assert result["commit"] == "0123"
        assert result["versions"].keys() >= {"python", "torch", "numba", "mh4"}
        assert result["hardware"]["gpu"] is None
        assert result["hardware"]["cores"] > 0
        assert not result["failures"]
        assert not result["interruptions"]
        if system != "ensemble":
            assert result["best_step"] in [row[0] for row in result["curve"]]
            assert max(row[3] for row in result["curve"]) == pytest.approx(result["dev_las"], abs=0.01)
            assert result["words_per_second"] > 0
        assert result["data"]["train"]["sentences"] == 40
        assert result["data"]["dev"]["sentences"] == 12
    before = {path: path.stat().st_mtime_ns for path in options.results.iterdir()}
    work_on(runs, options)
    assert before == {path: path.stat().st_mtime_ns for path in options.results.iterdir()}


def test_failures_are_recorded_and_retried_and_never_lost(treebank, options, tmp_path):
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tnot\ta\ttree\n\n")
    broken = Treebank("broken", bad, treebank.dev)
    runs = runs_of(broken, ["mst"]) + runs_of(treebank, ["mst", "ensemble"])
    work_on(runs, options)
    failed, done, waiting = (read_result(options.result_path(run)) for run in runs)
    assert done["status"] == "done"
    assert waiting is None  # two of its members are in neither grid
    assert failed["status"] == "failed"
    assert len(failed["failures"]) == 2
    assert all("bad.conllu" in failure["error"] for failure in failed["failures"])
    assert "Traceback" in failed["failures"][0]["traceback"]
    assert grid.list_runs(runs, options) == 2

    bad.write_bytes(treebank.train.read_bytes())
    work_on(runs[:1], options)  # no attempts left
    assert read_result(options.result_path(runs[0])) == failed
    work_on(runs[:1], replace(options, attempts=3))
    mended = read_result(options.result_path(runs[0]))
    assert mended["status"] == "done"
    assert mended["failures"] == failed["failures"]
    assert mended["dev_uas"] == done["dev_uas"]


def test_out_of_time_is_not_a_failure(treebank, options, monkeypatch):
    run = runs_of(treebank, ["mst"], steps=40)[0]
    real, calls = time.time, []

    def hurried():
        calls.append(0)
        return real() + (7200 if len(calls) > 22 else 0)

    monkeypatch.setattr(time, "time", hurried)
    work_on([run], options)
    monkeypatch.undo()
    suspended = read_result(options.result_path(run))
    assert (suspended["status"], suspended["failures"], suspended["interruptions"]) == ("open", [], [])
    work_on([run], options)
    finished = read_result(options.result_path(run))
    assert (finished["status"], finished["steps"]) == ("done", 40)


def test_runs_whose_workers_die_at_the_same_step_are_given_up(treebank, options, monkeypatch):
    def die(*_):
        raise OutOfTimeError

    run = runs_of(treebank, ["mst"])[0]
    lock = options.lock_path(run)
    monkeypatch.setattr(grid, "train_run", die)
    for deaths in (1, 2):
        lock.write_text(json.dumps({"host": "elsewhere", "pid": 1, "started": "", "token": "x"}))
        os.utime(lock, (0, 0))
        grid.attempt_next([run], options)
        result = read_result(options.result_path(run))
        assert [interruption["step"] for interruption in result["interruptions"]] == [0] * deaths
        assert attempts(result) == deaths
        assert result["status"] == ("open", "failed")[deaths - 1]
    monkeypatch.undo()
    work_on([run], options)
    assert read_result(options.result_path(run)) == result


def test_the_grid_would_make_its_results_with_the_same_settings():
    """Unless these settings no longer exist."""
    made = [one for one in read_results() if one["system"] != "ensemble" and not has_former_task(one["settings"])]
    assert {one["preset"] for one in made} == {"paper", "balanced", "best"}
    for one in made:
        assert has_settings_of(one), one


def test_results_of_other_settings_are_not_taken_for_these(treebank, options):
    run = runs_of(treebank, ["mst"])[0]
    work_on([run], options)
    with pytest.raises(SystemExit, match="other settings"):
        work_on(runs_of(treebank, ["mst"], steps=13), options)
    saved = read_result(options.result_path(run))["settings"]
    del saved["training"]["weight_average"]  # as in results from before this setting
    assert same_settings(run, saved)
    assert not same_settings(run, saved | {"unknown": 1})
    weights = saved["weights"] | {"feature_weight": 0.0}  # as in results before format 4
    assert same_settings(run, saved | {"weights": weights})
    assert not same_settings(run, saved | {"weights": weights | {"feature_weight": 0.1}})


@pytest.mark.parametrize("part", ["train", "dev"])
def test_results_of_other_data_are_not_taken_for_these(part, treebank, options):
    run = runs_of(treebank, ["mst"])[0]
    path = options.result_path(run)
    result = {"format": FORMAT, "status": "done", "settings": settings_of(run)}
    write_result(path, result)  # as in results of earlier versions
    assert is_over(run, options)
    data = grid.data_of(run)
    write_result(path, result | {"data": data})
    assert is_over(run, options)
    write_result(path, result | {"data": data | {part: data[part] | {"sha256": "0"}}})
    with pytest.raises(SystemExit, match=rf"ulvari-mst-tiny-1\.json: was made from other {part} data"):
        is_over(run, options)


def test_treebanks_on_the_command_line(treebank, tmp_path):
    train, dev, test = (str(path) for path in (treebank.train, treebank.dev, treebank.test))
    assert treebank.name == "ulvari"
    assert find_treebank(f"u={treebank.train.parent}") == replace(treebank, name="u")
    assert find_treebank(f"u={train},{dev}") == Treebank("u", treebank.train, treebank.dev)
    assert find_treebank(f"u={train},{dev},{test},{test}").segmented == treebank.test
    for name in ("xx_y-ud-train.conllu", "xx_y-ud-dev.conllu"):
        (tmp_path / name).write_text("")
    assert find_treebank(str(tmp_path)).name == "xx_y"
    for wrong in (
        str(tmp_path / "none"),
        f"u={train}",
        f"{train},{dev}",
        f"u={train},{tmp_path / 'none'}",
        f"a/b={tmp_path}",
    ):
        with pytest.raises(SystemExit):
            find_treebank(wrong)


def test_wrong_grids(treebank):
    for systems, presets, settings, message in (
        (["cky"], ["paper"], [], "known: mst"),
        (["mst"], ["unknown"], [], "known: paper"),
        (["mst"], ["paper"], ["hidden=3"], "fixed"),
        (["mst"], ["a-b"], ["hidden=3"], "letters"),
    ):
        with pytest.raises(SystemExit, match=message):
            make_grid([treebank], systems, presets, settings, [1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--presets", "tiny", "--set", "bogus=1"], "unknown setting 'bogus'"),
        (["--device", "cuda"], "no CUDA device here"),
        (["--workers", "0"], "1 or more"),
        (["--attempts", "0"], "1 or more"),
    ],
)
def test_what_no_worker_could_do_is_told_before_any_work(arguments, message, treebank, tmp_path, monkeypatch, capsys):
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    folders = ["--work", str(tmp_path / "work"), "--results", str(tmp_path / "results")]
    command = ["grid.py", "--treebanks", str(treebank.train.parent), "--systems", "mst", "--seeds", "1", *folders]
    monkeypatch.setattr(sys, "argv", [*command, *arguments])
    with pytest.raises(SystemExit, match="2"):
        raise SystemExit(run_script(grid.main))
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_segmenter_needs_its_package(treebank, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ufal.udpipe", None)
    model = tmp_path / "m.udpipe"
    model.write_bytes(b"")
    with pytest.raises(SystemExit, match=r"ufal\.udpipe is not installed"):
        find_treebank(f"xx={treebank.train},{treebank.dev},{treebank.test},{model}")


@pytest.mark.parametrize("text", ['{"format": 1', "[1]", "<<<<<<<"])
def test_a_damaged_result_is_named(text, tmp_path):
    (tmp_path / "xx-mst-paper-1.json").write_text(text)
    with pytest.raises(SystemExit, match=r"xx-mst-paper-1\.json: not"):
        read_results(tmp_path)


def test_seeds_come_last():
    treebanks = [Treebank(name, EXPERIMENTS, EXPERIMENTS) for name in ("a", "b")]
    names = [run.name for run in make_grid(treebanks, ["mst", "1ec"], ["paper"], [], [1, 2])]
    assert names[:4] == ["a-mst-paper-1", "a-1ec-paper-1", "b-mst-paper-1", "b-1ec-paper-1"]
    assert names[4] == "a-mst-paper-2"
