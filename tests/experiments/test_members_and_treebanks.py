"""Tables of models with several members and several treebanks, from made-up results; the committed tables."""

import json
from itertools import count
from types import SimpleNamespace

import members
import pytest
import several_treebanks
from kept_results import read_folder
from results_sections import with_tables

from mh4.data.annotation import Annotation
from mh4.parsers.config import ChartConfig, make_config
from mh4.training.presets import PRESETS
from mh4.training.schedule import Progress

PAGE = members.PAGE
SENTENCE = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


def test_members_by_preset_and_number():
    def run(uas, las, steps):
        return {"uas, las": [uas, las], "steps": steps, "cpu ms per step": 10.4, "cpu s of parsing": 0.5}

    results = [
        {"treebank": "hu", "preset": "best", "members": {"3": run(86, 81, 2000)}},
        {"treebank": "hu", "preset": "fast", "members": {"3": run(85, 80, 1100), "1": run(83, 79, 1000)}},
        {"treebank": "hu", "preset": "fast", "members": {"1": run(84, 80, 2000)}},
    ]
    assert members.report(results)[2:] == [
        "| Hungarian | `fast` | 1 | 2 | 83.50 ± 0.71 | 79.50 ± 0.71 | 1,500 | 10 | 0.50 |",
        "| Hungarian | `fast` | 3 | 1 | 85.00 | 80.00 | 1,100 | 10 | 0.50 |",
        "| Hungarian | `best` | 3 | 1 | 86.00 | 81.00 | 2,000 | 10 | 0.50 |",
    ]


def test_models_that_are_compared_differ_in_their_members_alone(tmp_path, monkeypatch):
    jobs = []

    def trained(job):
        jobs.append(job)
        return Progress(step=10, best_step=5)

    copying = SimpleNamespace(predict=lambda gold, **_: [Annotation(one.heads, one.relations) for one in gold])
    monkeypatch.setattr(members, "time", SimpleNamespace(process_time=count(0.0, 2.0).__next__))
    monkeypatch.setattr(members, "run_training", trained)
    monkeypatch.setattr(members, "load", lambda folder, **_: copying)
    treebank = tmp_path / "xx"
    treebank.mkdir()
    for part in ("train", "dev"):
        (treebank / f"xx-ud-{part}.conllu").write_text(SENTENCE)
    options = ["--members", "1", "4", "--preset", "best", "--seed", "3", "--steps", "70"]
    monkeypatch.setattr("sys.argv", ["members.py", str(treebank), *options, "--results", str(tmp_path)])
    members.main()
    best = {**PRESETS["best"], "seed": 3, "max_steps": 70}
    assert [job.config for job in jobs] == [make_config(ChartConfig, {**best, "members": own}) for own in (1, 4)]
    assert [job.train.name for job in jobs] == ["xx-ud-train.conllu"] * 2
    result = json.loads((tmp_path / "xx-best-3.json").read_text())
    assert {number: own["uas, las"] for number, own in result["members"].items()} == {"1": [100, 100], "4": [100, 100]}
    assert {result["members"]["4"][name] for name in ("cpu ms per step", "cpu s of parsing")} == {200, 2}
    (treebank / "xx-ud-train.conllu").write_text(SENTENCE.replace("a", "b"))
    with pytest.raises(SystemExit, match="other train data"):
        members.main()


def test_treebanks_alone_and_together():
    def run(alone, together, mixture):
        return {
            "treebanks": ["got"],
            "uas, las": {"got alone": alone, "got together": together, "got together, as a mixture": mixture},
        }

    results = [run([80, 70], [81, 70], [79, 69]), run([82, 70], [82, 69.5], [79, 68])]
    assert several_treebanks.report(results)[2:] == [
        "| Gothic | 2 | 81.00 ± 1.41 / 70.00 ± 0.00 | 81.50 ± 0.71 / 69.75 ± 0.35 | 79.00 ± 0.00 / 68.50 ± 0.71 "
        "| +0.50 / −0.25 |"
    ]


def test_dev_is_parsed_as_the_treebank_that_is_named(tmp_path):
    (tmp_path / "x-dev.conllu").write_text(SENTENCE)
    asked = []

    def predict(gold, predict, treebank):
        asked.append((predict, treebank))
        return [Annotation(one.heads, ("dep",)) for one in gold]

    parser = SimpleNamespace(predict=predict)
    assert [several_treebanks.score(parser, tmp_path, name) for name in ("got", None)] == [[100, 0]] * 2
    assert asked == [("heads", "got"), ("heads", None)]


def test_a_joint_model_has_the_steps_of_all_and_parses_as_each_and_as_a_mixture(tmp_path, monkeypatch):
    jobs = []

    def trained(job):
        jobs.append(job)
        last, joint = job.config.training.max_steps, isinstance(job.train, dict)
        own = {name: {"uas": 10.0 + i, "las": 5.0 + i} for i, name in enumerate(job.train)} if joint else {}
        lines = [{"step": s, "dev_uas": s + 1.0, "dev_las": s, "best": True, "dev": own} for s in (last, last + 10)]
        job.folder.mkdir(parents=True)
        (job.folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    monkeypatch.setattr(several_treebanks, "run_training", trained)
    monkeypatch.setattr(several_treebanks, "load", lambda *_, **options: None)
    monkeypatch.setattr(several_treebanks, "score", lambda model, treebank, name: [treebank.name, name])
    for name in ("got", "cu"):
        (tmp_path / name).mkdir()
        for part in ("train", "dev"):
            (tmp_path / name / f"{name}-ud-{part}.conllu").write_text(SENTENCE)
    options = ["--work", str(tmp_path / "work"), "--results", str(tmp_path), "--steps", "50", "--seed", "3"]
    monkeypatch.setattr(
        "sys.argv", ["several_treebanks.py", *(str(tmp_path / name) for name in ("got", "cu")), *options]
    )
    several_treebanks.main()
    assert [(job.config.training.max_steps, job.config.training.seed) for job in jobs] == [(50, 3), (50, 3), (100, 3)]
    assert [[*job.train] for job in jobs if isinstance(job.train, dict)] == [["got", "cu"]]
    result = json.loads((tmp_path / "got-cu-fast-3.json").read_text())
    assert result["best step"] == {"got": 50, "cu": 50, "together": 100}
    assert result["uas, las"]["cu alone"] == [51, 50]
    (tmp_path / "cu" / "cu-ud-dev.conllu").write_text(SENTENCE.replace("a", "b"))
    with pytest.raises(SystemExit, match="other cu dev data"):
        several_treebanks.main()
    assert result["uas, las"]["cu together"] == [11, 6]
    assert result["uas, las"]["cu together, as a mixture"] == ["cu", None]


def test_the_model_of_a_longer_run_is_not_scored_for_a_shorter_one(tmp_path, monkeypatch):
    work = tmp_path / "got-cu-fast-1"
    work.mkdir()
    lines = [{"step": 100, "best": True}, {"step": 200, "best": True}, {"step": 300, "best": False}]
    (work / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name in ("got", "cu"):
        (tmp_path / name).mkdir()
        for part in ("train", "dev"):
            (tmp_path / name / f"{name}-ud-{part}.conllu").write_text(SENTENCE)
    monkeypatch.setattr(several_treebanks, "best_line", lambda *_: pytest.fail("trains"))
    folders = [str(tmp_path / name) for name in ("got", "cu")]
    options = ["--work", str(tmp_path), "--results", str(tmp_path / "results"), "--steps", "50"]
    monkeypatch.setattr("sys.argv", ["several_treebanks.py", *folders, *options])
    with pytest.raises(SystemExit, match="the model is that of step 200, not the best of 100"):
        several_treebanks.main()
    several_treebanks.check_model(work, 200)


def test_the_page_holds_the_committed_results():
    page = PAGE.read_text(encoding="utf-8")
    tables = {
        "several treebanks": several_treebanks.report(read_folder(several_treebanks.FOLDER)),
        "members": members.report(read_folder(members.FOLDER)),
    }
    assert with_tables(page, tables) == page
