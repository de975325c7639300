"""The zoo of models: one for every treebank of a release, also after interruptions."""

import json
import signal
import subprocess
import sys
import time

import pytest
import zoo
from paths import ROOT

import mh4
from mh4.data.sample import read_sample
from mh4.parsers.packages.index import read_index

QUICK = ("--threads", "1", "--max-steps", "8", "--set", "evaluation_steps=2", "--set", "hidden=24", "--set", "layers=1")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def treebank(folder, name, parts=("train", "dev", "test")):
    sample = read_sample()
    for part in parts:
        write(folder / f"{name}-ud-{part}.conllu", "".join(sample[part][: 40 if part == "train" else 8]))


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A folder of treebanks, only one of which has all the sets needed for training."""
    monkeypatch.setenv("MH4_HOME", str(tmp_path / "home"))
    treebank(tmp_path / "ud" / "UD_Ulvari-Sample", "ul_sample")
    write(tmp_path / "ud" / "UD_Ulvari-Sample" / "README.md", "License: CC BY-NC-SA 4.0\n")
    treebank(tmp_path / "ud" / "UD_Ulvari-Other", "ul_other", ("dev", "test"))
    treebank(tmp_path / "ud" / "xx", "xx", ("train", "test"))
    return tmp_path / "ud"


def test_treebanks_are_found_in_any_layout(tmp_path):
    czech = [
        f"UD_Czech-PDT/{name}" for name in ("cs_pdt-ud-train-c.conllu", "cs_pdt-ud-train-l.conllu.xz", "stats.xml")
    ]
    others = ["hu/hu-ud-train.conllu", "hu/own.conllu", "deep/er/got-train.conllu", "UD_Czech-PDT/cs_pdt-ud-dev.conllu"]
    for name in czech + others:
        write(tmp_path / name, "")
    found = {one.name: one for one in zoo.find_treebanks(tmp_path)}
    assert found.keys() == {"cs_pdt", "got", "hu"}
    names = ["cs_pdt-ud-train-c.conllu", "cs_pdt-ud-train-l.conllu.xz"]
    assert [path.name for path in found["cs_pdt"].train] == names
    assert [path.name for path in found["cs_pdt"].dev] == ["cs_pdt-ud-dev.conllu"]
    write(tmp_path / "2.2" / "hu-ud-dev.conllu", "")
    with pytest.raises(SystemExit, match="two treebanks are called hu"):
        zoo.find_treebanks(tmp_path)


@pytest.mark.parametrize("other", ["hu-ud-train-a.conllu.gz", "hu-ud-train-a.conllu.xz", "hu-train-a.conllu"])
def test_a_file_that_is_there_twice_is_an_error(other, tmp_path):
    for name in ("hu-ud-train-a.conllu", "hu-ud-train-b.conllu.gz", other):
        write(tmp_path / "hu" / name, "")
    with pytest.raises(SystemExit, match=r"train-a\.conllu.* and .*train-a\.conllu.* are the same part of hu"):
        zoo.find_treebanks(tmp_path)


@pytest.mark.parametrize(("known", "reason"), [(6, None), (5, "its words are not in its files")])
def test_a_treebank_without_its_words_is_left_out(known, reason, tmp_path):
    words = [f"{i}\t{'a' if i <= known else '_'}\t_\t_\t_\t_\t{i - 1}\tx\t_\t_\n" for i in range(1, 11)]
    write(tmp_path / "xx-ud-train.conllu", "# text = a\n" + "".join(words) + "\n")
    write(tmp_path / "xx-ud-dev.conllu", "")
    (found,) = zoo.find_treebanks(tmp_path)
    assert (zoo.why_not(found) or "").startswith(reason or "")
    assert (zoo.why_not(found) is None) == (reason is None)


def test_a_zoo(release, tmp_path, capsys):
    output, results = tmp_path / "zoo", tmp_path / "results"
    arguments = [str(release), "-o", str(output), "--results", str(results), "--licence", "ul_other=CC0", *QUICK]
    zoo.main(arguments)
    said = capsys.readouterr().out
    assert "ul_other: skipped: no training set\nxx: skipped: no development set\nul_sample: done\n" in said
    (entry,) = read_index(output).models
    assert (entry.name, entry.licence, entry.non_commercial) == ("ul_sample", "CC BY-NC-SA 4.0", True)
    assert entry.meta["command"].startswith("mh4 train /")
    assert [one["file"] for one in entry.meta["evaluation"]] == ["ul_sample-ud-dev.conllu", "ul_sample-ud-test.conllu"]
    assert {"tokens", "text"} <= entry.meta["evaluation"][0].keys()
    model = json.loads((results / "zoo.json").read_text())["models"][0]
    assert model["evaluation"] == entry.meta["evaluation"]
    assert model["options"] == list(QUICK)
    assert model.keys() >= {"commit", "versions", "hardware"}
    assert str(tmp_path) not in (results / "zoo.json").read_text()
    page = (results / "README.md").read_text()
    assert "| ul_sample | CC BY-NC-SA 4.0 | 512 |" in page
    assert "- xx: no development set" in page
    mh4.download("ul_sample", output)
    parser = mh4.load("ul_sample", device="cpu")
    assert parser(["Topebon", "rupo"], confidence=True)[0].confidence  # calibrated
    before = (output / entry.file).stat().st_mtime_ns
    zoo.main(arguments)
    assert "done" not in capsys.readouterr().out
    assert (output / entry.file).stat().st_mtime_ns == before
    assert (results / "README.md").read_text() == page
    with pytest.raises(SystemExit, match=r"ul_sample\.mh4\.zip: was made by mh4 train .*choose another output folder"):
        zoo.main([*arguments, "--seed", "2"])


def test_a_treebank_that_cannot_be_learnt_from_stops_no_other(release, tmp_path, capsys):
    write(release / "bad" / "bad-ud-train.conllu", "1\ta\t_\t_\t_\t_\t1\tx\t_\t_\n\n")
    write(release / "bad" / "bad-ud-dev.conllu", "")
    zoo.main([str(release), "-o", str(tmp_path / "zoo"), *QUICK, "--no-segmenter"])
    assert [entry.name for entry in read_index(tmp_path / "zoo").models] == ["ul_sample"]
    assert "- bad: " in (tmp_path / "zoo" / "README.md").read_text()
    assert "bad: /" in capsys.readouterr().out


def test_a_zoo_that_is_killed_goes_on(release, tmp_path):
    output = tmp_path / "zoo"
    arguments = [str(release), "-o", str(output), *QUICK, "--no-segmenter", "--max-steps", "60"]
    log = output / "models" / "ul_sample" / "log.jsonl"
    running = subprocess.Popen([sys.executable, str(ROOT / "experiments" / "zoo.py"), *arguments])
    while not (log.exists() and log.read_text().count("\n") >= 2):
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    trained = log.read_text().splitlines()[:1]
    assert read_index(output).models == ()
    zoo.main(arguments)
    assert log.read_text().splitlines()[:1] == trained
    assert [entry.name for entry in read_index(output).models] == ["ul_sample"]


def test_several_treebanks_at_once(release, tmp_path):
    pytest.importorskip("distributed", reason="needs the extra mh4[cluster]")
    for part in ("a", "b"):
        sample = read_sample()["train"][:30]
        write(release / "two" / f"two-ud-train-{part}.conllu", "".join(sample[:20] if part == "a" else sample[20:]))
    treebank(release / "two", "two", ("dev",))
    zoo.main([str(release), "-o", str(tmp_path / "zoo"), "--cluster", "local", *QUICK, "--no-segmenter"])
    two, sample = read_index(tmp_path / "zoo").models
    assert [two.name, sample.name] == ["two", "ul_sample"]
    assert two.meta["treebank"]["train"]["sentences"] == 30
