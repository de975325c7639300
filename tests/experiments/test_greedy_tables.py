"""Tables for Covington and LR-spine parsing, from runs on a tiny treebank and from made-up results."""

import json
import re
import shutil
import sys
from types import SimpleNamespace

import covington_dynamic
import exact_training
import lr_spine_table2
import numpy as np
import pytest

from mh4.data.annotation import Annotation
from mh4.data.conllu import read_conllu
from mh4.data.sample import read_sample
from mh4.data.sentence import Sentence
from mh4.decoders.trees import is_projective
from mh4.parsers.registry import load
from mh4.parsers.systems import GREEDY_SYSTEMS
from mh4.training.perceptron import fit


@pytest.fixture(scope="module")
def treebank(tmp_path_factory):
    folder = tmp_path_factory.mktemp("treebanks") / "ulvari"
    folder.mkdir()
    for part in ("train", "dev"):
        (folder / f"x-{part}.conllu").write_text("".join(read_sample()[part][:12]), encoding="utf-8")
    return folder


@pytest.fixture
def call(monkeypatch, capsys):
    """A function that runs a script with arguments and returns its output."""

    def run(script, *arguments):
        monkeypatch.setattr(sys, "argv", ["script", *map(str, arguments)])
        script.main()
        return capsys.readouterr().out

    return run


def cells(output, name):
    """The cells of the row ``name`` of a printed table."""
    (line,) = [line for line in output.splitlines() if re.match(rf"\s*{re.escape(name)}\s+[-+]?\d", line)]
    return line.strip()[len(name) :].split()


def test_covington_runs_once_and_prints(treebank, tmp_path, call):
    arguments = (treebank, "-o", tmp_path, "--oracles", "static", "--iterations", 1, "--seeds", 1)
    assert "UAS" in call(covington_dynamic, *arguments)
    names = ["covington-ulvari-dynamic-seed1.json", "covington-ulvari-static-seed1.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    result = json.loads((tmp_path / names[0]).read_text())
    assert (result["oracle"], result["seed"], result["scored"]) == ("dynamic", 1, "dev")
    assert len(result["UAS"]) == 12
    assert result["words"] >= sum(result["UAS"]) >= sum(result["LAS"]) > 0
    times = [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    assert "ulvari dev" in call(covington_dynamic, *arguments)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == times
    with pytest.raises(SystemExit, match="made with other settings"):
        call(covington_dynamic, treebank, "-o", tmp_path, "--iterations", 2, "--table")


def test_covington_table(tmp_path, call):
    """In each of twenty sentences of ten words, the dynamic oracle gets one more word right."""
    for oracle, right in (("static", (6, 7)), ("dynamic", (7, 8))):
        for seed, uas in enumerate(right, 1):
            result = {"oracle": oracle, "iterations": 15, "seed": seed, "scored": "test", "words": 200}
            result |= {"UAS": [uas] * 20, "LAS": [5] * 20}
            (tmp_path / f"covington-x-{oracle}-seed{seed}.json").write_text(json.dumps(result))
    uas, las = call(
        covington_dynamic, tmp_path / "x", "-o", tmp_path, "--oracles", "static", "--seeds", 2, "--table"
    ).split("LAS:")
    assert cells(uas, "x test") == ["65.00", "±", "7.07", "75.00", "±", "7.07", "+10.00", "(0.0002)"]
    assert cells(uas, "average of 1") == ["65.00", "75.00", "+10.00", "(0.0002)"]
    assert cells(las, "x test") == ["50.00", "±", "0.00", "50.00", "±", "0.00", "+0.00", "(1.0000)"]
    assert cells(uas, "paper, average of 19") == ["82.72", "83.52", "+0.80"]
    (tmp_path / "covington-x-static-seed1.json").unlink()  # gains are those of the seeds that both have
    arguments = tmp_path / "x", "-o", tmp_path, "--oracles", "static", "--seeds", 2, "--table"
    uas, _ = call(covington_dynamic, *arguments).split("LAS:")
    assert cells(uas, "x test")[-2:] == ["+10.00", "(0.0002)"]


def test_p_values_are_those_of_sentences():
    """With the same difference in five sentences, two of the 32 ways to swap results are as extreme."""
    ones = np.ones(5, int)
    assert covington_dynamic.p_value(ones, 2 * ones) == pytest.approx(2 / 32)
    assert covington_dynamic.p_value(ones, ones) == 1


def test_each_run_of_covington_has_the_settings_of_its_name(treebank, tmp_path, call, monkeypatch):
    trained = []
    monkeypatch.setattr(covington_dynamic, "fit", lambda config, train: trained.append(config) or fit(config, train))
    call(covington_dynamic, treebank, "-o", tmp_path, "--oracles", "static", "--iterations", 1, "--seeds", 2)
    names = [(config.system, config.oracle, config.iterations, config.seed) for config in trained]
    assert names == [("covington", oracle, 1, seed) for seed in (1, 2) for oracle in ("static", "dynamic")]


def test_lr_spine_runs_once_and_prints(treebank, tmp_path, call):
    rows = ("arc-eager", "arc-standard", "this work")
    arguments = (treebank, "-o", tmp_path, "--rows", *rows, "--iterations", 1)
    output = call(lr_spine_table2, *arguments)
    assert len(list(tmp_path.iterdir())) == 3
    result = json.loads((tmp_path / "lr-spine-ulvari-thiswork-seed1.json").read_text())
    assert result["scored"] == "dev"
    assert result["gamma_train"]["decisions"] > 0
    assert result["parsing_words_per_second"] > 0
    assert 0 < result["two_correct"] < 1
    assert cells(output, "this work - arc-standard + spine") == ["+0.89", "+0.93", "+2.11"], "the paper's only"
    other = json.loads((tmp_path / "lr-spine-ulvari-arc-eager-seed1.json").read_text())
    gains = [f"{result[metric] - other[metric]:+.2f}" for metric in ("uas", "las", "uem")]
    assert cells(output, "this work - arc-eager") == [*gains, *gains, "+1.15", "+1.33", "+2.36"]
    times = [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    call(lr_spine_table2, *arguments)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == times
    with pytest.raises(SystemExit, match="made with other settings"):
        call(lr_spine_table2, treebank, "-o", tmp_path, "--iterations", 2, "--table")


def test_lr_spine_scores_projective_trees_of_the_test_set(tmp_path, call, monkeypatch):
    sample, scored = read_sample()["dev"], []
    for start, part in enumerate(("train", "dev", "test")):
        (tmp_path / f"x-{part}.conllu").write_text("".join(sample[start:36:3]), encoding="utf-8")
    shares = dict.fromkeys(lr_spine_table2.METRICS, 50.0)
    monkeypatch.setattr(lr_spine_table2, "scores", lambda parser, sentences: scored.extend(sentences) or shares)
    call(lr_spine_table2, tmp_path, "-o", tmp_path / "results", "--rows", "arc-standard", "--iterations", 1)
    gold = list(read_conllu(tmp_path / "x-test.conllu"))
    assert [one.forms for one in scored] == [one.forms for one in gold]
    assert all(is_projective(one.padded_heads) for one in scored)
    assert not all(is_projective(one.padded_heads) for one in gold)


def test_the_fastest_pass_over_a_treebank_counts_but_not_the_first(monkeypatch):
    clock = SimpleNamespace(thread_time=iter([0, 1, 1, 9, 9, 11]).__next__)
    monkeypatch.setattr(lr_spine_table2, "time", clock)
    assert lr_spine_table2.parsing_speed(SimpleNamespace(predict=len), [["a", "b", "c"], ["d"]], times=2) == 4 / 2


def test_lr_spine_scores_leave_out_punctuation():
    words = {"upos": ["NOUN", "VERB", "PUNCT"], "relations": ["nsubj", "root", "punct"]}
    sentence = Sentence(["a", "b", "."], heads=[2, 0, 2], **words)
    predicted = Annotation(np.array([2, 0, 1]), ("obj", "root", "punct")), Annotation(np.array([0, 1, 1]), ("_",) * 3)
    found = lr_spine_table2.scores(SimpleNamespace(predict=lambda _: predicted), [sentence, sentence])
    assert found == {"uas": 50.0, "las": 25.0, "uem": 50.0}


def test_lr_spine_tables_sum_up_treebanks_and_seeds():
    def result(uas, speed, train, dev):
        parts = {"gamma_train": train, "gamma_dev": dev}
        own = {part: {"mean": 3.0, "variance": 2.0, "worst_by_length": worst} for part, worst in parts.items()}
        scores = {"uas": uas, "las": uas - 1, "uem": uas - 2}
        return {**scores, "parsing_words_per_second": speed, "two_correct": 0.4, **own}

    ours = [result(80.0, 100, {"8": 5, "15": 9}, {"10": 7}), result(82.0, 300, {"9": 6, "11": 3, "41": 12}, {"3": 2})]
    others = [result(90.0, 500, {}, {})]
    treebanks = {"one": {"this work": ours}, "two": {"this work": ours, "arc-eager": others}}
    columns = (column.cells for column in lr_spine_table2.table_2(treebanks).columns)
    rows = {name: own for name, *own in zip(*columns, strict=True)}
    assert rows["this work"][:3] == ["81.00 80.00 79.00"] * 3
    assert rows["this work - arc-eager"][:3] == ["", "-9.00 -9.00 -9.00", "-9.00 -9.00 -9.00"]
    _, two, _ = zip(*(column.cells for column in lr_spine_table2.analysis(treebanks).columns), strict=True)
    assert two[5:9] == ("200", "2.50", "", "40.0")
    assert two[10:] == ("7", "9", "0", "0", "12")


def test_rows_beside_those_of_the_paper(treebank, tmp_path, call, monkeypatch):
    """Each row is trained with the settings in its name; afterwards, the systems' templates are restored."""
    own = {name: system.templates for name, system in GREEDY_SYSTEMS.items()}
    trained = {}

    def recording(config, *arguments, **options):
        trained[config.system, config.exploration, GREEDY_SYSTEMS[config.system].templates] = config.oracle
        return fit(config, *arguments, **options)

    monkeypatch.setattr(lr_spine_table2, "fit", recording)
    rows = ("this work + exploration", "this work without s3", "arc-eager + merged templates")
    table, _ = call(lr_spine_table2, treebank, "-o", tmp_path, "--rows", *rows, "--iterations", 1).split("gamma of")
    assert {name: system.templates for name, system in GREEDY_SYSTEMS.items()} == own
    without_s3 = tuple(template for template in own["lr-spine"] if "s3" not in template)
    merged = next(templates for system, _, templates in trained if system == "arc-eager")
    assert trained == {
        ("lr-spine", 0.9, own["lr-spine"]): "dynamic",
        ("lr-spine", 0.0, without_s3): "dynamic",
        ("arc-eager", 0.0, merged): "static",
    }
    assert set(merged) > set(own["arc-eager"])
    assert {"s1.w", "s1.p s0.p n0.p", "n0.p s0h.p s0h2.p"} <= set(merged)
    for row in rows:
        result = json.loads((tmp_path / f"lr-spine-ulvari-{row.replace(' ', '')}-seed1.json").read_text())
        assert " ".join(cells(table, row)).startswith(f"{result['uas']:.2f} {result['las']:.2f} {result['uem']:.2f}")


def test_exact_training_runs_once_and_prints(treebank, tmp_path, call):
    arguments = (treebank, "-o", tmp_path, "--iterations", 1, "--seeds", 1, "--ties", "best", "all")
    output = call(exact_training, *arguments)
    ways = [f"{oracle}-{ties}" for oracle in ("dynamic", "approximate", "exact") for ties in ("best", "all")]
    assert {path.name for path in tmp_path.iterdir()} == {f"arc-eager-ulvari-{way}-seed1.json" for way in ways}
    found = {way: json.loads((tmp_path / f"arc-eager-ulvari-{way}-seed1.json").read_text()) for way in ways}
    assert all(f"{result['oracle']}-{result['ties']}" == way for way, result in found.items())
    assert len({tuple(result["LAS"]) for result in found.values()}) > 1
    best, all_ = (line.split() for line in output.split("LAS:")[0].splitlines() if line.startswith(" ulvari"))
    uas = {way: 100 * sum(result["UAS"]) / result["words"] for way, result in found.items()}
    assert float(best[3]) == pytest.approx(uas["dynamic-best"], abs=0.01)
    assert float(best[7]) == pytest.approx(uas["exact-best"], abs=0.01)
    assert float(best[8].strip("(,")) == pytest.approx(uas["exact-best"] - uas["dynamic-best"], abs=0.02)
    assert float(all_[4].strip("(,")) == pytest.approx(uas["dynamic-all"] - uas["dynamic-best"], abs=0.02)
    times = [path.stat().st_mtime_ns for path in tmp_path.iterdir()]
    call(exact_training, *arguments)
    assert [path.stat().st_mtime_ns for path in tmp_path.iterdir()] == times


def test_exact_training_of_networks(treebank, tmp_path, call, monkeypatch):
    """Each network learns trees alone by its own oracle, and is scored on what it predicts from the words."""
    small = {"hidden": 12, "word_size": 8, "character_hidden": 8, "mlp": 8, "batch_words": 40, "max_steps": 12}
    monkeypatch.setitem(exact_training.PRESETS, "fast", {**small, "evaluation_steps": 6, "analysis_weight": 0.5})
    results, work = tmp_path / "results", tmp_path / "work"
    arguments = (treebank, "-o", results, "--scorer", "bilstm", "--work", work, "--seeds", 1)
    output = call(exact_training, *arguments)
    (row,) = (line.split() for line in output.split("LAS:")[0].splitlines() if line.startswith(" ulvari"))
    gold = list(read_conllu(treebank / "x-dev.conllu"))
    for oracle, cell in (("dynamic", row[3]), ("approximate", row[4]), ("exact", row[7])):
        name = f"arc-eager-ulvari-{oracle}-bilstm-seed1"
        result = json.loads((results / f"{name}.json").read_text())
        parser = load(work / name, device="cpu", threads=1)
        config = parser.config
        assert (config.transitions.system, config.transitions.oracle, config.training.seed) == ("arc-eager", oracle, 1)
        assert config.weights.analysis_weight == 0
        right = [int((parser(one.forms).heads == one.heads).sum()) for one in gold]
        assert (result["scorer"], result["oracle"], result["UAS"]) == ("bilstm", oracle, right)
        assert float(cell) == pytest.approx(100 * sum(right) / result["words"], abs=0.01)
    assert len(list(results.iterdir())) == 3
    shutil.rmtree(work)
    assert call(exact_training, *arguments) in output  # nothing is trained again


def test_exact_training_compares_shared_seeds_of_all_treebanks():
    """In each of ten sentences of ten words, so many are right with each seed."""

    def runs(**right):
        return {
            way: [{"seed": seed, "words": 100, "UAS": [words] * 10} for seed, words in enumerate(own, start=1)]
            for way, own in right.items()
        }

    treebanks = [runs(dynamic=[5, 8], exact=[6]), runs(dynamic=[7], exact=[9])]
    assert exact_training.cell(treebanks, "dynamic", "dynamic", "UAS") == "67.50"
    assert exact_training.cell(treebanks, "exact", "dynamic", "UAS") == "75.00 (+15.00, 0.000)"
