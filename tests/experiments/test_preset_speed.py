"""Seconds per step with each preset: measured, written and read back."""

import json
import sys

import preset_speed
from preset_speed import read_provenance, read_step_seconds
from provenance import made_with

from mh4.data.sample import write_sample


def test_every_preset_and_treebank_has_a_time(tmp_path, monkeypatch, capsys):
    sample = write_sample(tmp_path)["train"]
    treebank = tmp_path / "xx"
    treebank.mkdir()
    (treebank / "xx-ud-train.conllu").write_bytes(sample.read_bytes())
    output = tmp_path / preset_speed.NAME
    options = ["--presets", "paper", "fast", "--rounds", "1", "--steps", "1", "-o", str(output)]
    monkeypatch.setattr(sys, "argv", ["preset_speed.py", str(treebank), *options])
    monkeypatch.setattr(preset_speed.torch, "set_num_threads", lambda threads: None)  # keep later tests unaffected
    assert read_step_seconds(tmp_path) == {}
    preset_speed.main()
    seconds = read_step_seconds(tmp_path)
    assert set(seconds) == {"xx"}
    assert set(seconds["xx"]) == {"paper", "fast"}
    assert all(value > 0 for value in seconds["xx"].values())
    assert '"fast"' in capsys.readouterr().out


def test_old_measurements_keep_their_provenance(tmp_path, monkeypatch):
    """In a file of an earlier version, one commit and machine stand for all."""
    old = {"commit": "0123456789ab", "versions": {}, "hardware": {"cpu": "another"}}
    seconds = {"xx": {"paper": 1.0, "fast": 2.0}, "yy": {"fast": 3.0}}
    (tmp_path / preset_speed.NAME).write_text(json.dumps({"seconds_per_step": seconds, **old}))
    monkeypatch.setattr(preset_speed, "time_training", lambda *_: {"seconds": 5.0, "steps": 1})
    monkeypatch.setattr(preset_speed.torch, "set_num_threads", lambda threads: None)
    treebank = tmp_path / "xx"
    treebank.mkdir()
    (treebank / "xx-ud-train.conllu").touch()
    output = str(tmp_path / preset_speed.NAME)
    for preset in ("fast", "best"):
        arguments = [str(treebank), "--presets", preset, "--rounds", "1", "-o", output]
        monkeypatch.setattr(sys, "argv", ["preset_speed.py", *arguments])
        preset_speed.main()
    assert read_step_seconds(tmp_path) == {"xx": {"paper": 1.0, "fast": 5.0, "best": 5.0}, "yy": {"fast": 3.0}}
    made, new = read_provenance(tmp_path), made_with("cpu")
    assert made == {"xx": {"paper": old, "fast": new, "best": new}, "yy": {"fast": old}}
