"""Settings of a perceptron parser and of its training, saved beside the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..config import FORMAT, saved_options
from ..oracle_settings import OracleSettings
from ..settings import build, parse_settings
from .vocabulary import TAG_COLUMNS

SCORER = "perceptron"  # in config.json


@dataclass(frozen=True)
class PerceptronConfig(OracleSettings):
    """Everything that defines a perceptron parser apart from its vocabulary and weights.

    Attributes
    ----------
    system, oracle, exploration_start, exploration
        See `OracleSettings`.
    iterations : int
        Epochs; the one that is best on dev is kept.
    seed : int
    tag_column : {"upos", "xpos"}
        The parts of speech that the features see.

    Raises
    ------
    ValueError
        A value that is out of range, or unknown to the system.
    """

    system: str = "arc-eager"
    iterations: int = 15
    seed: int = 1
    tag_column: str = "upos"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tag_column not in TAG_COLUMNS:
            raise ValueError(f"unknown tag column {self.tag_column!r}; known: {', '.join(TAG_COLUMNS)}")
        if self.iterations < 1 or not 0 <= self.seed < 2**63:
            raise ValueError("iterations must be 1 or more, seed 0 or more and below 2^63")

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content; `from_dict` reads it back."""
        return {"format": FORMAT, "scorer": SCORER, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PerceptronConfig:
        """Inverse of `as_dict`.

        Raises
        ------
        ValueError
            An unknown format, scorer or option; the message lists the known ones.
        """
        values = saved_options(data)
        if data.get("scorer") != SCORER:
            raise ValueError(f"scorer {data.get('scorer')!r} where {SCORER!r} is expected")
        return build(cls, values)


def make_config(settings: Sequence[str]) -> PerceptronConfig:
    """The default configuration with some settings changed, given as "NAME=VALUE".

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type.
    """
    (config,) = parse_settings(settings, PerceptronConfig)
    return config
