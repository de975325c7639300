"""The kinds of parsers: which class makes a parser of a configuration, and which one reads a model folder."""

from __future__ import annotations

from pathlib import Path

from .chart import ChartParser
from .config import NetworkParserConfig
from .folder import named_folder, read_config, read_segmenter
from .greedy import GreedyParser
from .perceptron.parser import PerceptronParser
from .vocabulary import Vocabulary

NETWORK_PARSERS: dict[str, type[ChartParser] | type[GreedyParser]] = {
    parser.config_type.kind: parser for parser in (ChartParser, GreedyParser)
}
PARSERS: dict[str, type[ChartParser] | type[GreedyParser] | type[PerceptronParser]] = {
    **NETWORK_PARSERS,
    PerceptronParser.config_type.kind: PerceptronParser,
}


def new_parser(config: NetworkParserConfig, vocabulary: Vocabulary, device: str = "auto") -> ChartParser | GreedyParser:
    """A parser with random weights."""
    return NETWORK_PARSERS[config.kind](config, vocabulary, device)  # type: ignore[arg-type]


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
    ValueError
        A search that the model does not admit.
    """
    folder = named_folder(folder)
    parser = PARSERS[read_config(folder).kind].load(folder, device, search, threads)
    parser.segmenter = read_segmenter(folder)
    return parser
