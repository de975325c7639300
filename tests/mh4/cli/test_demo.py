"""What the demo trains and draws."""

from pathlib import Path

import pytest

from mh4.cli.demo import _example, train_one
from mh4.data.conllu import write_conllu
from mh4.data.sentence import Sentence
from mh4.parsers.config import ChartConfig


def test_one_model_alone_segments_text(tmp_path, monkeypatch):
    jobs, files = [], {"train": Path("t"), "dev": Path("d")}

    def trained(job):
        jobs.append(job)
        raise StopIteration

    monkeypatch.setattr("mh4.training.running.run_training", trained)
    for name in ("mst", "mh4-hybrid"):
        with pytest.raises(StopIteration):
            train_one(name, ChartConfig(decoder=name), files, tmp_path, 1)
    assert [(job.config.decoder, job.segmenter) for job in jobs] == [("mst", False), ("mh4-hybrid", True)]


def test_a_short_sentence_is_drawn_if_possible_with_crossing_arcs(tmp_path):
    gold, parsed = tmp_path / "gold.conllu", tmp_path / "parsed.conllu"
    long, short, crossing = (
        Sentence([letter] * len(heads), heads=heads, relations=["dep"] * len(heads))
        for letter, heads in (("a", [3, 4, 0, *[3] * 17]), ("b", [2, 0]), ("c", [3, 4, 0, 3]))
    )
    for sentences, expected in (([long, short], short), ([short, crossing, long], crossing)):
        for path in (gold, parsed):
            write_conllu(sentences, path)
        assert _example(gold, parsed).forms == expected.forms
