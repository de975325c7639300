"""A model folder of any kind becomes the parser that it holds."""

from __future__ import annotations

from pathlib import Path

from .chart import ChartParser
from .folder import read_config, read_scorer
from .greedy import GreedyParser
from .perceptron.config import SCORER as PERCEPTRON
from .perceptron.parser import PerceptronParser
from .transition_config import TransitionConfig


def load_parser(
    folder: str | Path, device: str = "auto", search: str = "exact", threads: int | None = None
) -> ChartParser | GreedyParser | PerceptronParser:
    """Read a trained model, whatever it scores with.

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
    folder = Path(folder)
    perceptron = read_scorer(folder) == PERCEPTRON
    if perceptron or isinstance(read_config(folder), TransitionConfig):
        if search not in ("exact", "greedy"):
            raise ValueError(f"{folder} is a greedy transition-based parser: --search {search} does not apply")
        return PerceptronParser.load(folder) if perceptron else GreedyParser.load(folder, device)
    parser = ChartParser.load(folder, device, search)
    parser.threads = threads
    return parser
