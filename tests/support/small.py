"""Networks that train in seconds, and checks of trained models."""

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file

import mh4
from mh4.models.bilstm_config import BiLSTMConfig
from mh4.models.network_config import LossWeights, ScorerConfig
from mh4.parsers.config import ChartConfig, GreedyConfig, NetworkParserConfig, TrainingConfig, TransitionConfig
from mh4.training.job import TrainingJob
from mh4.training.running import run_training
from mh4.training.schedule import Progress
from mh4.training.treebanks import read_gold

SMALL_ENCODER = BiLSTMConfig(
    word_size=16, character_size=8, character_hidden=16, character_layers=1, hidden=24, layers=1
)
SMALL_SCORERS = ScorerConfig(mlp=16)
# Settings that also predict UPOS, XPOS, FEATS and lemmas.
ANNOTATING: dict[str, Any] = {"analysis_weight": 1.0, "lemma_weight": 1.0, "mlp_dropout": 0.0, "lstm_dropout": 0.0}
ANNOTATOR = ScorerConfig(mlp=16, mlp_dropout=0.0), LossWeights(analysis_weight=1.0, lemma_weight=1.0)

C = TypeVar("C", bound=NetworkParserConfig)


def small_config(decoder: str = "mh4-hybrid", **settings: Any) -> ChartConfig:
    """The configuration of a chart parser that trains in seconds."""
    training = TrainingConfig(batch_words=60, evaluation_steps=4, max_steps=12, learning_rate=0.01)
    config = ChartConfig(decoder=decoder, encoder=SMALL_ENCODER, scorers=SMALL_SCORERS, training=training)
    return changed(config, **settings)


def small_greedy_config(transitions: TransitionConfig, **settings: Any) -> GreedyConfig:
    """The configuration of a greedy parser that trains in seconds."""
    chart = small_config(**settings)
    return GreedyConfig(transitions, chart.encoder, chart.scorers, chart.weights, chart.training)


def changed(config: C, **settings: Any) -> C:
    """A configuration with some settings changed, given by name without their part."""
    parts: dict[str, Any] = {}
    for field in fields(config):
        part = getattr(config, field.name)
        if own := {name: settings.pop(name) for name in [*settings] if is_dataclass(part) and hasattr(part, name)}:
            parts[field.name] = replace(part, **own)
    return replace(config, **parts, **settings)


def train(*job: Any, **options: Any) -> Progress:
    """Run a `TrainingJob`."""
    return run_training(TrainingJob(*job, **options))


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The entries of a training log."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same_weights(one: Path, other: Path) -> bool:
    """Whether two model folders hold equal weights."""
    first, second = (load_file(folder / "weights.safetensors") for folder in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def check_everything_is_predicted(folder: Path, treebank: Path, exact: bool) -> None:
    """Check that a model predicts every column itself and, if exact, gives confidences and several trees."""
    parser = mh4.load(folder, device="cpu", threads=2)
    gold = read_gold(treebank)
    parsed = list(parser.parse(treebank, predict="all", overwrite=True))
    assert [len(one) for one in parsed] == [len(one) for one in gold]
    assert all("_" not in one.upos for one in parsed)
    if exact:
        sure = list(parser.parse(treebank, confidence=True, overwrite=True))
        assert all(0 < word.confidence <= 1 for one in sure for word in one.words)
        assert len(parser.k_best(gold[0].forms, 3)) == 3
