"""Running the published code: the edits, the settings of its scripts, and what is read from its logs."""

import sys

import published_code
import pytest
from grid_results import FORMAT, write_result
from published_code import edit, read_log, report, train

CODE = """import fire, json
self._char_lookup = self._model.add_lookup_parameters((len(self._charset) + 3, self._cdims))
self._word_lookup = self._model.add_lookup_parameters((len(self._vocab) + 3, self._wdims))
"""
PICKS = "        exprs = np.array([[exprs[i][j] for j in range(len(carriers))] for i in range(len(carriers))])\n"
SCRIPT = """source /home/someone/bin/activate
LANGUAGE=$1
RUN=$2
LOG_FOLDER=/home/someone/models
SAVE_PREFIX=${LOG_FOLDER}/${LANGUAGE}-$RUN
mkdir -p $SAVE_PREFIX
TRAIN_FILE=/home/someone/${LANGUAGE}-train.conllu
DEV_FILE=/home/someone/${LANGUAGE}-dev.conllu
MKL_NUM_THREADS=1 python -m show $TRAIN_FILE $DEV_FILE $RUN > $SAVE_PREFIX/log.log
"""
LOG = """100 2.52s 200 2.62s
NPMST-1-LAS 0.5
NPMST-1-UAS 0.6123
UPOS-1 Accuracy 0.9
Learning rate decayed!
NPMST-1-LAS 0.7
NPMST-1-UAS 0.8
300 2.00s
NPMST-1-LAS 0.7
NPMST-1-UAS 0.79
NPMST-1-LAS 0.6
NPMST-1-UAS 0.9
"""


@pytest.fixture
def clone(tmp_path):
    """A clone of a repository with the lines of the published one that matter here."""
    for folder in ("acl18", "scripts"):
        (tmp_path / "code" / folder).mkdir(parents=True)
    (tmp_path / "code" / "acl18" / "cdparser.py").write_text(CODE)
    (tmp_path / "code" / "acl18" / "modules.py").write_text(2 * PICKS + "return exprs\n")
    (tmp_path / "code" / "scripts" / "cle.sh").write_text(SCRIPT)
    (tmp_path / "code" / "show.py").write_text("import sys\nprint(*sys.argv[1:])\n")
    return tmp_path / "code"


def test_edits_are_made_once(clone):
    edit(clone)
    once = (clone / "acl18" / "cdparser.py").read_text()
    assert once.startswith("import sys, fire, json\n")
    assert once.count("init=GlorotInitializer(True))\n") == 2
    assert (clone / "acl18" / "modules.py").read_text() == "return exprs\n"
    edit(clone)
    assert (clone / "acl18" / "cdparser.py").read_text() == once


def test_the_published_script_runs_with_our_files_and_python(clone, small_treebanks, tmp_path):
    treebank = tmp_path / "xx"
    treebank.mkdir()
    for part, path in zip(("train", "dev"), small_treebanks, strict=True):
        (treebank / f"xx-{part}.conllu").write_bytes(path.read_bytes())
    log = train(treebank, "mst", 7, clone, published_code.Path(sys.executable), tmp_path / "work")
    assert log == tmp_path / "work" / "xx-mst-7" / "log.log"
    assert log.read_text().split() == [f"{treebank}/xx-train.conllu", f"{treebank}/xx-dev.conllu", "7"]
    (clone / "scripts" / "cle.sh").write_text("exit 3\n")
    with pytest.raises(SystemExit, match=r"cle\.sh failed with exit status 3"):
        train(treebank, "mst", 8, clone, published_code.Path(sys.executable), tmp_path / "work")


def test_a_run_is_not_repeated_unless_its_treebank_has_changed(small_treebanks, tmp_path, monkeypatch):
    (tmp_path / "xx").mkdir()
    for part, path in zip(("train", "dev"), small_treebanks, strict=True):
        (tmp_path / "xx" / f"xx-{part}.conllu").write_bytes(path.read_bytes())
    (tmp_path / "log.log").write_text(LOG)
    options = ["--log", str(tmp_path / "log.log"), "--results", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["published_code.py", str(tmp_path / "xx"), *options])
    published_code.main()
    monkeypatch.setattr(published_code, "read_log", None)
    published_code.main()
    (tmp_path / "xx" / "xx-dev.conllu").write_bytes(small_treebanks[0].read_bytes())
    with pytest.raises(SystemExit, match=r"xx-mst-1\.json: was made from other dev data"):
        published_code.main()


def test_the_last_of_the_best_evaluations_counts():
    assert read_log(LOG, 40_000) == {
        "uas": 79.0,
        "las": 70.0,
        "best step": 1500,
        "steps": 2000,
        "decays": 1,
        "curve": [[500, 61.23, 50.0], [1000, 80.0, 70.0], [1500, 79.0, 70.0], [2000, 90.0, 60.0]],
    }
    assert read_log(LOG, 1_000_000)["best step"] == 3 * 2500
    with pytest.raises(SystemExit, match="no evaluation"):
        read_log("100 2.5s", 1000)


# The rate falls after the ninth evaluation, the fifth that is below the fourth.
LAS = (1, 2, 2, 3, 2, 2, 2, 2, 2, *11 * [4])
CURVE = [[500 * i + 500, 60 + i, las] for i, las in enumerate(LAS)]


def test_the_rate_falls_after_five_evaluations_that_are_not_the_best():
    assert published_code.first_fall(CURVE) == 8
    with pytest.raises(ValueError, match="did not fall"):
        published_code.first_fall(CURVE[:8])


def test_what_is_gained_leaves_out_the_first_two_evaluations_after_the_fall():
    assert published_code.gained(CURVE) == 73 - 66  # 71 to 75, and 64 to 68


def test_runs_are_compared_on_the_dev_sentences_that_the_published_code_scores(monkeypatch, tmp_path):
    names = {"RESULTS": "all", "SHORT_DEV": "short"}
    for name, folder in names.items():
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(published_code, name, tmp_path / folder)
    for folder, treebank, seed, dev_uas, status in (
        ("all", "got", 1, 84.0, "done"),
        ("all", "cu", 1, 87.0, "done"),
        ("all", "cu", 2, 1.0, "open"),
        ("short", "got", 1, 84.5, "done"),
        ("short", "cu", 1, 1.0, "open"),
    ):
        write_result(
            tmp_path / folder / f"{treebank}-mst-paper-{seed}.json",
            {
                "format": FORMAT,
                "status": status,
                "dev_uas": dev_uas,
                "curve": [[step, 9.0, uas + 1, las, 0.1] for step, uas, las in CURVE],
            },
        )
    for treebank in ("got", "cu", "el"):
        run = {
            "treebank": treebank,
            "system": "mst",
            "seed": 1,
            "uas": 85.0,
            "las": 79.0,
            "steps": 3000,
            "curve": CURVE,
        }
        write_result(tmp_path / f"{treebank}-mst-1.json", run)
    monkeypatch.setattr(published_code, "EARLY", (1_500, 4_000))
    scores, learning = report(tmp_path).split("\n\n")
    rows = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in scores.splitlines()[2:]}
    assert rows == {"got": "84.50", "cu": "87.00", "el": "–"}
    _, _, *rows = learning.splitlines()
    assert rows == [
        "| cu `mst`, published code | 62.00 | 67.00 | 4,500 | 7.00 |",
        "| cu `mst`, ours | 63.00 | 68.00 | 4,500 | 7.00 |",
        "| el `mst`, published code | 62.00 | 67.00 | 4,500 | 7.00 |",
        "| got `mst`, published code | 62.00 | 67.00 | 4,500 | 7.00 |",
        "| got `mst`, ours | 63.00 | 68.00 | 4,500 | 7.00 |",
    ]


def test_a_later_fall_is_related_to_scores_within_cells(tmp_path):
    for treebank, base in (("got", 84.0), ("cu", 10.0)):
        for seed, later in enumerate((0, 2, 4), 1):
            curve = [
                [step, 9.0, 60.0, las, 0.1]
                for step, (_, _, las) in zip(range(500, 20_000, 500), later * [[0, 0, 1]] + CURVE, strict=False)
            ]
            own = {"treebank": treebank, "system": "mst", "preset": "paper", "status": "done", "curve": curve}
            write_result(tmp_path / f"{treebank}-{seed}.json", own | {"dev_uas": base + later / 10})
    other = {"treebank": "hu", "system": "mst", "preset": "fast", "status": "done", "curve": [], "dev_uas": 9.0}
    write_result(tmp_path / "other.json", other)
    assert published_code.chance(tmp_path) == (pytest.approx(2.0), pytest.approx(1.0), 6)
