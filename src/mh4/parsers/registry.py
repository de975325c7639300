"""The kinds of parsers: which class makes a parser of a configuration, and which one reads a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mh4.decoders.search import beam_width
from mh4.models.devices import check_device

from .chart import ChartParser
from .checking import check_number
from .definition import Definition
from .folder import named_folder, read_config, read_segmenter
from .greedy import GreedyParser
from .perceptron.parser import PerceptronParser

NETWORK_PARSERS: dict[str, type[ChartParser] | type[GreedyParser]] = {
    parser.config_type.kind: parser for parser in (ChartParser, GreedyParser)
}
PARSERS: dict[str, type[ChartParser] | type[GreedyParser] | type[PerceptronParser]] = {
    **NETWORK_PARSERS,
    PerceptronParser.config_type.kind: PerceptronParser,
}


def new_parser(definition: Definition[Any], device: str = "auto") -> ChartParser | GreedyParser:
    """A parser with random weights."""
    return NETWORK_PARSERS[definition.config.kind](definition, device)


def load_parser(
    folder: str | Path, device: str = "auto", search: str = "exact", threads: int | None = None
) -> ChartParser | GreedyParser | PerceptronParser:
    """Read a trained model of any kind.

    Parameters
    ----------
    folder
        A model folder.
    device : {"auto", "cpu", "cuda"}
        Where a network runs.
    search : {"exact", "beam:K", "greedy"}
        Of models with a decoder; transition-based parsers are greedy as they are.
    threads : int, optional
        For decoding; by default one per core.

    Raises
    ------
    DataError
        Something in the folder is missing or damaged.
    ValueError, TypeError
        An unknown device or search, or one that the model does not admit; no number of threads.
    """
    check_device(device)
    beam_width(search)
    if threads is not None:
        threads = check_number("threads", threads)
    folder = named_folder(folder)
    parser = PARSERS[read_config(folder).kind].load(folder, device, search, threads)
    parser.segmenter = read_segmenter(folder)
    return parser
