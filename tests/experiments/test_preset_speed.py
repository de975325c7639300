"""Seconds per step with each preset: measured, written and read back."""

import sys

import preset_speed
from preset_speed import read_step_seconds

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
