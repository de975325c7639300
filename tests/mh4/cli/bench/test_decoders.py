"""Decoder benchmarks: measurements, fitted exponents, and peers that decode the same scores."""

import json
import sys
from types import ModuleType

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from mh4.cli import app
from mh4.cli.bench.decoders import Timed, decoder_table, growth_exponent, measure_decoders, peer
from mh4.decoders import get_decoder

LENGTHS = [20, 25, 30]


@pytest.fixture(scope="module")
def results():
    return measure_decoders(["mst", "mh4-hybrid"], LENGTHS, repeats=3)


def test_every_decoder_and_length_is_measured(results):
    assert list(results["decoders"]) == ["mst", "mh4-hybrid"]
    for name, row in results["decoders"].items():
        assert list(row["milliseconds"]) == list(map(str, LENGTHS))
        assert min(row["milliseconds"].values()) > 0
        assert row["exponent"] == growth_exponent(row["milliseconds"])
        assert row["chart_bytes"] == {str(n): get_decoder(name).chart_bytes(n) for n in LENGTHS}
        assert row["chart_exponent"] == growth_exponent(row["chart_bytes"])


def test_a_chart_that_does_not_fit_is_left_out(monkeypatch):
    monkeypatch.setattr(type(get_decoder("mst")), "fits", lambda self, n: n < 600)
    row = measure_decoders(["mst"], [5, 600], repeats=3)["decoders"]["mst"]
    assert list(row["milliseconds"]) == list(row["chart_bytes"]) == ["5"]
    assert row["exponent"] is None


@pytest.mark.parametrize("exponent", [0.5, 3.0, 4.25])
def test_exponent_of_a_power(exponent):
    values = {str(n): 7.0 * n**exponent for n in (20, 40, 60, 200)}
    assert growth_exponent(values) == pytest.approx(exponent)
    assert growth_exponent(values | {"10": 1e9, "400": 1e-9}) == pytest.approx(exponent)


def test_both_ends_of_the_range_count_for_the_exponent():
    assert growth_exponent({"20": 1.0, "200": 100.0}) == pytest.approx(2)


def test_no_exponent_of_a_single_length():
    assert growth_exponent({"10": 1.0, "20": 2.0, "400": 3.0}) is None


@pytest.mark.parametrize(("repeats", "budget", "decodes"), [(25, 9.0, 25), (25, 0.0, 3), (3, 0.0, 3)])
def test_repeats_and_seconds_bound_the_decodes(repeats, budget, decodes):
    calls = []
    one = Timed("counted", lambda: calls.append(None))
    for _ in range(4):
        one.run_block(repeats, budget)
    assert len(one.seconds) == decodes
    assert len(calls) == decodes + -(-decodes // 10)  # the first of each block is not timed


def test_memory_of_mh4_grows_with_the_third_power():
    decoder = get_decoder("mh4-hybrid")
    bytes_ = {str(n): decoder.chart_bytes(n) for n in (20, 40, 60, 80, 100, 140, 200)}
    assert growth_exponent(bytes_) <= 3.0


def test_a_peer_gets_the_same_scores_and_its_own_row(monkeypatch):
    seen = []
    module = ModuleType("ufal.chu_liu_edmonds")
    module.chu_liu_edmonds = lambda matrix: (seen.append(matrix), ([], 0.0))[1]
    monkeypatch.setitem(sys.modules, "ufal", ModuleType("ufal"))
    monkeypatch.setitem(sys.modules, "ufal.chu_liu_edmonds", module)
    assert measure_decoders(["eisner"], [4], repeats=3)["peers"] == {}
    results = measure_decoders(["mst"], [4, 20, 22], repeats=3)
    assert results["peers"]["ufal.chu_liu_edmonds"]["decoder"] == "mst"
    assert list(results["peers"]["ufal.chu_liu_edmonds"]["milliseconds"]) == ["4", "20", "22"]
    expected = np.random.default_rng(0).standard_normal((1, 6, 6), dtype=np.float32)[0]
    assert np.isnan(seen[0][0]).all()
    assert np.isnan(np.diagonal(seen[0])).all()
    assert seen[0][2, 3] == expected[3, 2]
    assert seen[0].shape == (5, 5)


def test_an_installed_peer_finds_trees_of_the_same_score():
    pytest.importorskip("ufal.chu_liu_edmonds", reason="the peer ufal.chu_liu_edmonds is not installed")
    for n in (1, 2, 5, 20):
        scores = np.random.default_rng(n).standard_normal((1, n + 2, n + 2), dtype=np.float32)
        assert peer(scores)() == pytest.approx(get_decoder("mst", single_root=False).decode(scores).score)


def test_table_shows_every_number(results):
    console = Console(width=200)
    with console.capture() as capture:
        console.print(decoder_table(results))
    text = capture.get()
    for row in results["decoders"].values():
        assert all(f"{value:.3f}" in text for value in row["milliseconds"].values())
        assert f"n^{row['exponent']:.2f}" in text
        assert f"n^{row['chart_exponent']:.2f}" in text


def test_memory_in_the_table_is_that_of_the_longest_sentences():
    row = {"milliseconds": {"9": 1.0, "40": 2.0}, "exponent": None, "chart_exponent": None}
    table = decoder_table({"decoders": {"x": row | {"chart_bytes": {"9": 2**20, "40": 3 * 2**20}}}, "peers": {}})
    assert [(column.header, *column.cells) for column in table.columns][-2] == ("MiB at 40 words", "3.0")


def test_command():
    options = ["--lengths", "3,6", "--repeats", "3", "--decoders", "mst, mh4-hybrid", "--json"]
    result = CliRunner().invoke(app, ["bench", "decoders", *options])
    assert result.exit_code == 0, result.output
    decoders = json.loads(result.output)["decoders"]
    assert set(decoders) == {"mst", "mh4-hybrid"}
    assert all(set(row["milliseconds"]) == {"3", "6"} for row in decoders.values())


@pytest.mark.parametrize("lengths", ["3,x", "", "0"])
def test_command_wants_numbers(lengths):
    result = CliRunner().invoke(app, ["bench", "decoders", "--lengths", lengths])
    assert isinstance(result.exception, ValueError)
    assert "positive numbers separated by commas" in str(result.exception)
