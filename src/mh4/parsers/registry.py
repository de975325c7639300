"""All kinds of parsers: a class can be loaded because it is imported here."""

from __future__ import annotations

from typing import Any

from .base import Parser
from .chart import ChartParser
from .definition import Definition
from .ensemble import EnsembleParser
from .greedy import GreedyParser
from .perceptron.parser import PerceptronParser

__all__ = ["NETWORK_PARSERS", "EnsembleParser", "PerceptronParser", "load", "new_parser"]

NETWORK_PARSERS: dict[str, type[ChartParser] | type[GreedyParser]] = {
    parser.config_type.kind: parser for parser in (ChartParser, GreedyParser)
}

load = Parser.load


def new_parser(definition: Definition[Any], device: str = "auto") -> ChartParser | GreedyParser:
    """A parser with random weights."""
    return NETWORK_PARSERS[definition.config.kind](definition, device)
