"""A model folder of any kind becomes the parser that it holds."""

from __future__ import annotations

from pathlib import Path

from .model_folder import read_config, read_scorer
from .parser import Parser
from .perceptron.config import SCORER as PERCEPTRON
from .perceptron.parser import PerceptronParser
from .transition_config import TransitionConfig
from .transition_parser import TransitionParser


def load_parser(
    folder: str | Path, device: str = "auto", search: str = "exact", threads: int | None = None
) -> Parser | TransitionParser | PerceptronParser:
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
        For decoding; by default one a core.

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
        return PerceptronParser.load(folder) if perceptron else TransitionParser.load(folder, device)
    parser = Parser.load(folder, device, search)
    parser.threads = threads
    return parser
