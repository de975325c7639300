"""Tables and the report from made-up results; expected numbers are worked out by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import report
import table1_features
import table2_features
import table4_systems
import tables56_test_las
from grid_results import (
    PLAN,
    attempts,
    compare,
    group_runs,
    mean_deviation,
    owed_runs,
    read_results,
    read_unfinished,
    write_result,
)
from grid_runs import GREEDY_SYSTEMS, PRESETS, config_of
from published import DEV_UAS, TEST_LAS_NONPROJECTIVE, TEST_LAS_PROJECTIVE, Cell
from scipy.stats import ttest_ind_from_stats

from mh4.parsers.config import TrainingConfig, as_dict

EXPERIMENTS = Path(report.__file__).parent


def scores(las, recalls=(90, 80, 70, 60, 50), crossing=40):
    bins = zip(("root", "1", "2", "3-6", "7+"), recalls, (10, 30, 10, 20, 5), strict=True)
    by_length = {name: [recall, recall, gold, gold] for name, recall, gold in bins}
    f1 = {"UAS": las + 5, "LAS": las, "Words": 99.9, "Sentences": 94.0}
    return {"f1": f1, "crossing": [crossing, 30, 8, 6], "by_length": by_length}


def made_up(treebank, system, seed, uas, preset="paper", **more):
    return {
        "format": 1,
        "treebank": treebank,
        "system": system,
        "preset": preset,
        "seed": seed,
        "status": "done",
        "settings": {"network": {"hidden": 192}, "training": {"seed": seed, "learning_rate": 0.001}},
        "failures": [],
        "interruptions": [],
        "dev_uas": uas,
        "dev_las": uas - 5,
        "best_step": 1000,
        "steps": 1000,
        "minutes": 30.0,
        "words_per_second": 1000.0,
        "parsing_words_per_second": 3000.0,
        "curve": [[500, 10.0, uas - 1, uas - 6, 0.5], [1000, 20.0, uas, uas - 5, 0.4]],
        "dev": scores(uas - 5),
        "test": None,
        "test_segmented": None,
        "files": {"train": "train.conllu", "segmented": "cut.conllu"},
        "commit": "0123abc",
        "versions": {"python": "3.11", "torch": "2.13"},
        "hardware": {"cpu": "A Processor", "cores": 2, "gpu": None},
        **more,
    }


RESULTS = [
    made_up("hu", "mst", 1, 83.0),
    made_up("hu", "mh3", 1, 83.5),
    made_up("hu", "mh4-two", 1, 83.69),
    made_up("hu", "mh4-hybrid", 1, 84.0, test=scores(80.0), test_segmented=scores(76.59)),
    made_up("hu", "mh4-hybrid", 2, 85.0, test=scores(81.0), test_segmented=scores(77.21)),
    made_up("hu", "1ec", 1, 83.3, dev=scores(78, recalls=(90, 70, 70, 60, 60))),
    made_up("el", "mst", 1, 88.0),
    made_up("el", "mh4-hybrid", 1, 87.0),
    made_up("el", "1ec", 1, 87.0),
    made_up("xx", "ensemble", 1, 90.0, settings={"members": []}),
    made_up(
        "hu", "mh4-hybrid", 1, 84.6, preset="fast", curve=[[115, 4.6, 84.5, 80.0, 0.5], [900, 9.0, 84.6, 80.0, 0.5]]
    ),
    made_up("hu", "mh4-hybrid", 1, 85.0, preset="balanced", steps=800),
    made_up("hu", "mh4-hybrid", 1, 85.59, preset="best"),
    made_up("got", "mh4-hybrid", 1, 84.99, preset="best"),
]


def cell(table, *key):
    """The row that begins with ``key``, as a dict keyed by column."""
    rows = [row for row in table.rows if tuple(row[: len(key)]) == key]
    assert len(rows) == 1, table.rows
    return dict(zip(table.columns, rows[0], strict=True))


@pytest.mark.parametrize("table", [DEV_UAS, TEST_LAS_NONPROJECTIVE, TEST_LAS_PROJECTIVE])
def test_published_averages_are_those_of_the_published_cells(table):
    treebanks = [name for name in table if name != "avg"]
    assert len(treebanks) == 10
    for system, average in table["avg"].items():
        mean = sum(table[name][system].mean for name in treebanks) / 10
        assert mean == pytest.approx(average.mean, abs=0.0061)


def test_means_and_differences():
    assert mean_deviation([84.0]) == Cell(84.0, None)
    assert mean_deviation([84.0, 85.0]) == (pytest.approx(84.5), pytest.approx(0.5**0.5))
    assert compare(Cell(84.5, 0.7), Cell(84.0, 0.25)) == ("84.00 ± 0.25", "+0.50", "+2.0")
    assert compare(Cell(84.5, 0.7), None) == ("", "", "")


def test_table4():
    table = table4_systems.uas_table(RESULTS, "paper")
    assert cell(table, "hu", "mh4-hybrid") == {
        "treebank": "hu",
        "system": "mh4-hybrid",
        "seeds": "2",
        "UAS": "84.50 ± 0.71",
        "paper": "84.59 ± 0.50",
        "difference": "-0.09",
        "in paper's sd": "-0.2",
        "p": "0.890",
        "LAS": "79.50 ± 0.71",
    }
    assert cell(table, "xx", "ensemble")["paper"] == ""
    average = cell(table, "average of 2", "mh4-hybrid")
    assert (average["UAS"], average["paper"]) == ("85.75", f"{(84.59 + 87.83) / 2:.2f}")
    assert [row[0] for row in table.rows[:7]] == ["hu"] * 5 + ["el"] * 2  # in the paper's order


def test_how_often_chance_makes_a_difference_as_large():
    one, other = ([84.0, 85.0], Cell(84.0, 0.5)), ([83.0, 83.5, 84.1], Cell(84.0, 0.2))
    expected = ttest_ind_from_stats(84.5, 0.5**0.5, 2, 84.0, 0.5, 5, equal_var=False).pvalue
    assert table4_systems.p_value([one]) == pytest.approx(expected)
    assert table4_systems.p_value([one, one]) < expected < table4_systems.p_value([one, other])  # of opposite signs
    for values, theirs in (([84.0], Cell(84.0, 0.5)), ([84.0, 85.0], Cell(84.0, None)), ([84.0, 85.0], None)):
        assert table4_systems.p_value([one, (values, theirs)]) is None


def test_order_of_the_systems():
    table = table4_systems.order_table(RESULTS, "paper")
    row = cell(table, "mh4-hybrid above mst")
    assert (row["holds"], row["ours"], row["not so on"]) == ("yes", "+0.25", "el (-1.00)")
    assert row["paper"] == f"{(84.59 - 82.81 + 87.83 - 87.27) / 2:+.2f}"
    assert cell(table, "1ec above mst")["holds"] == "no"
    assert cell(table, "1ec above mh3")["not so on"] == "hu (-0.20)"


def test_which_arcs_are_found():
    table = table4_systems.recall_table(RESULTS, "paper")
    assert [row[0] for row in table.rows] == ["mst", "mh4-hybrid", "1ec"]  # hu and el have no others in common
    row = cell(table, "mh4-hybrid")
    assert (row["2"], row["short (1, 2)"], row["long (7+)"], row["crossed arcs"]) == (
        "70.00",
        "77.50",
        "50.00",
        "40.00",
    )
    assert "(so do ours: +3.75), 1EC more long ones (so do ours: +5.00)" in table.notes[1]
    common = [run for run in RESULTS if run["system"] in ("mst", "mh4-hybrid", "1ec")]
    runs = [*common, made_up("hu", "greedy-mh4-two-chart", 1, 46.7, dev=scores(80.0))]  # another oracle does not count
    assert table4_systems.recall_table(runs, "paper") == table4_systems.recall_table(common, "paper") == table


def test_tables_1_and_2():
    table = table2_features.make_table(RESULTS, "paper")
    assert cell(table, "ours, hu") == {"UAS": "ours, hu", "{s0, b0}": "83.69", "hybrid": "84.50"}
    assert cell(table, "paper, hu")["hybrid"] == "84.59"
    assert cell(table, "paper, ten treebanks")["hybrid"] == "87.27"
    local = table1_features.make_table(RESULTS, "paper")
    assert [row[0] for row in local.rows] == ["paper, ten treebanks"]
    assert "Not yet run" in local.notes[0]
    systems = [system for system in GREEDY_SYSTEMS if system.startswith("greedy-mh4")]
    runs = [made_up("hu", system, 1, 50.0 + uas) for uas, system in enumerate(systems)]
    static, chart, *published = table1_features.make_table(runs, "paper").rows
    assert static == ["ours, hu", "52.00", "51.00", "50.00"]
    assert chart == ["ours, hu: oracle chart-order", "55.00", "54.00", "53.00"]
    assert [row[0] for row in published] == ["paper, ten treebanks", "paper, hu"]
    chart, *published = table1_features.make_table(runs[3:], "paper").rows
    assert chart[0] == "ours, hu: oracle chart-order"
    assert len(published) == 1


def test_greedy_systems_have_the_oracle_of_their_name():
    for name in GREEDY_SYSTEMS:
        transitions = config_of(name, {}, 1).transitions
        assert transitions.oracle == ("chart-order" if name.endswith("-chart") else "static")
        assert transitions.system == ("arc-hybrid" if "mh3" in name else "mh4")
    assert config_of("greedy-mh4-two-chart", {}, 1).transitions.position_names == ["s0", "b0"]


def test_tables_5_and_6():
    table, other, _ = tables56_test_las.make_tables(RESULTS, "paper")
    row = cell(table, "hu", "mh4-hybrid")
    assert (row["segmented"], row["paper"], row["difference"]) == ("76.90 ± 0.44", "76.90 ± 0.31", "+0.00")
    assert row["gold segmentation"] == "80.50 ± 0.71"
    assert table.notes == ["Segmentation of hu (cut.conllu): F1 of words 99.90, of sentences 94.00."]
    files = {"train": "a.conllu", "dev": "b.conllu", "test": "c.conllu", "segmented": "hu.udpipe"}
    cut = made_up("hu", "mst", 1, 84.0, test=scores(80.0), test_segmented=scores(76.0), files=files)
    (note,) = tables56_test_las.make_tables([cut], "paper")[0].notes
    assert note.startswith("Segmentation of hu (hu.udpipe): ")
    assert "segmentation.py train a.conllu b.conllu -o hu.udpipe`" in note
    assert "--score --treebanks hu=a.conllu,b.conllu,c.conllu,hu.udpipe …`" in note
    more = [*RESULTS, made_up("hu", "mh4-hybrid", 3, 84.5, test=scores(82.0))]
    unscored = [made_up("hu", "mh4-hybrid", 0, 84.0), *more]
    row = cell(tables56_test_las.make_tables(unscored, "paper")[0], "hu", "mh4-hybrid")
    assert (row["segmented"], row["gold segmentation"]) == ("76.90 ± 0.44 (2)", "81.00 ± 1.00 (3)")
    row = cell(tables56_test_las.make_tables(more, "paper")[0], "hu", "mh4-hybrid")
    assert (row["segmented"], row["gold segmentation"]) == ("76.90 ± 0.44 (2)", "81.00 ± 1.00")
    assert cell(table, "hu", "CoNLL #1")["paper"] == "77.56"
    assert not other.rows
    assert "Not yet run" in other.notes[0]


def test_table_6_on_development_files():
    runs = [made_up("lv", "mst", 1, 80.0), made_up("lv", "mst", 2, 82.0), made_up("lv", "mh3", 1, 81.5)]
    runs += [made_up("vi", "mh3", 1, 71.5), made_up("bg", "mst", 1, 71.5, test=scores(80.0)), *RESULTS]
    table = tables56_test_las.make_tables(runs, "paper")[2]
    assert table.rows == [
        ["vi", "mh3", "1", "66.50", "", ""],
        ["lv", "mh3", "1", "76.50", "+0.50", "+0.29"],
        ["lv", "mst", "2", "76.00 ± 1.41", "", ""],
    ]


def test_what_is_owed():
    owed = owed_runs(RESULTS, "paper")
    assert ("hu", "mst", [2, 3]) in owed
    assert ("hu", "mh4-hybrid", [3]) in owed
    assert ("got", "greedy-mh4", [1, 2, 3]) in owed
    assert [seeds for treebank, system, seeds in owed if treebank == "el" and system == "1ec"] == [[2, 3]]
    assert ("hu", "mh4-hybrid", [2, 3]) in owed_runs(RESULTS, "best")


def test_claims():
    table = report.claims_table(RESULTS, {"hu": {"paper": 0.03, "fast": 0.06, "balanced": 0.03}})
    claims = {row[0]: row[1:] for row in table.rows}
    within = next(row for claim, row in claims.items() if "within one published sd" in claim)
    assert within == ["6 of 8 cells; not el 1ec -4.1 sd, el mh4-hybrid -2.3 sd", "no"]
    assert next(row for claim, row in claims.items() if "by chance alone" in claim) == ["1 of 1 cells", "yes"]
    fast = claims["fast, hu mh4-hybrid: within 0.2 UAS of paper, and as good as paper in a third of its time"]
    assert fast == ["+0.10 UAS (1 and 2 seeds), 0.12 of the steps, 0.23 of the time", "yes"]
    balanced = claims["balanced, hu mh4-hybrid: above paper, in less than its time"]
    assert balanced == ["+0.50 UAS (1 and 2 seeds), 0.80 of the steps, 0.80 of the time", "yes"]
    assert claims["best: +1.0 UAS or more over the published MH4-hybrid on hu"] == ["+1.00 (1 seeds)", "yes"]
    assert next(row for claim, row in claims.items() if "(got)" in claim) == ["+0.40", "no"]


def test_time_counts_in_claims_about_time():
    for seconds, holds in ((0.03, "yes"), (0.05, "no")):
        *_, row = report._time_claims(RESULTS, {"hu": {"paper": 0.03, "balanced": seconds}})
        assert row[0].startswith("balanced, hu mh4-hybrid: ")
        assert row[2] == holds


def test_cells_that_differ_from_the_published_ones_by_more_than_chance_are_named():
    results = [made_up("hu", "mst", seed, 85.0 + 0.1 * seed) for seed in (1, 2, 3)] + RESULTS
    (row,) = report._published_means([one for one in results if one["system"] != "mst" or one["dev_uas"] > 84])
    assert row[1:] == ["1 of 2 cells; not hu mst +2.39", "no"]


def test_a_mean_may_be_one_published_deviation_below():
    for uas, holds in ((84.1, "yes"), (84.08, "no")):  # 84.59 ± 0.50 in the paper
        ((_, _, own),) = report._published_level([made_up("hu", "mh4-hybrid", 1, uas)], "paper")
        assert own == holds


def test_runs_scored_as_published_replace_the_others_in_a_second_comparison():
    results = [made_up("got", system, seed, 83.0 + 0.1 * seed) for system in ("mst", "mh3") for seed in (1, 2, 3)]
    short = [made_up("got", "mst", seed, 84.5 + 0.1 * seed) for seed in (1, 2, 3)]
    of_all = ["0 of 2 cells; not got mh3 -2.7 sd, got mst -5.5 sd", "0 of 2 cells; not got mh3 -0.52, got mst -1.54"]
    again = ["1 of 2 cells; not got mh3 -2.7 sd", "1 of 2 cells; not got mh3 -0.52"]
    for runs, found in (([], of_all), (short, of_all + again)):
        claims = [row for row in report.claims_table(results, {}, runs).rows if row[0].startswith("paper: ")]
        assert [row[1] for row in claims] == found
        assert all(row[0].endswith("; got mst without dev sentences of 99 words or more") for row in claims[2:])
    section = report.preset_section(results, "paper", short)
    whole, without = section.tables[:2]
    assert (cell(whole, "got", "mst")["seeds"], cell(whole, "got", "mst")["UAS"]) == ("3", "83.20 ± 0.10")
    assert [row[:4] for row in without.rows] == [["got", "mst", "3", "84.70 ± 0.10"]]
    assert not report.preset_section(results, "best", short).tables[1].rows


def test_settings_are_named_that_differ_from_defaults_and_are_still_there():
    settings = {"training": {"seed": 7, "learning_rate": 0.5, "patience": TrainingConfig().patience, "gone": 1}}
    run = {"treebank": "hu", "system": "mst", "settings": settings}
    shared = "Settings that differ from the published ones: learning_rate=0.5."
    assert report._changed_settings([run | {"seed": 7}]) == [shared]
    more = run | {"settings": {**settings, "network": {"feature_weight": 0.1, "mlp": 7}}}
    for few, many, rest in (
        ([more], [run, run], ["In addition, feature_weight=0.1, mlp=7: hu mst 3."]),
        ([run], [more, more], ["In addition, feature_weight=0.1, mlp=7: the others."]),
    ):
        runs = [result | {"seed": seed} for seed, result in enumerate([*many, *few], start=1)]
        assert report._changed_settings(runs) == [shared, *rest, report.FORMER]
    assert report._changed_settings([run | {"seed": 1, "settings": {}}]) == ["Published settings."]


def test_steps_are_counted_to_the_wanted_accuracy_or_to_the_best_model():
    rows = [[step, step / 60, uas, uas - 5, 0.5] for step, uas in ((500, 84.0), (900, 85.0), (1300, 84.9))]
    run = made_up("hu", "mh4-hybrid", 1, 85.0, best_step=900, steps=1300, curve=rows)
    assert [report.steps_to(run, uas) for uas in (83.0, 84.5, 90.0)] == [500, 900, 900]


def test_commands_make_exactly_the_runs():
    commands = report.grid_commands([result for result in RESULTS if result["treebank"] != "xx"], "paper")
    made = set()
    for command in commands:
        options = {}
        for word in command.split()[2:]:
            if word.startswith("--"):
                values = options.setdefault(word, [])
            else:
                values.append(word)
        made |= {
            (treebank.rpartition("/")[2], system, int(seed))
            for treebank in options["--treebanks"]
            for system in options["--systems"]
            for seed in options["--seeds"]
        }
    groups = group_runs(RESULTS, "paper")
    assert made == {(*key, run["seed"]) for key, runs in groups.items() for run in runs if key[0] != "xx"}


def test_commands_for_settings_that_no_longer_exist_name_the_code_that_had_them():
    now = report.regenerating([result_of("mst", {}), result_of("mst", {"patience": 1000}, seed=2, commit="0123abc")])
    command = "python experiments/grid.py --work runs/grid --treebanks ud-2.0/hu --systems mst --presets fast --seeds"
    assert now == [f"`{command} 1`", f"`git checkout 0123abc`, then `{command} 2`"]
    (named,) = report.regenerating([result_of("mst", {"patience": 1000}, commit="b8b3509698f6")])
    assert named.startswith("`git checkout eb4ea22feb49`, ")


def result_of(system, settings, seed=1, **more):
    """A made-up result of preset fast with some settings that this does not have."""
    config = config_of(system, {**PRESETS["fast"], **settings}, seed)
    return made_up("hu", system, seed, 83.0, "fast", settings=as_dict(config), **more)


@pytest.fixture
def folder(tmp_path):
    """A folder of results, including a failed run, and of decoding times."""
    (tmp_path / "ud").mkdir()
    for result in RESULTS:
        name = f"{result['treebank']}-{result['system']}-{result['preset']}-{result['seed']}.json"
        write_result(tmp_path / "ud" / name, result)
    failed = {key: RESULTS[0][key] for key in ("format", "treebank", "system", "preset", "interruptions")}
    failed |= {"seed": 9, "status": "failed", "failures": [{"error": "earlier"}, {"error": "ValueError: <no> luck"}]}
    write_result(tmp_path / "ud" / "hu-mst-paper-9.json", failed)
    times = {name: {"milliseconds": {"10": 0.1, "100": 9.0}, "exponent": 2.0} for name in ("mst", "eisner")}
    (tmp_path / "benchmark.json").write_text(json.dumps({"decoders": {"decoders": times, "peers": {}}}))
    return tmp_path


def test_results_survive_writing(folder):
    assert len(read_results(folder / "ud")) == len(RESULTS)
    assert all(result in RESULTS for result in read_results(folder / "ud"))
    assert read_unfinished(folder / "ud") == {"hu-mst-paper-9": "ValueError: <no> luck"}


def test_attempts():
    assert attempts(None) == 0
    assert attempts({"failures": [{}], "interruptions": [{"step": 5}, {"step": 5}, {"step": 9}]}) == 2
    assert attempts({"failures": [{}, {}, {}], "interruptions": []}) == 3


def write_report(folder):
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    command = [sys.executable, EXPERIMENTS / "report.py", "--results", folder / "ud", "-o", folder / "RESULTS.md"]
    command += ["--performance", folder / "benchmark.json", "--html", folder / "html" / "report.html"]
    subprocess.run(command, check=True, timeout=200, capture_output=True)
    return (folder / "RESULTS.md").read_text(), (folder / "html" / "report.html").read_text()


def test_report(folder):
    markdown, page = write_report(folder)
    links = re.findall(r"\]\((plots/.*?)\)", markdown)
    assert {Path(link).stem for link in links} >= {"paper-uas", "paper-curves", "paper-recall", "decoding"}
    assert all((folder / link).read_text().startswith("<svg") for link in links)
    for text in (
        "84.50 ± 0.71",
        "A Processor, 2 cores",
        "0123abc",
        "Table 5",
        "experiments/benchmark.py",
        "learning_rate=0.001",
    ):
        assert text in markdown
        assert text in page
    assert "hu, mst, preset paper: seeds 2, 3" in markdown
    assert "`hu-mst-paper-9` is not done: ValueError: <no> luck" in markdown
    assert "ValueError: &lt;no&gt; luck" in page
    assert page.count("<svg") == len(links)
    assert not re.findall(r"<(?:img|script|link)\b|(?:src|href)=\"(?!#)", page)  # loads nothing external
    for table in re.findall(r"(?:^\|.*\n)+", markdown, flags=re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_only_the_short_dev_runs_beside_the_results_count(folder, tmp_path, monkeypatch):
    """The committed ones belong to the committed results."""
    read = []
    monkeypatch.setattr(report, "read_results", lambda path: read.append(path) or read_results(path))
    monkeypatch.setattr(report, "make_report", lambda *_: [])
    for results in (folder / "ud", report.RESULTS):
        outputs = ["-o", str(tmp_path / "R.md"), "--html", str(tmp_path / "r.html")]
        monkeypatch.setattr(sys, "argv", ["report.py", "--results", str(results), *outputs])
        report.main()
    assert read == [folder / "ud", folder / "short-dev", report.RESULTS, report.SHORT_DEV]


def test_report_without_any_run(tmp_path):
    (tmp_path / "ud").mkdir()
    sections = report.make_report([], {}, tmp_path / "none.json")
    markdown = report.to_markdown(sections, "plots")
    assert "No run is done yet" in markdown
    assert "hu, greedy-mh4, preset paper: seeds 1, 2, 3" in markdown
    assert sum(map(len, PLAN.values())) > 0
    assert "<h1>" in report.to_html(sections)


@pytest.mark.parametrize("script", ["table1_features", "table2_features", "table4_systems", "tables56_test_las"])
def test_table_scripts_print(script, folder, monkeypatch, capsys):
    module = sys.modules[script]
    make = getattr(module, "make_tables", None) or module.make_table
    monkeypatch.setattr(sys, "argv", [script, "--results", str(folder / "ud")])
    module.run_table(make, "a table")
    assert re.search(r"Table \d", capsys.readouterr().out)
    monkeypatch.setattr(sys, "argv", [script, "--results", str(folder / "none")])
    with pytest.raises(SystemExit):
        module.run_table(make, "a table")
    assert "none: no such folder" in capsys.readouterr().err
