"""Benchmarks of reading and memory, all benchmarks together, and the performance section generated from them."""

import json
import re
import subprocess
import sys

import benchmark
import pytest
from benchmark import (
    PLOT,
    RESULTS,
    SNIPPET,
    machine,
    measure_memory,
    performance_markdown,
    plot_decoders,
    run_all,
    time_reading,
)

from mh4.cli.bench.text import MIB, peak_rss
from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError

ROW = {"milliseconds": {"10": 0.0123, "20": 4.56, "200": 7890.0}, "exponent": 3.456}
RESULTS_OF_ALL = {
    "machine": machine(1),
    "decoders": {
        "decoders": {"mst": {**ROW, "chart_bytes": {"10": 1}, "chart_exponent": 2.0}},
        "peers": {"another": {"decoder": "mst", "milliseconds": {"10": 5.0}, "exponent": None}},
    },
    "certainty": {
        "mh3": {
            "20": {
                "milliseconds": 0.1,
                "ratios": {"max_marginals": 2.04, "margins": 3.5, "k_best": 123.4},
                "memory": 2.1,
            },
            "40": {"milliseconds": 0.2, "ratios": {"max_marginals": 2.5, "margins": 4, "k_best": 99.96}, "memory": 2.0},
        },
        "1ec": {"20": {"milliseconds": 0.1, "ratios": {"margins": 3.5}, "memory": None}},
    },
    "read": {"words_per_cpu_second": {"read": 250_000.0, "write": 500_000.0}},
    "train": {"words_per_second": 1234.5, "share": {"encode": 0.75, "decode": 0.25}},
    "parse": {"words_per_second": 9876.5, "share": {"encode": 1.0}},
    "memory": [
        {"bytes": 1 * MIB, "peak_rss": 100 * MIB, "words_per_second": 1.0},
        {"bytes": 2 * MIB, "peak_rss": 101 * MIB, "words_per_second": 4321.0},
    ],
}


def test_peak_memory_counts_what_was_held_and_let_go():
    before = peak_rss()
    held = b"x" * (before + 64 * MIB)
    del held
    assert peak_rss() >= before + 64 * MIB


def test_memory_of_growing_inputs(small_model, small_treebanks):
    rows = measure_memory(small_model, small_treebanks[1], "mh4-hybrid", [3, 1], "cpu")
    assert [row["copies"] for row in rows] == [1, 3]
    assert rows[1]["words"] == 3 * rows[0]["words"] > 0
    assert rows[1]["bytes"] == 3 * rows[0]["bytes"] == 3 * small_treebanks[1].stat().st_size
    assert rows[1]["peak_rss"] >= rows[0]["peak_rss"] > 0
    assert rows[0]["peak_cuda"] is None


def test_speed_of_reading_and_writing(small_treebanks):
    report = time_reading(small_treebanks[0], 1)
    assert report["words"] == sum(map(len, read_conllu(small_treebanks[0])))
    assert set(report["words_per_cpu_second"]) == {"read", "write"}
    assert min(report["words_per_cpu_second"].values()) > 0


def test_nothing_to_measure(small_model, tmp_path):
    path = tmp_path / "empty.conllu"
    path.write_text("")
    with pytest.raises(DataError, match=r"empty\.conllu.*no sentences"):
        time_reading(path, 1)
    with pytest.raises(DataError, match=r"empty\.conllu.*no sentences"):
        measure_memory(small_model, path, "mst", [1], "cpu")


def test_a_bad_treebank_is_named_by_the_benchmark_of_memory(small_model, small_treebanks, tmp_path):
    """The benchmark reads copies, but the error must name the user's file."""
    path = tmp_path / "bad.conllu"
    path.write_text("1\tword\n\n")
    with pytest.raises(DataError, match=r"bad\.conllu:1:.*columns"):
        measure_memory(small_model, path, "mst", [1], "cpu")
    path.write_text(small_treebanks[1].read_text(encoding="utf-8").rstrip("\n"), encoding="utf-8")  # copies stay apart
    words = [row["words"] for row in measure_memory(small_model, path, "mst", [1, 3], "cpu")]
    assert words[1] == 3 * words[0]


def cells(text):
    """The rows of a Markdown table as a dict, keyed by their first cell."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {first: rest for first, *rest in rows}


def test_section_holds_every_result():
    text = performance_markdown(RESULTS_OF_ALL)
    rows = cells(text)
    assert rows["words"] == ["10", "20", "200", "time", "memory"]
    assert rows["`mst`"] == ["0.012", "4.56", "7890", "n<sup>3.5</sup>", "n<sup>2.0</sup>"]
    assert rows["`another`"] == ["5", *4 * "–"]
    assert rows["`mh3`"] == ["2.0, 2.5", "3.5, 4.0", "123, 100.0", "–", "–", "2.1"]
    assert rows["`1ec`"] == ["–", "3.5", "–", "–", "–", "–"]
    lines = {name: line for line in text.splitlines() for name in RESULTS_OF_ALL if f"`mh4 bench {name}`" in line}
    starts = {"read": "- Reads", "memory": "- From disk to disk"}
    lines |= {name: line for line in text.splitlines() for name, start in starts.items() if line.startswith(start)}
    numbers = {name: re.findall(r"\d[\d,.]*\d%?", line) for name, line in lines.items()}
    assert numbers == {
        "read": ["250,000", "500,000"],
        "train": ["1,234", "75%", "25%"],
        "parse": ["9,876", "100%"],
        "memory": ["4,321", "1.0", "100", "2.0", "101"],
    }


def test_plot_is_the_same_every_time():
    pytest.importorskip("matplotlib", reason="needs the extra mh4[plots]")
    one, two = (plot_decoders(RESULTS_OF_ALL["decoders"]) for _ in range(2))
    assert one == two
    assert one.startswith("<svg")


def test_without_matplotlib_one_line_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ValueError, match=r"pip install 'mh4\[plots\]'"):
        run_all(tmp_path / "out", {}, None)
    assert not (tmp_path / "out").exists()


def test_a_benchmark_that_fails_is_named(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra mh4[plots]")
    with pytest.raises(ValueError, match="decoders: failed with exit status 2"):
        run_all(tmp_path, {"decoders": ["--no-such-option"]}, None)


def test_all_benchmarks_in_one_report(small_model, small_treebanks, tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra mh4[plots]")
    options = ["-o", str(tmp_path), "--quick", "--threads", "1", "--device", "cpu"]
    command = [sys.executable, benchmark.__file__, *options, str(small_model), str(small_treebanks[1])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / RESULTS).read_text(encoding="utf-8"))
    assert set(results) == {"commit", "machine", "decoders", "certainty", "read", "train", "parse", "memory"}
    assert (tmp_path / SNIPPET).read_text(encoding="utf-8") == performance_markdown(results)
    assert (tmp_path / PLOT).stat().st_size > 0
