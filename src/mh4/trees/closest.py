"""Trees to train on: the closest ones to gold trees that a decoder or a transition system can build."""

from typing import Protocol

import numpy as np

from mh4.data.sentence import Sentence
from mh4.decoders import Decoder, InfeasibleError
from mh4.decoders.closest import TREE_CLASSES, check_tree_class, closest_tree
from mh4.decoders.trees import given_heads_bonus
from mh4.oracles.costs import CHART_ORDER, ON_ORIGINAL_TREES, ORACLE_NAMES
from mh4.oracles.mh4 import closest_derivable, closest_in_chart

__all__ = ["TREE_CLASSES", "TreeBuilder", "check_tree_class", "closest_tree", "known_part", "training_tree"]


def known_part(heads: np.ndarray, decoder: Decoder) -> np.ndarray:
    """Partial heads, int (n + 1,), −1 where unknown, that some tree of the decoder's class contains.

    Returns ``heads`` if such a tree exists. Otherwise drops the heads missing from the tree that keeps the most.

    Raises
    ------
    ChartTooLargeError
        A chart beyond the memory limit.
    """
    size = len(heads) + 1
    scores = np.zeros((len(decoder.channels), size, size), np.float32)
    known = np.flatnonzero(heads[1:] >= 0) + 1
    try:
        decoder.decode(scores, given_heads_bonus([heads], size)[0])
    except InfeasibleError:
        bonus = np.zeros((size, size), np.float32)
        bonus[heads[known], known] = 1.0
        found = decoder.decode(scores, bonus).heads
        return np.where(found == heads, heads, -1)
    return heads


class TreeBuilder(Protocol):
    """The properties of a transition system that `training_tree` needs."""

    @property
    def trees(self) -> str:
        """Which trees it can build: "projective", "mh4" or "all"."""

    @property
    def single_root(self) -> bool:
        """Whether all these trees have exactly one word below the root."""


def training_tree(sentence: Sentence, system: TreeBuilder, oracle: str = "dynamic") -> np.ndarray:
    """The tree to train on, int (n + 1,): the gold tree or, if the system cannot build it, the closest one that it can.

    Oracles `ON_ORIGINAL_TREES` learn from any tree, which is changed only if the system requires one word below the
    root. With any other of `ORACLE_NAMES`, systems for projective trees get the closest projective tree, with one word
    below the root if the gold tree has one or the system requires it. MH4 gets the closest tree that it can build
    or, with ``chart-order``, that its chart can build, and Covington's parser, which can build every tree, the gold
    tree.
    """
    if oracle in ON_ORIGINAL_TREES:
        return closest_tree(sentence.padded_heads, "all", system.single_root)
    if system.trees == "mh4":
        closest = closest_in_chart if oracle == ORACLE_NAMES[CHART_ORDER] else closest_derivable
        return closest(sentence.padded_heads, system.single_root)
    if system.trees == "projective":
        single_root = system.single_root or len(sentence.roots) == 1
        return closest_tree(sentence.padded_heads, "projective", single_root)
    return sentence.padded_heads
