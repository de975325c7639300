"""Settings of a model and of its training, saved beside the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mh4.decoders import get_decoder
from mh4.models.network_config import NetworkConfig, check_range

from .settings import build, parse_settings
from .vocabulary import MIN_WORD_COUNT

FORMAT = 1  # of the model folder


def saved_options(data: dict[str, Any]) -> dict[str, Any]:
    """What a configuration file says beside its format and its kind of scorer.

    Raises
    ------
    ValueError
        An unknown format.
    """
    if data.get("format") != FORMAT:
        raise ValueError(f"model format {data.get('format')!r}; this version reads format {FORMAT}")
    return {name: value for name, value in data.items() if name not in ("format", "scorer")}


@dataclass(frozen=True)
class TrainingConfig:
    """Optimisation; the defaults are the published settings (Gómez-Rodríguez, Shi & Lee 2018).

    Attributes
    ----------
    weight_decay
        Share of every weight that a step takes off, times the learning rate (Loshchilov and Hutter 2019).
    batch_words
        A minibatch is full as soon as it holds so many words; the summed loss is divided by this number.
    evaluation_steps
        Evaluate on dev every so many steps, and not more often than every quarter epoch.
    patience, decays, decay_factor
        After `patience` evaluations without improvement the learning rate is multiplied by `decay_factor`, at most
        `decays` times; then training stops.
    decay_from
        The weights that training goes on with after that: "last", those it has, as published, or "best", those that
        were best on dev.
    min_word_count
        Rarer words have no embedding of their own, and are spelt.
    word_unknown, character_unknown
        A word (character) seen c times is taken for unknown with probability x / (x + c).
    dropout_rise
        Steps over which dropout in BiLSTMs and MLPs rises linearly from none to its rate.
    weight_average
        Evaluate and keep an exponential moving average of the weights with this decay; 0: the weights themselves.
    """

    seed: int = 1
    learning_rate: float = 0.002
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    gradient_clip: float = 5.0
    batch_words: int = 100
    evaluation_steps: int = 500
    patience: int = 5
    decays: int = 3
    decay_factor: float = 0.25
    decay_from: str = "last"
    max_steps: int = 100_000
    min_word_count: int = MIN_WORD_COUNT
    word_unknown: float = 2.5
    character_unknown: float = 0.25
    dropout_rise: int = 0
    weight_average: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, 1, "batch_words", "evaluation_steps", "patience", "max_steps", "min_word_count")
        check_range(self, 0, "seed", below=2**63)
        check_range(self, 0, "learning_rate", "epsilon", "weight_decay", "gradient_clip", "decays")
        check_range(self, 0, "decay_factor", "word_unknown", "character_unknown", "dropout_rise")
        check_range(self, 0, "beta1", "beta2", "weight_average", below=1)
        if self.decay_from not in ("last", "best"):
            raise ValueError(f"decay_from must be last or best; got {self.decay_from!r}")


@dataclass(frozen=True)
class Config:
    """Everything that defines a model apart from its vocabulary and weights."""

    decoder: str = "mh4-hybrid"
    single_root: bool = True
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        get_decoder(self.decoder)  # ValueError if it is unknown

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content; `from_dict` reads it back."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """Inverse of `as_dict`.

        Raises
        ------
        ValueError
            An unknown format or an unknown option; the message lists the known ones.
        """
        data = saved_options(data)
        network = build(NetworkConfig, data.pop("network", {}))
        training = build(TrainingConfig, data.pop("training", {}))
        return build(cls, {**data, "network": network, "training": training})


def make_config(decoder: str, single_root: bool = True, settings: Sequence[str] = ()) -> Config:
    """The default configuration with some settings changed.

    Parameters
    ----------
    settings : sequence of "NAME=VALUE"
        Names are those of `NetworkConfig` and `TrainingConfig`.

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type.
    """
    return Config(decoder, single_root, *parse_settings(settings, NetworkConfig, TrainingConfig))
