"""The generated sections of docs/results.md: the accuracy table from made-up results, and the committed pages."""

import patience
import pytest
import results_sections
from grid_results import RESULTS
from kept_results import read_folder
from paths import ROOT
from results_sections import accuracy_markdown, replace_section

from mh4.data.errors import DataError

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


def test_presets_hold_the_table_of_patience():
    page = patience.PAGE.read_text(encoding="utf-8")
    table = patience.report(read_folder(patience.FOLDER))
    assert results_sections.with_tables(page, {"patience": table}) == page
