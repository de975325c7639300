"""Parsers for GPU tests: every kind of parser and the settings of every preset, small enough to train in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from small import SMALL_ENCODER, SMALL_SCORERS, changed, small_config, small_greedy_config
from torch import Tensor

from mh4.models.host_settings import settings_put_aside
from mh4.parsers.chart import ChartParser
from mh4.parsers.config import ChartConfig, GreedyConfig, NetworkParserConfig, TransitionConfig, make_config
from mh4.parsers.definition import Definition
from mh4.parsers.network import NetworkParser
from mh4.parsers.registry import new_parser
from mh4.training.presets import PRESETS
from mh4.training.trainer import Trainer
from mh4.training.treebanks import read_gold

SIZES = {
    "mlp": SMALL_SCORERS.mlp,
    **{
        name: getattr(SMALL_ENCODER, name)
        for name in ("word_size", "character_size", "character_hidden", "character_layers", "hidden")
    },
}
STEPS: dict[str, Any] = {"batch_words": 60, "evaluation_steps": 3, "max_steps": 6}
CERTAIN: dict[str, Any] = {  # settings without randomness
    **dict.fromkeys(("lstm_dropout", "mlp_dropout", "block_dropout", "spelling_dropout"), 0.0),
    **dict.fromkeys(("word_unknown", "character_unknown"), 0.0),
}


def _greedy(system: str, **transitions: str) -> GreedyConfig:
    return small_greedy_config(TransitionConfig(system=system, exploration_start=0, **transitions), **STEPS)


CONFIGS: dict[str, NetworkParserConfig] = {
    **{name: small_config(name, **STEPS) for name in ("mst", "mh4-hybrid", "mh4-two", "1ec")},
    "arc-hybrid": _greedy("arc-hybrid"),
    "mh4 greedy": _greedy("mh4"),
    "covington": _greedy("covington"),
    **{
        f"preset {name}": make_config(ChartConfig, {**settings, **SIZES, **STEPS, "decoder": "mh4-hybrid"})
        for name, settings in PRESETS.items()
    },
}


def certain(config: NetworkParserConfig) -> NetworkParserConfig:
    """The configuration without randomness; greedy parsers explore nothing."""
    same = changed(config, **CERTAIN)
    if isinstance(same, GreedyConfig):
        return replace(same, transitions=replace(same.transitions, exploration=0.0, near_exploration=0.0))
    return same


def trainer_on(device: str, config: NetworkParserConfig, treebanks: tuple[Path, Path], folder: Path) -> Trainer:
    """A trainer of a parser whose random initial weights depend only on the seed."""
    train, dev = (read_gold(path) for path in treebanks)
    parser = new_parser(Definition.learn(config, train), device)
    return Trainer(parser, train, dev, folder)


def loss_and_gradients(
    device: str, config: NetworkParserConfig, treebanks: tuple[Path, Path], folder: Path, sentences: Sequence[int] = ()
) -> tuple[float, dict[str, Tensor]]:
    """The loss and gradients of a batch, by default the first one, under the settings of training."""
    with settings_put_aside(learns=True):
        trainer = trainer_on(device, config, treebanks, folder)
        network = trainer.parser.network.train()
        loss = trainer.batch_loss(trainer.collate(sentences or trainer.batches(0)[0]), 0)
        loss.backward()
        return loss.item(), {name: own.grad.cpu() for name, own in network.named_parameters() if own.grad is not None}


def assert_close(ours: tuple[float, dict[str, Tensor]], theirs: tuple[float, dict[str, Tensor]], tolerance: float):
    """Check that losses and gradients agree, relative to the loss and to a parameter's largest gradient."""
    assert theirs[0] > 1.0
    assert abs(ours[0] - theirs[0]) <= tolerance * theirs[0]
    assert ours[1].keys() == theirs[1].keys()
    for parameter, gradient in theirs[1].items():
        size = max(1.0, gradient.abs().max().item())
        torch.testing.assert_close(ours[1][parameter], gradient, rtol=0, atol=tolerance * size, msg=parameter)


def chart_parser(folder: Path, device: str) -> NetworkParser:
    """Load a trained chart parser."""
    return ChartParser.load(folder, device=device)
