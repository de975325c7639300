import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT, SHARED
from typer.testing import CliRunner

from mh4.cli import app
from mh4.data.errors import DataError
from mh4.decoders import ChartTooLargeError
from mh4.trees.coverage import STRUCTURES, coverage_table, iterate_coverage, kept_arcs, measure_coverage

TREEBANKS = SHARED / "ud" / "2.0"
needs_treebanks = pytest.mark.skipif(not TREEBANKS.is_dir(), reason="needs the UD 2.0 treebanks beside the repository")
PLANAR, WELL_NESTED = STRUCTURES

PROJECTIVE = [2, 0, 2]
ROOT_CROSSED = [3, 0, 2]  # 3 → 1 and the arc from the root to 2: crossing, but planar
# 4 → 1, 5 → 2 and 6 → 3 cross each other and share no end.
TANGLED = [4, 5, 6, 0, 4, 5]


def conllu(*trees):
    blocks = []
    for number, heads in enumerate(trees, start=1):
        lines = [f"# sent_id = s{number}"]
        for word, head in enumerate(heads, start=1):
            lines.append(f"{word}\tw{word}\t_\t_\t_\t_\t{head}\t{'root' if head == 0 else 'dep'}\t_\t_")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "treebank.conllu"
    path.write_text(conllu(PROJECTIVE, ROOT_CROSSED, TANGLED), encoding="utf-8")
    return path


def test_hand_made_trees(treebank):
    first, second, third = iterate_coverage(treebank, threads=1)
    assert (first.name, first.words, first.kept) == ("s1", 3, {"projective": 3, "mh4": 3, "1ec": 3})
    assert first.within == {PLANAR: True, WELL_NESTED: True}
    assert second.kept == {"projective": 2, "mh4": 3, "1ec": 3}
    assert second.within == {PLANAR: True, WELL_NESTED: True}
    assert third.kept["projective"] == 4
    assert third.kept["1ec"] == 5
    assert third.within == {PLANAR: False, WELL_NESTED: True}


def test_words_between_each_other_are_not_well_nested(tmp_path):
    path = tmp_path / "treebank.conllu"
    path.write_text(conllu([5, 5, 1, 2, 0]), encoding="utf-8")  # 1 and 3 around 2, 2 and 4 around 3
    (found,) = iterate_coverage(path)
    assert found.within == {PLANAR: False, WELL_NESTED: False}


def test_totals_of_hand_made_trees(treebank):
    coverage = measure_coverage(treebank)
    assert (coverage.sentences, coverage.words) == (3, 12)
    assert coverage.covered["projective"] == 1
    assert coverage.covered["1ec"] == 2
    assert coverage.covered[PLANAR] == 2
    assert coverage.kept["projective"] == 3 + 2 + 4
    assert coverage.sentence_percent("projective") == pytest.approx(100 / 3)
    assert coverage.arc_percent("projective") == pytest.approx(75)


def test_several_roots_are_kept():
    assert kept_arcs(np.array([-1, 0, 0, 0])) == {"projective": 3, "mh4": 3, "1ec": 3}
    assert kept_arcs(np.array([-1, 0, 4, 1, 0])) == {"projective": 3, "mh4": 4, "1ec": 4}  # 4 → 2 and 1 → 3 cross


def test_the_number_of_threads_does_not_matter(treebank):
    text = treebank.read_text(encoding="utf-8")
    treebank.write_text(text * 150, encoding="utf-8")  # more sentences than are read ahead
    alone = list(iterate_coverage(treebank, threads=1))
    assert len(alone) == 450
    assert list(iterate_coverage(treebank, threads=3)) == alone


@pytest.mark.parametrize("threads", [1, 2])
def test_sentences_before_an_invalid_one_are_measured(treebank, threads):
    treebank.write_text(treebank.read_text(encoding="utf-8") + conllu([9]), encoding="utf-8")
    found = iterate_coverage(treebank, threads=threads)
    assert [next(found).name for _ in range(3)] == ["s1", "s2", "s3"]
    with pytest.raises(DataError, match="HEAD 9 of word 1"):
        next(found)


def test_no_threads_are_an_error(treebank):
    with pytest.raises(ValueError, match="greater than 0"):
        next(iterate_coverage(treebank, threads=0))


def test_a_chart_that_does_not_fit_is_said_or_skipped(treebank, monkeypatch):
    def too_large(heads, tree_class, single_root):
        raise ChartTooLargeError("the chart takes too much")

    monkeypatch.setattr("mh4.trees.coverage.closest_tree", too_large)
    with pytest.raises(DataError, match=r"treebank.conllu:6: sentence s2: .*too long.*the chart takes too much"):
        measure_coverage(treebank)
    skipped = []
    coverage = measure_coverage(treebank, errors=skipped.append)
    assert (coverage.sentences, coverage.words) == (1, 3)  # projective trees need no chart
    assert len(skipped) == 2


def test_command_prints_json_and_lines(treebank):
    run = CliRunner().invoke
    totals = json.loads(run(app, ["coverage", str(treebank), "--json"]).stdout)[str(treebank)]
    assert totals["kept_arcs"]["projective"] == 9
    assert totals["kept_arcs_percent"]["projective"] == pytest.approx(75)
    lines = run(app, ["coverage", str(treebank), "--per-sentence"]).stdout.splitlines()
    assert lines[0].split("\t") == ["treebank", "sentence", "words", "projective", "mh4", "1ec"]
    assert lines[2].split("\t")[1:] == ["s2", "3", "2", "3", "3"]
    records = [
        json.loads(line)
        for line in run(app, ["coverage", str(treebank), "--json", "--per-sentence"]).stdout.splitlines()
    ]
    assert records[1]["kept"] == {"projective": 2, "mh4": 3, "1ec": 3}
    assert records[1]["within"][PLANAR] is True
    table = run(app, ["coverage", str(treebank)]).stdout
    assert "33.33" in table
    assert "75.00" in table


def test_rows_of_the_table_can_be_told_apart(treebank):
    coverage = measure_coverage(treebank, threads=1)
    table = coverage_table(dict.fromkeys(("a/x.conllu", "b/x.conllu", "b/y.conllu"), coverage))
    assert [name for name in table.columns[0].cells if name] == ["a/x.conllu", "b/x.conllu", "y"]


def test_command_skips_bad_sentences(treebank):
    treebank.write_text(conllu([2, 1]) + treebank.read_text(encoding="utf-8"), encoding="utf-8")
    result = CliRunner().invoke(app, ["coverage", str(treebank), "--json", "--skip-bad"])
    assert json.loads(result.stdout)[str(treebank)]["sentences"] == 3
    with pytest.raises(DataError, match="cycle"):
        measure_coverage(treebank)


def test_names_in_json_are_readable(treebank):
    treebank.write_text(conllu([0]).replace("s1", "ő"), encoding="utf-8")
    result = CliRunner().invoke(app, ["coverage", str(treebank), "--json", "--per-sentence"])
    assert '"sentence": "ő"' in result.stdout


@needs_treebanks
@pytest.mark.parametrize("language", ["hu", "el"])
def test_published_coverage_and_golden_counts(language):
    golden = json.loads((SHARED / "golden" / "coverage_ud20.json").read_text(encoding="utf-8"))["treebanks"][language]
    path = TREEBANKS / language / golden["train_file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == golden["sha256"]
    sentences = list(iterate_coverage(path))
    rows = [
        [at, sentence.words, sentence.kept["projective"], sentence.kept["mh4"]]
        for at, sentence in enumerate(sentences)
        if sentence.kept["projective"] < sentence.words
    ]
    assert rows == golden["nonprojective"]
    one_endpoint_crossing = {"hu": (889, 20144), "el": (1652, 41202)}[language]
    covered = sum(sentence.kept["1ec"] == sentence.words for sentence in sentences)
    assert (covered, sum(sentence.kept["1ec"] for sentence in sentences)) == one_endpoint_crossing


@needs_treebanks
def test_table_of_the_paper():
    command = [sys.executable, ROOT / "experiments" / "table3_coverage.py", TREEBANKS / "hu" / "hu-ud-train.conllu"]
    wide = {**os.environ, "COLUMNS": "120"}
    rows = subprocess.run(command, env=wide, capture_output=True, text=True, check=True).stdout.splitlines()
    ours = next(row for row in rows if " ours " in row).split()
    paper = next(row for row in rows if " paper " in row).split()
    assert " ".join(paper[1:]) == "910 20166 79.01 98.35 97.69 98.51 99.92 99.89"
    assert ours[2:] == paper[1:]


def test_one_gap_is_the_limit():
    within = STRUCTURES["well-nested, ≤ 1 gap"]
    assert within(np.array([-1, 2, 0, 1]))  # the subtree of 1 is {1, 3}: one gap
    assert not within(np.array([-1, 2, 0, 1, 2, 1]))  # the subtree of 1 is {1, 3, 5}: two gaps
