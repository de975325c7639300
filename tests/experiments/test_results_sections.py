"""The generated sections of docs/results.md: the accuracy table from made-up results, and the committed pages."""

from dataclasses import replace

import patience
import pytest
import results_sections
import table7_training_conditions
from grid_results import RESULTS
from paths import ROOT
from results_sections import accuracy_markdown, replace_section

from mh4.data.errors import DataError
from mh4.parsers.config import ChartConfig, make_config
from mh4.training.presets import PRESETS

BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"


def run(treebank, system, seed, uas, preset="paper"):
    """The fields of a result that the table uses."""
    return {"treebank": treebank, "system": system, "seed": seed, "preset": preset, "dev_uas": uas}


def test_a_cell_has_our_mean_and_the_papers():
    runs = [run("hu", "mst", 1, 82.0), run("hu", "mst", 2, 83.0), run("got", "mh4-hybrid", 1, 84.5)]
    assert accuracy_markdown([*runs, run("hu", "mh4-hybrid", 1, 85.25, "best")]).splitlines() == [
        "|  | Gothic | Hungarian |",
        "| --- | ---: | ---: |",
        "| `mst` | – (84.74 ± 0.28) | 82.50 ± 0.71 (82.81 ± 0.49) |",
        "| `mh4-hybrid` | 84.50 (84.59 ± 0.38) | – (84.59 ± 0.50) |",
        "| `mh4-hybrid`, `--preset best` | – | 85.25 |",
    ]


def test_section_is_replaced_and_nothing_else():
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    once = replace_section(text, "accuracy", "new\n")
    assert once == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_section(once, "accuracy", "new\n") == once


@pytest.mark.parametrize("text", ["", BEGIN, END + BEGIN, f"{BEGIN}\n{END}{BEGIN}\n{END}", f"{END}{BEGIN}\n{END}"])
def test_markers_must_be_there_once(text):
    with pytest.raises(DataError, match="markers"):
        replace_section(text, "accuracy", "new")


def test_the_page_holds_the_committed_results():
    page = (ROOT / "docs/results.md").read_text(encoding="utf-8")
    performance = ROOT / "experiments/results/performance" / results_sections.PERFORMANCE
    assert results_sections.with_sections(page, performance, RESULTS) == page


def test_presets_hold_the_tables_of_patience():
    page = patience.PAGE.read_text(encoding="utf-8")
    assert results_sections.with_tables(page, patience.tables()) == page


def test_optimal_steps_hold_the_tables_of_training_conditions():
    page = table7_training_conditions.PAGE.read_text(encoding="utf-8")
    tables = table7_training_conditions.tables(table7_training_conditions.FOLDER)
    assert results_sections.with_tables(page, tables) == page


def test_training_conditions_are_compared_with_the_published_ones():
    def result(condition, seed, uas, **others):
        own = {"treebank": "got", "system": "shift-reduce", "condition": condition, "seed": seed}
        return {**own, "uas": uas, "las": uas - 10, **others}

    results = [result(1, 1, 70.0), result(1, 2, 72.0), result(5, 1, 74.0), result(1, 1, 60.0, system="arc-eager")]
    *_, las, uas = table7_training_conditions.report(results, "shift-reduce")
    empty = "– (55.00) | – (53.44) | – (55.94)"
    assert las == f"| Gothic | LAS | 61.00 ± 1.41 (51.96) | {empty} | 64.00 (56.20) |"
    assert uas.startswith("|  | UAS | 71.00 ± 1.41 (64.48) |")
    *_, uas = table7_training_conditions.report(results, "arc-eager")
    assert uas == "|  | UAS | 60.00 | – | – | – | – |"


@pytest.mark.parametrize("preset", patience.FOLDERS)
def test_every_patience_is_tried_on_the_first_rate_of_a_preset(preset):
    settings = patience.config_of(preset, False, 7, 300)
    assert settings.training == replace(
        make_config(ChartConfig, PRESETS[preset]).training, patience=1000, decays=0, max_steps=300, seed=7
    )
    assert settings.weights.analysis_weight > 0
    trees = patience.config_of(preset, True, 7, 300)
    assert trees.training == settings.training
    assert trees.weights.analysis_weight == trees.weights.lemma_weight == 0


def test_a_run_ends_where_patience_runs_out():
    """With ``best``, this is where the learning rate falls first."""
    las = [70, 72, 71, 71, 71, 73, 72, 72, 72, 72]
    curve = [[200 * (i + 1), 0.0, value + 5, value] for i, value in enumerate(las)]
    result = {"treebank": "xx", "preset": "best", "trees_alone": True, "seed": 2, "epoch_steps": 1, "curve": curve}
    assert patience.report([result], ((3, 0), (4, 0), (5, 0)))[0] == "| patience, growth | xx, seed 2, trees alone |"
    assert patience.report([result | {"trees_alone": False}], ((3, 0), (4, 0), (5, 0))) == [
        "| patience, growth | xx, seed 2 |",
        "|---|---|",
        "| 3, 0 | 77.00 / 72.00 (400 of 1,000) |",
        "| 4, 0 | 78.00 / 73.00 (1,200 of 2,000) |",
        "| 5, 0 | 78.00 / 73.00 (1,200 of 2,000, cut off) |",
    ]
