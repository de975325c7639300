"""Measurements of the stages of training and parsing, without a network."""

from types import SimpleNamespace
from unittest.mock import MagicMock, call

import pytest
import torch

from mh4.cli import app
from mh4.cli.bench import stages
from mh4.data.conllu import read_conllu
from mh4.parsers.network import NetworkParser


def test_words_are_forgotten_before_each_run(small_treebanks, monkeypatch):
    parser = MagicMock(spec=NetworkParser)
    parser.network = MagicMock()
    monkeypatch.setattr(stages, "parser_to_measure", lambda *_: parser)
    stages.time_parsing("m", small_treebanks[1], "mst", 2)
    forget = call.network.encoder.forget()
    assert [one[0] for one in parser.mock_calls] == ["predict", *[forget[0], "predict"] * 2]


def test_batches_are_measured_after_those_to_warm_up(monkeypatch):
    prepared = []

    def prepare(batch):
        prepared.append(batch)
        return [SimpleNamespace(dependent=[0] * (100 if batch == (0, 0) else 2))]

    trainer = SimpleNamespace(
        parser=SimpleNamespace(device=torch.device("cpu")),
        batches=lambda epoch: [(epoch, i) for i in range(4)],
        prepare=prepare,
        step=lambda *_: None,
        settle=lambda: None,
    )
    monkeypatch.setattr(stages, "trainer_to_measure", lambda *_: trainer)
    found = stages.time_training(None, "mst", 10)
    assert (found["steps"], found["words"]) == (10, 20)
    assert prepared == [(epoch, i) for epoch in range(3) for i in range(4)][:11]


def test_what_is_measured_is_what_was_asked_for(small_treebanks, tmp_path, monkeypatch):
    settings = {"hidden": 12, "mlp": 12, "batch_words": 60}
    parser = stages.trainer_to_measure(small_treebanks[1], "mst", "cpu", 3, settings, tmp_path).parser
    assert (parser.threads, parser.device.type) == (3, "cpu")
    assert (parser.config.decoder, parser.config.training.batch_words) == ("mst", 60)
    asked = []
    monkeypatch.setattr(stages, "load", lambda model, **options: asked.append((model, options)))
    stages.parser_to_measure("m", [], "mst", "cpu", 3)
    assert asked == [("m", {"device": "cpu", "threads": 3})]
    untrained = stages.parser_to_measure(None, read_conllu(small_treebanks[1]), "mst", "cpu", 3)
    assert (untrained.config.decoder, untrained.threads) == ("mst", 3)


@pytest.mark.parametrize("command", ["parse", "text"])
def test_a_model_has_a_decoder_of_its_own(command, tmp_path):
    with pytest.raises(ValueError, match="--decoder is for the untrained model; leave out the option or the model"):
        app(["bench", command, str(tmp_path), "--decoder", "mst"], standalone_mode=False)
