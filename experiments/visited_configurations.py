"""Configurations that a trained deterministic parser visits on its training text; for the other experiments.

As in Nederhof (2019), section 8.2, and (2021), section 6, the parser is trained on the computations of all trees after
optimal projectivization, then parses the same sentences; the gold trees of the configurations are the original ones.
"""

from pathlib import Path

import numpy as np
import torch
from deterministic.parser import visited_configurations
from deterministic.states import Configurations
from deterministic.training import CONDITIONS, Settings, train_condition

from mh4.training.treebanks import read_gold


def visit(path: str | Path, settings: Settings) -> tuple[Configurations, list[np.ndarray]]:
    """Train on a treebank and parse it: configurations (stacks, labels, offsets, fronts, sentences) and gold trees."""
    torch.set_num_threads(1)
    sentences = read_gold(path)
    parser = train_condition(sentences, CONDITIONS[2], settings)
    return visited_configurations(parser, sentences), [sentence.padded_heads for sentence in sentences]
