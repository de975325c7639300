"""A network that trains in seconds."""

from mh4.models.network_config import NetworkConfig
from mh4.parsers.config import Config, TrainingConfig

SMALL_NETWORK = NetworkConfig(
    word_size=16, character_size=8, character_hidden=16, character_layers=1, hidden=24, layers=1, mlp=16
)


def small_config(decoder: str = "mh4-hybrid", **training: object) -> Config:
    """A network that trains in seconds."""
    settings = {"batch_words": 60, "evaluation_steps": 4, "max_steps": 12, "learning_rate": 0.01} | training
    return Config(decoder=decoder, network=SMALL_NETWORK, training=TrainingConfig(**settings))
