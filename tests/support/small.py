"""A network that trains in seconds, and what training leaves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from mh4.models.network_config import NetworkConfig
from mh4.parsers.config import ChartConfig, TrainingConfig

SMALL_NETWORK = NetworkConfig(
    word_size=16, character_size=8, character_hidden=16, character_layers=1, hidden=24, layers=1, mlp=16
)
# The same with UPOS, XPOS, FEATS and lemmas.
ANNOTATING_NETWORK = replace(
    SMALL_NETWORK,
    analysis_weight=1.0,
    lemma_weight=1.0,
    mlp_dropout=0.0,
    lstm_dropout=0.0,
)


def small_config(decoder: str = "mh4-hybrid", **training: object) -> ChartConfig:
    """A network that trains in seconds."""
    settings = {"batch_words": 60, "evaluation_steps": 4, "max_steps": 12, "learning_rate": 0.01} | training
    return ChartConfig(decoder=decoder, network=SMALL_NETWORK, training=TrainingConfig(**settings))


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The lines of a training log."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def same_weights(one: Path, other: Path) -> bool:
    """Whether two model folders hold equal weights."""
    first, second = (load_file(folder / "weights.safetensors") for folder in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
