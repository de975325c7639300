"""Settings of a perceptron parser and of its training, saved beside the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from ..config import FORMAT
from ..greedy.state import DYNAMIC, ORACLES
from ..greedy.systems import get_system
from .vocabulary import TAG_COLUMNS

SCORER = "perceptron"  # in config.json


@dataclass(frozen=True)
class PerceptronConfig:
    """Everything that defines a perceptron parser apart from its vocabulary and weights.

    Attributes
    ----------
    system : str
        One of `mh4.greedy.systems.SYSTEMS`.
    oracle : {"static", "dynamic", "all-pairs"}
        The last one of Covington parsing only: see `mh4.greedy.covington`.
    iterations : int
        Epochs; the one that is best on dev is kept.
    seed : int
    exploration_start, exploration : int, float
        With a dynamic oracle, follow wrong predictions with this probability once so many epochs are done; before, and
        otherwise, follow the optimal transition with the highest score (Goldberg & Nivre 2012).
    tag_column : {"upos", "xpos"}
        The parts of speech that the features see.

    Raises
    ------
    ValueError
        A value that is out of range, or unknown to the system.
    """

    system: str = "arc-eager"
    oracle: str = "dynamic"
    iterations: int = 15
    seed: int = 1
    exploration_start: int = 1
    exploration: float = 0.9
    tag_column: str = "upos"

    def __post_init__(self) -> None:
        _, system = get_system(self.system)
        if self.oracle not in system.oracles:
            raise ValueError(f"unknown oracle {self.oracle!r} of {self.system}; known: {', '.join(system.oracles)}")
        if self.tag_column not in TAG_COLUMNS:
            raise ValueError(f"unknown tag column {self.tag_column!r}; known: {', '.join(TAG_COLUMNS)}")
        if self.iterations < 1 or self.seed < 0 or self.exploration_start < 0:
            raise ValueError("iterations must be 1 or more, seed and exploration_start 0 or more")
        if not 0.0 <= self.exploration <= 1.0:
            raise ValueError(f"exploration is a probability, not {self.exploration}")

    def exploration_at(self, epoch: int) -> float:
        """Probability of following a wrong prediction in an epoch, counted from 0."""
        _, system = get_system(self.system)
        explores = self.oracle == ORACLES[DYNAMIC] and system.explores and epoch >= self.exploration_start
        return float(self.exploration) if explores else 0.0

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
        if data.get("format") != FORMAT:
            raise ValueError(f"model format {data.get('format')!r}; this version reads format {FORMAT}")
        if data.get("scorer") != SCORER:
            raise ValueError(f"scorer {data.get('scorer')!r} where {SCORER!r} is expected")
        values = {name: value for name, value in data.items() if name not in ("format", "scorer")}
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"unknown option {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return cls(**values)


def make_config(settings: Sequence[str]) -> PerceptronConfig:
    """The default configuration with some settings changed, given as "NAME=VALUE".

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type.
    """
    types: dict[str, type] = {field.name: type(field.default) for field in fields(PerceptronConfig)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in types:
            raise ValueError(f"unknown setting {name!r}; known: {', '.join(sorted(types))}")
        try:
            values[name] = types[name](value)
        except ValueError:
            raise ValueError(f"setting {name} must be of type {types[name].__name__}; got {value!r}") from None
    return PerceptronConfig(**values)
