import json

import pytest
from typer.testing import CliRunner

from mh4.cli import app
from mh4.cli.bench.certainty import measure_certainty
from mh4.cli.bench.decoders import Timed
from mh4.decoders import get_decoder


def bench(*options):
    result = CliRunner().invoke(app, ["bench", "certainty", "--lengths", "3,6", "--repeats", "3", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_what_is_asked_is_what_a_decoder_has():
    results = json.loads(bench("--decoders", "mst,eisner,1ec-first-order", "--json"))
    assert list(results) == ["mst", "eisner", "1ec-first-order"]
    asked = {name: set(row["6"]["ratios"]) for name, row in results.items()}
    assert asked["eisner"] == {"max_marginals", "margins", "k_best", "part_marginals", "log_partition"}
    assert asked["mst"] == asked["eisner"] - {"max_marginals"}
    assert asked["1ec-first-order"] == {"margins", "k_best"}
    assert all(ratio > 0 for row in results.values() for ratio in row["6"]["ratios"].values())
    eisner = get_decoder("eisner")
    assert results["eisner"]["6"]["memory"] == pytest.approx(eisner.outside_bytes(6) / eisner.chart_bytes(6))
    assert results["mst"]["3"]["memory"] is None


def test_what_does_not_fit_into_memory_is_left_out(monkeypatch):
    decoders = {name: get_decoder(name, memory_limit=limit) for name, limit in (("mst", 2**30), ("mh3", 2500))}
    monkeypatch.setattr("mh4.cli.bench.certainty.get_decoder", decoders.get)
    assert decoders["mh3"].outside_bytes(6) > 2500 > decoders["mh3"].chart_bytes(6)
    results = measure_certainty(["mst", "mh3"], [6, 60], repeats=3)
    assert [(name, list(rows)) for name, rows in results.items()] == [("mst", ["6", "60"]), ("mh3", ["6"])]
    assert results["mh3"]["6"]["ratios"] == {}
    with pytest.raises(ValueError, match="no chart of these lengths fits into memory"):
        measure_certainty(["mh3"], [60], repeats=3)


def test_the_table_says_what_is_not_there():
    lines = bench("--decoders", "mh3,mst").splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [
        ["mh3", "3"],
        ["mh3", "6"],
        ["mst", "3"],
        ["mst", "6"],
    ]
    assert "–" not in lines[2]
    assert "–" in lines[-1]


def test_times_are_multiples_of_decoding(monkeypatch):
    monkeypatch.setattr(Timed, "run_block", lambda one, *_: one.seconds.append(2.0 if one.name == "decode" else 8.0))
    row = measure_certainty(["mst"], [3], 3)["mst"]["3"]
    assert row["milliseconds"] == 2000
    assert set(row["ratios"].values()) == {4}
