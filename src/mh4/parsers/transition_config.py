"""Settings of a greedy parser with the network's scores, and of its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mh4.models.network_config import NetworkConfig
from mh4.models.transition_scorer import FORMS

from .config import FORMAT, TrainingConfig, saved_options
from .oracle_settings import OracleSettings
from .settings import build, parse_settings
from .systems import get_system

SCORER = "bilstm"  # in config.json


@dataclass(frozen=True)
class OracleConfig(OracleSettings):
    """What a greedy parser looks at, and what it is told in training.

    Attributes
    ----------
    system, oracle, exploration_start, exploration
        See `OracleSettings`.
    near_exploration : float
        Where exploration has begun, follow the best wrong prediction also where it is behind, by less than the margin
        of 1, with this probability (Kiperwasser & Goldberg 2016, section 5).
    positions : str
        The tokens whose vectors are read, such as ``"s1,s0,b0"``, of those that the system names; empty: its default.
    form : str
        How scores depend on these vectors: "concatenated", by one hidden layer over all of them, or "biaffine", of two,
        as in the chart decoders; empty: the system's default for its own positions, else concatenated.

    Raises
    ------
    ValueError
        A value that is out of range, or unknown to the system.
    """

    exploration: float = 1.0
    near_exploration: float = 0.1
    positions: str = ""
    form: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.near_exploration <= 1.0:
            raise ValueError(f"near_exploration is a probability, not {self.near_exploration}")
        _, system = get_system(self.system)
        if not self.positions:
            object.__setattr__(self, "positions", ",".join(system.positions))
        unknown = [name for name in self.position_names if name not in system.tokens]
        if unknown:
            raise ValueError(f"unknown positions {', '.join(unknown)}; {self.system} has: {', '.join(system.tokens)}")
        if not self.form:
            own = self.position_names == list(system.positions)
            object.__setattr__(self, "form", system.form if own else FORMS[0])
        if self.form not in FORMS:
            raise ValueError(f"unknown form {self.form!r}; known: {', '.join(FORMS)}")
        if self.form == "biaffine" and len(self.position_names) != 2:
            raise ValueError(f"biaffine scores are of two positions, not of {self.positions}")

    def explorations_at(self, epoch: int) -> tuple[float, float]:
        """Probabilities of following a wrong prediction that is ahead, and one that is not far behind, in an epoch."""
        ahead = self.exploration_at(epoch)
        return ahead, float(self.near_exploration) if ahead else 0.0

    @property
    def position_names(self) -> list[str]:
        """The tokens whose vectors are read."""
        return [name.strip() for name in self.positions.split(",")]


@dataclass(frozen=True)
class TransitionConfig:
    """Everything that defines a greedy parser with the network's scores apart from its vocabulary and weights."""

    transitions: OracleConfig = field(default_factory=OracleConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready content; `from_dict` reads it back."""
        return {"format": FORMAT, "scorer": SCORER, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TransitionConfig:
        """Inverse of `as_dict`.

        Raises
        ------
        ValueError
            An unknown format or an unknown option; the message lists the known ones.
        """
        parts = {"transitions": OracleConfig, "network": NetworkConfig, "training": TrainingConfig}
        values = saved_options(data)
        return build(cls, values | {name: build(part, values.get(name, {})) for name, part in parts.items()})


def make_transition_config(settings: Sequence[str]) -> TransitionConfig:
    """The default configuration with some settings changed, given as "NAME=VALUE".

    Raises
    ------
    ValueError
        An unknown name, the message listing the known ones; a value of the wrong type.
    """
    return TransitionConfig(*parse_settings(settings, OracleConfig, NetworkConfig, TrainingConfig))
