"""Losses and partial treebanks: the heads that are kept, runs of a small model, and tables."""

import json

import losses
import numpy as np
import pytest
from small import small_config

from mh4.data.conllu import read_conllu
from mh4.parsers.registry import load


@pytest.fixture
def treebank(small_treebanks, tmp_path):
    """A treebank folder with UD's file names."""
    folder = tmp_path / "xx"
    folder.mkdir()
    for part, path in zip(("train", "dev"), small_treebanks, strict=True):
        (folder / f"xx-ud-{part}.conllu").write_bytes(path.read_bytes())
    return folder


def known_heads(path):
    """For each sentence, whether each word's head is kept; checks that relations are kept with heads."""
    known = []
    for sentence in read_conllu(path):
        assert [head is None for head in (word.head for word in sentence)] == [word.deprel is None for word in sentence]
        known.append(np.array([word.head is not None for word in sentence]))
    return known


@pytest.mark.parametrize("known", ["half", "quarter", "sentences", "quarter-sentences"])
def test_as_many_heads_as_asked_for_are_left(treebank, tmp_path, known):
    whole = list(read_conllu(losses.part_path(treebank, "train")))
    left = known_heads(losses.training_file(treebank, known, 1, tmp_path / "left.conllu"))
    share = sum(map(sum, left)) / sum(map(len, whole))
    assert share == pytest.approx(losses.SHARES[known], abs=0.06)
    if known.endswith("sentences"):
        assert all(own.all() for own in left)
        assert len(left) < len(whole)
    else:
        assert len(left) == len(whole)
        assert any(own.any() and not own.all() for own in left)


def test_what_a_model_is_least_certain_of_is_left(treebank, small_model, tmp_path):
    path = losses.training_file(treebank, "uncertain", 1, tmp_path / "left.conllu", small_model)
    left = np.concatenate(known_heads(path))
    whole = list(read_conllu(losses.part_path(treebank, "train")))
    parsed = load(small_model, device="cpu").parse(whole, confidence=True)
    margins = np.concatenate([one.confidence.margins for one in parsed])
    assert left.sum() == round(0.25 * len(left))
    assert margins[left].max() <= margins[~left].min() + 1e-4
    for one, other in zip(read_conllu(path), whole, strict=True):
        known = one.heads >= 0
        assert (one.heads[known] == other.heads[known]).all()
        assert one.forms == other.forms


def test_the_choosing_model_is_trained_once(treebank, tmp_path, monkeypatch):
    results, work = tmp_path / "results", tmp_path / "work"
    results.mkdir()
    work.mkdir()
    monkeypatch.setattr(
        losses, "configure", lambda decoder, **_: small_config(decoder, max_steps=4, evaluation_steps=2)
    )
    losses.run(treebank, "mst", "crf", "uncertain", 1, work, results, chooser="quarter-sentences")
    made = ["xx-mst-crf-uncertain-1", "xx-mst-hinge-quarter-sentences-1"]
    assert sorted(path.stem for path in results.iterdir()) == made
    assert json.loads((results / f"{made[0]}.json").read_text())["chooser"] == "quarter-sentences"
    page = losses.report(results)
    assert "| xx | `mst` | every column | uncertain (quarter-sentences) | crf | 1 |" in page
    assert "| xx | `mst` | every column | quarter-sentences | hinge | 1 |" in page
    (results / f"{made[0]}.json").unlink()
    (work / made[1] / losses.CALIBRATION).unlink()
    with pytest.raises(SystemExit, match=r"remove .*quarter-sentences-1\.json to train again"):
        losses.run(treebank, "mst", "crf", "uncertain", 1, work, results, chooser="quarter-sentences")


def test_runs_with_other_settings_are_not_mixed(treebank, tmp_path, monkeypatch):
    results, work = tmp_path / "results", tmp_path / "work"
    results.mkdir()
    work.mkdir()
    steps = {"max_steps": 4, "evaluation_steps": 2}

    def run(seed, loss="hinge"):
        monkeypatch.setattr(losses, "configure", lambda decoder, **_: small_config(decoder, seed=seed, **steps))
        losses.run(treebank, "mst", loss, "all", seed, work, results)

    run(1)
    run(2, "crf")
    path = results / "xx-mst-hinge-all-1.json"
    result = json.loads(path.read_text())
    steps["patience"] = 3
    with pytest.raises(SystemExit, match=r"hinge-all-1\.json: was made with other settings"):
        run(1)
    with pytest.raises(SystemExit, match=r"crf-all-2\.json: was made with other settings, so new runs on xx"):
        run(3)
    del steps["patience"], result["settings"]
    path.write_text(json.dumps(result))
    run(1)  # finished in an earlier version
    with pytest.raises(SystemExit, match=r"hinge-all-1\.json: does not tell its settings"):
        run(3)
    assert len(list(results.iterdir())) == 2


def test_what_columns_cost():
    """Means over the available seeds; a seed not run again counts with its long run, up to where patience ends it."""

    def result(learns, seed, las, **others):
        own = {"treebank": "xx", "decoder": "mh4-hybrid", "known": "all", "loss": "hinge", "learns": learns}
        return {**own, "seed": seed, "dev_uas": las + 5, "dev_las": las, **others}

    results = [
        *(result("trees alone", seed, las) for seed, las in ((1, 79.0), (2, 80.0))),
        result("every column", 2, 81.0),
        *(
            result("every column", 3, 0.0, **other)
            for other in ({"known": "half"}, {"loss": "crf"}, {"decoder": "mst"})
        ),
        result("trees alone", 1, 70.0, treebank="yy"),
    ]
    steps = range(200, 20_000, 200)
    late = 200 * 60  # long after patience ran out
    curve = [[step, step, 88.0, 90.0] if step == late else [step, step, 85.0, 80.0] for step in steps]
    long_run = {"treebank": "xx", "preset": "balanced", "trees_alone": False, "seed": 1, "epoch_steps": 100}
    long_run["curve"] = curve
    *_, row = losses.columns_table(results, [long_run, {**long_run, "seed": 2}])
    assert row == "| xx | 2 | 85.50 ± 0.71 | 80.50 ± 0.71 | 2 | 84.50 ± 0.71 | 79.50 ± 0.71 | +1.00 |"
